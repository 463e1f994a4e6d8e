"""What is known of the exchange for people: counts, the newest table, and what was passed over."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

from evenflow.partitioners.exchange import Table
from evenflow.telemetry import ExchangeState
from partitioner_service.exchange.byte_rate import ByteRate

log = logging.getLogger(__name__)

Reason = Literal["corrupt", "version", "foreign", "oversized", "ahead", "old", "twin", "unusable", "crowded"]
"""Why a record of the sync topic is not used.

corrupt: the bytes are no record, or were damaged. version: of another version. foreign: of another query or
of other settings. oversized: longer than any that an instance writes. ahead: its round is further ahead than
any member can be. old: of a run that does not speak for its source now, or a table that was heard before.
twin: of another process with this instance's number.
unusable: the partitioner cannot read it. crowded: it gave way to a newer table.
"""
REASONS: tuple[Reason, ...] = get_args(Reason)
SEVERAL = 6
"""So many messages without a table are no passing delay."""
_TWINS = 3
"""So many records of a twin are no rest of this instance's last run."""


class _NewestTable(NamedTuple):
    """The newest table."""

    table: Table
    """The table as its maker sent it."""
    at: float
    """When it was heard, in seconds of the monotonic clock."""
    wall: float
    """When it was heard, in seconds since 1970."""


class Figures:
    """Counts since the start of this process. It may be used from any thread. clock: s. wall: s since
    1970.
    """

    def __init__(
        self,
        *,
        instances: int,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.instances = instances
        """How many there can be."""
        self._clock, self._wall = clock, wall
        self._lock = threading.Lock()
        self._newest: _NewestTable | None = None
        self._messages = self._unanswered = self._tables_heard = self._tables_made = 0
        self._bytes_in = self._bytes_out = self._lost = 0
        self._rate_in, self._rate_out = ByteRate(clock=clock), ByteRate(clock=clock)
        self._ignored: Counter[Reason] = Counter()
        self._broken = False
        self.elected = False
        """Whether this instance makes the tables."""

    def count_read(self, size: int) -> None:
        """Count a record of so many bytes that was read."""
        with self._lock:
            self._bytes_in += size
            self._rate_in.add(size)

    def ignore(self, reason: Reason, why: str, *, number: int = 1) -> None:
        """Count records that are not used. The first one of each reason is logged."""
        with self._lock:
            before = self._ignored[reason]
            self._ignored[reason] += number
            after = self._ignored[reason]
        if reason == "twin" and before < _TWINS <= after:
            log.warning("%s: each instance needs a number of its own at the end of partitioner.instance", why)
        elif not before and reason not in ("old", "twin", "crowded"):
            log.warning("exchange: a record is not used (balance only; more like it are counted): %s", why)

    def count_message(self) -> None:
        """Count a message that this instance has made."""
        with self._lock:
            self._messages += 1
            self._unanswered += 1
            alone = self._unanswered == SEVERAL
        if alone:
            log.warning(
                "exchange: no table has come for %d messages, this instance routes by what it knows alone: is"
                " the instance that owns input partition 0 alive, and is the sync topic there?",
                SEVERAL,
            )

    def count_table(self) -> None:
        """Count a table that this instance has made."""
        with self._lock:
            self._tables_made += 1

    def take_over(self, table: Table) -> None:
        """Note the newest table, which the partitioner has taken over."""
        with self._lock:
            self._tables_heard += 1
            back, self._unanswered = self._unanswered >= SEVERAL, 0
            self._newest = _NewestTable(table, self._clock(), self._wall())
        if back:
            log.info("exchange: tables come again")

    def written(self, size: int, error: str | None) -> None:
        """The broker has answered a record of so many bytes, or it was not sent at all.
        error: None if it has it.
        """
        with self._lock:
            first, healed = error is not None and not self._broken, error is None and self._broken
            self._broken = error is not None
            if error is None:
                self._bytes_out += size
                self._rate_out.add(size)
            else:
                self._lost += 1
        if first:
            log.warning("exchange: records are lost, each instance routes by what it knows alone: %s", error)
        if healed:
            log.info("exchange: records are written again")

    def shown(self) -> dict[str, Any]:
        """All figures as JSON, for the status page. Ages in s, rates in bytes/s, `table_at` s since 1970."""
        with self._lock:
            newest = self._newest
            return {
                "elected": self.elected,
                "instances": self.instances,
                "round": newest and newest.table.round,
                "members": [] if newest is None else list(newest.table.sources),
                "table_age_s": None if newest is None else round(self._clock() - newest.at, 3),
                "table_at": newest and newest.wall,
                "told": self._messages,
                "unanswered": self._unanswered,
                "heard": self._tables_heard,
                "made": self._tables_made,
                "bytes_in": self._bytes_in,
                "bytes_out": self._bytes_out,
                "rate_in": _rounded(self._rate_in.per_second()),
                "rate_out": _rounded(self._rate_out.per_second()),
                "lost": self._lost,
                "ignored": dict(self._ignored),
            }

    def state(self) -> ExchangeState:
        """The figures of a telemetry record."""
        shown = self.shown()
        age = shown["table_age_s"]
        return ExchangeState(
            instances=shown["instances"],
            elected=shown["elected"],
            round=shown["round"],
            members=len(shown["members"]),
            age_ms=None if age is None else max(0, round(1000 * age)),
            unanswered=shown["unanswered"],
            bytes_in=shown["bytes_in"],
            bytes_out=shown["bytes_out"],
            rate_in=shown["rate_in"],
            rate_out=shown["rate_out"],
            lost=shown["lost"],
            ignored=sum(shown["ignored"].values()),
        )


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1)
