"""What is wrong with a query, in words, from the facts alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenflow.settings.durations import format_duration
from evenflow.talking.words import partitions, printable, share, span
from evenflow.telemetry import PartitionerRecord
from workbench.status.words import ago, count, moment

if TYPE_CHECKING:
    from workbench.status.facts import Facts

SILENT_MS = 60_000
"""If windows are due and Spark has been silent for this long, nothing aggregates."""
_TOLERABLE = 0.01
_SMALLER = "a smaller value needs a new query.name, or `evenflow reset`"


def wrong(facts: Facts) -> list[str]:
    """One sentence for each thing that somebody should look at, the worst first. Empty if nothing is wrong."""
    found = list(facts.troubles)
    if facts.changed:
        found.append("the query began with other settings; changed since then: " + "; ".join(facts.changed))
    if not facts.partitions:
        return found
    if not facts.begun:
        return [*found, _not_begun(facts)]
    return [
        *found,
        *_lost(facts),
        *_stuck(facts),
        *_reading(facts),
        *_adding(facts),
        *_waiting(facts),
        *([] if facts.leap is None else [facts.leap]),
        *_closing(facts),
        *_aggregating(facts),
        *_rejecting(facts),
        *_unfit(facts),
    ]


def _not_begun(facts: Facts) -> str:
    if facts.recorded:
        return (
            "the query has begun, but its committed offsets are gone (they expired, or the input topic was made anew): "
            "see 'Rebuild after data loss' in docs/operations.md, or `evenflow reset`"
        )
    return "the query has not begun: start `evenflow partition`"


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


def _waiting(facts: Facts) -> Iterator[str]:
    blank = [one for one in facts.partitions if one.blank]
    if not blank or len(blank) == len(facts.partitions):
        return
    which = partitions(one.partition for one in blank)
    if any(one.lag for one in blank):
        yield f"no window closes before the records that wait in {which} are read"
    elif facts.idle_timeout is None:
        yield f"waits for {which} without any record (partitioner.idle_timeout is none, so for ever)"
    elif not facts.members:
        yield f"waits for {which} without any record, and no partitioner runs that could take it for idle"


def _closing(facts: Facts) -> Iterator[str]:
    """Windows that stay open for far longer than they are, and the setting that keeps them open."""
    delays, windows = facts.delays, facts.windows
    if delays is None or facts.ended:
        return
    names = ("out_of_orderness", "allowed_lateness")
    longest = max(names, key=lambda name: int(getattr(delays, name)))
    value = int(getattr(delays, longest))
    cause = f'query.{longest} is "{format_duration(value)}"'
    # Times that are not bound to the clock may be past that at any moment.
    waits = 0 if windows.needs is None or not delays.by_clock else windows.needs - facts.now
    if waits > delays.far:
        what = f"no window closes before {moment(windows.needs)}, in {span(waits)}"
        if value <= delays.far:
            yield f"{what}: event times that were read lie ahead of the clock; look at the producers' clocks"
            return
        yield f"{what}: {cause}, for windows of {format_duration(delays.window)}; {_SMALLER}"
    elif value > delays.far:
        yield (
            f"{cause}, so a window of {format_duration(delays.window)} closes only when every partition is that far past "
            f"its end; {_SMALLER}"
        )


def _aggregating(facts: Facts) -> Iterator[str]:
    seen = [facts.windows, *(view.windows for view in facts.views)]
    # If the last windows have no row, nothing more is ever written after the end of the input. That is no fault.
    missing = max(
        0 if one.sparse and one.next is None and one.written is not None else one.missing for one in seen
    )
    if not missing:
        return
    heard = [part.at for part in facts.parts if part.is_spark]
    heard += [stage.last_at for stage in facts.stages if stage.last_at is not None]
    if heard and facts.now - max(heard) < SILENT_MS:
        return
    since = (
        f"nothing was heard of Spark for {ago(facts.now - max(heard))}" if heard else "Spark has not run yet"
    )
    yield (
        f"nothing aggregates: up to {count(missing, 'window')} are due and not written, and {since}; "
        "is `evenflow aggregate` running?"
    )


def _rejecting(facts: Facts) -> Iterator[str]:
    read, rejected = facts.total("read"), facts.total("rejected")
    if not read or rejected / read <= _TOLERABLE:
        return
    reasons = facts.rejected.by_reason
    mostly = f", mostly {max(reasons, key=lambda name: reasons[name])}" if reasons else ""
    yield f"{share(rejected, read)} of what was read is rejected{mostly}"


def _unfit(facts: Facts) -> Iterator[str]:
    if facts.unfit:
        are = "value is" if facts.unfit == 1 else "values are"
        yield (
            f"{facts.unfit:,} result {are} null, because the type or the room does not hold more: see 'Room' in "
            "docs/aggregates.md"
        )
