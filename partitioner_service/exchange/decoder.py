"""From the bytes of a record to what it says, or to the reason why it is not used."""

from __future__ import annotations

from collections.abc import Callable

from evenflow.errors import IncompatibleStateError, ProtocolError
from evenflow.partitioners.exchange import Table
from evenflow.wire.sync import OtherVersion, SyncRecord, decode_sync
from partitioner_service.exchange.figures import Figures
from partitioner_service.exchange.senders import Senders

LARGEST = 30_000_000
"""Bytes of a record. Below the largest record that a producer sends (`clients.MAX_RECORD_BYTES`)."""
FURTHEST = 1 << 40
"""A round is at most so much ahead of the newest table. Rounds count up by one, so no member comes near.
Without a bound one wrong record could take all members to the last number that there is."""


class RecordDecoder:
    """Reads records of the sync topic, in the order of the topic.

    identity: of this instance's query and partitioner. source, session: this instance's own. sources: how
    many there are. clock: in s.
    """

    def __init__(
        self,
        identity: str,
        *,
        source: int,
        session: int,
        sources: int,
        figures: Figures,
        clock: Callable[[], float],
    ) -> None:
        self._identity = identity
        self._source, self._session, self._sources = source, session, sources
        self._figures = figures
        self._senders = Senders(sources, clock=clock)
        self._newest = 0

    def read(self, value: bytes | None) -> SyncRecord | None:
        """What the record says. None if it is not used. value: any bytes."""
        self._figures.count_read(len(value or b""))
        if value is not None and len(value) > LARGEST:
            self._figures.ignore("oversized", f"it has {len(value):,} bytes")
            return None
        try:
            record = decode_sync(value or b"", identity=self._identity)
        except OtherVersion as error:
            self._figures.ignore("version", error.message)
        except IncompatibleStateError as error:
            self._figures.ignore("foreign", error.message)
        except ProtocolError as error:
            self._figures.ignore("corrupt", error.message)
        else:
            return record if self._counts(record) else None
        return None

    def _counts(self, record: SyncRecord) -> bool:
        payload = record.payload
        sources = payload.sources if isinstance(payload, Table) else (payload.source,)
        if max(record.source, *sources) >= self._sources:
            self._figures.ignore("corrupt", f"it names a source that is not one of {self._sources}")
            return False
        if record.source == self._source and record.session != self._session:
            self._figures.ignore("twin", f"another process is source {self._source} of the exchange, too")
            return False
        if payload.round - self._newest > FURTHEST:
            self._figures.ignore("ahead", f"it is of round {payload.round}, far ahead of {self._newest}")
            return False
        if not self._senders.speaks(record.source, record.session):
            self._figures.ignore("old", "another run speaks for its source")
            return False
        if isinstance(payload, Table):
            self._newest = max(self._newest, payload.round)
        return True
