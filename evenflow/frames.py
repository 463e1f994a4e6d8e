"""Wire formats: frames (partitioner -> combiner) and blobs (combiner -> reducer).

Both are an Arrow IPC stream with one record batch; the schema metadata key `evenflow` holds the
header as JSON. Self-contained on purpose: a frame can be read with any Arrow library.

Admission rule: encoding and decoding only. What the columns mean is said by Query and AggregatePlan.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.errors import IncompatibleStateError, ProtocolError

METADATA_KEY = b"evenflow"
FRAME_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a frame says of one input partition of its block: first and last offset read, and the mark after it.

    `first`/`last` are -1 when only the mark moved (idle partition).
    """

    first: int
    last: int
    mark: int


@dataclass(frozen=True, kw_only=True)
class FrameHeader:
    """Header of a frame. `progress` maps input partition -> Progress."""

    fingerprint: str
    epoch: int
    input_partitions: int
    routed_partitions: int
    progress: dict[int, Progress]


@dataclass(frozen=True, kw_only=True)
class BlobHeader:
    """Header and identity of a blob: partials of routed offsets first..last of one routed partition.

    `marks` maps input partition -> largest mark seen in those frames; `part` of `parts` because a blob
    stays below the topic's max.message.bytes. The marks count only when all parts were merged.
    """

    fingerprint: str
    topic_id: str
    routed_partition: int
    first: int
    last: int
    part: int
    parts: int
    input_partitions: int
    routed_partitions: int
    marks: dict[int, int]

    @property
    def order(self) -> tuple[int, int, int]:
        """Merge order (pipeline rule 10): routed partition, then offset, then part."""
        return (self.routed_partition, self.first, self.part)


def encode(batch: pa.RecordBatch, header: FrameHeader | BlobHeader) -> bytes:
    """One self-contained Arrow IPC stream of this batch under this header."""
    fields: dict[str, Any] = asdict(header)
    fields["v"] = FRAME_VERSION
    fields["kind"] = "frame" if isinstance(header, FrameHeader) else "blob"
    schema = batch.schema.with_metadata({METADATA_KEY: json.dumps(fields, separators=(",", ":")).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    return sink.getvalue().to_pybytes()


def decode_frame(data: bytes | pa.Buffer, *, fingerprint: str) -> tuple[FrameHeader, pa.RecordBatch]:
    """Header and batch of a frame.

    Raises ProtocolError for anything that is no frame, IncompatibleStateError for another query's.
    """
    fields, batch = _decode(data, "frame", fingerprint)
    progress = {int(partition): Progress(**entry) for partition, entry in fields.pop("progress").items()}
    return FrameHeader(progress=progress, **fields), batch


def decode_blob(data: bytes | pa.Buffer, *, fingerprint: str) -> tuple[BlobHeader, pa.RecordBatch]:
    """Header and batch of a blob; raises as decode_frame does."""
    fields, batch = _decode(data, "blob", fingerprint)
    marks = {int(partition): mark for partition, mark in fields.pop("marks").items()}
    return BlobHeader(marks=marks, **fields), batch


def cut(batch: pa.RecordBatch, max_bytes: int) -> Iterator[pa.RecordBatch]:
    """Consecutive slices of the batch, each near `max_bytes` or a single row; an empty batch gives itself.

    Depends only on the content, so a repeated encoding is cut in the same places.
    """
    rows = batch.num_rows
    if rows <= 1 or batch.nbytes <= max_bytes:
        yield batch
        return
    weight = np.zeros(rows, dtype=np.int64)
    for column in batch.columns:
        if pa.types.is_binary(column.type) or pa.types.is_string(column.type):
            offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)[
                column.offset : column.offset + rows + 1
            ]
            weight += np.diff(offsets) + 4
        else:
            weight += 9
    filled = np.cumsum(weight)
    start = 0
    while start < rows:
        base = int(filled[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(filled, base + max_bytes, side="right")))
        yield batch.slice(start, stop - start)
        start = stop


def _decode(data: bytes | pa.Buffer, kind: str, fingerprint: str) -> tuple[dict[str, Any], pa.RecordBatch]:
    try:
        with pa.ipc.open_stream(data) as reader:
            metadata = reader.schema.metadata or {}
            fields = json.loads(metadata[METADATA_KEY])
            batch = reader.read_next_batch()
    except (pa.ArrowException, KeyError, ValueError, StopIteration) as error:
        raise ProtocolError(f"this record is no evenflow {kind}: {error!r}") from None
    if fields.pop("kind", None) != kind or fields.pop("v", None) != FRAME_VERSION:
        raise ProtocolError(f"this record is no evenflow {kind} of version {FRAME_VERSION}: {fields}")
    if fields["fingerprint"] != fingerprint:
        raise IncompatibleStateError(
            f"a {kind} was written for query {fields['fingerprint']}, but this is query {fingerprint}",
            hint="the query, the input or the number of partitions or buckets changed: "
            "give the query a new name (new topics), or delete the old topics and checkpoints",
        )
    return fields, batch
