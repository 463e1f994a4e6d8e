"""The table that the instances heard last, for an instance that begins."""

from __future__ import annotations

import logging

from evenflow.errors import EvenflowError, IncompatibleStateError, ProtocolError
from evenflow.partitioners.exchange import Table
from evenflow.settings import KafkaSettings
from evenflow.wire.sync import decode_sync
from partitioner_service.exchange.decoder import FURTHEST, LARGEST
from topics.reader import read_newest

log = logging.getLogger(__name__)

_FEW = 4
"""So many offsets are looked at first. A round's table comes after its messages."""


def newest_table(kafka: KafkaSettings, topic: str, *, identity: str, sources: int) -> Table | None:
    """The table of the highest round among the newest records. None if there is none, or if it cannot be had.

    identity: of the query and the partitioner. sources: how many instances there are.
    """
    try:
        for most in (_FEW, _FEW * (sources + 1)):
            tables = [
                table
                for record in read_newest(kafka, topic, most)
                if (table := _table(record.value(), identity, sources)) is not None
            ]
            if tables:
                return max(tables, key=lambda table: table.round)
    except EvenflowError as error:
        log.warning("exchange: the newest table could not be read (balance only): %s", error)
    return None


def _table(value: bytes | None, identity: str, sources: int) -> Table | None:
    """The table in a record. None for anything else. value: any bytes."""
    if value is None or len(value) > LARGEST:
        return None
    try:
        payload = decode_sync(value, identity=identity).payload
    except (IncompatibleStateError, ProtocolError):
        return None
    if isinstance(payload, Table) and payload.sources[-1] < sources and payload.round <= FURTHEST:
        return payload
    return None
