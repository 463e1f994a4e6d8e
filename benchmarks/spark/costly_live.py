"""How late rows are, and what memory is held, where each tuple costs its worker 400 us: evenflow by how keys
are placed, and Flink and Spark themselves.

The work of `service-costly-peers`, but live: tuples come for half a minute, at 0.4 of what perfect balance
carries, and rows go to a topic of Kafka. A system whose fullest worker gets more than it can do falls behind.
Then rows come the later the longer it lasts, so its p99 says how long it was measured, and no more. In a
smoke run Flink is left out, because it would have to be downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

from benchmarks.measuring.pipelines import WORKERS, Program, QueryProcesses, measured_broker, running_query
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.pipeline.end_to_end import Live
from benchmarks.pipeline.rivals import programs
from benchmarks.pipeline.rivals.flink import flink_python
from benchmarks.spark.costly_peers import COST_US, PERFECT, SALTS, SKEWS, SPARK
from topics.admin import ensure_topics, pipeline_topics

ID = "service-costly-live"
WHAT = "a tuple costs 400 us, live: p99 of rows and memory of evenflow, Flink and Spark, by skew"

RATE = round(0.4 * PERFECT)
"""Tuples a second."""
PARTITIONERS = ("evenflow", "d-choices", "pkg", "hashing")
_SECONDS = 30.0
_TRICKLE = 500
_TUPLES_A_BATCH = 20_000
"""Of Spark: about as many as evenflow has in 400 frames, its bound as the settings come."""
_SETTLE = 15.0
"""Seconds until rows of Flink's fullest task are there. A few thousand tuples lie in front of it in buffers,
and rows of the other tasks do not wait for them.
"""
_MIB = 2**20
_NOT_OF_A_SYSTEM = ("broker", "bench", "replay")
"""Labels of processes that every system needs."""

Start = Callable[[QueryProcesses], None]
"""Starts the processes of a system."""


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each skew and system."""
    ways = list(product(SKEWS, systems(with_flink=not smoke).items()))
    seconds = 5.0 if smoke else _SECONDS
    rows: list[dict[str, Any]] = []
    with measured_broker() as (broker, meter):
        for number, (skew, (system, start)) in enumerate(ways[-1:] if smoke else ways):
            name = f"bench-live-{number}"
            with running_query(
                broker.settings(),
                meter,
                name,
                query={"window": "1s"},
                input={"topic": f"{name}.input", "partitions": WORKERS},
                partitioner={"name": system.removeprefix("evenflow, ")} if _is_ours(system) else {},
                spark=dict(SPARK),
            ) as running:
                figures = _live(running, start, skew, seconds=seconds)
            if not _is_ours(system):
                del figures["W"]  # other systems write no telemetry
            rows.append({"zipf": skew, "system": system, **figures})
    return {"cost_us": COST_US, "rate": RATE, "seconds": seconds, "workers": WORKERS, "rows": rows}


def systems(*, with_flink: bool) -> dict[str, Start]:
    """What starts each system, by its name in the figures."""
    ways: dict[str, Start] = {f"evenflow, {name}": _start_evenflow for name in PARTITIONERS}
    if with_flink:
        python = flink_python()
        ways["flink, keyBy"] = partial(_start_flink, python=python, phases="ONE_PHASE")
        ways["flink, two-phase"] = partial(_start_flink, python=python, phases="TWO_PHASE")
    ways["spark, by key"] = partial(_start_spark, salts=1, most=_TUPLES_A_BATCH)
    ways[f"spark, {SALTS} salts"] = partial(_start_spark, salts=SALTS, most=_TUPLES_A_BATCH)
    return ways


def _is_ours(system: str) -> bool:
    return system.startswith("evenflow, ")


def _start_evenflow(running: QueryProcesses) -> None:
    running.start("partition")
    running.start("aggregate")


def _start_flink(running: QueryProcesses, **options: Any) -> None:
    _start(running, partial(programs.flink_costly, folder=running.folder, **options))


def _start_spark(running: QueryProcesses, **options: Any) -> None:
    _start(running, partial(programs.spark_costly, **options))


def _start(running: QueryProcesses, program: Callable[..., Program]) -> None:
    """Start a program from the input topic to the topic of results."""
    settings = running.settings
    running.start_program(
        program(
            settings.kafka,
            settings.topic("input"),
            workers=WORKERS,
            cost_us=COST_US,
            results=settings.topic("results"),
        )
    )


def _live(running: QueryProcesses, start: Start, zipf: float, *, seconds: float) -> dict[str, Any]:
    """Figures of `Live.hold`, and most MiB in memory by process meanwhile and until rows were up to date."""
    ensure_topics(running.settings.kafka, pipeline_topics(running.settings).values())
    start(running)
    running.start_replay("trickle", zipf, _TRICKLE)
    with step("the first rows", running.counts):
        running.wait(lambda: running.records("results") > 0, "the first rows")
        running.up_to_date()
    began = running.meter.now()
    figures = Live(running, zipf, seconds=seconds, whole=True, settle=_SETTLE).hold(RATE, "costly tuples")
    held = running.meter.most_held(began, running.meter.now())
    most = {label: round(size / _MIB) for label, size in held.items() if label not in _NOT_OF_A_SYSTEM}
    return {**figures, "most_mib": most}
