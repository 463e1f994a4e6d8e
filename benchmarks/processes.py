"""CPU time of processes as Linux tells it in /proc: user and system seconds, own and of children that ended."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_PROC = "/proc"
_REMEMBERED = 20
"""Looks after which the JVMs' threads are listed anew: on many cores compilers come and go."""
_COMPILERS = ("C1 CompilerThre", "C2 CompilerThre")


@dataclass(frozen=True)
class Process:
    """One process at one moment. A process is the same one only if `pid` and `started` are."""

    pid: int
    parent: int
    started: int
    """Ticks since boot."""
    name: str
    """The kernel's short name: `java`, `python3`."""
    own: float
    """CPU seconds (user and system) of its threads, ended ones included."""
    reaped: float
    """CPU seconds of its children that ended and were waited for, and of theirs."""
    compilers: float = 0.0
    """CPU seconds of the JVM's compiler threads. Part of `own`."""


class ProcessTable:
    """Reads all processes. Which threads of a JVM are its compilers is asked again only now and then."""

    def __init__(self) -> None:
        self._compilers: dict[tuple[int, int], list[str]] = {}
        self._looks = 0

    def read(self) -> dict[int, Process]:
        """All processes that can be read, by pid."""
        if self._looks % _REMEMBERED == 0:
            self._compilers.clear()
        self._looks += 1
        found: dict[int, Process] = {}
        for name in os.listdir(_PROC):
            if name.isdigit():
                with suppress(OSError, ValueError, IndexError):  # it ended while we looked
                    found[int(name)] = self._process(int(name))
        return found

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
        )

    def _compiler_seconds(self, pid: int, started: int) -> float:
        known = self._compilers.get((pid, started))
        if not known:
            known = [
                stat
                for thread in os.listdir(f"{_PROC}/{pid}/task")
                if _fields(stat := f"{_PROC}/{pid}/task/{thread}/stat")[0] in _COMPILERS
            ]
            self._compilers[pid, started] = known
        return sum(_seconds(*_fields(stat)[1][11:13]) for stat in known)


def _fields(stat: str) -> tuple[str, list[str]]:
    """The name, which may hold blanks and brackets, and the fields from the third on (see proc(5))."""
    with open(stat, "rb") as file:
        text = file.read().decode(errors="replace")
    return text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()


def _seconds(*ticks: str) -> float:
    return sum(map(int, ticks)) * _TICK


def machine_seconds() -> float:
    """CPU seconds since boot of all that ran on all cores, and of other guests of the host that took them (steal)."""
    with open(f"{_PROC}/stat", encoding="ascii") as file:
        user, nice, system, _idle, _iowait, *rest = file.readline().split()[1:9]
    return _seconds(user, nice, system, *rest)


def ancestors(pid: int, processes: Mapping[int, Process]) -> list[int]:
    """The process itself, its parent, and so on, as far as they are known."""
    line: list[int] = []
    while pid in processes and pid not in line:
        line.append(pid)
        pid = processes[pid].parent
    return line
