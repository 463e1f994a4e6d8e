"""Runs several partitioners over one stream, each in its own process, as many at a time as there are cores.

The stream lies in files that every process maps into its memory. Only figures and curves are pickled. A
further small mapped file, the board, carries the progress from the processes, and the wish to stop to them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from evenflow.errors import EvenflowError
from evenflow.host.processes import worker_processes
from evenflow.numeric.arrays import Int64s
from evenflow.simulation.results import SimulationResult, measure
from evenflow.simulation.routing import route
from evenflow.simulation.scenario import Entrant, Scenario
from evenflow.simulation.streams import KeyedStream, opened

_LOOK_EVERY = 0.1
Watcher = Callable[[Sequence[int]], None]
"""A callback that is told a few times a second how many tuples have been routed for each entrant."""


class _StoppedError(Exception):
    """Raised in a worker process when the process that started it wants it to stop."""


@dataclass(frozen=True)
class _Task:
    """What a worker process needs to know."""

    number: int
    """Place of the task among all, and of its progress on the board."""
    who: Entrant
    """The partitioner to be simulated."""
    scenario: Scenario
    """The conditions of the comparison."""
    folder: Path
    """Where the columns of the stream lie."""
    board: Path
    """File with the stop flag, then the progress of each task."""
    key_count: int
    """`KeyedStream.key_count` of the stream, which its folder does not have."""
    next_time: int | None
    """`KeyedStream.next_time`, likewise."""


def simulate(
    stream: KeyedStream,
    entrants: Sequence[Entrant],
    scenario: Scenario,
    *,
    processes: int | None = None,
    watch: Watcher = lambda done: None,
) -> list[SimulationResult]:
    """The result of each entrant on the stream, in the order of the entrants.

    `processes`: how many run at a time, by default as many as there are cores. With one, everything runs in
    this process. With more, processes are spawned, so a script that calls this function must guard its own
    start with `if __name__ == "__main__"`.

    ConfigError, before anything runs, for an entrant or a scenario that cannot be. EvenflowError if a process
    dies.
    """
    # Making the partitioners and finding the slides raises ConfigError now, not in a process.
    for who in entrants:
        scenario.partitioners(who, stream)
    if scenario.window_ms is not None:
        scenario.measured_slides(scenario.panes(stream.times), stream)
    cores = len(os.sched_getaffinity(0)) if processes is None else processes
    if min(cores, len(entrants)) <= 1:
        return _in_this_process(stream, entrants, scenario, watch)
    with TemporaryDirectory(prefix="evenflow-simulate-") as folder:
        return _apart(stream, entrants, scenario, min(cores, len(entrants)), watch, Path(folder))


def _in_this_process(
    stream: KeyedStream, entrants: Sequence[Entrant], scenario: Scenario, watch: Watcher
) -> list[SimulationResult]:
    done = [0] * len(entrants)
    results = []
    for number, who in enumerate(entrants):
        # The default argument binds this turn's number, whenever `report` is called.
        def report(tuples: int, number: int = number) -> None:
            done[number] = tuples
            watch(done)

        results.append(measure(route(stream, who, scenario, progress=report), who, stream, scenario))
    return results


def _apart(
    stream: KeyedStream,
    entrants: Sequence[Entrant],
    scenario: Scenario,
    processes: int,
    watch: Watcher,
    folder: Path,
) -> list[SimulationResult]:
    stored = stream.stored(folder)
    assert stored.folder is not None
    # Entry 0 is 1 to ask all tasks to stop. Entry 1 + number holds the tuples that the task has routed.
    board = folder / "board.npy"
    np.save(board, np.zeros(len(entrants) + 1, np.int64))
    progress = np.load(board, mmap_mode="r+")
    tasks = [
        _Task(number, who, scenario, stored.folder, board, stream.key_count, stream.next_time)
        for number, who in enumerate(entrants)
    ]
    pool = worker_processes(processes)
    try:
        # The stream is on disk and not in the tasks: every process maps the same pages.
        running = [pool.submit(_work, task) for task in tasks]
        _follow(running, progress, watch)
        return [future.result() for future in running]
    except BrokenProcessPool:
        raise EvenflowError(
            "a process of the simulation died", hint="out of memory? Try fewer tuples, keys or --jobs"
        ) from None
    finally:
        # `shutdown` waits for running tasks, which look at the board after each block.
        progress[0] = 1
        pool.shutdown(cancel_futures=True)


def _follow(running: list[Future[SimulationResult]], progress: Int64s, watch: Watcher) -> None:
    left = set(running)
    while left:
        finished, left = wait(left, timeout=_LOOK_EVERY)
        watch(progress[1:].tolist())
        for future in finished:
            future.result()  # raises what the task raised, without waiting for the others


def _work(task: _Task) -> SimulationResult:
    progress = np.load(task.board, mmap_mode="r+")

    def report(tuples: int) -> None:
        progress[task.number + 1] = tuples
        if progress[0]:
            raise _StoppedError

    stream = opened(task.folder, key_count=task.key_count, next_time=task.next_time)
    report(0)
    routed = route(stream, task.who, task.scenario, progress=report)
    return measure(routed, task.who, stream, task.scenario)
