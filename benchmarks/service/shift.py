"""A shift of the distribution in mid-stream, through the real pipeline with 1, 2 and 4 instances.

The frequent keys of one half of the stream are other keys than those of the other half. At the end Spark
aggregates the whole stream, and `evenflow verify` must find no difference.
"""

from __future__ import annotations

from benchmarks.fleet.course import SEED as SEED
from benchmarks.fleet.course import Phase, beside_others, course, levels
from benchmarks.fleet.instances import INPUTS, PANES, WORKERS, fleet
from benchmarks.fleet.picture import courses
from benchmarks.measuring.step_lines import step
from benchmarks.pictures import PLOTS, keep
from workbench.local.broker import EmbeddedBroker

ID = "service-shift"
WHAT = (
    "slides until loads are level again after other keys became frequent, with 1, 2 and 4 instances; results"
    " exact"
)

PARTITIONERS, INSTANCES = ("evenflow", "dalton-cooperative"), (1, 2, 4)


def run(*, smoke: bool, seed: int = SEED) -> dict[str, object]:
    """A row for each partitioner and number of instances. ServiceError if a result is not that of a direct
    aggregation.
    """
    rows = []
    with EmbeddedBroker() as broker:
        for number in (2,) if smoke else INSTANCES:
            for name in PARTITIONERS[:1] if smoke else PARTITIONERS:
                title = f"{name}, {number} instance{'s' if number > 1 else ''}"
                phases = (Phase("", range_of(number)), Phase("shift", range_of(number), shifted=True))
                with (
                    step(title),
                    fleet(broker.settings(), f"shift-{name}-{number}", name, sources=number) as instances,
                ):
                    rows.append({"title": title, **course(instances, phases, smoke=smoke, seed=seed)})
                    instances.verify()
    if not smoke:
        picture = PLOTS / f"{ID}.svg"
        keep(beside_others(rows, picture), courses, picture)
    again = [{"partitioner": row["title"], "slides": row["again"]["shift"]} for row in rows]
    around = [{"partitioner": row["title"], **levels(row, "shift")._asdict()} for row in rows]
    return {
        "workers": WORKERS,
        "input_partitions": INPUTS,
        "window_slides": PANES,
        "again": again,
        "levels": around,
    }


def range_of(number: int) -> tuple[int, ...]:
    """Instances 0 to number - 1."""
    return tuple(range(number))
