"""Event times that do not belong with the others of a sample: of another unit,
or of a clock far ahead or behind.

Advice that counts them helps nobody: one time of 1970 asks for an out_of_orderness of half a century.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import Bools, Int64s
from evenflow.numeric.gaps import body_of
from evenflow.reporting.words import moment
from evenflow.settings import Query
from workbench.assist.sample_check.facts import PartitionSample, Piece, SampleFacts
from workbench.assist.sample_check.order import acceptable, jumps
from workbench.assist.sample_check.shape import EARLIEST, LATEST, PER_MS, NumericUnit


@dataclass(frozen=True)
class Example:
    """A record of the sample."""

    partition: int
    """The partition that holds the record."""
    offset: int
    """The record's place in it."""
    value: bytes | None
    """Value of the record as it stands in the topic."""


@dataclass(frozen=True)
class Group:
    """Strays of one cause."""

    cause: str
    """The cause in words, such as "are in s"."""
    count: int
    """How many strays have this cause."""
    example: Example
    """The first of them."""


@dataclass(frozen=True)
class Strays:
    """The strays of a sample."""

    groups: tuple[Group, ...]
    """One for each cause, the largest first."""
    body: SampleFacts
    """The facts with only the times that belong together."""
    onward: SampleFacts
    """The facts with these and what lies ahead of them."""
    rest: SampleFacts
    """The facts with these and with all that lies in order,
    such as the day before a quiet night, or ahead."""

    @property
    def count(self) -> int:
        """How many strays there are."""
        return sum(group.count for group in self.groups)


def other_units(query: Query, times: Int64s) -> dict[NumericUnit, Bools]:
    """Which times (ms, as the query reads them) would be times of today if their number were in another unit.

    Only units that fit any time are there. Empty if the query reads no numbers.
    """
    if query.time == "@timestamp" or query.time_unit == "iso":
        return {}
    mine = PER_MS[query.time_unit]
    units: dict[NumericUnit, Bools] = {}
    for unit, per_ms in PER_MS.items():
        if unit != query.time_unit:
            read = times.astype(np.float64) * (mine / per_ms)
            fitting = (read >= EARLIEST) & (read <= LATEST)
            if fitting.any():
                units[unit] = fitting
    return units


def strays_of(query: Query, facts: SampleFacts, *, now: int) -> Strays:
    """The strays of a sample whose times are of the unit that the query says. now: ms since 1970.

    A stray is a time of another unit, or one apart from its neighbours and in the wrong place: behind times
    that were read before it, or ahead of times that come after it. Times that the clock rejects
    (`max_ahead_of_clock`) are strays only by their unit, because another finding names them.
    """
    far = acceptable(query)
    every = np.concatenate([np.empty(0, np.int64), *facts.times])
    today = bool(every.size) and EARLIEST <= float(np.median(every)) <= LATEST
    groups: dict[str, Group] = {}
    ways: dict[str, list[PartitionSample]] = {"body": [], "onward": [], "rest": []}
    for part in facts.partitions:
        split = []
        for piece in part.pieces:
            places = _places(query, piece.times, far=far, now=now, today=today)
            for cause in places.causes:
                _note(groups, cause, part.partition, piece)
            split.append({way: piece.where(getattr(places, way)) for way in ways})
        for way, parts in ways.items():
            parts.append(replace(part, pieces=tuple(pieces_by_way[way] for pieces_by_way in split)))
    return Strays(
        groups=tuple(sorted(groups.values(), key=lambda group: -group.count)),
        **{way: replace(facts, partitions=tuple(parts)) for way, parts in ways.items()},
    )


