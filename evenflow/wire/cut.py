"""Keeping records below a size: where a batch is cut depends on its content alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from evenflow.arrays import Int64s


def cut(batch: pa.RecordBatch, max_bytes: int) -> Iterator[pa.RecordBatch]:
    """Consecutive slices of the batch, each near `max_bytes` or a single row; an empty batch gives itself."""
    rows = batch.num_rows
    if rows <= 1 or batch.nbytes <= max_bytes:
        yield batch
        return
    filled = np.cumsum(weights(batch))
    start = 0
    while start < rows:
        base = int(filled[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(filled, base + max_bytes, side="right")))
        yield batch.slice(start, stop - start)
        start = stop


def weights(batch: pa.RecordBatch) -> Int64s:
    """Bytes of each row, a little too many; shape (rows,)."""
    weights = np.zeros(batch.num_rows, dtype=np.int64)
    for column in batch.columns:
        if _is_text(column.type):
            weights += lengths(column) + 8
        else:
            weights += column.type.bit_width // 8 + 1
    return weights


def lengths(column: pa.Array) -> Int64s:
    """Bytes of each entry of a (large) binary or string array; shape (n,)."""
    wide = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    offsets = np.frombuffer(column.buffers()[1], np.int64 if wide else np.int32)
    return np.diff(offsets[column.offset : column.offset + len(column) + 1]).astype(np.int64, copy=False)


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(type_)
        or pa.types.is_string(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_large_string(type_)
    )
