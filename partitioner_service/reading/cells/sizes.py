"""Which tuples are too large, by the bytes of their keys and of the texts of their values."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.numeric.arrays import Int64s
from partitioner_service.reading.cells.faults import Faults
from partitioner_service.reading.cells.reasons import LARGE_KEY, LARGE_VALUES


def byte_lengths(column: pa.Array) -> Int64s:
    """Bytes of each text or key, 0 for null. Shape (n,)."""
    sizes = pc.binary_length(column)
    if sizes.null_count:
        sizes = pc.fill_null(sizes, 0)
    lengths: Int64s = sizes.to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def texts_of(columns: Iterable[pa.Array]) -> Int64s | int:
    """Bytes of the texts of each row, all columns together. Columns of other types count nothing. Shape
    (n,), or 0.
    """
    return sum(byte_lengths(column) for column in columns if pa.types.is_string(column.type))


def without_long(column: pa.Array, most: int) -> pa.Array:
    """The column with null in place of every text of more than `most` bytes."""
    if not pa.types.is_string(column.type) or not len(column):
        return column
    long = byte_lengths(column) > most
    return pc.if_else(pa.array(long), pa.scalar(None, column.type), column) if long.any() else column


def note_large(faults: Faults, key: Int64s, values: Int64s | int, *, most_key: int, most_values: int) -> None:
    """Note a fault of each tuple that is too large.
    key, values: bytes of its key, and of the texts of its values.
    """
    if len(key) and int(key.max()) > most_key:
        faults.note(key > most_key, LARGE_KEY, at=key)
    if not isinstance(values, int) and len(values) and int(values.max()) > most_values:
        faults.note(values > most_values, LARGE_VALUES, at=values)