def strays_by_cause(query: Query, times: Sequence[Int64s], *, now: int) -> dict[str, list[Bools]]:
    """Which tuples of a sample no figure should count, by cause: the strays,
    and what the partitioner rejects.

    times: event times (ms) of each partition's tuples, in offset order. now: ms since 1970. Each cause is in
    words, such as "are in s, not ms", and has a mask for each partition. Empty if there are no strays, and
    also if most tuples would be: then the settings do not fit the topic.
    """
    every = np.concatenate([np.empty(0, np.int64), *times])
    today = bool(every.size) and EARLIEST <= float(np.median(every)) <= LATEST
    words: dict[str, str] = {}
    masks: dict[str, list[Bools]] = {}
    for number, partition_times in enumerate(times):
        far_jumps = jumps(query, partition_times)
        rest = partition_times[~far_jumps]
        causes = [_Cause("jump", "jump further than query.max_jump allows", far_jumps)]
        places = _places(query, rest, far=acceptable(query), now=now, today=today)
        named = np.zeros(rest.size, bool)
        for cause in places.causes:
            # A time counts for its first cause only.
            fresh = cause.which & ~named
            named |= fresh
            causes.append(_Cause(cause.kind, cause.words, _widened(fresh, far_jumps)))
        clock = _ahead(query, rest, now) & ~named
        causes.append(
            _Cause(
                "clock",
                "lie further ahead of the clock than query.max_ahead_of_clock allows",
                _widened(clock, far_jumps),
            )
        )
        for cause in causes:
            if cause.which.any():
                words.setdefault(cause.kind, cause.words)
                # A cause needs a mask for each partition, also for those without such a stray.
                empty = [np.zeros(other.size, bool) for other in times]
                masks.setdefault(cause.kind, empty)[number] = cause.which
    count = sum(int(mask.sum()) for each in masks.values() for mask in each)
    return {} if 2 * count >= every.size else {words[kind]: each for kind, each in masks.items()}


def _widened(which: Bools, without: Bools) -> Bools:
    """The mask over all times, from one over the times that `without` leaves."""
    wide = np.zeros(without.size, bool)
    wide[~without] = which
    return wide


def _ahead(query: Query, times: Int64s, now: int) -> Bools:
    if query.max_ahead_of_clock is None:
        return np.zeros(times.size, bool)
    return times > now + query.max_ahead_of_clock


class _Cause(NamedTuple):
    """Why times are strays."""

    kind: str
    """One word for the cause."""
    words: str
    """The cause for a person, such as "are in s, not ms"."""
    which: Bools
    """The strays, shape (n,)."""


@dataclass(frozen=True)
class _Places:
    """Where the times of a piece lie. Each mask has shape (n,)."""

    causes: list[_Cause]
    """One for each way in which times can stray. A mask may be all False."""
    body: Bools
    """Times that belong together."""
    onward: Bools
    """These and what lies ahead of them."""
    rest: Bools
    """These and all that lies in order, before or ahead."""


def _places(query: Query, times: Int64s, *, far: int, now: int, today: bool) -> _Places:
    """Where these times (ms) lie. today: whether most times of the sample are of our age."""
    causes, left = [], np.ones(times.size, bool)
    if today:
        strange = (times < EARLIEST) | (times > LATEST)
        for unit, fitting in other_units(query, times).items():
            causes.append(_Cause(unit, f"are in {unit}, not {query.time_unit}", strange & fitting))
            left &= ~(strange & fitting)
    left &= ~_ahead(query, times, now)
    body = left.copy()
    body[left] = body_of(times[left], far)
    # Without a body there are no ends that a time could be behind or ahead of.
    if not body.any():
        return _Places(causes, body, left, left)
    low, high = int(times[body].min()), int(times[body].max())
    order, inside = np.arange(times.size), np.flatnonzero(body)
    behind = left & (times < low) & (order > inside[0])
    before = left & (times > high) & (order < inside[-1])
    causes.append(_Cause("behind", f"come far behind {moment(low)}, where the others begin", behind))
    causes.append(_Cause("ahead", f"lie far ahead of {moment(high)}, where the others end", before))
    return _Places(causes, body, left & (times >= low), left & ~behind)


def _note(groups: dict[str, Group], cause: _Cause, partition: int, piece: Piece) -> None:
    """Count the strays of a piece. Each piece has ends of its own, so the words are those of the first."""
    places = np.flatnonzero(cause.which)
    if not places.size:
        return
    group = groups.get(cause.kind)
    if group is None:
        offset, value = piece.record(int(places[0]))
        groups[cause.kind] = Group(cause.words, places.size, Example(partition, offset, value))
    else:
        groups[cause.kind] = replace(group, count=group.count + places.size)
