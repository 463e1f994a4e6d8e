"""Messages and tables on their way to the sync topic."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from evenflow.partitioners.exchange import Message, Table
from evenflow.wire.sync import SyncRecord, encode_sync
from partitioner_service.exchange.decoder import LARGEST
from partitioner_service.exchange.figures import Figures

MOST_UNANSWERED = 64 * 1024 * 1024
"""Bytes that may be on their way. What comes beyond is not sent: it would be out of date before it
arrives.
"""


class Sync(Protocol):
    """Writes a record to the sync topic, and never waits for the broker."""

    def sync(self, record: bytes, *, answered: Callable[[str | None], None]) -> None:
        """answered: is called once, with the error or with None, in whatever thread."""
        ...


class Outbox:
    """Sends as one source. It may be used from any thread. identity, session, source: as in `SyncRecord`."""

    def __init__(self, side: Sync, *, identity: str, session: int, source: int, figures: Figures) -> None:
        self._side = side
        self._identity, self._session, self._source = identity, session, source
        self._figures = figures
        self._lock = threading.Lock()
        self._unanswered = 0

    def send(self, payload: Message | Table, *, time: int | None) -> None:
        """Send a message or a table. time: event time (ms) that the stream has reached here, None if unknown.

        It is not sent if it is too large, or if too much is on its way. That is counted as lost.
        """
        record = encode_sync(
            SyncRecord(
                identity=self._identity,
                session=self._session,
                source=self._source,
                time=time,
                payload=payload,
            )
        )
        size = len(record)
        if size > LARGEST:
            self._figures.written(size, f"a record of {size:,} bytes is too large to send")
            return
        with self._lock:
            crowded = self._unanswered + size > MOST_UNANSWERED
            self._unanswered += 0 if crowded else size
        if crowded:
            self._figures.written(size, "the broker has not answered the records before")
            return

        def answered(error: str | None) -> None:
            with self._lock:
                self._unanswered -= size
            self._figures.written(size, error)

        self._side.sync(record, answered=answered)
