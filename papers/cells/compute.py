"""Measures the missing cells.

Cells of one stream are measured together, so that the stream is made once. Several streams are measured side
by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from itertools import groupby, islice

from evenflow.host.processes import worker_processes
from evenflow.text.options import name_of
from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import Store, Values
from papers.data import is_there
from papers.sections import SECTIONS

_AT_ONCE = 12
"""Most cells of a job. What a job found is written when the job ends."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class _Job:
    """Cells that one process measures."""

    section: str
    """The section to which all cells belong."""
    cells: tuple[Cell, ...]
    """Cells in the order in which they are measured."""
    plan: RunPlan
    """How large the run is."""


def missing(
    store: Store, plan: RunPlan, section: str, *, again: bool = False, only: str | None = None
) -> list[Cell]:
    """Cells that have no figures yet and whose data is there.

    With `again` also the cells that have figures. With `only` the cells of this partitioner only.
    """
    cells = SECTIONS[section].cells(plan)
    candidates = [cell for cell in cells if only is None or name_of(cell.partitioner) == only]
    readable = [c for c in candidates if not c.stream.is_data or is_there(c.stream.kind, plan.data)]
    measurable = getattr(SECTIONS[section], "measurable", lambda cell: True)
    return [cell for cell in readable if measurable(cell) and (again or not store.holds(cell))]


def compute(store: Store, plan: RunPlan, cells: Sequence[Cell], say: Say) -> None:
    """Measure these cells and keep what is found, job by job."""
    jobs = _jobs(cells, plan)
    if not jobs:
        return
    began, done = time.monotonic(), 0

    def keep(job: _Job, values_by_cell: dict[str, Values]) -> None:
        nonlocal done
        store.put(job.section, values_by_cell)
        done += len(job.cells)
        passed = time.monotonic() - began
        say(f"{done} of {len(cells)} cells, {passed:.0f} s: {job.section} {job.cells[0].key}")

    if min(plan.processes, len(jobs)) <= 1:
        for job in jobs:
            keep(job, _work(job))
        return
    with worker_processes(plan.processes) as pool:
        running = {pool.submit(_work, job): job for job in jobs}
        for future in as_completed(running):
            keep(running[future], future.result())


def _jobs(cells: Sequence[Cell], plan: RunPlan) -> list[_Job]:
    jobs = []
    ordered = sorted(cells, key=lambda cell: (cell.section, cell.stream, cell.experiment))
    # `groupby` joins neighbours only, so the cells are sorted by the same key.
    for (section, _, _), group in groupby(
        ordered, key=lambda cell: (cell.section, cell.stream, cell.experiment)
    ):
        rest = iter(group)
        while part := tuple(islice(rest, _AT_ONCE)):
            jobs.append(_Job(section, part, plan))
    return jobs


def _work(job: _Job) -> dict[str, Values]:
    section = SECTIONS[job.section]
    opened = StreamCache(job.cells[0].stream, job.plan)
    return {cell.key: section.measure(cell, opened, job.plan) for cell in job.cells}
