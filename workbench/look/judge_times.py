"""Whether the event times make sense, in which order they come, and which partitions hold back the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from evenflow.settings import Settings
from evenflow.settings.durations import format_duration
from evenflow.talking.words import moment, partitions, share, span
from workbench.findings import Changes, Finding
from workbench.look.facts import Facts
from workbench.look.order import (
    furthest_behind,
    helpful_jump,
    late_tuples,
    needed_out_of_orderness,
    rounded_up,
)
from workbench.look.shape import unit_of
from workbench.look.words import counted, shown_span

_YEAR_1971, _YEAR_2200 = 31_536_000_000, 7_258_118_400_000
_LIVE = 3_600_000
"""ms: event times this near to the clock are live."""
_FUTURE = 86_400_000
"""ms: event times further ahead of the clock than this lie in the future."""


def judge_times(settings: Settings, facts: Facts, *, now: int) -> Iterator[Finding]:
    """All findings about event times. now: ms since 1970."""
    if facts.span is None:
        return
    unit = list(_judge_unit(settings, facts))
    yield from unit
    if unit:
        return  # in a wrong unit, order and distances mean nothing
    yield from _judge_ahead(settings, facts, now=now)
    facts = _without_ahead(settings, facts, now=now)
    if facts.span is None:
        return
    wild = list(_judge_jumps(settings, facts, now=now))
    yield from wild
    if wild:
        return  # nor do they mean anything while one wrong clock is ahead
    yield from _judge_equal(settings, facts)
    yield from _judge_order(settings, facts)
    yield from _judge_behind(settings, facts)
    yield from _judge_gaps(settings, facts)
    yield from _judge_clock(facts, now=now)


def _judge_unit(settings: Settings, facts: Facts) -> Iterator[Finding]:
    times = np.concatenate(facts.times)
    low, high = facts.span or (0, 0)
    if np.any((times >= _YEAR_1971) & (times <= _YEAR_2200)) or settings.query.time == "@timestamp":
        return
    column, unit = settings.query.time, settings.query.time_unit
    real = unit_of(facts.shape.column(column).examples)
    if real in (None, "ns", unit):
        return  # numbers that are no times, or times of another age: no unit makes more sense of them
    first = facts.shape.column(column).examples[0]
    what = f"column {column!r} read as {unit} gives times at {shown_span(low, high)} (e.g. {first!r})"
    yield Finding("time", "problem", what, f'set query.time_unit = "{real}"', {"query": {"time_unit": real}})


def _judge_ahead(settings: Settings, facts: Facts, *, now: int) -> Iterator[Finding]:
    most = settings.query.max_ahead_of_clock
    if most is None:
        return
    ahead = sum(int((one > now + most).sum()) for one in facts.times)
    if ahead:
        furthest = moment(max(int(one.max()) for one in facts.times))
        what = f"{ahead:,} of {facts.readable:,} tuples lie more than {format_duration(most)} ahead of the clock, the "
        what += f"furthest at {furthest}: they would be rejected as ahead"
        do = 'look at the producer\'s clock; for data with times of the future set query.max_ahead_of_clock = "off"'
        yield Finding("time", "warning", what, do)


def _without_ahead(settings: Settings, facts: Facts, *, now: int) -> Facts:
    """The facts without the tuples that are rejected as ahead, which move no time."""
    most = settings.query.max_ahead_of_clock
    if most is None:
        return facts
    parts = tuple(replace(part, times=part.times[part.times <= now + most]) for part in facts.partitions)
    return replace(facts, partitions=parts)


def _judge_jumps(settings: Settings, facts: Facts, *, now: int) -> Iterator[Finding]:
    if settings.query.max_jump is not None:
        return
    found = helpful_jump(settings.query, facts.times)
    ahead = sum(int((one > now + _FUTURE).sum()) for one in facts.times)
    if found is not None:
        jump, jumps = found
        late = late_tuples(settings.query, facts.times)
        what = f"{jumps:,} of {facts.readable:,} tuples lie more than {format_duration(jump)} ahead of those around them, "
        what += f"and what follows one is late: {late:,} of {facts.readable:,} tuples would be rejected"
    elif 0 < ahead < facts.readable / 2:
        jump = _FUTURE
        furthest = moment(max(int(one.max()) for one in facts.times))
        what = f"{ahead:,} of {facts.readable:,} tuples lie in the future, the furthest at {furthest}: "
        what += "whatever follows one in its partition is late"
    else:
        return
    do = f'set query.max_jump = "{format_duration(jump)}": tuples so far ahead are then rejected instead'
    yield Finding("time", "warning", what, do, {"query": {"max_jump": format_duration(jump)}})


def _judge_equal(settings: Settings, facts: Facts) -> Iterator[Finding]:
    """All tuples have one event time, as where a column holds the day of a file or a default."""
    tuples = sum(one.size for one in facts.times)
    if facts.span is None or facts.span[0] != facts.span[1] or tuples < 2:
        return
    what = f"all {tuples:,} tuples of the sample have the same event time, {moment(facts.span[0])}: no window closes "
    what += "before a later one comes"
    do = (
        f"is query.time = {settings.query.time!r} the right column? If it is, look at more records (--sample)"
    )
    yield Finding("time", "warning", what, do)


def _judge_order(settings: Settings, facts: Facts) -> Iterator[Finding]:
    late = late_tuples(settings.query, facts.times)
    if not late:
        yield Finding("order", "ok", f"no tuple comes late: {_order(facts)}")
        return
    needed = format_duration(needed_out_of_orderness(settings.query, facts.times))
    what = f"{late:,} of {facts.readable:,} tuples ({share(late, facts.readable)}) come behind their partition's watermark "
    what += f"and would be rejected as late; {_order(facts)}"
    do = (
        f'set query.out_of_orderness = "{needed}": it loses none of this sample; results come that much later'
    )
    yield Finding("order", "warning", what, do, {"query": {"out_of_orderness": needed}})


def _order(facts: Facts) -> str:
    furthest = furthest_behind(facts.times)
    return f"the furthest is {span(furthest)} behind" if furthest else "every partition is in order of time"


def _judge_behind(settings: Settings, facts: Facts) -> Iterator[Finding]:
    """Partitions whose newest tuple is far behind. Windows wait for them, and the other partitions are paused."""
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
        what = f"{partitions(behind)} of {len(facts.partitions)} end {span(gap)} of event time before the newest: "
        what += "windows wait there, and partitions further ahead than max_skew are paused"
        mend: Changes = {"partitioner": {"idle_timeout": "30s"}}
        yield Finding(
            "partitions",
            "warning",
            what,
            'set partitioner.idle_timeout = "30s", unless it will be filled',
            mend,
        )


def _judge_gaps(settings: Settings, facts: Facts) -> Iterator[Finding]:
    """Only one partition has new tuples, with a gap that idle ones do not follow."""
    ends = {part.partition: int(part.times.max()) for part in facts.partitions if part.times.size}
    waiting = [part.partition for part in facts.partitions if not part.ended]
    if settings.partitioner.idle_timeout is None or not ends:
        return
    furthest = max(ends, key=lambda p: ends[p])
    if furthest not in waiting or len(waiting) == 1:
        return
    others = max((end for p, end in ends.items() if p != furthest), default=None)
    times = next(part.times for part in facts.partitions if part.partition == furthest)
    reached = np.maximum.accumulate(times)
    steps = np.diff(reached)
    alone = np.ones(len(steps), bool) if others is None else reached[1:] > others + settings.max_skew
    gap = int(steps[alone].max(initial=0))
    if gap <= settings.max_skew:
        return
    enough = format_duration(rounded_up(gap + 1))
    what = f"{partitions([furthest])} alone of {len(facts.partitions)} has new tuples, with a gap of {span(gap)} between "
    what += f"two of them. Idle partitions do not follow a step of more than max_skew ({span(settings.max_skew)}), so no "
    what += "window closes before a second partition has tuples behind the gap"
    do = f'set partitioner.max_skew = "{enough}", more than the longest gap; or write to a second partition, or end the '
    do += "idle ones"
    yield Finding("partitions", "warning", what, do, {"partitioner": {"max_skew": enough}})


def _judge_clock(facts: Facts, *, now: int) -> Iterator[Finding]:
    ends = [int(times.max()) for times in facts.times]
    live = sum(abs(now - end) <= _LIVE for end in ends)
    if live:
        what = f"times follow the clock in {counted(live, len(ends))} partitions with tuples"
        yield Finding("clock", "ok", what)
        return
    newest = max(ends)
    where = f"{span(now - newest)} ago" if newest < now else "in the future"
    yield Finding("clock", "ok", f"times are not live: the newest is {moment(newest)}, {where}")
