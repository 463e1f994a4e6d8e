"""The picture of a running pipeline, made from its telemetry alone.

`Picture` takes records in any order, of any bytes, and gives a `Glance` at any moment.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from evenflow.numeric.imbalance import imbalance_of
from evenflow.reporting import silent_after
from evenflow.reporting.responsible_instances import responsible_instances
from evenflow.reporting.words import printable
from evenflow.settings import Settings
from evenflow.telemetry import (
    BatchesState,
    BatchRecord,
    DecisionRecord,
    ExchangeState,
    HeartbeatRecord,
    HotKey,
    PartitionerRecord,
    PartWork,
    Stage,
    Telemetry,
    inputs_of,
    parse,
    present_load,
)
from monitoring.live.glance import (
    BatchesGlance,
    DecisionGlance,
    ExchangeGlance,
    Glance,
    InstanceGlance,
    ResultsGlance,
    StageGlance,
    WorkGlance,
)
from monitoring.live.verdicts import verdicts

# What is kept and shown is bounded, as anyone who can write the telemetry topic can make up names.
MOST_INSTANCES = 256
MOST_POINTS = 240
MOST_DECISIONS = 50
MOST_KEYS = 10
_FORGOTTEN = 600.0  # s of silence after which an instance is forgotten


@dataclass(frozen=True)
class _Instance:
    """A partitioner instance by its two newest records."""

    record: PartitionerRecord
    """The newest record."""
    at: float
    """When it came, in seconds of the monotonic clock."""
    loads: list[float] = field(default_factory=list)
    """Load per second by worker, between the two newest records. Empty if these two cannot be compared."""
    rejected: float | None = None
    """Rejected records/s. None if the two newest records cannot be compared."""
    read: float | None = None
    """Records/s, likewise. None if the two newest records cannot be compared."""


class Picture:
    """Takes in telemetry, and may be asked from other threads. clock: s, monotonic. wall: s since 1970."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._query, self._fingerprint = settings.query.name, settings.fingerprint
        self._partitions = settings.input_partitions
        self._clock, self._wall = clock, wall
        self._lock = threading.Lock()
        self._instances: dict[str, _Instance] = {}
        self._batches: dict[Stage, BatchRecord] = {}
        self._words: dict[Stage, tuple[BatchRecord | HeartbeatRecord, float]] = {}
        self._closing: BatchRecord | None = None
        self._unfit = self._repeated = 0
        self._points: deque[tuple[int, str, float]] = deque(maxlen=MOST_POINTS)
        self._decisions: deque[DecisionGlance] = deque(maxlen=MOST_DECISIONS)

    def take(self, value: bytes | None, *, old: bool = False) -> bool:
        """Take in one record, of any bytes. Returns whether the record is about this query.

        old: whether the record was there before anybody looked. Then its age is taken from the time that its
        writer gave it, by the writer's clock.
        """
        try:
            record = parse(value)
        except ValueError:
            record = None
        if record is None or (record.query, record.fingerprint) != (self._query, self._fingerprint):
            return False
        self.add(record, old=old)
        return True

    def add(self, record: Telemetry, *, old: bool = False) -> None:
        """Take in a record of this query. old: as in `take`."""
        now = self._clock() - (max(0.0, self._wall() - record.time / 1000) if old else 0.0)
        with self._lock:
            match record:
                case PartitionerRecord():
                    self._partitioner(record, now)
                case BatchRecord():
                    self._batch(record, now)
                case HeartbeatRecord():
                    self._words[record.stage] = (record, now)
                case DecisionRecord():
                    self._decided(_decision(record))

    def glance(self) -> Glance:
        """What is known of the pipeline now."""
        now = self._clock()
        with self._lock:
            return self._glance(now)

    # ---- taking in

    def _decided(self, decision: DecisionGlance) -> None:
        """Keep a decision. Of several alike in a row that change nothing, only the last one is kept.

        People look for plans, which would be lost among the others.
        """
        last = self._decisions[-1] if self._decisions else None
        if last is not None and decision.epoch is None and _alike(last, decision):
            self._decisions.pop()
        self._decisions.append(decision)

    def _partitioner(self, record: PartitionerRecord, now: float) -> None:
        # Removed first, so that the instance moves to the end: the first one is the longest silent.
        before = self._instances.pop(record.instance, None)
        self._instances[record.instance] = _compared(before, record, now)
        for name in [
            name for name, known in self._instances.items() if self._clock() - known.at > _FORGOTTEN
        ]:
            del self._instances[name]
        if len(self._instances) > MOST_INSTANCES:
            del self._instances[next(iter(self._instances))]

    def _batch(self, record: BatchRecord, now: float) -> None:
        self._batches[record.stage] = record
        self._words[record.stage] = (record, now)
        self._unfit += record.unfit
        self._repeated += sum(work.repeated for work in record.parts.values())
        if record.load is not None:
            self._points.append((record.time, record.stage, round(record.load, 4)))
        if record.windows_closed:
            self._closing = record

    # ---- showing

    def _glance(self, now: float) -> Glance:
        instances = self._counted(now)
        alive = [instance for instance in instances if now - instance.at < silent_after()]
        loads = _sums([instance.loads for instance in alive])
        total = sum(loads)
        imbalance = imbalance_of(max(loads), total, len(loads)) if total else None
        rates = [instance.record.rate for instance in alive if instance.record.rate is not None]
        lags = [instance.record.lag for instance in instances]
        rejected, read = _total(instances, "rejected"), _total(instances, "read")
        share = rejected / read if rejected is not None and read else None
        stages = [self._stage(stage, now) for stage in sorted(self._words)]
        glance = Glance(
            query=self._query,
            at=round(self._wall() * 1000),
            rate=sum(rates) if rates else None,
            read_rate=read,
            # A lag that is not known must not count as 0.
            lag=None if not lags or None in lags else sum(lag for lag in lags if lag is not None),
            rejected=sum(instance.record.rejected for instance in instances),
            rejected_share=share,
            workers=max((instance.record.workers for instance in instances), default=None),
            imbalance=imbalance,
            loads=[round(load, 1) for load in loads],
            weighed=any(instance.record.costs is not None for instance in alive),
            instances=[_instance(instance, now) for instance in instances],
            stages=stages,
            results=self._results(),
            hottest=_hottest([instance.record for instance in alive]),
            points=list(self._points),
            decisions=list(self._decisions),
            verdicts={},
        )
        return replace(glance, verdicts=verdicts(glance, unfit=self._unfit, repeated=self._repeated))

    def _counted(self, now: float) -> list[_Instance]:
        """The instances that count, the longest silent first.

        A silent instance does not count any more once others own its input partitions.
        """
        return responsible_instances(
            sorted(self._instances.values(), key=lambda instance: now - instance.at),
            partitions=inputs_of(
                (instance.record for instance in self._instances.values()), self._partitions
            ),
            owned=lambda instance: instance.record.owned,
            anyway=lambda instance: now - instance.at < silent_after(),
        )[::-1]

    def _stage(self, stage: Stage, now: float) -> StageGlance:
        word, at = self._words[stage]
        batch = self._batches.get(stage)
        running = word.running_ms if isinstance(word, HeartbeatRecord) else None
        return StageGlance(
            name=stage,
            load=present_load(word, batch),
            batch=batch.batch if batch else None,
            duration_s=batch.duration_ms / 1000 if batch else None,
            interval_s=word.batch_interval_ms / 1000,
            backlog=batch.backlog if batch else None,
            running=None if running is None else running / 1000,
            first=word.batch is None,
            slots=word.slots,
            executors=word.executors,
            epoch=word.epoch,
            works={part: _work(work) for part, work in (batch.parts if batch else {}).items()},
            silent=round(now - at, 1),
            ended=printable(word.ended) if isinstance(word, HeartbeatRecord) and word.ended else None,
        )

    def _results(self) -> ResultsGlance | None:
        newest = self._batches.get("fused") or self._batches.get("reduce")
        if newest is None:
            return None
        combine = newest.parts.get("combine") or (
            self._batches["combine"].parts.get("combine") if "combine" in self._batches else None
        )
        # In the fused wiring only the combiner knows the tuples.
        # A reduce stage knows the latency of partial rows.
        first = newest.parts.get("combine") or newest.parts.get("reduce")
        latencies = first.latencies if first else []
        emitting = self._closing.parts.get("reduce") if self._closing else None
        return ResultsGlance(
            rows=self._closing.rows_out if self._closing else 0,
            windows=self._closing.windows_closed if self._closing else 0,
            newest=self._closing.last_window_end if self._closing else None,
            open=newest.open_windows,
            latency_p50_s=_quantile(latencies, 0.5),
            latency_p99_s=_quantile(latencies, 0.99),
            emitted_p99_s=_quantile(emitting.result_latencies, 0.99) if emitting else None,
            panes=newest.open_panes,
            replication=combine.replication if combine else None,
        )


