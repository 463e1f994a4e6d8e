"""What the newest records say in numbers.

The functions are pure, and return None if a needed number is not known.

Over workers and instances the largest value counts, not the mean: one overloaded worker holds back all. Rates
add up. Distinct keys are added up, too. Instances may see the same keys, so this sum is an upper bound.
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
"""Largest number of tuples/s or rows that telemetry may hold.

A larger result of a division is no measurement.
"""
_BETWEEN = 1.25
"""Batch intervals without a micro-batch after which a waiting stage is idle.

Before that, the stage may be between two micro-batches.
"""


def added(numbers: Iterable[float | None]) -> float | None:
    """The sum of the numbers. None if there are none, or if one is not known."""
    known = list(numbers)
    return sum(known) if _all_known(known) else None


def read_rate(record: PartitionerRecord) -> float | None:
    """Records/s that the partitioner reads: its tuples/s times the records per tuple so far."""
    if record.rate is None or not record.tuples:
        return record.rate
    return record.rate * record.read / record.tuples


def most(numbers: Iterable[float | None]) -> float | None:
    """The largest of the numbers. None if there are none, or if one is not known."""
    known = list(numbers)
    return max(known) if _all_known(known) else None


def _all_known(numbers: Sequence[float | None]) -> TypeGuard[Sequence[float]]:
    """Whether there is a number, and each one is known."""
    return bool(numbers) and None not in numbers


def working(partitioners: Iterable[PartitionerRecord]) -> list[PartitionerRecord]:
    """The partitioners that own input partitions. The others measure nothing."""
    return [record for record in partitioners if record.owned]


def reached(partitioners: Iterable[PartitionerRecord]) -> int | None:
    """Largest event time (ms) that any of these partitioners has seen. None if none has seen a tuple."""
    return max((r.event_time for r in partitioners if r.event_time is not None), default=None)


def routed(partitioners: Iterable[PartitionerRecord]) -> int | None:
    """Least mark (ms) of what is routed. None if the mark of a partitioner is not known.

    It is at most the largest event time seen. The mark at the end of the input is beyond all event times.
    """
    known = list(partitioners)
    last = reached(known)
    if last is None or any(record.mark is None for record in known):
        return None
    return min(last, *(record.mark for record in known if record.mark is not None))


def idle(words: StageWords, now: float) -> bool:
    """Whether the stage waits for input.

    Its newest record must say so, and its last micro-batch must have ended a while ago.
    """
    record = words.word.record
    if not isinstance(record, HeartbeatRecord) or record.running_ms is not None:
        return False
    return words.batch is None or words.batch.age(now) > _BETWEEN * record.batch_interval_ms / 1000


def load(words: StageWords, now: float) -> float | None:
    """W of a stage. 0 if the stage is idle. None if it is not known.

    While a micro-batch runs for longer than an interval, W is at least its running time over the interval.
    """
    if idle(words, now):
        return 0.0
    record = words.word.record
    if isinstance(record, BatchRecord):
        return load_of(record)
    # The last micro-batch counts only if it ended just before the present one began.
    # An older one says nothing of now.
    since = ((record.running_ms or 0) + _BETWEEN * max(1, record.batch_interval_ms)) / 1000
    before = words.batch is not None and words.batch.age(now) <= since
    return record.load_by_now(load_of(words.batch.record) if words.batch is not None and before else None)


def load_of(batch: BatchRecord) -> float:
    """W of a finished micro-batch."""
    return batch.duration_ms / max(1, batch.batch_interval_ms) if batch.load is None else batch.load


def parts(
    words: StageWords, own: float | None, now: float, *, rate: float | None
) -> dict[Part, StageObservation]:
    """The parts of the chain (combiner, reducer) that this stage runs, with their shares of the stage's load.

    The stage's load is divided by the busy time of the parts. own: `load` of the stage. rate: tuples/s that
    come to the combiner. A part that did no work in the last micro-batch is left out.
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
    # Only the part that reads from Kafka has a backlog of its own.
    # A fused reducer works in the combiner's micro-batch.
    first = part == "combine" or batch.stage == "reduce"
    # Micro-batches follow each other at the interval, or at their duration if that is longer.
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
    """Estimate of the rows that wait: frames (or blobs) that are not read yet, times the rows per frame."""
    if batch.backlog == 0:
        return 0.0
    return (
        None if batch.backlog is None or not batch.rows else _measured(batch.backlog * work.rows / batch.rows)
    )


def waiting_ms(sent: int | None, merged: int | None, *, slide_ms: int, speed: float | None) -> float | None:
    """How much event time is routed but not aggregated yet, in ms of the controller's clock.

    sent, merged: marks (ms). Marks travel only when a pane has passed, so a difference within one slide is
    not known and counts as 0. speed: ms of event time per ms of the clock. A replay may be far faster than
    the clock.
    """
    if sent is None or merged is None or merged == NO_MARK or not speed:
        return None
    behind = (sent // slide_ms - merged // slide_ms - 1) * slide_ms
    return max(0.0, behind / speed)
