"""What stands still although it should move, as the status of an instance shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from evenflow.due_windows import ResultDelays, due_windows, open_for_long
from evenflow.progress import PartitionState
from evenflow.reporting import Concern
from evenflow.reporting.words import moment, partitions, span
from evenflow.settings import Settings
from partitioner_service.kafka.leaps import Leaps

STANDS_STILL = ("nothing read", "waits for a first tuple", "waits for newer tuples", "leapt away")
"""Names of concerns that mean a standstill. After a minute of such a concern the instance is not healthy."""
OPEN_FOR_LONG = "windows stay open"
"""Name of the concern about windows that come out, but not for long. The instance is healthy, with a
warning.
"""

_SOON = 10.0
_LONG = 60.0
"""Seconds that a concern must last before it is told."""
_HOUR = 3_600_000
"""ms. An event time further ahead of the clock is told if the query lets it through."""

Shown = Mapping[str, Any]
"""What the status page shows: as a whole, or of one input partition."""


class StandstillWatch:
    """Looks at each new status.

    clock: for intervals (s). wall: seconds since 1970, to compare event times with.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._wall = wall
        self._own_read: dict[str, int] = {}
        self._read: dict[int, int] = {}
        self._read_at = clock()

    def concerns(self, status: Shown, everyone: Mapping[int, PartitionState]) -> list[Concern]:
        """The concerns about this status. everyone: the states of all input partitions that are known."""
        own: Mapping[str, Shown] = status["assignment"]
        read = {p: shown["read"] for p, shown in own.items()}
        quiet, self._own_read = read == self._own_read, read
        self._note_reading({p: state.read for p, state in everyone.items()})
        fastest = max((s.max_time for s in everyone.values() if s.max_time is not None), default=None)
        awake = {p: shown for p, shown in own.items() if not shown["ended"] and not shown["idle"]}
        candidates = [
            self._others(len(own), status),
            self._nothing_read(awake) if quiet else None,
            self._ahead(awake),
        ]
        if fastest is not None:
            candidates += [
                self._first(awake),
                self._newer(awake, fastest),
                self._leapt(awake, everyone, status),
            ]
        concerns = [concern for concern in candidates if concern is not None]
        concerns += self._open_for_long(status, everyone)
        # A paused partition waits for another one. If that one stands still, its own concern says all.
        if not any(concern.name in STANDS_STILL for concern in concerns):
            concerns += self._paused(own, everyone)
        return concerns

    def _note_reading(self, read: dict[int, int]) -> None:
        """Note when any instance last read a record."""
        if read != self._read:
            self._read, self._read_at = read, self._clock()

    def _others(self, owned: int, status: Shown) -> Concern | None:
        """There are other instances, but `partitioner.instances` is 1.

        Partitioners that remember where keys live have to know that they are not alone.
        """
        all_of_them = status["input_partitions"]
        if self._settings.partitioner.instances > 1 or not 0 < owned < all_of_them:
            return None
        return Concern(
            name="not alone",
            text=(
                f"this instance owns {owned} of {all_of_them} input partitions, so there are others: set "
                "partitioner.instances to their number, or keys are on more workers than need be"
            ),
        )

    def _nothing_read(self, awake: Mapping[str, Shown]) -> Concern | None:
        """Records wait in partitions that are not paused, but none is read."""
        lagging = {
            int(p): shown["lag"]
            for p, shown in awake.items()
            if shown["lag"] and shown["at_end_s"] is None and not shown["paused"]
        }
        if not lagging:
            return None
        return Concern(
            name="nothing read",
            text=f"nothing is read, although {sum(lagging.values()):,} records wait in {partitions(lagging)}",
            over="records are read again",
            after=_SOON,
            fields={"lag": sum(lagging.values())},
        )

    def _first(self, awake: Mapping[str, Shown]) -> Concern | None:
        """Partitions without any tuple hold back every window.

        An idle timeout may still solve that, so it passes first.
        """
        empty = {
            int(p): shown["read"]
            for p, shown in awake.items()
            if shown["max_time"] is None and shown["at_end_s"] is not None
        }
        if not empty:
            return None
        whose = "it has" if len(empty) == 1 else "they have"
        refused = f" ({sum(empty.values()):,} were rejected)" if any(empty.values()) else ""
        return Concern(
            name="waits for a first tuple",
            text=(
                f"input {partitions(empty)} had no tuple yet{refused}: no window closes before {whose} one or"
                f" an end. {self._without(len(empty))}"
            ),
            over="no input partition of this instance waits for a first tuple any more",
            after=_SOON + (self._settings.partitioner.idle_timeout or 0) / 1000,
            fields={"partitions": sorted(empty)},
        )

    def _newer(self, awake: Mapping[str, Shown], fastest: int) -> Concern | None:
        """Partitions that had tuples once hold back every later window.

        That is told only while other partitions go on, or would go on if they were not paused. If nobody
        reads anything, the stream itself may just be quiet.
        """
        goes_on = self._clock() - self._read_at < _LONG or any(shown["paused"] for shown in awake.values())
        if not goes_on:
            return None
        patience = _LONG + (self._settings.partitioner.idle_timeout or 0) / 1000
        silent = {
            int(p): shown
            for p, shown in awake.items()
            if shown["max_time"] is not None
            and (shown["at_end_s"] or 0) >= patience  # None: it has more to read, and is not silent
            and fastest - shown["max_time"] >= self._settings.query.slide_ms
        }
        if not silent:
            return None
        behind = min(shown["max_time"] for shown in silent.values())
        return Concern(
            name="waits for newer tuples",
            text=(
                f"input {partitions(silent)} had nothing new for over a minute and stood at {moment(behind)},"
                f" {span(fastest - behind)} of event time behind: no later window closes."
                f" {self._without(len(silent))}"
            ),
            over="no input partition of this instance waits for newer tuples any more",
            already=min(shown["at_end_s"] for shown in silent.values()),
            fields={"partitions": sorted(silent)},
        )

    def _without(self, number: int) -> str:
        """How to go on without so many partitions."""
        timeout = self._settings.partitioner.idle_timeout
        now = "none" if timeout is None else span(timeout)
        return (
            f'To go on without {"it" if number == 1 else "them"}: [partitioner] idle_timeout = "30s" (now:'
            f" {now})"
        )

    def _ahead(self, awake: Mapping[str, Shown]) -> Concern | None:
        """Event times are far ahead of the clock."""
        now = int(self._wall() * 1000)
        most = self._settings.query.max_ahead_of_clock
        bound = now + max(_HOUR, most or 0)
        ahead = {int(p): s["max_time"] for p, s in awake.items() if (s["max_time"] or 0) > bound}
        if not ahead:
            return None
        largest = max(ahead.values())
        return Concern(
            name="ahead of the clock",
            text=(
                f"input {partitions(ahead)} reached {moment(largest)}, {span(largest - now)} ahead of this"
                " machine's clock: is query.time_unit right, and the producer's clock?"
                " Tuples with right times would be late. "
            )
            + (
                "query.max_ahead_of_clock is off; set, it rejects tuples"
                " of the future (under a new query name)"
                if most is None
                else "They were let through, so the clock that they were held against differs from this one"
            ),
            fields={"partitions": sorted(ahead), "ahead_ms": largest - now},
        )

    def _open_for_long(self, status: Shown, everyone: Mapping[int, PartitionState]) -> list[Concern]:
        """The next window comes out long after its end, because of a setting or of event times of the
        future.
        """
        states = [everyone.get(partition) for partition in range(status["input_partitions"])]
        known = due_windows(self._settings.query, states)
        if known is None or known.next is None:
            return []
        now = int(self._wall() * 1000)
        trouble = open_for_long(ResultDelays.of(self._settings.query), needs=known.needs, now=now)
        if trouble is None:
            return []
        over = "windows do not stay open for far longer than they are any more"
        return [Concern(name=OPEN_FOR_LONG, text=trouble.text, over=over, after=_SOON)]

    def _leapt(
        self, awake: Mapping[str, Shown], everyone: Mapping[int, PartitionState], status: Shown
    ) -> Concern | None:
        """The slowest partition that is awake leapt away from idle ones, which do not follow it."""
        timeout = self._settings.partitioner.idle_timeout
        if timeout is None or len(everyone) < status["input_partitions"]:
            return None
        query = self._settings.query
        idle = {int(p) for p, shown in awake.items() if (shown["at_end_s"] or 0) >= timeout / 1000}
        marks = {
            p: s.mark(query) for p, s in everyone.items() if not s.ended and not s.asleep and p not in idle
        }
        slowest = min(marks, key=lambda p: marks[p], default=None)
        if slowest is None or str(slowest) not in awake:
            return None
        leaps = Leaps(self._settings, everyone)
        sleepers = {p for p, s in everyone.items() if s.asleep and not s.ended}
        left = sorted(p for p in idle | sleepers if not leaps.followed_by(slowest, p))
        if not left:
            return None
        return Concern(
            name="leapt away",
            text=leaps.words(slowest, left),
            over="idle input partitions follow the others again",
            after=_SOON,
            fields={"partition": slowest, "left": left},
        )

    def _paused(self, own: Mapping[str, Shown], everyone: Mapping[int, PartitionState]) -> list[Concern]:
        """Partitions are paused because of `max_skew`."""
        paused = [int(p) for p, shown in own.items() if shown["paused"] and shown.get("stuck_at") is None]
        if not paused:
            return []
        # As `Pace` does it.
        leaps = Leaps(self._settings, everyone)
        at = {
            p: (leaps.place(p) or 0) if s.max_time is None else s.max_time
            for p, s in everyone.items()
            if not s.ended and not s.asleep
        }
        slowest = min(at, key=lambda p: at[p], default=None)
        return [
            Concern(
                name="paused",
                text=(
                    f"input {partitions(paused)} paused for over a minute to wait for partition {slowest},"
                    f" which is more than max_skew ({span(self._settings.max_skew)}) of event time behind; if"
                    " that one has no more data, set partitioner.idle_timeout or end it"
                ),
                over="no input partition is paused any more",
                after=_LONG,
                fields={"partitions": sorted(paused), "slowest": slowest},
            )
        ]
