"""How long the map and reduce tasks of Spark take with the micro-batches of several partitioners (001, fig.
2.8 and 4.8b).

A routed topic holds batches of a second of event time (50,000 tuples, windows of 1 s). The fused application
takes one batch a micro-batch, and says in its telemetry how long its tasks took. The spread is the time of
the longest task over the mean time of a task: 1 is even. The first micro-batches do not count, because code
is loaded then.

The records of micro-batches whose reduce tasks get clusters by Algorithm 3 are kept in `.evenflow/bench`, as
lines that `evenflow train partly --task-times` reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measuring.cpu import CpuMeter
from benchmarks.measuring.pipelines import WORKERS, QueryProcesses, ended_well, measured_broker
from benchmarks.measuring.spread import spread
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import EVENT_RATE
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.pictures import PLOTS
from benchmarks.spark.stages import FOLDER
from benchmarks.spark.triggers import routed_batches, taking
from evenflow.settings import Settings, save_settings
from evenflow.telemetry import BatchRecord, Part, parse
from topics.reader import read_all

ID = "spark-task-times"
WHAT = (
    "spread of the times of map and reduce tasks, by partitioner and by the way that reduce tasks get their"
    " keys"
)

WAYS = (
    ("hashing", "hash"),
    ("time-based", "hash"),
    ("evenflow", "hash"),
    ("prompt", "hash"),
    ("partly", "hash"),
    ("prompt", "prompt"),
    ("partly", "prompt"),
)
"""(partitioner, spark.reduce)"""
_TASKS: dict[str, Any] = {"combine_tasks": WORKERS, "buckets": WORKERS}
"""As many tasks of both kinds as there are workers, so that a task works off one data block."""
_SKEWS = (1.0, 1.5)
_LARGE = (1.0, "partly", "prompt", 5)
"""(exponent, partitioner, spark.reduce, batches a micro-batch). If all micro-batches are of one size, no fit
says what a key costs."""
_SKIPPED = 3


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each skew and way, with the `figures` of its micro-batches."""
    batches = _SKIPPED + (3 if smoke else 15)
    rows, telemetry = [], list[bytes]()
    ways = [(skew, *way, 1) for skew in _SKEWS for way in WAYS] + [_LARGE]
    with measured_broker("driver") as (broker, meter), TemporaryDirectory(prefix=FOLDER) as folder:
        for skew, name, reduce, many in ways[-1:] if smoke else ways:
            place = Path(folder) / f"{skew}-{name}-{reduce}-{many}"
            place.mkdir()
            kafka, query = broker.settings(), f"bench-{place.name}"
            routed = routed_batches(
                kafka, query, name, place, batches=many * batches, zipf=skew, reduce=reduce, **_TASKS
            )
            settings = taking(routed, 1 / batches)
            lines = micro_batches(settings, place, meter)
            records = [record for line in lines if isinstance(record := parse(line), BatchRecord)]
            setting = {"zipf": skew, "partitioner": name, "way": reduce, "tuples": many * EVENT_RATE}
            rows.append({**setting, **figures(records)})
            telemetry += lines if reduce == "prompt" else []
    if not smoke:
        PLOTS.mkdir(parents=True, exist_ok=True)
        (PLOTS / f"{ID}.telemetry").write_bytes(b"\n".join(telemetry) + b"\n")
    return {"batches": batches - _SKIPPED, "rows": rows}


def micro_batches(settings: Settings, folder: Path, meter: CpuMeter) -> list[bytes]:
    """The records of finished micro-batches that had rows, after the first ones, as the application wrote
    them.
    """
    save_settings(settings, folder / "settings.json")
    running = QueryProcesses(settings, folder, meter)
    try:
        with step(f"{settings.query.name}: micro-batches of {settings.partitioner.name}", running.counts):
            ended_well(running.start_passing("aggregate", "--until-ended"))
    finally:
        running.end()
    lines = [bytes(record.value() or b"") for record in read_all(settings.kafka, settings.topic("telemetry"))]
    return [line for line in lines if _has_work(line)][_SKIPPED:]


def _has_work(line: bytes) -> bool:
    record = parse(line)
    return isinstance(record, BatchRecord) and record.tuples > 0


def figures(records: Sequence[BatchRecord]) -> dict[str, Any]:
    """Spread over the micro-batches of both kinds of tasks, the number of tasks, and seconds of a
    micro-batch.
    """
    report: dict[str, Any] = {"micro_batches": len(records)}
    parts: tuple[Part, ...] = ("combine", "reduce")
    for part in parts:
        works = [work for record in records if (work := record.parts.get(part)) is not None and work.spread]
        report[part] = {
            "tasks": max((work.tasks for work in works), default=0),
            "spread": spread([work.spread or 1.0 for work in works]),
            "busy_ms": spread([work.busy_ms for work in works]),
        }
    report["seconds"] = spread([record.duration_ms / 1000 for record in records])
    return report