def _compared(before: _Instance | None, record: PartitionerRecord, now: float) -> _Instance:
    """The instance with its newest record, and with rates since the record before.

    There are rates only if both records are of the same process, and loads only if p has not changed in
    between.
    """
    if before is None or before.record.started != record.started or record.time <= before.record.time:
        return _Instance(record, now)
    old, seconds = before.record, (record.time - before.record.time) / 1000
    return _Instance(
        record,
        now,
        loads=_load_rates(old.loads, record.loads, seconds),
        rejected=max(0, record.rejected - old.rejected) / seconds,
        read=max(0, record.read - old.read) / seconds,
    )


def _load_rates(old: list[int], new: list[int], seconds: float) -> list[float]:
    """Load per second by worker between two records. Empty if p has changed in between."""
    # Loads are counted from the last change of p on. If one has fallen, p has changed and changed back.
    if len(old) != len(new) or any(a > b for a, b in zip(old, new, strict=True)):
        return []
    return [(b - a) / seconds for a, b in zip(old, new, strict=True)]


def _sums(columns: list[list[float]]) -> list[float]:
    # Instances may differ in p while a plan takes over, so the lists differ in length.
    longest = max((len(column) for column in columns), default=0)
    return [sum(column[at] for column in columns if at < len(column)) for at in range(longest)]


