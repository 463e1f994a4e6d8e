"""How large processes and folders are, and whether they grow."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

import psutil

FEWEST = 12
"""Looks that a verdict needs."""
_BLOCK = 512
_MIB = 2**20


def of_process(pid: int) -> tuple[float, int, int]:
    """MiB of memory, open files and threads of this process and of all below it."""
    memory = files = threads = 0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):  # it has just ended
                memory += process.memory_info().rss
                files += process.num_fds()
                threads += process.num_threads()
    return memory / _MIB, files, threads


def of_folder(folder: Path) -> tuple[int, float]:
    """Files below this folder, and the MiB that they take on the disk.

    A file may be longer than what it takes: Kafka makes the index of a segment in its full length at once.
    """
    number = size = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # it has just been deleted
            if file.is_file():
                number += 1
                size += file.stat().st_blocks * _BLOCK
    return number, size / _MIB


def thirds(values: Sequence[float]) -> tuple[float, float]:
    """Medians of the first and of the last third. At least three values."""
    third = len(values) // 3
    return median(values[:third]), median(values[-third:])


def thirds_after_start(values: Sequence[float]) -> tuple[float, float]:
    """As `thirds`, of what is left without the first quarter.

    Raises ValueError for fewer than `FEWEST` values.
    """
    if len(values) < FEWEST:
        raise ValueError(f"{len(values)} looks are too few: at least {FEWEST}")
    return thirds(values[len(values) // 4 :])
