"""Keeps records below a size. Where a batch is cut depends on its content alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.numeric.arrays import Int64s


def cut(batch: pa.RecordBatch, max_bytes: int) -> Iterator[pa.RecordBatch]:
    """Consecutive slices of the batch, each near `max_bytes` or a single row.
    An empty batch is yielded as it is.
    """
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
    """Bytes of each row, rather too many than too few. Shape (rows,)."""
    weights = np.zeros(batch.num_rows, dtype=np.int64)
    for column in batch.columns:
        weights += _weights(column)
    return weights


def _weights(column: pa.Array) -> Int64s | int:
    # Offsets count as 8 bytes, and validity as a whole byte, so that no row is taken for smaller than it is.
    if _is_text(column.type):
        return lengths(column) + 8
    if pa.types.is_struct(column.type):
        return sum((_weights(column.field(i)) for i in range(column.type.num_fields)), 1)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        counts = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64()).to_numpy()
        # Running sums over all entries, so that a list's bytes are one difference.
        filled = np.concatenate(
            [[0], np.cumsum(np.zeros(counts.sum(), np.int64) + _weights(column.flatten()))]
        )
        ends = np.cumsum(counts)
        return filled[ends] - filled[ends - counts] + 8
    return column.type.bit_width // 8 + 1


def lengths(column: pa.Array) -> Int64s:
    """Bytes of each entry of a (large) binary or string array. Shape (n,)."""
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
