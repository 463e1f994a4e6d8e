"""The exchange between the sources of one stream, over a channel in event time that delays and loses
what is sent.

Event time moves with the tuples. So what is due at a time happens before the first tuple of that time or a
later one, and `Exchange.catch_up` does all that is due by then, in order of time. Of a silence each source
tells the first end of an interval and the last one: the ends in between would tell nothing more.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from evenflow.errors import ConfigError
from evenflow.numeric.arrays import LAST_TIME, NEVER
from evenflow.partitioners import Partitioner
from evenflow.partitioners.exchange import Message, Table
from evenflow.partitioners.rounds import Rounds
from evenflow.wire.sync import SyncRecord, decode_sync, encode_sync

_IDENTITY = "0" * 16
_MERGER = -1


@dataclass(frozen=True, kw_only=True)
class Channel:
    """How messages and tables travel between sources. ConfigError for a value out of range."""

    delay_ms: int = 0
    """Event time that every message and every table takes, ms."""
    loss: float = 0.0
    """Share of all messages, and of all tables at each source, that never arrives."""
    seed: int = 1
    """Seed of what is lost."""

    def __post_init__(self) -> None:
        if self.delay_ms < 0:
            raise ConfigError(f"the delay of the exchange must be at least 0 ms, not {self.delay_ms}")
        if not 0 <= self.loss <= 1:
            raise ConfigError(f"the loss of the exchange must be between 0 and 1, not {self.loss:g}")


@dataclass
class ChannelTraffic:
    """What has been sent so far."""

    tables: int = 0
    """Tables, of rounds and as answers."""
    message_bytes: int = 0
    """Bytes of all messages, as records of the sync topic."""
    table_bytes: int = 0
    """Bytes of all tables, each counted once, although every source reads it."""


class Exchange:
    """The sources of one stream, the merger, and the channel between them.

    A round stays open for `patience_ms` of event time. Merging takes no event time.
    """

    def __init__(self, sources: Sequence[Partitioner], channel: Channel, *, patience_ms: int) -> None:
        self.sent = ChannelTraffic()
        self._sources = sources
        self._channel = channel
        self._now = NEVER
        # Merging takes no event time. On a perfect channel the interval of an algorithm that measures its
        # work has nothing to adapt to, and stays. Otherwise it adapts to the channel.
        perfect = not channel.delay_ms and not channel.loss
        merger = sources[0].merger(clock=lambda: 0.0 if perfect else self._now / 1000)
        self._rounds = Rounds(merger, sources=len(sources), patience=patience_ms, clock=lambda: self._now)
        self._due = [NEVER] * len(sources)
        """Event time of each source's next message, ms, as the source said when it last told or heard."""
        self._random = np.random.default_rng(channel.seed)
        self._number = count()
        self._travelling: list[tuple[int, int, int, bytes]] = []
        """Heap of (time of arrival, number, source or `_MERGER`, record)."""

    @property
    def next_at(self) -> int:
        """Event time, ms, at which the next thing is due."""
        return min(self._arrives_at(), self._closes_at(), *self._due)

    def catch_up(self, now: int) -> None:
        """Do all that is due by event time `now`, ms, the time of the next tuple."""
        sent_at: dict[int, int] = {}
        while True:
            arrives, closes = self._arrives_at(), self._closes_at()
            moments = [self._moment(source, now, sent_at) for source in range(len(self._sources))]
            at = min(arrives, closes, *moments)
            if at > now:
                return
            self._now = max(self._now, at)
            if arrives == at:
                self._arrive()
            elif min(moments) == at:
                for source in np.flatnonzero(np.array(moments) == at).tolist():
                    self._tell(source)
                    sent_at[source] = at
            elif (table := self._rounds.overdue()) is not None:
                self._publish(table)

    def _moment(self, source: int, now: int, sent_at: dict[int, int]) -> int:
        """When the source tells next. sent_at: the sources that have told since the last tuple, and when."""
        due = self._due[source]
        if due == NEVER:
            return now
        if source not in sent_at or due > now:
            return max(due, self._now)
        interval = max(1, due - sent_at[source])
        return max(due + (now - due) // interval * interval, self._now)

    def _arrives_at(self) -> int:
        return self._travelling[0][0] if self._travelling else LAST_TIME

    def _closes_at(self) -> int:
        closes_at = self._rounds.closes_at
        return LAST_TIME if closes_at is None else int(closes_at)

    def _tell(self, source: int) -> None:
        message = self._sources[source].tell(self._now)
        self._ask(source)
        if message is not None:
            record = self._record(source, message)
            self.sent.message_bytes += len(record)
            self._send(record, _MERGER)

    def _publish(self, table: Table) -> None:
        record = self._record(0, table)
        self.sent.tables += 1
        self.sent.table_bytes += len(record)
        for source in range(len(self._sources)):
            self._send(record, source)

    def _send(self, record: bytes, to: int) -> None:
        if self._random.random() >= self._channel.loss:
            arrival = self._now + self._channel.delay_ms
            # The number keeps records that arrive at one moment in the order in which they were sent.
            heapq.heappush(self._travelling, (arrival, next(self._number), to, record))

    def _arrive(self) -> None:
        _, _, to, record = heapq.heappop(self._travelling)
        payload = decode_sync(record, identity=_IDENTITY).payload
        if isinstance(payload, Table):
            self._sources[to].hear(payload, self._now)
            self._ask(to)
        elif (table := self._rounds.take(payload)) is not None:
            self._publish(table)

    def _ask(self, source: int) -> None:
        due = self._sources[source].tells_at
        self._due[source] = self._now if due is None else due

    def _record(self, source: int, payload: Message | Table) -> bytes:
        return encode_sync(SyncRecord(_IDENTITY, 1, source, self._now, payload))
