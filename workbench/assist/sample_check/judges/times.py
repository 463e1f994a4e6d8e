"""Whether the event times make sense, in which order they come, and which partitions hold back the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from evenflow.reporting.words import moment, partitions, share, shown_bytes, span
from evenflow.settings import Settings
from evenflow.settings.durations import format_duration
from workbench.assist.findings import Changes, Finding
from workbench.assist.sample_check.facts import SampleFacts
from workbench.assist.sample_check.order import (
    acceptable,
    furthest_behind,
    helpful_jump,
    late_tuples,
    needed_out_of_orderness,
    rounded_up,
)
from workbench.assist.sample_check.shape import unit_of
from workbench.assist.sample_check.strays import Strays, other_units, strays_of
from workbench.assist.sample_check.words import counted, shown_span

_YEAR_1971, _YEAR_2200 = 31_536_000_000, 7_258_118_400_000
_LIVE = 3_600_000
"""ms: event times this near to the clock are live."""
_FUTURE = 86_400_000
"""ms: event times further ahead of the clock than this lie in the future."""


def judge_times(settings: Settings, facts: SampleFacts, *, now: int) -> Iterator[Finding]:
    """All findings about event times. now: ms since 1970."""
    if facts.span is None:
        return
    unit = list(_judge_unit(settings, facts))
    yield from unit
    if unit:
        return  # in a wrong unit, order and distances mean nothing
    strays = strays_of(settings.query, facts, now=now)
    yield from _judge_strays(facts, strays)
    yield from _judge_ahead(settings, facts, now=now)
    facts = _without_ahead(settings, facts, now=now)
    if strays.rest.span is None:
        return
    wild = list(_judge_jumps(settings, strays.onward, now=now))
    yield from wild
    if wild:
        facts = strays.body  # what one wrong clock makes late is said already
        if not late_tuples(settings.query, facts.times):
            return
    yield from _judge_equal(settings, strays.rest)
    yield from _judge_order(settings, facts, strays.body)
    if wild:
        return  # distances mean nothing while one wrong clock is ahead
    yield from _judge_behind(settings, strays.rest)
    yield from _judge_gaps(settings, strays.rest)
    yield from _judge_clock(strays.rest, now=now)


def _judge_unit(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    """Whether most times are of our age only in another unit. A few times of another unit are strays."""
    times = np.concatenate(facts.times)
    units = other_units(settings.query, times)
    fitting = {unit: int(which.sum()) for unit, which in units.items()}
    real = max(fitting, key=lambda unit: fitting[unit], default=None)
    if real is None or real == "ns" or 2 * fitting[real] <= times.size:
        return  # numbers that are no times, or times of another age: no unit makes more sense of them
    if 2 * int(((times >= _YEAR_1971) & (times <= _YEAR_2200)).sum()) > times.size:
        return
    column, unit = settings.query.time, settings.query.time_unit
    such = times[units[real]]
    example = next(
        (value for value in facts.shape.column(column).examples if unit_of([value]) == real),
        None,
    )
    message = (
        f"column {column!r} read as {unit} gives times at {shown_span(int(such.min()), int(such.max()))}"
    )
    message += f" (e.g. {example!r})" if example is not None else ""
    if fitting[real] < times.size:
        message += f" in {fitting[real]:,} of {times.size:,} records"
    yield Finding(
        "time", "problem", message, f'set query.time_unit = "{real}"', {"query": {"time_unit": real}}
    )


def _judge_strays(facts: SampleFacts, strays: Strays) -> Iterator[Finding]:
    for group in strays.groups:
        example = group.example
        message = (
            f"{group.count:,} of {facts.readable:,} times"
            f" ({share(group.count, facts.readable)}) {group.cause}, e.g. "
        )
        message += f"offset {example.offset} of partition {example.partition}: {shown_bytes(example.value)}"
        yield Finding("strays", "warning", message, "look at their producer; no proposal counts them")


def _judge_ahead(settings: Settings, facts: SampleFacts, *, now: int) -> Iterator[Finding]:
    most = settings.query.max_ahead_of_clock
    if most is None:
        return
    ahead = sum(int((times > now + most).sum()) for times in facts.times)
    if ahead:
        part, piece, place = max(
            (
                (part, piece, int(piece.times.argmax()))
                for part in facts.partitions
                for piece in part.pieces
                if len(piece.times)
            ),
            key=lambda candidate: int(candidate[1].times[candidate[2]]),
        )
        offset, value = piece.record(place)
        message = (
            f"{ahead:,} of {facts.readable:,} tuples lie more than"
            f" {format_duration(most)} ahead of the clock, the "
        )
        message += (
            f"furthest at {moment(int(piece.times[place]))} (offset {offset} of partition {part.partition}: "
        )
        message += f"{shown_bytes(value)}): they would be rejected as ahead"
        do = (
            "look at the producer's clock; for data with times of the future set query.max_ahead_of_clock ="
            ' "off"'
        )
        yield Finding("time", "warning", message, do)


def _without_ahead(settings: Settings, facts: SampleFacts, *, now: int) -> SampleFacts:
    """The facts without the tuples that are rejected as ahead, which move no time."""
    most = settings.query.max_ahead_of_clock
    if most is None:
        return facts
    parts = tuple(
        replace(part, pieces=tuple(piece.where(piece.times <= now + most) for piece in part.pieces))
        for part in facts.partitions
    )
    return replace(facts, partitions=parts)


def _judge_jumps(settings: Settings, facts: SampleFacts, *, now: int) -> Iterator[Finding]:
    if settings.query.max_jump is not None:
        return
    proposal = helpful_jump(settings.query, facts.times)
    ahead = sum(int((times > now + _FUTURE).sum()) for times in facts.times)
    if proposal is not None:
        jump, jumps = proposal
        late = late_tuples(settings.query, facts.times)
        message = (
            f"{jumps:,} of {facts.readable:,} tuples lie more than"
            f" {format_duration(jump)} ahead of those around "
        )
        message += (
            f"them, and what follows one is late: {late:,} of {facts.readable:,} tuples would be rejected"
        )
    elif 0 < ahead < facts.readable / 2:
        jump = _FUTURE
        furthest = moment(max(int(times.max()) for times in facts.times))
        message = f"{ahead:,} of {facts.readable:,} tuples lie in the future, the furthest at {furthest}: "
        message += "whatever follows one in its partition is late"
    else:
        return
    do = f'set query.max_jump = "{format_duration(jump)}": tuples so far ahead are then rejected instead'
    yield Finding("time", "warning", message, do, {"query": {"max_jump": format_duration(jump)}})


def _judge_equal(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    """All tuples have one event time, as where a column holds the day of a file or a default."""
    tuples = sum(times.size for times in facts.times)
    if facts.span is None or facts.span[0] != facts.span[1] or tuples < 2:
        return
    message = (
        f"all {tuples:,} tuples of the sample have the same event time,"
        f" {moment(facts.span[0])}: no window closes "
    )
    message += "before a later one comes"
    do = (
        f"is query.time = {settings.query.time!r} the right column? If it is, look at more records (--sample)"
    )
    yield Finding("time", "warning", message, do)


def _judge_order(settings: Settings, facts: SampleFacts, body: SampleFacts) -> Iterator[Finding]:
    """How many tuples are late, and the acceptable out_of_orderness that the times of the body need."""
    query = settings.query
    late = late_tuples(query, facts.times)
    if not late:
        yield Finding("order", "ok", f"no tuple comes late: {_order(body)}")
        return
    message = (
        f"{late:,} of {facts.readable:,} tuples"
        f" ({share(late, facts.readable)}) come behind their partition's "
    )
    message += f"watermark and would be rejected as late; {_order(body)}"
    most = acceptable(query)
    needed = min(needed_out_of_orderness(query, body.times), most)
    patient = query.model_copy(update={"out_of_orderness": needed})
    lost = late_tuples(patient, facts.times)
    if late_tuples(patient, body.times) >= late_tuples(query, body.times):
        do = (
            f"no out_of_orderness of at most {format_duration(most)} (ten windows,"
            " or a minute) keeps more of them: "
        )
        do += "look at their producers"
        yield Finding("order", "warning", message, do)
        return
    loss = "none" if not lost else f"{lost:,} tuples"
    do = (
        f'set query.out_of_orderness = "{format_duration(needed)}": it loses {loss} of this sample; results'
        " come that "
    )
    do += "much later"
    yield Finding("order", "warning", message, do, {"query": {"out_of_orderness": format_duration(needed)}})


def _order(facts: SampleFacts) -> str:
    furthest = furthest_behind(facts.times)
    return f"the furthest is {span(furthest)} behind" if furthest else "every partition is in order of time"


def _judge_behind(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    """Partitions whose newest tuple is far behind.
    Windows wait for them, and the other partitions are paused.
    """
    ends = {
        part.partition: int(part.times.max())
        for part in facts.partitions
        if part.times.size and not part.ended
    }
    if settings.partitioner.idle_timeout is not None or not ends:
        return
    newest = max(ends.values())
    behind = [part for part, end in ends.items() if newest - end > settings.max_skew]
    if behind:
        gap = max(newest - ends[part] for part in behind)
        message = (
            f"{partitions(behind)} of {len(facts.partitions)} end"
            f" {span(gap)} of event time before the newest: "
        )
        message += "windows wait there, and partitions further ahead than max_skew are paused"
        mend: Changes = {"partitioner": {"idle_timeout": "30s"}}
        yield Finding(
            "partitions",
            "warning",
            message,
            'set partitioner.idle_timeout = "30s", unless it will be filled',
            mend,
        )


def _judge_gaps(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    """Only one partition has new tuples, with a gap that idle ones do not follow."""
    ends = {part.partition: int(part.times.max()) for part in facts.partitions if part.times.size}
    waiting = [part.partition for part in facts.partitions if not part.ended]
    if settings.partitioner.idle_timeout is None or not ends:
        return
    furthest = max(ends, key=lambda p: ends[p])
    if furthest not in waiting or len(waiting) == 1:
        return
    others = max((end for p, end in ends.items() if p != furthest), default=None)
    gap = 0
    for piece in next(part.pieces for part in facts.partitions if part.partition == furthest):
        reached = np.maximum.accumulate(piece.times)
        steps = np.diff(reached)
        alone = np.ones(len(steps), bool) if others is None else reached[1:] > others + settings.max_skew
        gap = max(gap, int(steps[alone].max(initial=0)))
    if gap <= settings.max_skew:
        return
    enough = format_duration(rounded_up(gap + 1))
    message = (
        f"{partitions([furthest])} alone of {len(facts.partitions)} has new tuples,"
        f" with a gap of {span(gap)} between "
    )
    message += (
        "two of them. Idle partitions do not follow a step of more than max_skew"
        f" ({span(settings.max_skew)}), so no "
    )
    message += "window closes before a second partition has tuples behind the gap"
    do = (
        f'set partitioner.max_skew = "{enough}", more than the longest gap; or write to a second partition,'
        " or end the "
    )
    do += "idle ones"
    yield Finding("partitions", "warning", message, do, {"partitioner": {"max_skew": enough}})


def _judge_clock(facts: SampleFacts, *, now: int) -> Iterator[Finding]:
    ends = [int(part.times.max()) for part in facts.partitions if part.times.size]
    live = sum(abs(now - end) <= _LIVE for end in ends)
    if live:
        message = f"times follow the clock in {counted(live, len(ends))} partitions with tuples"
        yield Finding("clock", "ok", message)
        return
    newest = max(ends)
    where = f"{span(now - newest)} ago" if newest < now else "in the future"
    yield Finding("clock", "ok", f"times are not live: the newest is {moment(newest)}, {where}")
