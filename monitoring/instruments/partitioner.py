"""The metrics of a partitioner instance.

At each scrape they are read from its status and its newest telemetry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evenflow.settings import Settings
from evenflow.telemetry import PartitionerRecord
from monitoring.instruments import catalogue as c
from monitoring.instruments.sheet import Instruments, Sheet

_NAME = "partitioner"
_REASONS = ("late", "unreadable", "unmatched", "too-large", "idle", "jump", "ahead", "after-end", "skipped")
_UNUSED = ("corrupt", "version", "foreign", "oversized", "ahead", "old", "twin", "unusable", "crowded")
_CUT_SHORT = ("memory", "skew", "partitions", "skip", "end")
"""Exported from the start, at 0, because Prometheus sees no increase in a counter that begins above 0."""

_FIGURES = {
    c.PARTITIONER_BATCH_SIZE: "bsi",
    c.PARTITIONER_BATCH_CARDINALITY: "bci",
    c.PARTITIONER_BATCH_SPLITTING: "ksr",
    c.PARTITIONER_BATCH_INDEX: "mpi",
}
"""Figures of a micro-batch, as `BatchState` names them."""


class PartitionerInstruments(Instruments):
    """`block` and `commit` count each event as it happens.

    Everything else is read, and costs time, only at a scrape.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, _NAME)
        query = settings.query.name
        self._snapshot_interval = settings.partitioner.snapshot_interval / 1000
        self._blocks = self.histogram(c.BLOCK_SECONDS).labels(query)
        self._commits = self.histogram(c.COMMIT_SECONDS).labels(query)
        self._status: Callable[[], Mapping[str, Any]] = dict
        self._telemetry: Callable[[], PartitionerRecord | None] = lambda: None

    def watch(
        self, status: Callable[[], Mapping[str, Any]], telemetry: Callable[[], PartitionerRecord | None]
    ) -> None:
        """Say where to read.

        status: returns the data plane's status. telemetry: returns its newest telemetry, if any.
        """
        self._status, self._telemetry = status, telemetry

    def block(self, seconds: float) -> None:
        """Note how long the work on a block took."""
        self._blocks.observe(seconds)

    def commit(self, seconds: float) -> None:
        """Note how long the commit of a transaction took."""
        self._commits.observe(seconds)

    def write(self, sheet: Sheet) -> None:
        """As `Instruments` says."""
        status = self._status()
        sheet.put(c.STILL, status.get("seconds_since_progress"))
        if "assignment" not in status:
            return  # the data plane is still starting
        self._write_work(sheet, status)
        for partition, state in status["assignment"].items():
            watermark = None if state["ended"] else state["watermark"]
            sheet.put(c.INPUT_LAG, state["lag"], partition=partition)
            # None stays None: the series is left out.
            sheet.put(c.WATERMARK, watermark and watermark / 1000, partition=partition)
            sheet.put(c.ASLEEP, None if state["ended"] else int(state["idle"]), partition=partition)
        record = self._telemetry()
        if record is not None:
            self._write_period(sheet, record)

    def _write_work(self, sheet: Sheet, status: Mapping[str, Any]) -> None:
        sheet.put(c.READ, status["read"])
        sheet.put(c.FILTERED, status["filtered"])
        sheet.put(c.ROUTED, status["tuples"])
        for reason, number in (dict.fromkeys(_REASONS, 0) | status["rejected_by_reason"]).items():
            sheet.put(c.REJECTED, number, reason=reason)
        sheet.put(c.BUSY_SECONDS, status["busy_seconds"])
        sheet.put(c.REBALANCES, status["rebalances"])
        sheet.put(c.READING, int(status["reading"] == "queues"))
        now = status["rhythm"]
        sheet.put(c.BLOCK_TUPLES, now["block_tuples"])
        sheet.put(c.LINGER, now["linger"] / 1000)
        sheet.put(c.COMMIT_INTERVAL, now["commit_interval"] / 1000)
        sheet.put(c.ROUTED_PARTITIONS, status["routed_partitions"])
        sheet.put(c.PARTITIONS, len(status["assignment"]))
        sheet.put(c.WORKERS, status["workers"])
        sheet.put(c.PLAN_EPOCH, status["plan_epoch"], part=_NAME)
        sheet.put(c.PLANS_IGNORED, status.get("plans_ignored"))
        sheet.put(c.SNAPSHOT, status["learned_at"])
        since = status.get("learning_since")
        if since is not None:
            sheet.put(c.LEARNING, since)
            sheet.put(c.SNAPSHOT_INTERVAL, self._snapshot_interval)
        exchange = status.get("exchange")
        if exchange is not None:
            self._write_exchange(sheet, exchange)
        batches = status.get("batches")
        if batches is not None:
            self._write_batches(sheet, batches)
        for worker, tuples in enumerate(status["worker_tuples"]):
            sheet.put(c.WORKER_TUPLES, tuples, worker=worker)
        for worker, cost in enumerate(status["worker_costs"]):
            sheet.put(c.WORKER_COST, cost, worker=worker)
        for reason in ("below", "above"):
            sheet.put(c.COSTS_OUT_OF_RANGE, status[f"costs_{reason}"], reason=reason)

    def _write_exchange(self, sheet: Sheet, exchange: Mapping[str, Any]) -> None:
        sheet.put(c.EXCHANGE_ELECTED, int(exchange["elected"]))
        sheet.put(c.EXCHANGE_ROUND, exchange["round"])
        sheet.put(c.EXCHANGE_MEMBERS, len(exchange["members"]))
        sheet.put(c.EXCHANGE_TABLE, exchange["table_at"])
        sheet.put(c.EXCHANGE_UNANSWERED, exchange["unanswered"])
        for direction in ("in", "out"):
            sheet.put(c.EXCHANGE_BYTES, exchange[f"bytes_{direction}"], direction=direction)
        sheet.put(c.EXCHANGE_LOST, exchange["lost"])
        for reason, number in (dict.fromkeys(_UNUSED, 0) | exchange["ignored"]).items():
            sheet.put(c.EXCHANGE_IGNORED, number, reason=reason)

    def _write_batches(self, sheet: Sheet, batches: Mapping[str, Any]) -> None:
        """batches: `BatchesState` as JSON."""
        sheet.put(c.PARTITIONER_BATCHES, batches["count"])
        for reason, number in (dict.fromkeys(_CUT_SHORT, 0) | batches["cut_short"]).items():
            sheet.put(c.PARTITIONER_BATCHES_SHORT, number, reason=reason)
        if batches["by_fallback"] is not None:
            sheet.put(c.PARTITIONER_BATCHES_FALLBACK, batches["by_fallback"])
        sheet.put(c.PARTITIONER_BATCH_INTERVAL, batches["interval_ms"] / 1000, clock=batches["clock"])
        sheet.put(c.PARTITIONER_HELD_TUPLES, batches["held"])
        sheet.put(c.PARTITIONER_HELD_BYTES, batches["held_bytes"])
        sheet.put(c.PARTITIONER_BATCH_RELEASE, _seconds(batches["release_ms"]))
        last = batches["last"]
        if last is None:
            return
        sheet.put(c.PARTITIONER_BATCH_TUPLES, last["tuples"])
        sheet.put(c.PARTITIONER_BATCH_KEYS, last["keys"])
        sheet.put(c.PARTITIONER_BATCH_SPLIT, last["split"])
        for stage, prefix in (("map", ""), ("reduce", "reduce_")):
            for metric, figure in _FIGURES.items():
                sheet.put(metric, last[prefix + figure], stage=stage)
        sheet.put(c.PARTITIONER_BATCH_TOOK, _seconds(last["took_ms"]))
        sheet.put(c.PARTITIONER_BATCH_LATE, last["late"])

    def _write_period(self, sheet: Sheet, record: PartitionerRecord) -> None:
        sheet.put(c.IMBALANCE, record.imbalance)
        sheet.put(c.WINDOW_IMBALANCE, record.window_imbalance)
        sheet.put(c.DISTINCT_KEYS, record.keys)
        sheet.put(c.HEAD_KEYS, record.head_keys)
        for rank, key in enumerate(record.hottest, start=1):
            sheet.put(c.HOT_KEY_SHARE, key.share, rank=rank)
            sheet.put(c.HOT_KEY_WORKERS, key.holders, rank=rank)


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000
