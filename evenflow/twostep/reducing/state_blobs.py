"""Named byte strings that hold a bucket's state, and how arrays and tables become bytes."""

from __future__ import annotations

import struct
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from evenflow.errors import DataLossError
from evenflow.numeric.arrays import Int64s

_SIZE = struct.Struct("<q")
DAMAGED = (
    "restore the checkpoint from a copy; if there is none, rebuild the query under a new name "
    "(docs/operations/data-loss.md)"
)
"""What to do about a state that is damaged."""
# Without threads: the tables are small, and every core has a task already.
_COMPRESSED: Any = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READING: Any = pa.ipc.IpcReadOptions(use_threads=False)


class BucketState(Protocol):
    """Named byte strings of one bucket: a dict in tests, Spark's state store in the shell."""

    def get(self, name: str) -> bytes | None:
        """The bytes of this name, or None if there are none."""

    def put(self, name: str, value: bytes) -> None:
        """Set the bytes of this name."""

    def delete(self, name: str) -> None:
        """Remove this name. The name must exist."""


def needed(state: BucketState, name: str) -> bytes:
    """The bytes of this name, which the state says that it has. Raises DataLossError if they are not
    there.
    """
    data = state.get(name)
    if data is None:
        raise DataLossError(
            f"the reducer's state is damaged: it lacks {name!r}, which it lists", hint=DAMAGED
        )
    return data


def packed(values: Int64s) -> bytes:
    """int64 values of any shape as bytes: their length before compression, then zstd. The shape is not
    kept.
    """
    data = values.astype("<i8", copy=False).tobytes()
    return _SIZE.pack(len(data)) + pa.compress(data, codec="zstd", asbytes=True)


def unpacked(data: bytes) -> Int64s:
    """The values that `packed` wrote, shape (n,), read-only. Raises DataLossError for a length below 0."""
    (size,) = _SIZE.unpack_from(data)
    if size < 0:  # Arrow would raise a SystemError
        raise DataLossError(f"the reducer's state is damaged: it lists {size} bytes", hint=DAMAGED)
    return np.frombuffer(pa.decompress(data[_SIZE.size :], size, codec="zstd", asbytes=True), "<i8")


def table_bytes(table: pa.Table) -> bytes:
    """The table as an Arrow IPC stream, its buffers compressed with lz4."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


def table_of(data: bytes) -> pa.Table:
    """The table that `table_bytes` wrote."""
    with pa.ipc.open_stream(data, options=_READING) as reader:
        return reader.read_all()
