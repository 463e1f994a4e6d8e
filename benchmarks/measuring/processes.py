"""CPU time and memory of processes from Linux's /proc: user and system seconds of a process and of its
children that ended, and what a process holds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = "/proc"
_REMEMBERED = 20
"""Number of looks after which the JVMs' threads are listed anew. On many cores compiler threads come and
go.
"""
# The kernel cuts names of threads to 15 characters.
_COMPILERS = ("C1 CompilerThre", "C2 CompilerThre")


@dataclass(frozen=True)
class Process:
    """One process at one moment. Two are the same process only if `pid` and `started` are equal."""

    pid: int
    """Process id. The kernel may give it to another process later."""
    parent: int
    """Process id of the parent."""
    started: int
    """Ticks since boot."""
    name: str
    """The kernel's short name: `java`, `python3`."""
    own: float
    """CPU seconds (user and system) of its threads, including threads that have ended."""
    reaped: float
    """CPU seconds of its children that have ended and were waited for, and of the children of these."""
    compilers: float = 0.0
    """CPU seconds of the JVM's compiler threads. Part of `own`."""
    resident: int = 0
    """Bytes that it has in memory. What it shares with others is counted for each of them."""


class ProcessTable:
    """Reads all processes. It lists the compiler threads of a JVM only now and then, because a JVM has
    many threads, and keeps their times after the JVM has ended.
    """

    def __init__(self) -> None:
        self._compilers: dict[tuple[int, int], dict[str, float]] = {}
        self._looks = 0

    def read(self) -> dict[int, Process]:
        """All processes that can be read, by pid."""
        self._looks += 1
        processes: dict[int, Process] = {}
        for name in os.listdir(_PROC):
            if name.isdigit():
                with suppress(OSError, ValueError, IndexError):  # the process ended while it was read
                    processes[int(name)] = self._process(int(name))
        return processes

    def _process(self, pid: int) -> Process:
        name, fields = _fields(f"{_PROC}/{pid}/stat")
        started = int(fields[19])
        return Process(
            pid=pid,
            parent=int(fields[1]),
            started=started,
            name=name,
            own=_seconds(fields[11], fields[12]),
            reaped=_seconds(fields[13], fields[14]),
            compilers=self._compiler_seconds(pid, started) if name == "java" else 0.0,
            resident=int(fields[21]) * _PAGE,
        )

    def _compiler_seconds(self, pid: int, started: int) -> float:
        """CPU seconds of the compiler threads. A thread that has ended, as all have while their JVM ends,
        counts with what it was last seen with.
        """
        seconds = self._compilers.setdefault((pid, started), {})
        if not seconds or self._looks % _REMEMBERED == 0:
            every = [f"{_PROC}/{pid}/task/{thread}/stat" for thread in os.listdir(f"{_PROC}/{pid}/task")]
            seconds |= {
                stat: 0.0 for stat in every if _thread_fields(stat)[0] in _COMPILERS and stat not in seconds
            }
        for stat in seconds:
            name, fields = _thread_fields(stat)
            # Another thread may have got the id of one that has ended.
            if name in _COMPILERS:
                seconds[stat] = max(seconds[stat], _seconds(*fields[11:13]))
        return sum(seconds.values())


def _fields(stat: str) -> tuple[str, list[str]]:
    """The name and the fields from the third on (see proc(5))."""
    # The name stands in brackets, and may itself have blanks and brackets.
    with open(stat, "rb") as file:
        text = file.read().decode(errors="replace")
    return text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()


def _thread_fields(stat: str) -> tuple[str, list[str]]:
    """As `_fields`, of a thread. Nothing if the thread has ended: its process may still live."""
    try:
        return _fields(stat)
    except (OSError, ValueError):
        return "", []


def _seconds(*ticks: str) -> float:
    return sum(map(int, ticks)) * _TICK


def machine_seconds() -> float:
    """CPU seconds since boot of everything that ran on this machine's cores.

    What other guests of the host took from these cores (steal) is included.
    """
    with open(f"{_PROC}/stat", encoding="ascii") as file:
        user, nice, system, _idle, _iowait, *rest = file.readline().split()[1:9]
    return _seconds(user, nice, system, *rest)


def ancestors(pid: int, processes: Mapping[int, Process]) -> list[int]:
    """The process itself, its parent, its parent's parent, and so on, as far as they are in the table."""
    line: list[int] = []
    while pid in processes and pid not in line:
        line.append(pid)
        pid = processes[pid].parent
    return line
