"""The sync topic as one instance uses it: raw records go in, and reach the data plane or the table maker."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable

from evenflow.errors import IncompatibleStateError
from evenflow.partitioners.exchange import Message, Table
from evenflow.settings import Settings
from partitioner_service.exchange.decoder import RecordDecoder
from partitioner_service.exchange.figures import Figures
from partitioner_service.exchange.identity import identity_of
from partitioner_service.exchange.inbox import Inbox
from partitioner_service.exchange.member import Member
from partitioner_service.exchange.newest_table import newest_table
from partitioner_service.exchange.outbox import Outbox, Sync
from partitioner_service.exchange.table_maker import TableMaker
from partitioner_service.kafka.learned_state import new_partitioner

log = logging.getLogger(__name__)

_MOST_SESSION = 2**62


class Channel:
    """What this instance hears and sends.
    `offer` and `tick` are called from the control plane, and never raise.

    session: random and above 0, given in tests only. clock: in s. wall: s since 1970.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        session: int | None = None,
    ) -> None:
        self._settings = settings
        like = new_partitioner(settings)
        self._identity = identity_of(settings, like)
        self._session = secrets.randbelow(_MOST_SESSION) + 1 if session is None else session
        self._source = like.source
        self.figures = Figures(instances=like.sources, clock=clock, wall=wall)
        self._reader = RecordDecoder(
            self._identity,
            source=self._source,
            session=self._session,
            sources=like.sources,
            figures=self.figures,
            clock=clock,
        )
        self._inbox = Inbox()
        self._maker = TableMaker(
            sources=like.sources, patience=settings.partitioner.exchange_patience / 1000, clock=clock
        )
        self._outbox: Outbox | None = None
        self._time: int | None = None
        self._failed = False

    # ---- the data plane's thread

    def begin(self) -> None:
        """Hear what the instances heard last, so that this one does not begin with nothing. Reads the
        topic.
        """
        table = newest_table(
            self._settings.kafka,
            self._settings.topic("sync"),
            identity=self._identity,
            sources=self.figures.instances,
        )
        if table is not None:
            self._inbox.put(table)

    def member(self, side: Sync) -> Member:
        """The member that tells and hears through this channel. side: writes records to the topic."""
        self._outbox = Outbox(
            side,
            identity=self._identity,
            session=self._session,
            source=self._source,
            figures=self.figures,
        )
        return Member(inbox=self._inbox, outbox=self._outbox, maker=self._maker, figures=self.figures)

    # ---- the control plane

    def offer(self, value: bytes | None) -> None:
        """Take a record of the sync topic, of any bytes, in the order of the topic."""
        self._guarded(lambda: self._take(value))

    def tick(self) -> None:
        """End a round whose time is over. Call it several times a second."""
        if self._maker.appointed:
            self._guarded(lambda: self._send(self._maker.overdue()))

    def _take(self, value: bytes | None) -> None:
        record = self._reader.read(value)
        if record is None:
            return
        self._time = record.time
        if isinstance(record.payload, Message):
            self._send(self._maker.take(record.payload))
            return
        dropped = self._inbox.put(record.payload)
        if dropped:
            self.figures.ignore("crowded", "newer tables came", number=dropped)

    def _send(self, table: Table | None) -> None:
        if table is not None and self._outbox is not None:
            self.figures.count_table()
            self._outbox.send(table, time=self._time)

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except IncompatibleStateError as error:
            self.figures.ignore("unusable", error.message)
        except Exception as error:
            # A fault here must not end an instance: what is told matters for balance only.
            self.figures.ignore("unusable", f"{type(error).__name__}: {error}")
            if not self._failed:
                self._failed = True
                log.exception(
                    "exchange: a record could not be taken in, the round begins anew (balance only)"
                )
            self._maker.begin_anew()
