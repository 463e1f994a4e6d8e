"""What is wrong with a query, in words, from the facts alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from evenflow.due_windows import open_for_long
from evenflow.reporting import Level, Trouble, hanging, silence, silent_after
from evenflow.reporting.words import partitions, printable, share
from evenflow.telemetry import PartitionerRecord
from workbench.assist.status.words import ago, count

if TYPE_CHECKING:
    from workbench.assist.status.facts import Facts

State = Literal["ok", "warning", "wrong"]
"""The worst level of all findings."""
_TOLERABLE, _INTOLERABLE = 0.01, 0.5
_RUNNING = "is `evenflow aggregate` running?"


def findings(facts: Facts) -> list[Trouble]:
    """Each thing that somebody should look at, in the order in which to look. Empty if nothing is wrong."""
    troubles = [Trouble("wrong", text) for text in facts.troubles]
    if facts.changed:
        text = "the query began with other settings; changed since then: " + "; ".join(facts.changed)
        troubles.append(Trouble("warning", text))
    troubles += [
        Trouble("warning", f"{ending}: replace the file and restart what uses it") for ending in facts.ending
    ]
    if not facts.partitions:
        return troubles
    if not facts.begun:
        return [*troubles, _not_begun(facts)]
    waiting = list(_waiting(facts))
    return [
        *troubles,
        *_all("wrong", _missing_topics(facts)),
        *facts.losses,
        *_all("wrong", _lost(facts), _stuck(facts), _reading(facts)),
        *_all("warning", _adding(facts)),
        *waiting,
        *_all("wrong", [] if facts.leap is None else [facts.leap]),
        *_closing(facts),
        *(_aggregating(facts) or _silent_spark(facts)),
        *_partitioners(facts, waits=bool(waiting)),
        *(trouble for part in facts.parts if (trouble := hanging(part.sign(facts.now))) is not None),
        *_rejecting(facts),
        *_all("warning", _unfit(facts)),
    ]


def _all(level: Level, *texts: Iterable[str]) -> Iterator[Trouble]:
    """All these sentences as troubles of one level."""
    return (Trouble(level, text) for some in texts for text in some)


def wrong(facts: Facts) -> list[str]:
    """The sentences of all findings, warnings among them."""
    return [finding.text for finding in findings(facts)]


def state_of(troubles: Sequence[Trouble]) -> State:
    """The worst level of these findings, "ok" if there are none."""
    levels = {finding.level for finding in troubles}
    return "wrong" if "wrong" in levels else "warning" if levels else "ok"


def _not_begun(facts: Facts) -> Trouble:
    if facts.recorded:
        return Trouble(
            "wrong",
            "the query has begun, but its committed offsets are gone (they expired, or the input topic was"
            " made anew): see 'Rebuild after data loss' in docs/operations/data-loss.md, or `evenflow reset`",
        )
    return Trouble("warning", "the query has not begun: start `evenflow partition`")


def _missing_topics(facts: Facts) -> Iterator[str]:
    if facts.missing:
        are = "is" if len(facts.missing) == 1 else "are"
        yield (
            f"{', '.join(facts.missing)} {are} gone, with all that was in it: see 'Rebuild after data loss'"
            " in docs/operations/data-loss.md"
        )


def _lost(facts: Facts) -> Iterator[str]:
    for partition in facts.partitions:
        if partition.state is None:
            yield f"partition {partition.partition} has no committed offset although the query has begun"
        elif partition.state.offset < partition.log_begin:
            yield (
                f"records {partition.state.offset} to {partition.log_begin - 1} of partition"
                f" {partition.partition} are gone before they were read (retention)"
            )


def _stuck(facts: Facts) -> Iterator[str]:
    """Partitions that stood before a batch that cannot be fetched when they were last heard of,
    and stand there still.
    """
    offsets = {
        partition.partition: partition.state.offset
        for partition in facts.partitions
        if partition.state is not None
    }
    for part in facts.parts:
        for at in part.telemetry.stuck if isinstance(part.telemetry, PartitionerRecord) else ():
            # at.offset + 1: a partition without a committed state is taken to be past it.
            if offsets.get(at.partition, at.offset + 1) <= at.offset:
                yield (
                    f"offset {at.offset} of partition {at.partition} cannot be fetched ({printable(at.why)}):"
                    " see 'A record that cannot be fetched' in docs/operations/rejected-records.md, and"
                    f" `evenflow skip {at.partition} {at.offset}`"
                )


def _reading(facts: Facts) -> Iterator[str]:
    if facts.lag and not facts.members and not facts.ended:
        yield f"no partitioner is running, and {count(facts.lag, 'record')} wait to be read"


def _adding(facts: Facts) -> Iterator[str]:
    """Partitions that the topic has got, and that nobody has taken in: a partitioner does within seconds."""
    if facts.added and (facts.ended or not facts.members):
        yield f"the topic has got {count(facts.added, 'partition')} that the query has not taken in, and " + (
            "all others have ended" if facts.ended else "no partitioner is running"
        )


def _waiting(facts: Facts) -> Iterator[Trouble]:
    blank = [partition for partition in facts.partitions if partition.blank]
    # Where no partition has a record, there is no window that could wait.
    if not blank or len(blank) == len(facts.partitions):
        return
    which = partitions(partition.partition for partition in blank)
    if any(partition.lag for partition in blank):
        yield Trouble("warning", f"no window closes before the records that wait in {which} are read")
    elif facts.idle_timeout is None:
        yield Trouble(
            "wrong", f"waits for {which} without any record (partitioner.idle_timeout is none, so for ever)"
        )
    elif not facts.members:
        yield Trouble(
            "wrong",
            f"waits for {which} without any record, and no partitioner runs that could take it for idle",
        )


def _closing(facts: Facts) -> Iterator[Trouble]:
    """Windows that stay open for far longer than they are, and the setting that keeps them open."""
    if facts.delays is None or facts.ended:
        return
    trouble = open_for_long(facts.delays, needs=facts.windows.needs, now=facts.now)
    if trouble is not None:
        yield trouble


def _aggregating(facts: Facts) -> list[Trouble]:
    """Windows are due, and no Spark stage is at work."""
    window_facts = [facts.windows, *(view.windows for view in facts.views)]
    # If the last windows have no row, nothing more is ever written after the end of the input. That is no
    # fault.
    missing = max(
        0 if windows.sparse and windows.next is None and windows.written is not None else windows.missing
        for windows in window_facts
    )
    if not missing or _spark_works(facts):
        return []
    times = [part.at for part in facts.parts if part.is_spark]
    times += [stage.last_at for stage in facts.stages if stage.last_at is not None]
    since = (
        f"nothing was heard of Spark for {ago(facts.now - max(times))}" if times else "Spark has not run yet"
    )
    text = (
        f"nothing aggregates: up to {count(missing, 'window')} are due and not written,"
        f" and {since}; {_RUNNING}"
    )
    return [Trouble("wrong" if times else "warning", text)]


def _spark_works(facts: Facts) -> bool:
    """Whether any stage has reported, or has ended a micro-batch, so lately that it counts as alive."""
    ended = (stage.last_at for stage in facts.stages if stage.last_at is not None)
    at_work = any(facts.now - at < 1_000 * silent_after() for at in ended)
    return at_work or any(part.is_spark and not part.sign(facts.now).is_silent for part in facts.parts)


def _silent_spark(facts: Facts) -> list[Trouble]:
    """Stages that have reported once, and do so no more though input may come."""
    if facts.ended or _spark_works(facts):
        return []
    troubles = (silence(part.sign(facts.now)) for part in facts.parts if part.is_spark)
    return [
        replace(trouble, text=f"{trouble.text}; {_RUNNING}") for trouble in troubles if trouble is not None
    ]


def _partitioners(facts: Facts, *, waits: bool) -> Iterator[Trouble]:
    """Partitioners that are in their group and say nothing, and what the others say of what stands still.

    waits: whether it is said already that a partition without a record holds back the windows.
    """
    names = {member.client_id for member in facts.members}
    # What another finding says already is not said again.
    covered = ({"waits for a first tuple"} if waits else set()) | ({"leapt away"} if facts.leap else set())
    for part in facts.parts:
        if not isinstance(part.telemetry, PartitionerRecord):
            continue
        trouble = silence(part.sign(facts.now))
        if trouble is None:
            others = (still for still in part.telemetry.standing if still.what not in covered)
            yield from (Trouble("wrong", f"{part.name}: {printable(still.why)}") for still in others)
        elif f"evenflow-{facts.query}-{part.telemetry.instance}" in names:
            yield replace(
                trouble, text=f"{part.name} is in its group, but {trouble.text.replace(part.name, 'it', 1)}"
            )


def _rejecting(facts: Facts) -> Iterator[Trouble]:
    read, rejected = facts.total("read"), facts.total("rejected")
    if not read or rejected / read <= _TOLERABLE:
        return
    reasons = facts.rejected.by_reason
    mostly = f", mostly {max(reasons, key=lambda name: reasons[name])}" if reasons else ""
    level: Level = "wrong" if rejected / read > _INTOLERABLE else "warning"
    yield Trouble(level, f"{share(rejected, read)} of what was read is rejected{mostly}")


def _unfit(facts: Facts) -> Iterator[str]:
    if facts.unfit:
        are = "value is" if facts.unfit == 1 else "values are"
        yield (
            f"{facts.unfit:,} result {are} null, because the type or the room does not hold"
            " more: see 'Room' in docs/aggregates.md"
        )
