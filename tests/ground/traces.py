"""What an engine or a cluster may leave on this machine, and a process that holds one until it is told or
killed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil

_PATIENCE = 90
_HOLD = """
import sys
from {module} import {name}
with {name}() as held:
    print(held, flush=True)
    sys.stdin.read()
"""


class Holder:
    """A process that has `NAME()` of `module` until it is told to let go. said: what it has, in words."""

    def __init__(self, module: str, name: str, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _HOLD.format(module=module, name=name)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline().strip()

    def let_go(self) -> str:
        """What it complained of; it must end well, or it never had anything."""
        _, complaint = self.process.communicate("", timeout=_PATIENCE)
        assert self.process.returncode == 0 or not self.said, complaint
        return complaint

    def kill(self) -> None:
        """As a crash would."""
        self.process.kill()
        self.process.communicate(timeout=_PATIENCE)


def traces(folder: Path) -> dict[str, object]:
    """Everything but files below the cache. folder: where the files of the engine or cluster are."""
    rules = [
        subprocess.run(
            ["iptables", f"--table={table}", "--list-rules"], capture_output=True, text=True
        ).stdout
        for table in ("filter", "nat", "mangle")
    ]
    return {
        "processes": _processes(folder),
        "mounts": Path("/proc/self/mounts").read_text(),
        "links": sorted(os.listdir("/sys/class/net")),
        "networks": sorted(os.listdir("/run/netns")) if Path("/run/netns").exists() else [],
        "control groups": sorted(map(str, Path("/sys/fs/cgroup").glob("*/evenflow-*"))),
        "packet filter": rules,
        "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
        "sockets": sorted(map(str, Path("/run").glob("evenflow-*"))),
        "fixed places": sorted(
            each for place in ("kubelet", "cni") for each in Path("/var/lib", place).glob("*")
        ),
    }


def _processes(folder: Path) -> list[str]:
    lines = (" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
    return sorted(line for line in lines if str(folder) in line)
