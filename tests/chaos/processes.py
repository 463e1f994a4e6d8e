"""Processes of this machine by what /proc says of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MARK = "EVENFLOW_CHAOS"
"""Environment variable that every process of a round bears, with the round's own value."""


def marked(token: str) -> list[str]:
    """`pid command` of every running process that bears this mark."""
    wanted = f"{MARK}={token}".encode()
    return [
        f"{folder.name} {_command(folder)}"
        for folder in _processes()
        if wanted in _read(folder / "environ").split(b"\0") and _command(folder)
    ]


def python_workers(driver: int) -> list[int]:
    """Process ids of Spark's Python workers, and of the daemon that forks them, below a driver."""
    return [pid for pid, command in _below(driver) if "spark_consumers.daemon pyspark.worker" in command]


def java_of(driver: int) -> list[int]:
    """Process ids of Java below a driver."""
    return [pid for pid, command in _below(driver) if Path(command.split()[0]).name == "java"]


def _below(above_all: int) -> list[tuple[int, str]]:
    """Process ids and commands of all processes that this one has started, directly or not."""
    parents = {int(folder.name): _parent(folder) for folder in _processes()}
    found = []
    for pid in parents:
        line, above = pid, []
        while line in parents and line not in above:
            above.append(line)
            line = parents[line]
        if above_all in above[1:] and (command := _command(Path("/proc") / str(pid))):
            found.append((pid, command))
    return sorted(found)


def resident(pid: int) -> int:
    """MB of memory that a process holds. 0 if it has ended."""
    for line in _read(Path("/proc") / str(pid) / "status").splitlines():
        if line.startswith(b"VmRSS:"):
            return int(line.split()[1]) // 1024
    return 0


def _processes() -> Iterator[Path]:
    return (folder for folder in Path("/proc").iterdir() if folder.name.isdigit())


def _parent(folder: Path) -> int:
    # The name in brackets may hold anything. The state and the parent stand behind it.
    rest = _read(folder / "stat").rpartition(b")")[2].split()
    return int(rest[1]) if rest else 0


def _command(folder: Path) -> str:
    return _read(folder / "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()


def _read(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes()
    return b""
