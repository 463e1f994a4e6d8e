"""The elected half of the exchange: it makes a table of the messages of a round.

The instance that owns input partition 0 is elected. The data plane appoints and dismisses the maker, and
never waits for it. Everything else is called from the control plane. In a rebalance two instances may be
elected for a moment, or none. Then a round has two tables, of which each member takes the first, or its
messages are told again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from evenflow.errors import IncompatibleStateError
from evenflow.partitioners import Partitioner
from evenflow.partitioners.exchange import Merger, Message, Table
from evenflow.partitioners.rounds import Rounds


class _Mandate(NamedTuple):
    """What tables an elected instance makes."""

    merger: Merger
    """Makes a table of the messages of a round."""
    workers: int
    """p of the partitioner that the tables must fit."""


class TableMaker:
    """Makes tables while it is appointed.

    sources: how many instances there are. patience: how long (s) a round waits for those that have not told
    yet. clock: in s.
    """

    def __init__(self, *, sources: int, patience: float, clock: Callable[[], float]) -> None:
        self._sources = sources
        self._patience = patience
        self._clock = clock
        # Replaced as a whole by the data plane, and read once by each call of the control plane. So no lock
        # is needed.
        self._mandate: _Mandate | None = None
        self._newest: Table | None = None
        self._messages: dict[int, Message] = {}
        """The newest message of each source, also while another instance makes the tables."""
        self._lock = threading.Lock()  # of the control plane's own threads
        self._rounds: Rounds | None = None
        self._workers: int | None = None

    # ---- the data plane's thread

    @property
    def appointed(self) -> bool:
        """Whether this instance is elected."""
        return self._mandate is not None

    def appoint(self, partitioner: Partitioner) -> None:
        """Make tables that fit this partitioner as it is now, from now on."""
        mandate, workers = self._mandate, partitioner.workers
        if mandate is None:
            self._mandate = _Mandate(partitioner.merger(clock=self._clock), workers)
        elif mandate.workers != workers:
            self._mandate = _Mandate(mandate.merger, workers)

    def dismiss(self) -> None:
        """Make no more tables."""
        self._mandate = None

    def note(self, table: Table) -> None:
        """This instance has heard a table, whoever made it.
        A maker that is appointed later goes on behind it.
        """
        self._newest = table

    # ---- the control plane

    def take(self, message: Message) -> Table | None:
        """The table to send because of this message.
        None if there is none, or if this instance is not elected.

        IncompatibleStateError for a message that cannot be used.
        """
        with self._lock:
            rounds = self._present_rounds()
            if 0 <= message.source < self._sources:
                self._messages[message.source] = message
            return None if rounds is None else rounds.take(message)

    def overdue(self) -> Table | None:
        """The table of a round whose time is over. None if there is no such round."""
        with self._lock:
            rounds = self._present_rounds()
            return None if rounds is None else rounds.overdue()

    def begin_anew(self) -> None:
        """Forget the messages of the open round."""
        with self._lock:
            self._rounds = None

    def _remind(self, merger: Merger) -> None:
        """Tell a new merger what sources told the one before it, of which some may be gone."""
        for message in self._messages.values():
            with suppress(IncompatibleStateError):
                merger.check(message)
                merger.remember(message)

    def _present_rounds(self) -> Rounds | None:
        mandate = self._mandate
        if mandate is None:
            self._rounds = None
            return None
        if self._rounds is None or self._rounds.merger is not mandate.merger:
            self._rounds = Rounds(
                mandate.merger, sources=self._sources, patience=self._patience, clock=self._clock
            )
            self._workers = None
            self._remind(mandate.merger)
            # Members pass over a table that is not newer than their own. So the rounds go on behind the
            # newest one.
            newest = self._newest
            if newest is not None:
                self._rounds.round, self._rounds.table = newest.round + 1, newest
        if self._workers != mandate.workers:
            mandate.merger.rescale(mandate.workers)
            self._workers = mandate.workers
        return self._rounds
