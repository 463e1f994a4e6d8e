"""A command in namespaces of its own: whatever it starts, mounts and wires is gone with it, however it ends.

The command is the first process of a process-id namespace. The kernel kills all others when that one ends,
and drops the mounts and links that nobody else sees. The command itself dies with us.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from evenflow.errors import ServiceError
from workbench.local.processes import ChildProcess

_PATIENCE = 10.0
_CGROUPS = Path("/sys/fs/cgroup")
_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "pids", "systemd", "devices", "freezer", "blkio")


class Sandbox:
    """network: whether it has a network of its own, with nothing in it, too."""

    def __init__(self, command: Sequence[str], *, log: Path, network: bool = False) -> None:
        words = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
        words += ["--net"] if network else []
        self._network = network
        self.process = ChildProcess([*words, *command], log=log, name=Path(command[0]).name)
        try:
            self.pid = self._first_process()
        except BaseException:
            self.process.kill()
            raise

    def _first_process(self) -> int:
        """Its id as seen from outside: unshare's only child."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline and self.process.alive:
            with suppress(psutil.NoSuchProcess):
                for child in psutil.Process(self.process.pid).children():
                    return int(child.pid)
            time.sleep(0.01)
        raise ServiceError(f"{self.process.name} does not start:\n{self.process.tail()}")

    def inside(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command in there."""
        words = ["nsenter", f"--target={self.pid}", "--pid", "--mount"]
        return [*words, *(["--net"] if self._network else []), "--", *command]

    def end(self, grace: float = 0.0) -> None:
        """Ask the command to end, and after so many seconds kill everything in there."""
        if grace:
            with suppress(psutil.NoSuchProcess):
                psutil.Process(self.pid).terminate()
            with suppress(ServiceError):
                self.process.wait(grace)
        self.process.kill()


def make_cgroups(name: str) -> None:
    """A control group of that name in every hierarchy of version 1. Raises ServiceError where there are
    none.
    """
    hierarchies = [_CGROUPS / controller for controller in _CONTROLLERS if (_CGROUPS / controller).is_dir()]
    if not hierarchies:
        raise ServiceError(
            "a Kubernetes node of our own needs control groups of version 1",
            hint=(
                "start the machine with systemd.unified_cgroup_hierarchy=0, or try the manifests on a cluster"
                " you have"
            ),
        )
    for hierarchy in hierarchies:
        (hierarchy / name).mkdir(exist_ok=True)
    for file in ("cpuset.cpus", "cpuset.mems"):  # a new group may use none until it is told
        (_CGROUPS / "cpuset" / name / file).write_text((_CGROUPS / "cpuset" / file).read_text())


def remove_cgroups(name: str) -> None:
    """The control groups of that name, in every hierarchy, whose processes have ended."""
    deadline = time.monotonic() + _PATIENCE
    for root in (*_CGROUPS.glob(f"*/{name}"), *_CGROUPS.glob(name)):
        folders = sorted((each for each in root.rglob("*") if each.is_dir()), reverse=True)
        for folder in [*folders, root]:
            _remove(folder, deadline)


def _remove(folder: Path, deadline: float) -> None:
    """The kernel refuses until the last process is reaped, a moment after it was killed."""
    while True:
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if time.monotonic() >= deadline:
                raise ServiceError(
                    f"the control group {folder} cannot be removed: {error.strerror}"
                ) from None
            time.sleep(0.02)
