"""Rounds of an exchange: which messages make a table, and when nobody is waited for any longer.

A round is complete when every source that is waited for has sent its message. A source that was silent for
`_SILENT_ROUNDS` rounds is not waited for until it sends a message again, of whatever round. A round that has
begun also ends when `patience` is over, with the messages that are there. So a silent member blocks nobody.

A message for a round that is over comes from a member that has not heard the table. The latest table answers
it, at most once per source and `patience`, because an answer may be lost as well.

The rounds are those of the members: a merger that begins anew, or that takes over from another one, goes on
with the greatest round that it hears of. Two mergers for a moment make a table each. A member takes the first
one of a round.
"""

from __future__ import annotations

from collections.abc import Callable

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.partitioners.exchange import LAST_ROUND, Merger, Message, Table

_SILENT_ROUNDS = 2


class Rounds:
    """Collects the messages of `sources` instances, and has `merger` make one table per round.

    patience: how long a round stays open after its first message, in the unit of `clock`. ConfigError for
    numbers out of range.
    """

    def __init__(self, merger: Merger, *, sources: int, patience: float, clock: Callable[[], float]) -> None:
        if sources < 1 or patience <= 0:
            raise ConfigError(f"an exchange needs sources and patience, not {sources} and {patience:g}")
        self.merger = merger
        self.round = 0
        """Number of the round that is open, or that the next message opens."""
        self.table: Table | None = None
        """The latest table."""
        self._sources = sources
        self._patience = patience
        self._clock = clock
        self._messages: dict[int, Message] = {}
        self._open_since: float | None = None
        self._silent = dict.fromkeys(range(sources), 0)
        self._answered: dict[int, float] = {}

    @property
    def closes_at(self) -> float | None:
        """When the time of the open round is over, by `clock`. None if no round is open."""
        return None if self._open_since is None else self._open_since + self._patience

    @property
    def waited_for(self) -> tuple[int, ...]:
        """The sources without which a round is not complete before its time, ascending."""
        return tuple(source for source, rounds in self._silent.items() if rounds < _SILENT_ROUNDS)

    def take(self, message: Message) -> Table | None:
        """The table to send: of the round that this message completes, or as an answer.
        None if there is none to send.

        The last message of a source in a round counts. IncompatibleStateError for a message that cannot be
        used.
        """
        if not 0 <= message.source < self._sources:
            raise IncompatibleStateError(
                f"a message of source {message.source}, but there are {self._sources}"
            )
        if not 0 <= message.round <= LAST_ROUND:
            raise IncompatibleStateError(f"a message has round {message.round}, not 0 to {LAST_ROUND}")
        self.merger.check(message)
        self._silent[message.source] = 0
        if message.round < self.round:
            return self._answer(message.source)
        if message.round > self.round:  # this merger is new, and the members are not
            self.round = message.round
            self._messages.clear()
            self._open_since = None
        self._messages[message.source] = message
        if self._open_since is None:
            self._open_since = self._clock()
        return self._closed() if all(source in self._messages for source in self.waited_for) else None

    def overdue(self) -> Table | None:
        """The table of a round whose time is over. None if there is no such round."""
        closes_at = self.closes_at
        return None if closes_at is None or self._clock() < closes_at else self._closed()

    def _answer(self, source: int) -> Table | None:
        now, last = self._clock(), self._answered.get(source)
        if self.table is None or (last is not None and now < last + self._patience):
            return None
        self._answered[source] = now
        return self.table

    def _closed(self) -> Table:
        for source in self._silent:
            self._silent[source] = 0 if source in self._messages else self._silent[source] + 1
        sources = tuple(sorted(self._messages))
        body = self.merger.merge([self._messages[source] for source in sources])
        self.table = Table(self.round, sources, body)
        self.round += 1
        self._messages.clear()
        self._answered.clear()
        self._open_since = None
        return self.table
