"""What is wrong with a query, in words, from the facts alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evenflow.talking import silent_after, stuck_after
from evenflow.talking.words import partitions, printable, share
from evenflow.telemetry import BatchRecord, HeartbeatRecord, PartitionerRecord
from workbench.alive import Part
from workbench.status.words import ago, count

if TYPE_CHECKING:
    from workbench.status.facts import Facts

State = Literal["ok", "warning", "wrong"]
SILENT_MS = round(1000 * silent_after())
"""If windows are due and Spark has been silent for this long, nothing aggregates."""
_TOLERABLE = 0.01
_INTOLERABLE = 0.5
_AHEAD_MS = 3_600_000
"""Clocks of producers may be ahead of this machine's by so much."""


@dataclass(frozen=True)
class Finding:
    """One thing that somebody should look at. level: "wrong" if results are lost, wrong or do not come. text: a sentence."""

    level: Literal["warning", "wrong"]
    text: str


def findings(facts: Facts) -> list[Finding]:
    """Each thing that somebody should look at, in the order in which to look. Empty if nothing is wrong."""
    found = [Finding("wrong", text) for text in facts.troubles]
    if facts.changed:
        text = "the query began with other settings; changed since then: " + "; ".join(facts.changed)
        found.append(Finding("warning", text))
    if not facts.partitions:
        return found
    if not facts.begun:
        return [*found, _not_begun(facts)]
    broken = [*_lost(facts), *_stuck(facts), *_reading(facts)]
    aggregating = list(_aggregating(facts)) or list(_silent_spark(facts))
    return [
        *found,
        *(Finding("wrong", text) for text in broken),
        *(Finding("warning", text) for text in _adding(facts)),
        *_waiting(facts),
        *([] if facts.leap is None else [Finding("wrong", facts.leap)]),
        *(Finding("wrong", text) for text in (*aggregating, *_hanging(facts))),
        *_rejecting(facts),
        *(Finding("warning", text) for text in (*_ahead(facts), *_unfit(facts))),
    ]


def wrong(facts: Facts) -> list[str]:
    """The sentences of all findings, warnings among them."""
    return [finding.text for finding in findings(facts)]


def state_of(found: Sequence[Finding]) -> State:
    """The worst level of these findings, "ok" if there are none."""
    levels = {finding.level for finding in found}
    return "wrong" if "wrong" in levels else "warning" if levels else "ok"


def _not_begun(facts: Facts) -> Finding:
    if facts.recorded:
        return Finding(
            "wrong",
            "the query has begun, but its committed offsets are gone (they expired, or the input topic was made anew): "
            "see 'Rebuild after data loss' in docs/operations.md, or `evenflow reset`",
        )
    return Finding("warning", "the query has not begun: start `evenflow partition`")


def _lost(facts: Facts) -> Iterator[str]:
    for one in facts.partitions:
        if one.state is None:
            yield f"partition {one.partition} has no committed offset although the query has begun"
        elif one.state.offset < one.log_begin:
            yield (
                f"records {one.state.offset} to {one.log_begin - 1} of partition {one.partition} are gone before they "
                "were read (retention)"
            )


def _stuck(facts: Facts) -> Iterator[str]:
    """Partitions that stood before a batch that cannot be fetched when they were last heard of, and stand there still."""
    offsets = {one.partition: one.state.offset for one in facts.partitions if one.state is not None}
    for part in facts.parts:
        for at in part.said.stuck if isinstance(part.said, PartitionerRecord) else ():
            if offsets.get(at.partition, at.offset + 1) <= at.offset:
                yield (
                    f"offset {at.offset} of partition {at.partition} cannot be fetched ({printable(at.why)}): see 'A record "
                    f"that cannot be fetched' in docs/operations.md, and `evenflow skip {at.partition} {at.offset}`"
                )


def _reading(facts: Facts) -> Iterator[str]:
    if facts.lag and not facts.members and not facts.ended:
        yield f"no partitioner is running, and {count(facts.lag, 'record')} wait to be read"


def _adding(facts: Facts) -> Iterator[str]:
    """Partitions that the topic has got, and that nobody has taken in: a partitioner does within seconds."""
    if facts.added and (facts.ended or not facts.members):
        yield (
            f"the topic has got {count(facts.added, 'partition')} that the query has not taken in, and "
            + ("all others have ended" if facts.ended else "no partitioner is running")
        )


