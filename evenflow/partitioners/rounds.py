"""Rounds of an exchange: which messages make a table, and when nobody is waited for any longer.

A round is complete when every source that is waited for has sent its message. A source that was silent for
`_SILENT_ROUNDS` rounds is not waited for until it sends a message again. A round that has begun also ends when
`patience` is over, with the messages that are there. So a silent member blocks nobody.

The rounds are those of the members: a merger that begins anew, or that takes over from another one, goes on with the
greatest round that it hears of. Two mergers for a moment make a table each. A member takes the first one of a round.
"""

from __future__ import annotations

from collections.abc import Callable

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.partitioners.exchange import Merger, Message, Table

_SILENT_ROUNDS = 2


class Rounds:
    """Collects the messages of `sources` instances, and has `merger` make one table per round.

    patience: how long a round stays open after its first message, in the unit of `clock`. ConfigError for numbers out of
    range.
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
        self._answered: set[int] = set()

    @property
    def waited_for(self) -> tuple[int, ...]:
        """The sources without which a round is not complete before its time, ascending."""
        return tuple(source for source, rounds in self._silent.items() if rounds < _SILENT_ROUNDS)

    def take(self, message: Message) -> Table | None:
        """The table to send, if this message completes its round. Otherwise None.

        A member that sends for a round that is over has not heard of the table. It gets the latest one, once per round.
        The last message of a source in a round counts. IncompatibleStateError for a message that cannot be used.
        """
        if not 0 <= message.source < self._sources:
            raise IncompatibleStateError(
                f"a message of source {message.source}, but there are {self._sources}"
            )
        if message.round < self.round:
            if self.table is None or message.source in self._answered:
                return None
            self._answered.add(message.source)
            return self.table
        self.merger.check(message)
        if message.round > self.round:  # this merger is new, and the members are not
            self.round = message.round
            self._messages.clear()
            self._open_since = None
        self._messages[message.source] = message
        self._silent[message.source] = 0
        if self._open_since is None:
            self._open_since = self._clock()
        return self._closed() if all(source in self._messages for source in self.waited_for) else None

    def overdue(self) -> Table | None:
        """The table of a round whose time is over. None if there is no such round."""
        if self._open_since is None or self._clock() - self._open_since < self._patience:
            return None
        return self._closed()

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
