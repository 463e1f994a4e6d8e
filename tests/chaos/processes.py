"""Processes of this machine: those of a round, those below a driver, and the memory that one holds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import psutil

MARK = "EVENFLOW_CHAOS"
"""Environment variable that every process of a round bears, with the round's own value."""
_YOUNG = 10.0
"""Seconds that a process takes to load what it works with."""
_EXECUTOR = "CoarseGrainedExecutorBackend"


def marked(token: str) -> list[str]:
    """`pid command` of every running process that bears this mark."""
    return [
        f"{pid} {command}"
        for process in psutil.process_iter()
        for pid, command in _running(process)
        if token == _environment(process).get(MARK)
    ]


def python_workers(driver: int) -> list[int]:
    """Process ids of Spark's Python workers, and of the daemon that forks them, below a driver."""
    return [
        pid for pid, command in _below(driver) if "spark_consumers.workers.daemon pyspark.worker" in command
    ]


def java_of(driver: int) -> list[int]:
    """Process ids of a driver's own Java."""
    return [pid for pid, command in _java(driver) if _EXECUTOR not in command]


def executors(driver: int) -> list[int]:
    """Process ids of the executors below a driver that has some beside itself."""
    return [pid for pid, command in _java(driver) if _EXECUTOR in command]


def _java(driver: int) -> list[tuple[int, str]]:
    return [one for one in _below(driver) if one[1].split()[0].rpartition("/")[2] == "java"]


def resident(pid: int) -> int:
    """MB of memory that a process holds. 0 if it has ended."""
    with suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss) >> 20
    return 0


def settled(pid: int) -> bool:
    """Whether a process is old enough for its memory to say something."""
    with suppress(psutil.Error):
        return time.time() - float(psutil.Process(pid).create_time()) > _YOUNG
    return False


def _below(above: int) -> list[tuple[int, str]]:
    """Process ids and commands of all processes that this one has started, directly or not."""
    with suppress(psutil.Error):
        below = psutil.Process(above).children(recursive=True)
        return sorted(result for process in below for result in _running(process))
    return []


def _running(process: psutil.Process) -> Iterator[tuple[int, str]]:
    """Its id and command, if it has not ended meanwhile. A zombie has no command, nor has a thread of the
    kernel.
    """
    with suppress(psutil.Error):
        if command := " ".join(process.cmdline()):
            yield process.pid, command


def _environment(process: psutil.Process) -> dict[str, str]:
    with suppress(psutil.Error):
        return dict(process.environ())
    return {}
