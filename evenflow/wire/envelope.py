"""One record: an Arrow IPC stream with one batch, and after its end a trailer of 20 bytes.

    schema message   its metadata key `evenflow` holds the header as JSON, with arrays as base64
    batch message    the rows
    end of stream    8 bytes
    segments         only where workers share a partition: rows of each of them (uint32 each)
    trailer          part, parts (uint32), sequence (int64), CRC-32 of all bytes before it (uint32),
                     little-endian

Any Arrow library reads a record as it is, because bytes after the end of a stream are ignored. Many records
have the same schema message (all frames of a block, for example). So it is encoded once and decoded once.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa

from evenflow.errors import IncompatibleStateError, ProtocolError
from evenflow.numeric.arrays import Int64s, Rows, plain
from evenflow.text.strict_json import StrictObject, read_object
from evenflow.wire.claims import is_compressed

METADATA_KEY = b"evenflow"
WIRE_VERSION = 3
"""The version of frames and blobs. A reader refuses every other one.

With another version these change: CHANGELOG.md names it, the table of docs/deploy.md ("Upgrades and
rollbacks") says what an upgrade does with records of the version before, and tests/unit/wire/test_wire.py has
the number. tests/pipeline/upgrade reads what the previous release wrote.
"""
MOST_PARTITIONS = 4_096
"""A header may claim at most so many input or routed partitions. Settings allow fewer: 256 and 1,024."""
# An Arrow IPC message begins with 0xFFFFFFFF and its length. Length 0 is the end of the stream.
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_TRAILER = struct.Struct("<IIqI")
_CHECKED = struct.Struct("<IIq")
_SEGMENT = np.dtype("<u4")
_MESSAGE = struct.Struct("<iI")
_REMEMBERED = 256
"""So many schema messages are kept decoded.

A task reads one routed partition after another, and each has the blocks of the micro-batch. So the headers of
a partition are met again in the next one, if a micro-batch has no more blocks than this.
"""
_LARGEST_REMEMBERED = 16_384
"""Longest schema message (bytes) that is kept decoded. That of 100 input partitions has some 6,000."""
_LARGEST_HEADER = 16 * 1024 * 1024
_WORD = 100
_UNREADABLE = (
    pa.ArrowException,
    struct.error,
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    OSError,
    OverflowError,
    MemoryError,
    RecursionError,
    StopIteration,
)
"""The exceptions of Arrow's and Python's readers for bytes that are no record."""

Data: TypeAlias = bytes | pa.Buffer


Read = Callable[[StrictObject], Any]
"""Makes a header of its JSON fields. Raises ProtocolError for impossible fields."""
SharedBy = Callable[[Any], int]
"""How many workers share the partition of a record with this header."""


class DecodedRecord(NamedTuple):
    """An opened record."""

    header: Any
    """The header as `Read` made it."""
    batch: pa.RecordBatch
    """The rows of the record."""
    part: int
    """Which of the `parts` this is, from 0."""
    parts: int
    """Into how many parts the content was cut, 1 if it was not."""
    sequence: int
    """Number of the record, 0 where records are not numbered."""
    segments: Int64s | None = None
    """How many of the rows each worker has, one after the other. None if the header says nothing of
    several workers."""


class Body(NamedTuple):
    """A record without its trailer."""

    pieces: tuple[bytes | pa.Buffer, ...]
    """The bytes, in pieces that follow each other."""
    checked: int
    """CRC-32 of these pieces."""

    def sealed(
        self, *, part: int = 0, parts: int = 1, sequence: int = 0, segments: Int64s | None = None
    ) -> bytes:
        """The whole record. part, parts, sequence, segments: as in `DecodedRecord`."""
        trailer = _CHECKED.pack(part, parts, sequence)
        if segments is not None:
            trailer = segments.astype(_SEGMENT).tobytes() + trailer
        checked = zlib.crc32(trailer, self.checked).to_bytes(4, "little")
        return b"".join((*self.pieces, trailer, checked))


class Packer:
    """Makes records that share one schema and one header. Both are encoded once.

    kind: "frame" or "blob". fields: the header as plain JSON.
    """

    def __init__(self, schema: pa.Schema, *, kind: str, fields: dict[str, Any]) -> None:
        header = {"v": WIRE_VERSION, "kind": kind, **fields}
        text = json.dumps(header, separators=(",", ":")).encode()
        self._prefix = schema.with_metadata({METADATA_KEY: text}).serialize().to_pybytes()
        self._checked = zlib.crc32(self._prefix)

    def body(self, batch: pa.RecordBatch) -> Body:
        """What all records of these rows share. Their columns are those of the schema."""
        rows = batch.serialize()
        return Body((self._prefix, rows, _END), zlib.crc32(_END, zlib.crc32(rows, self._checked)))

    def pack(
        self,
        batch: pa.RecordBatch,
        *,
        part: int = 0,
        parts: int = 1,
        sequence: int = 0,
        segments: Int64s | None = None,
    ) -> bytes:
        """One record of these rows. Their columns are those of the schema."""
        return self.body(batch).sealed(part=part, parts=parts, sequence=sequence, segments=segments)


def open_record(
    data: Data, *, kind: str, fingerprint: str, read: Read, shared_by: SharedBy | None = None
) -> DecodedRecord:
    """Check and read a record. The bytes may be anything.

    read: makes the header. For many records with one header it is called once. shared_by: says by the header
    how many segments there are, 0 for none. None: records of this kind have none.

    Raises ProtocolError for bytes that are no record of this kind or were damaged. Raises
    IncompatibleStateError for a record of another version or another query.
    """
    try:
        view = memoryview(data)
        if view.nbytes <= _TRAILER.size + len(_END):
            raise ValueError(f"it has only {view.nbytes} bytes")
        part, parts, sequence, checked = _TRAILER.unpack_from(view, view.nbytes - _TRAILER.size)
        if zlib.crc32(view[:-4]) != checked:
            raise ValueError("its checksum does not fit: it was damaged, or is something else")
        # A message is a marker and a length (8 bytes together), then its metadata. A schema message has no
        # body.
        length = 8 + _MESSAGE.unpack_from(view)[1]
        if not 8 < length <= view.nbytes - _TRAILER.size:
            raise ValueError("its schema is longer than itself")
        known = _remembered if length <= _LARGEST_REMEMBERED else _first_message
        # The header is read before the trailer's numbers: it says whether the trailer is that of this
        # version.
        header, schema = known(bytes(view[:length]), kind, fingerprint, read)
        if not 0 <= part < parts:
            raise ValueError(f"it cannot be part {part} of {parts}")
        if not 0 <= sequence < 2**62:
            raise ValueError(f"it cannot have the number {sequence}")
        count = 0 if shared_by is None else shared_by(header)
        end = view.nbytes - _TRAILER.size - _SEGMENT.itemsize * count
        if end <= length or (count and bytes(view[end - len(_END) : end]) != _END):
            raise ValueError(f"it does not have the segments of {count} workers")
        message = pa.ipc.read_message(_aligned(data).slice(length, end - length))
        if is_compressed(message.metadata.to_pybytes()):
            raise ValueError("its rows are compressed: how large they are is only a claim")
        batch = pa.ipc.read_record_batch(message, schema)
        segments = np.frombuffer(view[end : -_TRAILER.size], _SEGMENT).astype(np.int64) if count else None
        if segments is not None and int(segments.sum()) != batch.num_rows:
            raise ValueError(f"its segments have {segments.sum()} rows, and it has {batch.num_rows}")
        batch.validate(full=True)  # kernels index by offsets without a check, so bad offsets must end here
    except _UNREADABLE as error:
        raise ProtocolError(f"this record is no evenflow {kind}: {_short(error)}") from None
    return DecodedRecord(header, batch, part, parts, sequence, segments)


def records_of(rows: list[tuple[int, ...]], kind: np.dtype[Any]) -> Rows:
    """Records of this dtype. Each tuple has the values of one record."""
    return cast(Rows, np.array(rows, kind))


def numbers(rows: Int64s | Rows) -> str:
    """int64 values as text: an array of shape (n, columns), or n records of int64 fields.

    Differences between rows are deflated, because neighbours are alike.
    """
    values = plain(rows).astype("<i8", copy=False)
    differences = values.copy()
    differences[1:] -= values[:-1]  # `np.diff` with `prepend` takes seven times as long for a few rows
    return base64.b64encode(zlib.compress(differences.T.tobytes(), 1)).decode()


def read_numbers(fields: StrictObject, name: str, *, columns: int, most: int) -> Int64s:
    """The int64 values that `numbers` wrote, shape (n, columns), n up to `most`.
    ProtocolError for anything else.
    """
    try:
        packed = base64.b64decode(fields.text(name, most=_LARGEST_HEADER), validate=True)
        # The output is bounded: a few bytes of deflate may claim gigabytes. One byte beyond the bound shows
        # an overflow.
        inflating = zlib.decompressobj()
        data = inflating.decompress(packed, 8 * columns * most + 1)
        if len(data) > 8 * columns * most or not inflating.eof:
            raise ValueError(f"it has more than {most} rows, or no end")
        differences = np.frombuffer(data, "<i8").reshape(columns, -1)
        return np.ascontiguousarray(np.cumsum(differences, axis=1).T)
    except (ValueError, zlib.error) as error:
        raise ProtocolError(f"the header's {name!r} cannot be read: {_short(error)}") from None


def read_records(fields: StrictObject, name: str, kind: np.dtype[Any], *, most: int) -> Rows:
    """The records of this dtype that `numbers` wrote, shape (n,), n up to `most`.
    ProtocolError for anything else.
    """
    array = read_numbers(fields, name, columns=len(kind.names or ()), most=most)
    return cast(Rows, array.view(kind)[:, 0])


LATEST_CAME = 2**53
"""Latest time (ms since 1970) that is believed. No right clock shows a later one."""


def arrival_field(arrival_time: int | None) -> dict[str, int]:
    """The header's field `came`. It is left out if the time is unknown."""
    return {} if arrival_time is None else {"came": arrival_time}


def read_arrival_time(fields: StrictObject) -> int | None:
    """The time (ms) that `arrival_field` wrote, or None for anything else.
    It serves latencies only, so it never raises.
    """
    arrival_time = fields.fields.get("came")
    # `type`, because a bool is an instance of int, too.
    return arrival_time if type(arrival_time) is int and 0 <= arrival_time <= LATEST_CAME else None


def _first_message(prefix: bytes, kind: str, fingerprint: str, read: Read) -> tuple[Any, pa.Schema]:
    """(header, schema) of a schema message. Kind, version and query are checked before any number of the
    header is read.
    """
    with pa.ipc.open_stream(prefix + _END) as reader:
        schema = reader.schema
    fields = read_object((schema.metadata or {})[METADATA_KEY], most_bytes=_LARGEST_HEADER)
    if fields.text("kind", most=_WORD) != kind:
        raise ValueError("its header is that of something else")
    version, query = fields.whole("v", 1, 2**31), fields.text("fingerprint", most=_WORD)
    if version != WIRE_VERSION:
        raise IncompatibleStateError(
            f"this record is a {kind} of version {version}, this evenflow reads version {WIRE_VERSION}",
            hint="finish the query with the evenflow that began it, or give the query a new name",
        )
    if query != fingerprint:
        raise IncompatibleStateError(
            f"a {kind} was written for query {query}, but this is query {fingerprint}",
            hint=(
                "the query, the input or the number of partitions or buckets changed: "
                "give the query a new name (new topics), or delete the old topics and checkpoints"
            ),
        )
    if not all(schema.names):  # Arrow decodes names only now, and they may be no UTF-8
        raise ValueError("a column has no name")
    return read(fields), schema.remove_metadata()


_remembered = lru_cache(maxsize=_REMEMBERED)(_first_message)


def _aligned(data: Data) -> pa.Buffer:
    """The bytes as a buffer that begins at a multiple of 8, copied if need be.

    Kernels are compiled for aligned arrays, and bytes from Spark begin anywhere.
    """
    buffer = pa.py_buffer(data)
    return pa.py_buffer(buffer.to_pybytes()) if buffer.address % 8 else buffer


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}"
