"""The telemetry record of a finished micro-batch, from Spark's progress report
and its Python workers' tallies.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, cast

from evenflow.settings import Settings
from evenflow.telemetry import BatchRecord, PartWork, Stage, parts_of
from evenflow.twostep import Part, Tally
from evenflow.twostep.arrival_times import ArrivalCounts
from evenflow.windows import NO_MARK
from spark_consumers.cluster.executors import ExecutorState
from spark_consumers.reports.batch_limits import BatchLimits
from spark_consumers.reports.pulse import Run


def query_of(progress: Mapping[str, Any]) -> str:
    """Name of the query, or of the view, that this progress report is about."""
    return str(progress.get("name") or "").rpartition(" ")[0]


def stage_of(progress: Mapping[str, Any]) -> Stage:
    """The stage that this progress report is about. Spark's queries are named `<query> <stage>`."""
    # Only stages start queries in this application, and `BatchRecord` refuses other words.
    return cast("Stage", str(progress.get("name") or "").rsplit(" ", 1)[-1])


def batch_record(
    progress: Mapping[str, Any],
    settings: Settings,
    *,
    before: Tally,
    now: Tally,
    standing: ExecutorState,
    limits: BatchLimits,
    run: Run,
) -> BatchRecord:
    """The record of one micro-batch.

    progress: Spark's report, parsed from JSON. before, now: what the Python workers had told by the last
    record and by this one. standing: of the application. limits, run: of the stage. Raises ValueError if the
    report is not about a stage.
    """
    stage, interval = stage_of(progress), settings.spark.batch_interval
    ended = int(time.time() * 1000)
    durations = progress.get("durationMs", {})
    took = durations.get("triggerExecution", progress.get("batchDuration", 0))
    sources = progress.get("sources", [])
    return BatchRecord(
        query=settings.query.name,
        fingerprint=settings.fingerprint,
        time=ended,
        stage=stage,
        batch=progress["batchId"],
        rows=progress["numInputRows"],
        duration_ms=took,
        batch_interval_ms=interval,
        load=took / interval if interval else None,  # W of Prompt+
        backlog=_backlog(sources),
        parts={
            part: work for part in parts_of(stage) if (work := _work(now, part, progress["batchId"], ended))
        },
        slots=standing.slots,
        executors=standing.executors,
        epoch=standing.epoch,
        reducers=standing.reducers,
        mark=None if now.mark is None or now.mark == NO_MARK else now.mark,
        state_bytes=_state_bytes(progress),
        durations_ms=durations,
        offsets=[source.get("endOffset") for source in sources],
        **limits._asdict(),
        **run._asdict(),
        **_told_since(before, now, parts_of(stage)),
    )


def _work(tally: Tally, part: Part, batch: int, ended: int) -> PartWork | None:
    work = tally.work.get((part, batch))
    if work is None:
        return None
    keys = work.distinct
    return PartWork(
        tasks=work.tasks,
        busy_ms=round(work.busy_ms, 1),
        longest_ms=round(work.longest_ms, 1),
        rows=work.rows,
        keys=round(keys, 1),
        repeated=work.repeated,
        replication=round(max(1.0, work.key_replicas / keys), 3) if work.key_replicas and keys else None,
        latencies=_latencies(work.arrivals, ended),
        result_latencies=_latencies(work.emitted, ended),
        routed=[(number, rows, round(ms, 2)) for number, (rows, ms) in sorted(work.by_worker.items())],
    )


def _latencies(arrivals: ArrivalCounts, ended: int) -> list[tuple[int, int]]:
    # `arrival` is by the clock of another machine, so the difference may be below 0.
    return [(max(0, ended - arrival), rows) for arrival, rows in sorted(arrivals.items())]


def _state_bytes(progress: Mapping[str, Any]) -> int | None:
    """Bytes that all state stores hold in memory, together. None if Spark reports no state store."""
    operators = progress.get("stateOperators", [])
    return sum(max(0, operator.get("memoryUsedBytes", 0)) for operator in operators) if operators else None


def _backlog(sources: list[dict[str, Any]]) -> int | None:
    """Frames (or blobs) that were still to be read after this micro-batch, when it was planned.

    None if not known.
    """
    behind = [_behind(source["endOffset"], source["latestOffset"]) for source in sources if _both(source)]
    return sum(behind) if behind else None


def _both(source: Mapping[str, Any]) -> bool:
    return bool(source.get("endOffset") and source.get("latestOffset"))


def _behind(ends: Mapping[str, dict[str, int]], latest: Mapping[str, dict[str, int]]) -> int:
    # A partition that is missing in `ends` counts as read up to its end.
    return sum(
        max(0, end - ends.get(topic, {}).get(partition, end))
        for topic, partitions in latest.items()
        for partition, end in partitions.items()
    )


def _told_since(before: Tally, now: Tally, parts: tuple[Part, ...]) -> dict[str, Any]:
    """Fields of the record: what these parts did between two tallies, and the open windows (times in ms)."""
    fields: dict[str, Any] = {}
    if "combine" in parts:
        fields["tuples"] = now.tuples - before.tuples
    if "reduce" in parts:
        stand = now.stand
        fields |= {
            "rows_out": now.rows - before.rows,
            "windows_closed": now.windows - before.windows,
            "unfit": now.unfit - before.unfit,
            "last_window_end": max(now.emitted.values(), default=None),
            "open_windows": None if stand is None else stand.windows,
            "open_panes": None if stand is None else stand.panes,
            "next_window_end": None if stand is None else stand.next_end,
        }
    return fields
