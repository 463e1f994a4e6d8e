"""What a part of the pipeline has last reported, in words."""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.talking.words import printable, span
from evenflow.telemetry import (
    BatchesState,
    BatchRecord,
    DecisionRecord,
    ExchangeState,
    HeartbeatRecord,
    PartitionerRecord,
    Telemetry,
)
from workbench.status.words import count

_HUGE = 10**15
"""No counter of a pipeline gets so large."""
_LONGEST_REASON = 300


def said_of(said: Telemetry) -> str:
    """One line in words, to stand behind the part's name."""
    match said:
        case PartitionerRecord():
            return ", ".join(_partitioner(said))
        case BatchRecord():
            return ", ".join(_batch(said))
        case HeartbeatRecord():
            return ", ".join(_heartbeat(said))
        case DecisionRecord():
            return ", ".join(_decision(said))


def _partitioner(said: PartitionerRecord) -> Iterator[str]:
    yield "no rate yet" if said.rate is None else f"{_number(said.rate)} tuples/s"
    if said.busy is not None:
        yield f"busy {100 * min(said.busy, 1):.0f} %"
    if said.lag is not None:
        yield f"lag {_number(said.lag)}"
    yield f"{count(said.workers, 'worker')} by {_plan(said.epoch)}"
    if said.exchange is not None:
        yield _exchange(said.exchange)
    if said.batches is not None:
        yield _batches(said.batches)
    if said.plans_ignored:
        yield f"{count(said.plans_ignored, 'hostile record')} in the plan topic"


def _exchange(known: ExchangeState) -> str:
    if known.round is None:
        heard = "has heard no table"
    else:
        age = "" if known.age_ms is None else f" {span(known.age_ms)} ago"
        heard = f"heard table {_number(known.round)} of {count(known.members, 'instance')}{age}"
    if known.unanswered > 1:
        heard += f", {_number(known.unanswered)} messages since"
    return f"{heard}, makes the tables" if known.elected else heard


def _batches(known: BatchesState) -> str:
    batches = "micro-batch" if known.count == 1 else "micro-batches"
    words = f"{_number(known.count)} {batches} of {span(known.interval_ms)} of {known.clock} time"
    if known.cut_short:
        reasons = ", ".join(f"{reason} {_number(n)}" for reason, n in sorted(known.cut_short.items()))
        words += f", cut short: {reasons}"
    if known.by_fallback:
        words += f", {_number(known.by_fallback)} planned by the fallback"
    if known.last is not None and known.last.took_ms is not None:
        words += f", the last took {span(known.last.took_ms)}"
        if known.last.late is not None:
            words += f" and came {_number(100 * known.last.late)} % of its interval late"
    return words


def _batch(said: BatchRecord) -> Iterator[str]:
    yield f"micro-batch {_number(said.batch)}"
    yield f"{_number(said.rows)} rows"
    if said.load is not None:
        yield f"W {said.load:.2g}"
    if said.executors is not None:
        yield f"{count(said.executors, 'executor')} by {_plan(said.epoch)}"


def _heartbeat(said: HeartbeatRecord) -> Iterator[str]:
    if said.running_ms is not None:
        yield f"in a micro-batch for {span(said.running_ms)}"
    else:
        yield "waits for input"
    yield "none finished yet" if said.batch is None else f"micro-batch {_number(said.batch)} was the last"


def _decision(said: DecisionRecord) -> Iterator[str]:
    zone = "" if said.zone is None else f" in zone {said.zone}"
    if said.held:
        yield f"{said.policy}{zone} holds: {printable(said.reason[:_LONGEST_REASON])}"
        return
    yield f"{said.policy}{zone} wants {count(said.wanted_p, 'worker')} and {count(said.wanted_r, 'bucket')} at once"
    yield "published nothing" if said.epoch is None else f"published plan epoch {_number(said.epoch)}"


def _plan(epoch: int) -> str:
    return f"plan epoch {_number(epoch)}" if epoch else "the settings"


def _number(value: float) -> str:
    """The number for people. A question mark if it is too large to be true, as anybody may write telemetry."""
    return f"{value:,.0f}" if value < _HUGE else "?"
