"""What the newest records say in numbers: pure functions of them, each None where a part of it is not known.

Over workers and instances the largest counts, not the mean: one overloaded worker holds back all. Rates add up. So do
distinct keys, since instances may see the same ones: the sum is their upper bound, and that is what is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeGuard

from controller.collect import StageWords
from evenflow.elasticity import StageObservation
from evenflow.elasticity.observation import Part
from evenflow.telemetry import BatchRecord, HeartbeatRecord, PartitionerRecord, PartWork, parts_of
from evenflow.windows import NO_MARK

_MOST = 1e18
"""Tuples/s and rows that telemetry may say. What follows from them and is more is no measurement."""
_BETWEEN = 1.25
"""Batch intervals without a micro-batch after which a stage that waits is idle, and not just between two."""


def added(numbers: Iterable[float | None]) -> float | None:
    """Their sum. None where there are none, or one is not known."""
    known = list(numbers)
    return sum(known) if _all_known(known) else None


def read_rate(record: PartitionerRecord) -> float | None:
    """Records/s that the partitioner reads, by how many of its tuples came of how many records so far."""
    if record.rate is None or record.read is None or not record.tuples:
        return record.rate
    return record.rate * record.read / record.tuples


def most(numbers: Iterable[float | None]) -> float | None:
    """The largest. None where there are none, or one is not known."""
    known = list(numbers)
    return max(known) if _all_known(known) else None


def _all_known(numbers: Sequence[float | None]) -> TypeGuard[Sequence[float]]:
    """Whether there is a number, and each one is known."""
    return bool(numbers) and None not in numbers


def working(partitioners: Iterable[PartitionerRecord]) -> list[PartitionerRecord]:
    """Those that own input partitions: the others measure nothing."""
    return [record for record in partitioners if record.owned]


def reached(partitioners: Iterable[PartitionerRecord]) -> int | None:
    """Largest event time (ms) that any of them has seen."""
    return max((r.event_time for r in partitioners if r.event_time is not None), default=None)


def routed(partitioners: Iterable[PartitionerRecord]) -> int | None:
    """Least mark (ms) of what is routed. None when one is not known. At the end of the input no mark is ahead of it."""
    known = list(partitioners)
    last = reached(known)
    if last is None or any(record.mark is None for record in known):
        return None
    return min(last, *(record.mark for record in known if record.mark is not None))


def idle(words: StageWords, now: float) -> bool:
    """Whether the stage waits for input: it says so, and its last micro-batch is not just over."""
    record = words.word.record
    if not isinstance(record, HeartbeatRecord) or record.running_ms is not None:
        return False
    return words.batch is None or words.batch.age(now) > _BETWEEN * record.batch_interval_ms / 1000


def load(words: StageWords, now: float) -> float | None:
    """W of a stage: 0 when it is idle. While a micro-batch runs for longer than an interval, at least what it has by now."""
    if idle(words, now):
        return 0.0
    record = words.word.record
    if isinstance(record, BatchRecord):
        return _load(record)
    since = ((record.running_ms or 0) + _BETWEEN * max(1, record.batch_interval_ms)) / 1000
    before = words.batch is not None and words.batch.age(now) <= since
    return record.load_by_now(_load(words.batch.record) if words.batch is not None and before else None)


def _load(batch: BatchRecord) -> float:
    return batch.duration_ms / max(1, batch.batch_interval_ms) if batch.load is None else batch.load


def parts(
    words: StageWords, own: float | None, now: float, *, rate: float | None
) -> dict[Part, StageObservation]:
    """The parts of the chain that this stage runs, each with its share of the stage's load by busy time.

    own: `load` of the stage. rate: tuples/s that come to the combiner.
    """
    ran = parts_of(words.word.record.stage)
    if idle(words, now):
        return {
            part: StageObservation(load=0.0, arrivals=rate if part == "combine" else 0.0, queue=0.0)
            for part in ran
        }
    if words.batch is None:
        return {}
    batch = words.batch.record
    busy = sum(batch.parts[part].busy_ms for part in ran if part in batch.parts)
    return {
        part: _part(part, batch, batch.parts[part], own, batch.parts[part].busy_ms / busy, rate)
        for part in ran
        if part in batch.parts and busy > 0
    }


def _part(
    part: Part, batch: BatchRecord, work: PartWork, own: float | None, share: float, rate: float | None
) -> StageObservation:
    first = part == "combine" or batch.stage == "reduce"
    period_s = max(1, batch.duration_ms, batch.batch_interval_ms) / 1000
    useful_s = batch.duration_ms / 1000 * share
    return StageObservation(
        load=None if own is None else own * share,
        arrivals=rate if part == "combine" else work.rows / period_s,
        capacity=_measured(work.rows / useful_s) if useful_s > 0 and work.rows else None,
        queue=_queue(batch, work) if first else None,
        longest=work.spread,
    )


def _measured(number: float) -> float | None:
    return number if number <= _MOST else None


def _queue(batch: BatchRecord, work: PartWork) -> float | None:
    """Rows that wait: frames (blobs) behind this micro-batch, each taken to hold as many as those within."""
    if batch.backlog == 0:
        return 0.0
    return (
        None if batch.backlog is None or not batch.rows else _measured(batch.backlog * work.rows / batch.rows)
    )


def waiting_ms(sent: int | None, merged: int | None, *, slide_ms: int, speed: float | None) -> float | None:
    """How much event time is routed and not aggregated, in ms of our clock. sent, merged: marks (ms).

    Marks travel only when another pane has passed: what lies within one slide is not known, and counts for nothing.
    speed: ms of event time that come in a ms: a replay may be faster than the clock by far.
    """
    if sent is None or merged is None or merged == NO_MARK or not speed:
        return None
    behind = (sent // slide_ms - merged // slide_ms - 1) * slide_ms
    return max(0.0, behind / speed)
