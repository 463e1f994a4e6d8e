"""What the instances of one partitioner tell each other, if their algorithm can.

At the end of an interval of event time each instance tells a *message*. One *merger* makes a *table* of the
messages of a round, and every instance hears the table. `rounds` says when a round is complete. How messages
and tables travel is the business of whoever runs the instances: the service has a topic, the simulation a
channel in event time.

Messages and tables are a matter of balance, never of results. They may be lost, come late, twice or in
another order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from evenflow.errors import IncompatibleStateError

LAST_ROUND = 2**62
"""Greatest number of a round. Numbers are kept as int64."""


class Message(NamedTuple):
    """From an instance to the merger: what the instance knows."""

    source: int
    """`Partitioner.source` of the instance."""
    round: int
    """Number of the round that the message is for, from 0."""
    body: bytes
    """The algorithm's own bytes."""


class Table(NamedTuple):
    """From the merger to every instance: what all know together."""

    round: int
    """Number of the round whose messages the table was made of."""
    sources: tuple[int, ...]
    """The instances that sent them, ascending."""
    body: bytes
    """The algorithm's own bytes."""

    def check(self, sources: int) -> None:
        """Raise IncompatibleStateError unless this can be a table for so many instances.
        The body is not looked at.
        """
        if not 0 <= self.round <= LAST_ROUND:
            raise IncompatibleStateError(f"a table has round {self.round}, not 0 to {LAST_ROUND}")
        ascending = all(low < high for low, high in pairwise(self.sources))
        if not self.sources or not ascending or self.sources[0] < 0 or self.sources[-1] >= sources:
            raise IncompatibleStateError(f"a table has messages of sources that are not among the {sources}")


class Merger(ABC):
    """Makes the tables of one algorithm. `Partitioner.merger` gives one that fits the partitioner.

    A table depends on the messages of its round and of earlier ones, on the tables before it and on `clock`,
    not on the order in which messages came.
    """

    @abstractmethod
    def check(self, message: Message) -> None:
        """Raise IncompatibleStateError for a message that `merge` could not read. The body may be any
        bytes.
        """

    @abstractmethod
    def merge(self, messages: Sequence[Message]) -> bytes:
        """The body of the table of these messages.

        messages: of one round, each of another source, ascending by source, at least one, and each passed
        `check`.
        """

    def remember(self, message: Message) -> None:
        """A message that passed `check`, of a round whose table another merger made.
        Overridden where a table has something of sources that are gone.
        """
        return

    @abstractmethod
    def rescale(self, workers: int) -> None:
        """Make tables for this many workers from now on. Messages of other numbers of workers may still
        come.
        """
