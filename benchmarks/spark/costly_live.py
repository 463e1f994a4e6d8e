"""How late rows are, and what memory is held, where each tuple costs the combiner work.

The tuples, workers and placements of `spark-costly-work`, but live: tuples come for half a minute, at 0.4 of
what perfect balance carries, and the partitioner is a process of its own. A placement whose fullest worker
gets more than it can do falls behind. Then rows come the later the longer it lasts, so its p99 says how long
it was measured, and no more.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from benchmarks.measuring.pipelines import WORKERS, QueryProcesses, measured_broker, running_query
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.pipeline.end_to_end import Live
from benchmarks.spark.costly_work import COST_US, PLACEMENTS
from topics.admin import ensure_topics, pipeline_topics

ID = "spark-costly-live"
WHAT = "p99 of rows and memory where a tuple costs 400 us, live, by skew and by how keys are placed"

RATE = 8_000
"""Tuples a second. At perfect balance 8 workers take 20,000."""
SKEWS = (1.4, 2.0)
_SECONDS = 30.0
_TRICKLE = 500
_MIB = 2**20


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each skew and placement."""
    ways = list(product(SKEWS, PLACEMENTS))
    seconds = 5.0 if smoke else _SECONDS
    rows: list[dict[str, Any]] = []
    with measured_broker() as (broker, meter):
        for number, (skew, placement) in enumerate(ways[-1:] if smoke else ways):
            name = f"bench-live-{number}"
            with running_query(
                broker.settings(),
                meter,
                name,
                query={"window": "1s"},
                input={"topic": f"{name}.input"},
                partitioner={"name": PLACEMENTS[placement]},
                spark={
                    "wiring": "fused",
                    "master": f"local[{WORKERS}]",
                    "combine_tasks": WORKERS,
                    "combine_wait": COST_US,
                },
            ) as running:
                figures = _live(running, skew, seconds=seconds)
            rows.append({"zipf": skew, "placement": placement, **figures})
    return {"cost_us": COST_US, "rate": RATE, "seconds": seconds, "workers": WORKERS, "rows": rows}


def _live(running: QueryProcesses, zipf: float, *, seconds: float) -> dict[str, Any]:
    """Figures of `Live.hold`, and most MiB in memory by process meanwhile and until rows were up to date."""
    ensure_topics(running.settings.kafka, pipeline_topics(running.settings).values())
    running.start("partition")
    running.start("aggregate")
    running.start_replay("trickle", zipf, _TRICKLE)
    with step("the first rows", running.counts):
        running.wait(lambda: running.records("results") > 0, "the first rows")
        running.up_to_date()
    began = running.meter.now()
    figures = Live(running, zipf, seconds=seconds).hold(RATE, "costly tuples")
    held = running.meter.most_held(began, running.meter.now())
    return {**figures, "most_mib": {label: round(size / _MIB) for label, size in held.items()}}
