"""What the instances of one partitioner tell each other, if their algorithm can.

At the end of an interval of event time each instance tells a *message*. One *merger* makes a *table* of the messages
of a round, and every instance hears the table. `rounds` says when a round is complete. How messages and tables
travel is the business of whoever runs the instances: the service has a topic, the simulation a channel in event time.

Messages and tables are a matter of balance, never of results. They may be lost, come late, twice or in another order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple


class Message(NamedTuple):
    """From an instance to the merger: what the instance knows.

    source: `Partitioner.source` of the instance. round: number of the round that the message is for, from 0. body: the
    algorithm's own bytes.
    """

    source: int
    round: int
    body: bytes


class Table(NamedTuple):
    """From the merger to every instance: what all know together.

    round: number of the round whose messages the table was made of. sources: the instances that sent them, ascending.
    body: the algorithm's own bytes.
    """

    round: int
    sources: tuple[int, ...]
    body: bytes


class Merger(ABC):
    """Makes the tables of one algorithm. `Partitioner.merger` gives one that fits the partitioner.

    A table depends on the messages and on the tables before it, not on the order in which messages came.
    """

    @abstractmethod
    def check(self, message: Message) -> None:
        """Raise IncompatibleStateError for a message that `merge` could not read. The body may be any bytes."""

    @abstractmethod
    def merge(self, messages: Sequence[Message]) -> bytes:
        """The body of the table of these messages.

        messages: of one round, each of another source, ascending by source, at least one, and each passed `check`.
        """

    @abstractmethod
    def rescale(self, workers: int) -> None:
        """Make tables for this many workers from now on. Messages of other numbers of workers may still come."""
