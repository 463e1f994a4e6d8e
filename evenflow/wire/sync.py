"""A record of `<query>.sync`: a message or a table of an exchange, with who sent it and when.

    length of the header   uint32, little-endian
    header                 JSON
    body                   the algorithm's own bytes
    CRC-32 of all before   uint32, little-endian

The topic is a matter of balance, never of results. So a reader passes over what it cannot use, and counts it.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from itertools import pairwise

from evenflow.errors import IncompatibleStateError, ProtocolError
from evenflow.partitioners.exchange import LAST_ROUND, Message, Table
from evenflow.text.strict_json import INT64, NotStrict, StrictObject, read_object
from evenflow.wire.envelope import Data

SYNC_VERSION = 1
_LENGTH = struct.Struct("<I")
_CHECKSUM = struct.Struct("<I")
_MOST_HEADER_BYTES = 65_536
_MOST_SOURCES = 4_096
_WORD = 100
_FIELDS = ("v", "kind", "identity", "session", "source", "round", "sources", "time")


class OtherVersion(IncompatibleStateError):
    """A record of another version of evenflow."""


@dataclass(frozen=True)
class SyncRecord:
    """One record of the sync topic."""

    identity: str
    """Identity of the query and of the partitioner's settings.
    Only records of one's own identity are used."""
    session: int
    """The run of the process that sent the record, a random number above 0."""
    source: int
    """The instance that sent the record."""
    time: int | None
    """Event time (ms) that the stream had reached there, None if unknown."""
    payload: Message | Table
    """What was sent."""


def encode_sync(record: SyncRecord) -> bytes:
    """The record as bytes."""
    payload = record.payload
    fields = {
        "v": SYNC_VERSION,
        "kind": "table" if isinstance(payload, Table) else "message",
        "identity": record.identity,
        "session": record.session,
        "source": record.source,
        "round": payload.round,
        "sources": list(payload.sources) if isinstance(payload, Table) else [payload.source],
        "time": record.time,
    }
    header = json.dumps(fields, separators=(",", ":")).encode()
    data = b"".join((_LENGTH.pack(len(header)), header, payload.body))
    return data + _CHECKSUM.pack(zlib.crc32(data))


def decode_sync(data: Data, *, identity: str) -> SyncRecord:
    """The record of these bytes, which may be any.

    Raises ProtocolError for bytes that are no record or were damaged. Raises IncompatibleStateError for a
    record of another version, query or partitioner.
    """
    view = memoryview(data).cast("B")
    least = _LENGTH.size + _CHECKSUM.size
    if view.nbytes < least or zlib.crc32(view[:-4]) != _CHECKSUM.unpack_from(view, view.nbytes - 4)[0]:
        raise ProtocolError("this is no sync record: its checksum does not fit")
    length = _LENGTH.unpack_from(view)[0]
    if length > view.nbytes - least:
        raise ProtocolError("this is no sync record: its header is longer than itself")
    end = _LENGTH.size + length
    try:
        fields = read_object(bytes(view[_LENGTH.size : end]), most_bytes=_MOST_HEADER_BYTES)
        version = fields.whole("v", 1, 2**31)
        if version != SYNC_VERSION:
            raise OtherVersion(
                f"this sync record has version {version}, this evenflow reads version {SYNC_VERSION}"
            )
        if fields.text("identity", most=_WORD) != identity:
            raise IncompatibleStateError("this sync record is of another query or of other settings")
        return _record(fields, bytes(view[end : view.nbytes - _CHECKSUM.size]))
    except NotStrict as error:
        raise ProtocolError(f"this is no sync record: {error}") from None


def _record(fields: StrictObject, body: bytes) -> SyncRecord:
    fields.only(_FIELDS)
    source = fields.whole("source", 0, _MOST_SOURCES)
    number = fields.whole("round", 0, LAST_ROUND)
    sources = fields.wholes("sources", 0, _MOST_SOURCES, most=_MOST_SOURCES)
    kind = fields.text("kind", most=_WORD)
    if kind not in ("message", "table"):
        raise NotStrict(f"its kind is {kind!r}")
    if not sources or any(a >= b for a, b in pairwise(sources)):
        raise NotStrict("its sources do not ascend")
    if kind == "message" and sources != [source]:
        raise NotStrict("a message is of one source, its own")
    payload = Table(number, tuple(sources), body) if kind == "table" else Message(source, number, body)
    return SyncRecord(
        identity=fields.text("identity", most=_WORD),
        session=fields.whole("session", 1, INT64[1]),
        source=source,
        time=fields.optional("time", fields.whole, *INT64),
        payload=payload,
    )
