"""What a part of the pipeline has last reported, in words."""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.reporting.words import printable, span
from evenflow.telemetry import (
    BatchesState,
    BatchRecord,
    DecisionRecord,
    ExchangeState,
    HeartbeatRecord,
    PartitionerRecord,
    Telemetry,
)
from workbench.assist.status.words import count

_HUGE = 10**15
"""No counter of a pipeline gets so large."""
_LONGEST_REASON = 300


def report_line(record: Telemetry) -> str:
    """One line in words, to stand behind the part's name."""
    match record:
        case PartitionerRecord():
            return ", ".join(_partitioner(record))
        case BatchRecord():
            return ", ".join(_batch(record))
        case HeartbeatRecord():
            return ", ".join(_heartbeat(record))
        case DecisionRecord():
            return ", ".join(_decision(record))


def _partitioner(record: PartitionerRecord) -> Iterator[str]:
    yield "no rate yet" if record.rate is None else f"{_number(record.rate)} tuples/s"
    if record.busy is not None:
        yield f"busy {100 * min(record.busy, 1):.0f} %"
    if record.lag is not None:
        yield f"lag {_number(record.lag)}"
    yield f"{count(record.workers, 'worker')} by {_plan(record.epoch)}"
    if record.exchange is not None:
        yield _exchange(record.exchange)
    if record.batches is not None:
        yield _batches(record.batches)
    if record.plans_ignored:
        yield f"{count(record.plans_ignored, 'hostile record')} in the plan topic"


def _exchange(state: ExchangeState) -> str:
    if state.round is None:
        text = "has heard no table"
    else:
        age = "" if state.age_ms is None else f" {span(state.age_ms)} ago"
        text = f"heard table {_number(state.round)} of {count(state.members, 'instance')}{age}"
    if state.unanswered > 1:
        text += f", {_number(state.unanswered)} messages since"
    for verb, rate in (("tells", state.rate_out), ("hears", state.rate_in)):
        if rate is not None:
            text += f", {verb} {_number(rate)} B/s"
    return f"{text}, makes the tables" if state.elected else text


def _batches(state: BatchesState) -> str:
    batches = "micro-batch" if state.count == 1 else "micro-batches"
    words = f"{_number(state.count)} {batches} of {span(state.interval_ms)} of {state.clock} time"
    if state.cut_short:
        reasons = ", ".join(f"{reason} {_number(n)}" for reason, n in sorted(state.cut_short.items()))
        words += f", cut short: {reasons}"
    if state.by_fallback:
        words += f", {_number(state.by_fallback)} planned by the fallback"
    if state.last is not None and state.last.took_ms is not None:
        words += f", the last took {span(state.last.took_ms)}"
        if state.last.late is not None:
            words += f" and came {_number(100 * state.last.late)} % of its interval late"
    return words


def _batch(record: BatchRecord) -> Iterator[str]:
    yield f"micro-batch {_number(record.batch)}"
    yield f"{_number(record.rows)} rows"
    if record.load is not None:
        yield f"W {record.load:.2g}"
    if record.executors is not None:
        yield f"{count(record.executors, 'executor')} by {_plan(record.epoch)}"


def _heartbeat(record: HeartbeatRecord) -> Iterator[str]:
    if record.running_ms is not None:
        yield f"in a micro-batch for {span(record.running_ms)}"
    else:
        yield "waits for input"
    yield "none finished yet" if record.batch is None else f"micro-batch {_number(record.batch)} was the last"


def _decision(record: DecisionRecord) -> Iterator[str]:
    zone = "" if record.zone is None else f" in zone {record.zone}"
    if record.held:
        yield f"{record.policy}{zone} holds: {printable(record.reason[:_LONGEST_REASON])}"
        return
    yield (
        f"{record.policy}{zone} wants {count(record.wanted_p, 'worker')} and"
        f" {count(record.wanted_r, 'bucket')} at once"
    )
    yield "published nothing" if record.epoch is None else f"published plan epoch {_number(record.epoch)}"


def _plan(epoch: int) -> str:
    return f"plan epoch {_number(epoch)}" if epoch else "the settings"


def _number(value: float) -> str:
    """The number for people. A question mark if it is too large to be true, as anybody may write
    telemetry.
    """
    return f"{value:,.0f}" if value < _HUGE else "?"
