"""One round: play a course, let the pipeline come to its end, and judge."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.soak.sizes import thirds
from evenflow.settings.views import queries
from tests.chaos.course import Course
from tests.chaos.processes import marked
from tests.chaos.strikes import strike
from tests.chaos.world import World
from tests.pipeline.end_to_end import Stream, assert_equal, exported, rejected_places
from workbench.result_rows import export
from workbench.verify.views import verify_all

_STANDS_STILL_AFTER = 240.0
"""Seconds without a micro-batch after which a pipeline without faults counts as one that stands still."""
_FEWEST_SIZES = 12
MOST_GROWTH = 2.0
"""Memory in the last third of the strikes over that in the first third, above which memory counts as lost."""


@dataclass
class Outcome:
    """What became of a course. violations: none if all is well. tuples, rejected, rows: of the query itself.

    ends: how often processes ended, by exit status. batches: micro-batches that Spark committed meanwhile.
    growth: by sort of process, its memory in the last third of the strikes as a multiple of that in the first
    third. missed: strikes that had no target at their moment, by kind. history: what happened.
    """

    course: Course
    violations: list[str] = field(default_factory=list)
    tuples: int = 0
    rejected: int = 0
    rows: int = 0
    ends: dict[int, int] = field(default_factory=dict)
    batches: int = 0
    growth: dict[str, float] = field(default_factory=dict)
    missed: Counter[str] = field(default_factory=Counter)
    history: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        verdict = "exact" if not self.violations else "VIOLATED"
        ends = ", ".join(f"{status}: {times}" for status, times in sorted(self.ends.items()))
        memory = ", ".join(f"{sort} x{times:.2f}" for sort, times in self.growth.items())
        return (
            f"seed {self.course.seed}: {self.faults.total()} faults, {verdict}; {self.tuples} tuples, "
            f"{self.rejected} rejected, {self.rows} rows, {self.batches} micro-batches; "
            f"processes ended by status {{{ends}}}; memory {memory or 'unknown'}"
        )

    @property
    def faults(self) -> Counter[str]:
        """Strikes that hit something, by kind."""
        return Counter(fault.kind for fault in self.course.strikes) - self.missed


def play(course: Course, folder: Path, *, small_disks: bool = False) -> Outcome:
    """Play this course in this folder, which must be empty."""
    outcome = Outcome(course)
    with World(course, folder, small_disks=small_disks) as world:
        try:
            for fault in course.strikes:
                if fault.calm:
                    world.pass_until_at_work()
                world.pass_seconds(fault.gap)
                strike(world, fault)
            world.pass_seconds(2.0)
            world.heal()
            world.stop_feeding()
            world.stop_all()
            world.finish(_STANDS_STILL_AFTER)
            if not world.violations:
                judge(world.stream, folder, outcome)
        except Exception as error:  # the history has to be seen whatever it was
            world.violations.append(f"{type(error).__name__}: {error}")
        outcome.violations += world.violations
        outcome.history, outcome.ends, outcome.batches = world.history, world.ends, world.batches
        outcome.missed = world.missed
        outcome.growth = {
            sort: times for sort, sizes in world.memory.items() if (times := growth(sizes)) is not None
        }
    outcome.violations += [
        f"the memory of a {sort} is {times:.1f} times that of before"
        for sort, times in outcome.growth.items()
        if times > MOST_GROWTH
    ]
    outcome.violations += [f"left running: {process}" for process in marked(world.token)]
    return outcome


def growth(sizes: list[int]) -> float | None:
    """Median of the last third as a multiple of the median of the first. None for few sizes."""
    if len(sizes) < _FEWEST_SIZES:
        return None
    first, last = thirds(sizes)
    return last / max(1, first)


def end_exactly(world: World, outcome: Outcome, *, patience: float) -> None:
    """Let a pipeline without drawn strikes come to its end, and compare its results with brute force.

    patience: as of `World.finish`. Raises AssertionError if it does not end, or if a result differs.
    """
    world.stop_feeding()
    world.stop_all()
    world.finish(patience)
    assert not world.violations, "\n".join(world.violations)
    judge(world.stream, world.folder, outcome)


def judge(stream: Stream, folder: Path, outcome: Outcome) -> None:
    """Compare results and rejected records with brute force, and ask `verify`."""
    settings = stream.settings
    reports = verify_all(settings)
    report = reports.by_query[settings.query.name]
    outcome.tuples, outcome.rejected, outcome.rows = report.routed, report.rejected, report.rows
    assert (reports.exact, reports.ended) == (True, True), reports.text()
    assert report.routed + report.rejected == len(stream.records), reports.text()
    if settings.query.late == "update":
        return  # brute force knows one rule of lateness; verify knows the other
    assert rejected_places(settings) == stream.judged()[1]
    for one in queries(settings):
        file = folder / f"{one.query.name}.parquet"
        export(one, file)
        assert_equal(exported(one, file), stream.expected_of(one.query))
