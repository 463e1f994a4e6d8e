"""Runs the cells of a sweep, as many at a time as there are cores, each process with one stream at a time.

A process keeps the stream of its last cell, and cells on one stream come one after the other. So each process
generates a stream once. The tuples of a file lie in a folder that every process maps into its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evenflow.errors import EvenflowError
from evenflow.host.processes import worker_processes
from evenflow.numeric.arrays import Float64s
from evenflow.simulation.provenance import Origin, cores, provenance_of
from evenflow.simulation.results import measure
from evenflow.simulation.routing import route
from evenflow.simulation.streams import KeyedStream, opened
from evenflow.sweep.grid import Cell

_AHEAD = 2
"""Cells that wait for each process, so that none is idle."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CellOutcome:
    """A finished cell."""

    cell: Cell
    """What was simulated."""
    row: dict[str, Any]
    """The figures and their provenance (`table.ROWS`)."""
    at: Float64s
    """Where the series was taken, shape (points,)."""
    imbalance: Float64s
    """The whole series of the imbalance, shape (points,)."""


@dataclass(frozen=True)
class _StoredTuples:
    """A file's tuples, as every process opens them."""

    folder: Path
    """Where the columns lie."""
    key_count: int
    """`KeyedStream.key_count` of the file's stream."""
    next_time: int | None
    """`KeyedStream.next_time` of the file's stream."""


def run(
    cells: Sequence[Cell],
    *,
    file: KeyedStream | None = None,
    processes: int | None = None,
    finish: Callable[[CellOutcome], None],
) -> None:
    """Run the cells, and call `finish` in this process with each one that is done,
    in the order in which they end.

    file: the tuples of all cells if they come from a file. None: each cell generates its own. processes: how
    many run at a time, by default as many as there are cores. With one, everything runs in this process. With
    more, processes are spawned, so a script must guard its own start with `if __name__ == "__main__"`.
    ConfigError for a cell that cannot be, EvenflowError if a process dies.
    """
    many = min(cores() if processes is None else processes, len(cells))
    if many <= 1:
        streams = _Streams(file)
        for cell in cells:
            finish(_outcome(cell, streams.stream(cell)))
        return
    with TemporaryDirectory(prefix="evenflow-sweep-") as folder:
        stored = None
        if file is not None:
            on_disk = file.stored(Path(folder))
            assert on_disk.folder is not None
            stored = _StoredTuples(on_disk.folder, file.key_count, file.next_time)
        for outcome in _apart(cells, stored, many):
            finish(outcome)


def _apart(cells: Sequence[Cell], stored: _StoredTuples | None, processes: int) -> Iterator[CellOutcome]:
    pool = worker_processes(processes, begin=_begin, arguments=(stored,))
    waiting = iter(cells)
    running: set[Future[CellOutcome]] = set()
    try:
        while True:
            while len(running) < _AHEAD * processes and (cell := next(waiting, None)) is not None:
                running.add(pool.submit(_work, cell))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BrokenProcessPool:
        raise EvenflowError(
            "a process of the sweep died",
            hint="out of memory? Try fewer tuples, keys or --jobs; the same command goes on",
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


class _Streams:
    """The stream of the last cell."""

    def __init__(self, file: KeyedStream | None) -> None:
        self._file = file
        self._last: tuple[Origin, int, KeyedStream] | None = None

    def stream(self, cell: Cell) -> KeyedStream:
        """The stream of this cell."""
        if self._file is not None:
            return self._file
        if self._last is None or self._last[:2] != (cell.origin, cell.tuples):
            self._last = None  # the memory of one stream is free before the next one takes its own
            self._last = (cell.origin, cell.tuples, cell.stream())
        return self._last[2]


_streams = _Streams(None)
"""The streams of this worker process."""


def _begin(stored: _StoredTuples | None) -> None:
    """Open the stored stream in a worker process."""
    global _streams
    file = (
        None
        if stored is None
        else opened(stored.folder, key_count=stored.key_count, next_time=stored.next_time)
    )
    _streams = _Streams(file)


def _work(cell: Cell) -> CellOutcome:
    return _outcome(cell, _streams.stream(cell))


def _outcome(cell: Cell, stream: KeyedStream) -> CellOutcome:
    scenario, who = cell.scenario, cell.who
    result = measure(route(stream, who, scenario), who, stream, scenario)
    provenance = provenance_of(cell.origin, scenario, who, stream)
    row = asdict(result.figures) | asdict(provenance)
    return CellOutcome(cell=cell, row=row, at=result.at, imbalance=result.over_time)