def _total(known: list[_Instance], name: Literal["rejected", "read"]) -> float | None:
    values = [getattr(instance, name) for instance in known]
    counts = [value for value in values if value is not None]
    return sum(counts) if counts else None


def _instance(instance: _Instance, now: float) -> InstanceGlance:
    record = instance.record
    return InstanceGlance(
        name=record.instance,
        rate=record.rate,
        keys=record.keys,
        busy=record.busy,
        lag=record.lag,
        imbalance=record.imbalance,
        epoch=record.epoch,
        owned=record.owned,
        slowest=record.slowest,
        silent=round(now - instance.at, 1),
        exchange=None if record.exchange is None else _exchange(record.exchange, now - instance.at),
        batches=None if record.batches is None else _batches(record.batches),
        standing=[printable(still.why) for still in record.standing],
        warnings=[printable(text) for text in record.warnings],
    )


def _batches(state: BatchesState) -> BatchesGlance:
    last = state.last
    took_ms = None if last is None else last.took_ms
    return BatchesGlance(
        interval_s=state.interval_ms / 1000,
        clock=state.clock,
        count=state.count,
        cut_short=sum(state.cut_short.values()),
        held=state.held,
        tuples=None if last is None else last.tuples,
        split=None if last is None else last.split,
        took_s=None if took_ms is None else took_ms / 1000,
        late=None if last is None else last.late,
    )


def _exchange(state: ExchangeState, silent: float) -> ExchangeGlance:
    """silent: seconds since the instance said so."""
    return ExchangeGlance(
        elected=state.elected,
        round=state.round,
        members=state.members,
        instances=state.instances,
        age_s=None if state.age_ms is None else round(state.age_ms / 1000 + silent, 1),
        unanswered=state.unanswered,
        rate_in=state.rate_in,
        rate_out=state.rate_out,
    )


def _work(work: PartWork) -> WorkGlance:
    return WorkGlance(
        rows=work.rows,
        keys=work.keys,
        tasks=work.tasks,
        busy_s=round(work.busy_ms / 1000, 3),
        spread=work.spread,
    )


def _decision(record: DecisionRecord) -> DecisionGlance:
    return DecisionGlance(
        at=record.time,
        policy=record.policy,
        zone=record.zone,
        p=record.p,
        r=record.r,
        wanted_p=record.wanted_p,
        wanted_r=record.wanted_r,
        epoch=record.epoch,
        held=record.held,
        cause=record.cause,
        reason=record.reason,
    )


def _alike(decision: DecisionGlance, other: DecisionGlance) -> bool:
    return (decision.epoch, decision.held, decision.p, decision.r) == (
        other.epoch,
        other.held,
        other.p,
        other.r,
    )


def _hottest(records: list[PartitionerRecord]) -> list[dict[str, Any]]:
    """The hottest keys of all instances together.

    Shares of an instance are weighted with its part of the whole rate.
    """
    rates = [record.rate or 0.0 for record in records]
    whole = sum(rates)
    entries: dict[tuple[str, int], dict[str, Any]] = {}
    for record, rate in zip(records, rates, strict=True):
        for key in record.hottest if whole else ():
            _merge(entries, key, key.share * rate / whole)
    ranked = sorted(entries.values(), key=lambda entry: -entry["share"])[:MOST_KEYS]
    for entry in ranked:
        parts = sorted(entry.pop("tuples").items(), key=lambda part: (-part[1], part[0]))
        entry["workers"] = [worker for worker, _ in parts]
        entry["parts"] = [round(part / entry["share"], 4) if entry["share"] else 0.0 for _, part in parts]
        entry["holders"] = max(entry["holders"], len(parts))
        entry["share"] = round(entry["share"], 6)
    return ranked


def _merge(entries: dict[tuple[str, int], dict[str, Any]], key: HotKey, share: float) -> None:
    empty = {"key": key.key, "length": key.length, "share": 0.0, "holders": 0, "tuples": {}}
    entry = entries.setdefault((key.key, key.length), empty)
    entry["share"] += share
    entry["holders"] = max(entry["holders"], key.holders)
    for worker, part in zip(key.workers, key.parts, strict=False):
        entry["tuples"][worker] = entry["tuples"].get(worker, 0.0) + part * share


def _quantile(latencies: list[tuple[int, int]], share: float) -> float | None:
    """How many seconds this share of the rows waited at most. latencies: (ms, rows). None without rows."""
    rows = sum(number for _, number in latencies)
    cumulative = 0
    for waited, number in sorted(latencies):
        cumulative += number
        if cumulative >= share * rows:
            return waited / 1000
    return None
