"""Wire format of results as Arrow: one record holds rows of one bucket and one window.

A record is an Arrow IPC stream with one record batch, whose buffers are compressed with lz4. Any Arrow
library reads it: `pa.ipc.open_stream(value).read_all()`. The schema metadata key `evenflow` holds a header as
JSON.

A window's rows in a bucket have a fixed order. The header says which of these rows a record holds: rows
`first` up to `first + rows`. So a reader recognises by position what was written before, even if a repeated
micro-batch has cut the window elsewhere. Equal rows under an equal header are equal bytes.

Admission rule: encoding and decoding only, no Kafka and no Spark.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.errors import IncompatibleStateError, ProtocolError
from evenflow.wire.claims import claimed_bytes

METADATA_KEY = b"evenflow"
RESULTS_VERSION = 2
PART_BYTES = 4_000_000
"""A record holds at most about so many bytes of uncompressed rows, or one row that is larger."""
MOST_BYTES = 33_554_432
"""A record that claims more bytes of uncompressed rows is refused: evenflow writes none."""

_WRITING = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_CONTINUED = struct.Struct("<Ii")
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, kw_only=True)
class ResultHeader:
    """What a record says of itself."""

    fingerprint: str
    """Fingerprint of the query. A record of another query is refused."""
    window_start: int
    """Begin of the window, ms of event time."""
    window_end: int
    """End of the window, ms of event time."""
    bucket: int
    """The reduce bucket that the rows are of, by its number."""
    part: int
    """Number of the record within its window and bucket, from 0."""
    first: int
    """Place of the record's first row among the window's rows in this bucket, from 0."""
    rows: int
    """How many rows the record holds."""
    last: bool
    """Whether no more rows of this window and bucket follow."""


def encode_results(
    tables: Iterable[pa.Table], *, fingerprint: str, bucket: int, part_bytes: int = PART_BYTES
) -> Iterator[bytes]:
    """Records of the result tables (`readable_schema`) of one bucket.

    Each table holds rows of one window, and tables of the same window follow each other. To know which record
    is the last of its window, this reads one batch ahead of the record that it yields.
    """
    windowed_batch: tuple[pa.RecordBatch, tuple[int, int]] | None = None
    part = first = 0
    for batch, window in _batches(tables, part_bytes):
        if windowed_batch is not None:
            last = windowed_batch[1] != window
            yield _record(
                windowed_batch, fingerprint=fingerprint, bucket=bucket, part=part, first=first, last=last
            )
            part, first = (0, 0) if last else (part + 1, first + windowed_batch[0].num_rows)
        windowed_batch = batch, window
    if windowed_batch is not None:
        yield _record(
            windowed_batch, fingerprint=fingerprint, bucket=bucket, part=part, first=first, last=True
        )


def decode_results(
    value: bytes | None, *, schema: pa.Schema, fingerprint: str, keys: Sequence[str] = ("key",)
) -> tuple[ResultHeader, pa.RecordBatch]:
    """Header and rows of a record.
    `schema` is the query's `readable_schema`, and `keys` are its `result_keys`.

    The bytes may be anything. Raises ProtocolError for bytes that are no such record, and
    IncompatibleStateError for a record of another query. Nothing is decompressed before the checksum and the
    claimed sizes are found right.
    """
    try:
        header, batch = _decoded(value or b"", schema, fingerprint)
        _check_rows(header, batch, keys)
    except (ProtocolError, IncompatibleStateError):
        raise
    except Exception as error:  # for bad bytes, Arrow and the JSON parser raise many kinds of exception
        raise ProtocolError(f"this record is no result frame: {error!r:.300}") from None
    return header, batch


def _batches(tables: Iterable[pa.Table], part_bytes: int) -> Iterator[tuple[pa.RecordBatch, tuple[int, int]]]:
    for table in tables:
        for whole in table.combine_chunks().to_batches():
            if whole.num_rows:
                window = _ms(whole["window_start"])[0].as_py(), _ms(whole["window_end"])[0].as_py()
                for batch in _cut(whole, part_bytes):
                    yield batch, window


def _cut(batch: pa.RecordBatch, part_bytes: int) -> Iterator[pa.RecordBatch]:
    """Slices of at most about `part_bytes`, or of one row. A repeat may cut elsewhere, because each part
    names its rows.
    """
    if batch.num_rows <= 1 or batch.nbytes <= part_bytes:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _cut(batch.slice(0, middle), part_bytes)
    yield from _cut(batch.slice(middle), part_bytes)


def _record(windowed_batch: tuple[pa.RecordBatch, tuple[int, int]], **place: Any) -> bytes:
    batch, (start, end) = windowed_batch
    header = ResultHeader(window_start=start, window_end=end, rows=batch.num_rows, **place)
    # The stream is written with an empty header first, because the header holds a checksum of the bytes after
    # the schema. Then the schema message is replaced by one that has the header.
    bare = batch.schema.with_metadata(None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, bare, options=_WRITING) as writer:
        writer.write_batch(
            pa.RecordBatch.from_arrays([_alone(column) for column in batch.columns], schema=bare)
        )
    stream = memoryview(sink.getvalue())
    body = stream[_schema_bytes(stream) :]
    text = {METADATA_KEY: json.dumps(_fields(header, body), separators=(",", ":")).encode()}
    return b"".join([bare.with_metadata(text).serialize().to_pybytes(), body])


def _fields(header: ResultHeader, body: memoryview | bytes) -> dict[str, Any]:
    """The header as plain JSON. The checksum is its last field."""
    header_fields: dict[str, Any] = {"v": RESULTS_VERSION, "kind": "results", **asdict(header)}
    return header_fields | {"crc": _checksum(header_fields, body)}


def _checksum(header_fields: dict[str, Any], body: memoryview | bytes) -> int:
    """CRC-32 of the header without its checksum, and of all bytes after the schema message."""
    return zlib.crc32(body, zlib.crc32(json.dumps(header_fields, separators=(",", ":")).encode()))


def _alone(column: pa.Array) -> pa.Array:
    """The same values in buffers of exactly their size, with zeros under nulls.
    So equal values become equal bytes.

    Arrow may write bytes of a slice's neighbours as padding, and under a null a buffer may hold anything.
    """
    size = len(column)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        return pa.array((pc.fill_null(column, 0) if column.null_count else column).to_numpy(), mask=mask)
    if pa.types.is_timestamp(column.type):
        return _alone(_ms(column)).view(column.type)
    if (pa.types.is_binary(column.type) or pa.types.is_string(column.type)) and not column.null_count:
        _, places, data = column.buffers()
        offsets = np.frombuffer(places, np.int32)[column.offset : column.offset + size + 1]
        begin, end = int(offsets[0]), int(offsets[-1])
        text = pa.py_buffer(b"") if data is None else data.slice(begin, end - begin)
        return pa.Array.from_buffers(column.type, size, [None, pa.py_buffer(offsets - offsets[0]), text])
    return column.take(pa.array(np.arange(size)))


def _ms(times: pa.TimestampArray) -> pa.Int64Array:
    """The times as milliseconds since 1970, without a copy."""
    return times.view(pa.int64())


def _decoded(value: bytes, schema: pa.Schema, fingerprint: str) -> tuple[ResultHeader, pa.RecordBatch]:
    data = memoryview(value)
    begin = _schema_bytes(data)
    frame_schema = pa.ipc.read_schema(pa.py_buffer(data[:begin]))
    header_fields = json.loads((frame_schema.metadata or {})[METADATA_KEY])
    header = _header(header_fields, data[begin:])
    if header.fingerprint != fingerprint:
        raise IncompatibleStateError(
            f"a result frame was written for query {header.fingerprint}, but this is query {fingerprint}",
            hint=(
                "read with the settings that the pipeline ran with, or"
                " set results.topic to a topic of its own"
            ),
        )
    if not frame_schema.remove_metadata().equals(schema.remove_metadata()):
        raise ProtocolError(
            f"a result frame has the columns {frame_schema.names}, not {schema.names} of this query"
        )
    message = pa.ipc.read_message(pa.py_buffer(data[begin:]))
    claimed = claimed_bytes(message.metadata.to_pybytes(), memoryview(message.body))
    if claimed > MOST_BYTES:
        raise ProtocolError(f"a result frame claims {claimed} bytes of rows; {MOST_BYTES} is the most")
    batch = pa.ipc.read_record_batch(message, schema.remove_metadata())
    batch.validate(full=True)
    return header, batch


def _schema_bytes(data: memoryview) -> int:
    """Bytes of the schema message that a stream begins with. Raises ProtocolError if there is none."""
    marker, length = _CONTINUED.unpack_from(data)
    if marker != 0xFFFFFFFF or not 0 < length <= len(data) - _CONTINUED.size:
        raise ProtocolError("this record is no result frame: it does not begin with an Arrow schema")
    return _CONTINUED.size + int(length)


def _header(header_fields: Any, body: memoryview) -> ResultHeader:
    if (
        not isinstance(header_fields, dict)
        or header_fields.get("kind") != "results"
        or header_fields.get("v") != RESULTS_VERSION
    ):
        raise ProtocolError(
            f"this record is no result frame of version {RESULTS_VERSION}: {header_fields!r:.200}"
        )
    checksum = header_fields.pop("crc", None)
    if checksum != _checksum(header_fields, body):
        raise ProtocolError("a result frame is damaged: its checksum is not that of its bytes")
    values = {name: value for name, value in header_fields.items() if name not in ("v", "kind")}
    # Annotations are strings here (`from __future__ import annotations`). `type` below tells a bool from an
    # int.
    types = {
        field.name: {"str": str, "int": int, "bool": bool}[str(field.type)] for field in fields(ResultHeader)
    }
    if {name: type(value) for name, value in values.items()} != types:
        raise ProtocolError(f"a result frame's header cannot be: {header_fields!r:.200}")
    header = ResultHeader(**values)
    numbers = (header.bucket, header.part, header.first, header.rows)
    if min(numbers) < 0 or not all(n in _INT64 for n in (*numbers, header.window_start, header.window_end)):
        raise ProtocolError(f"a result frame's header cannot be: {header_fields!r:.200}")
    return header


def _check_rows(header: ResultHeader, batch: pa.RecordBatch, keys: Sequence[str]) -> None:
    if batch.num_rows != header.rows or not header.rows:
        raise ProtocolError(f"a result frame holds {batch.num_rows} rows, its header says {header.rows}")
    for name, bound in (("window_start", header.window_start), ("window_end", header.window_end)):
        if pc.min_max(_ms(batch[name])).as_py() != {"min": bound, "max": bound} or batch[name].null_count:
            raise ProtocolError(f"a result frame has rows whose {name} is not its header's {bound}")
    if any(batch[name].null_count for name in keys):
        raise ProtocolError("a result frame has rows without a key")
