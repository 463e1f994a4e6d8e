"""Where balance decides: each tuple costs the combiner so much that the fullest worker sets the pace.

A routed topic holds batches of a second of event time (50,000 tuples, windows of 1 s), and the fused
application takes one batch a micro-batch, with a task for each of 8 workers. Two cores cannot work for 8. So
a tuple costs a wait (`spark.combine_wait`), one sleep for all tuples of a task: single sleeps of a few
microseconds are below what a timer can do. All ways run through the same application. What differs besides is
the number of partial rows, which is in the figures.

`shuffle` is the mark: its workers have equally many tuples. What other systems and people do is a
placement, too (`habits`), where the work is a function that does not merge, so that all tuples of a key must
come together: then Spark hashes the key, Flink's `keyBy` hashes it to a key group, and salting by hand hashes
key and salt. (Sums and counts merge, and both systems add them up before they shuffle.)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measuring.balance import judged_balance
from benchmarks.measuring.pipelines import WORKERS, measured_broker
from benchmarks.measuring.spread import spread
from benchmarks.measuring.stream import EVENT_RATE
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.spark.stages import FOLDER
from benchmarks.spark.task_times import micro_batches
from benchmarks.spark.triggers import routed_batches, taking
from evenflow.telemetry import BatchRecord, parse

ID = "spark-costly-work"
WHAT = (
    "throughput where a tuple costs 400 us, against perfect balance: by skew and by how keys are placed"
    " (goal: 0.9 where hashing is more than three times slower)"
)
SMOKED_BY = "spark-task-times"

COST_US = 400
"""What a tuple costs a worker. At perfect balance 8 workers take 20,000 tuples/s."""
SKEWS = (1.0, 1.4, 2.0)
PLACEMENTS = {
    "shuffle": "shuffle",
    "hash of the key": "hashing",
    "128 key groups": "benchmarks.spark.habits:KeyGroups",
    "hash of key and one of 8 salts": "benchmarks.spark.habits:Salting",
    "pkg": "pkg",
    "d-choices": "d-choices",
    "w-choices": "w-choices",
    "evenflow": "evenflow",
}
"""What a reader calls a placement -> the name of the partitioner. The mark stands first."""
_SKIPPED = 3
_MEASURED = 5


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each skew and placement."""
    ways = list(product(SKEWS, PLACEMENTS))
    with measured_broker("driver") as (broker, meter), TemporaryDirectory(prefix=FOLDER) as folder:
        rows: list[dict[str, Any]] = []
        for number, (skew, placement) in enumerate(ways[:1] if smoke else ways):
            place = Path(folder) / str(number)
            place.mkdir()
            settings = routed_batches(
                broker.settings(),
                f"bench-costly-{number}",
                PLACEMENTS[placement],
                place,
                batches=_SKIPPED + _MEASURED,
                zipf=skew,
                master=f"local[{WORKERS}]",
                combine_tasks=WORKERS,
                combine_wait=COST_US,
            )
            lines = micro_batches(taking(settings, 1 / (_SKIPPED + _MEASURED)), place, meter)
            records = [record for line in lines if isinstance(record := parse(line), BatchRecord)]
            rows.append({"zipf": skew, "placement": placement, **figures(records)})
    return {
        "cost_us": COST_US,
        "batch_tuples": EVENT_RATE,
        "workers": WORKERS,
        "rows": judged_placements(against_mark(rows)),
    }


def figures(records: Sequence[BatchRecord]) -> dict[str, Any]:
    """Seconds of a micro-batch and of its longest combine task, load of the fullest worker over the mean, and
    partial rows a micro-batch.
    """
    combine = [record.parts["combine"] for record in records]
    fullest = [
        max(tuples for _, tuples, _ in work.routed) * WORKERS / work.rows for work in combine if work.routed
    ]
    return {
        "micro_batches": len(records),
        "tuples_per_second": round(
            1000 * sum(record.tuples for record in records) / sum(record.duration_ms for record in records)
        ),
        "seconds": spread([record.duration_ms / 1000 for record in records]),
        "longest_task_s": spread([work.longest_ms / 1000 for work in combine]),
        "fullest_worker": spread(fullest),
        "partials": spread([record.parts["reduce"].rows for record in records]),
    }


def against_mark(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, each with its throughput over that of perfect balance under the same skew."""
    mark = next(iter(PLACEMENTS))
    marks = {row["zipf"]: row["tuples_per_second"] for row in rows if row["placement"] == mark}
    return [{**row, "of_perfect": round(row["tuples_per_second"] / marks[row["zipf"]], 3)} for row in rows]


def judged_placements(rows: Sequence[dict[str, Any]], *, ours: str = "evenflow") -> list[dict[str, Any]]:
    """The rows, of which those of this placement have the goal (`judged_balance`)."""
    return judged_balance(rows, by="placement", ours=ours, hashing="hash of the key")