def _waiting(facts: Facts) -> Iterator[Finding]:
    blank = [one for one in facts.partitions if one.blank]
    if not blank or len(blank) == len(facts.partitions):
        return
    which = partitions(one.partition for one in blank)
    if any(one.lag for one in blank):
        yield Finding("warning", f"no window closes before the records that wait in {which} are read")
    elif facts.idle_timeout is None:
        yield Finding(
            "wrong", f"waits for {which} without any record (partitioner.idle_timeout is none, so for ever)"
        )
    elif not facts.members:
        yield Finding(
            "wrong",
            f"waits for {which} without any record, and no partitioner runs that could take it for idle",
        )


def _aggregating(facts: Facts) -> Iterator[str]:
    seen = [facts.windows, *(view.windows for view in facts.views)]
    # If the last windows have no row, nothing more is ever written after the end of the input. That is no fault.
    missing = max(
        0 if one.sparse and one.next is None and one.written is not None else one.missing for one in seen
    )
    if not missing:
        return
    if _spark_is_heard(facts):
        return
    heard = [part.at for part in facts.parts if part.is_spark]
    heard += [stage.last_at for stage in facts.stages if stage.last_at is not None]
    since = (
        f"nothing was heard of Spark for {ago(facts.now - max(heard))}" if heard else "Spark has not run yet"
    )
    yield (
        f"nothing aggregates: up to {count(missing, 'window')} are due and not written, and {since}; "
        "is `evenflow aggregate` running?"
    )


def _spark_is_heard(facts: Facts) -> bool:
    """Whether any stage has reported, or has ended a micro-batch, so lately that it counts as alive."""
    at_work = any(
        stage.last_at is not None and facts.now - stage.last_at < SILENT_MS for stage in facts.stages
    )
    return at_work or any(part.is_spark and not _is_silent(part, facts.now) for part in facts.parts)


def _is_silent(part: Part, now: int) -> bool:
    interval = part.said.batch_interval_ms if isinstance(part.said, BatchRecord | HeartbeatRecord) else 0.0
    return now - part.at >= 1000 * silent_after(interval / 1000)


def _silent_spark(facts: Facts) -> Iterator[str]:
    """A stage that has reported once, and does so no more though input may come."""
    if facts.ended or _spark_is_heard(facts):
        return
    for part in facts.parts:
        if part.is_spark:
            yield f"nothing was heard of {part.name} for {ago(facts.now - part.at)}; is `evenflow aggregate` running?"


def _hanging(facts: Facts) -> Iterator[str]:
    """Micro-batches that do not end, and partitioners that are in their group and say nothing."""
    names = {member.client_id for member in facts.members}
    for part in facts.parts:
        said = part.said
        if (
            isinstance(said, HeartbeatRecord)
            and said.running_ms is not None
            and not _is_silent(part, facts.now)
        ):
            if said.running_ms > 1000 * stuck_after(said.batch_interval_ms / 1000):
                yield f"{part.name} has been in one micro-batch for {ago(said.running_ms)}"
        elif (
            isinstance(said, PartitionerRecord)
            and f"evenflow-{facts.query}-{said.instance}" in names
            and _is_silent(part, facts.now)
        ):
            yield f"{part.name} is in its group, but nothing was heard of it for {ago(facts.now - part.at)}"


def _ahead(facts: Facts) -> Iterator[str]:
    """Event times in the future: windows of the present are closed already, and the next ones may close next week."""
    waiting = [one.state for one in facts.partitions if not one.ended and one.state is not None]
    reached = [state.max_time for state in waiting if state.max_time is not None]
    if reached and len(reached) == len(waiting) and min(reached) > facts.now + _AHEAD_MS:
        yield (
            f"event time is {ago(min(reached) - facts.now)} ahead of the clock in every partition: records of the present "
            "are late, and the next window closes only when all partitions go on from there"
        )


def _rejecting(facts: Facts) -> Iterator[Finding]:
    read, rejected = facts.total("read"), facts.total("rejected")
    if not read or rejected / read <= _TOLERABLE:
        return
    reasons = facts.rejected.by_reason
    mostly = f", mostly {max(reasons, key=lambda name: reasons[name])}" if reasons else ""
    level: Literal["warning", "wrong"] = "wrong" if rejected / read > _INTOLERABLE else "warning"
    yield Finding(level, f"{share(rejected, read)} of what was read is rejected{mostly}")


def _unfit(facts: Facts) -> Iterator[str]:
    if facts.unfit:
        are = "value is" if facts.unfit == 1 else "values are"
        yield (
            f"{facts.unfit:,} result {are} null, because the type or the room does not hold more: see 'Room' in "
            "docs/aggregates.md"
        )
