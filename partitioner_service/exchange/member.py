"""The data plane's half of the exchange: it tells what this instance knows, and hears what all know together.

Everything here is called from the data plane's thread between two blocks, and never waits.
"""

from __future__ import annotations

from evenflow.errors import IncompatibleStateError
from evenflow.partitioners import Partitioner
from partitioner_service.exchange.figures import Figures
from partitioner_service.exchange.inbox import Inbox
from partitioner_service.exchange.outbox import Outbox
from partitioner_service.exchange.table_maker import TableMaker

ELECTING = 0
"""Whoever owns this input partition makes the tables."""


class Member:
    """One of the instances that tell each other what they know.

    inbox: where tables come in. maker: is appointed while this instance is elected.
    """

    def __init__(self, *, inbox: Inbox, outbox: Outbox, maker: TableMaker, figures: Figures) -> None:
        self._inbox = inbox
        self._outbox = outbox
        self._maker = maker
        self.figures = figures

    def stand(self, partitioner: Partitioner, *, elected: bool) -> None:
        """Say whether this instance is elected now, and which workers its plan has."""
        if elected:
            self._maker.appoint(partitioner)
        else:
            self._maker.dismiss()
        self.figures.elected = elected

    def hear(self, partitioner: Partitioner, now: int | None) -> None:
        """Take over the tables that have come.

        now: event time (ms) that the stream has reached for this instance. None before its first tuple. The
        tables then stay where they are, and the newest ones are taken over with the first tuple.
        """
        if now is None:
            return
        for table in self._inbox.drain():
            try:
                if partitioner.hear(table, now):
                    self._maker.note(table)
                    self.figures.take_over(table)
                else:
                    self.figures.ignore("old", f"a table of round {table.round} came before")
            except IncompatibleStateError as error:
                self.figures.ignore("unusable", error.message)

    def tell(self, partitioner: Partitioner, now: int | None) -> None:
        """Tell the others what this instance knows, if that is due. now: as for `hear`."""
        due = partitioner.tells_at
        if now is None or (due is not None and now < due):
            return
        message = partitioner.tell(now)
        if message is not None:
            self.figures.count_message()
            self._outbox.send(message, time=now)
