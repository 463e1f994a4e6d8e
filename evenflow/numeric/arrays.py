"""Names of array types, records, the first and the last of all times, and views of Arrow's memory.

Kernels cannot hold None, so a clock that has not begun shows NEVER. No event time and no slide is earlier.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

UInt8s = npt.NDArray[np.uint8]
UInt32s = npt.NDArray[np.uint32]
UInt64s = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
if TYPE_CHECKING:

    class Rows(npt.NDArray[np.void]):
        """Records: rows of named fields, or a single record with shape ().
        The dtype says what each field holds.
        """

        # Any: the type checker cannot know the type of a field that is named by a string.
        def __getitem__(self, key: Any) -> Any: ...
else:
    Rows = npt.NDArray[np.void]
Whole = int | np.integer[Any]
"""A whole number of Python or of numpy. numba compiles a kernel for each kind that it gets."""
State = dict[str, Any]
"""State as named arrays of any shape, some of them records."""

NEVER = -(2**63)
"""The least int64: the time of a clock that has not begun."""
LAST_TIME = 2**63 - 1
"""The greatest int64: no event time is later."""


def record(kind: np.dtype[Any], **values: int) -> Rows:
    """One record, shape (), with these values. Other fields are 0. A kernel reads and writes it as
    `row[()]`.
    """
    row = records((), kind)
    for name, value in values.items():
        row[name] = value
    return row


def records(shape: int | tuple[int, ...], kind: np.dtype[Any]) -> Rows:
    """Records of this shape, all fields 0."""
    return cast(Rows, np.zeros(shape, kind))


def plain(records: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view of records as plain numbers: shape (rows, fields), or (fields,) for a single record.

    All fields must be equally wide. An array without fields is returned as it is.
    """
    if records.dtype.names is None:
        return records
    kind = records.dtype[0]
    return records.reshape(-1).view(kind).reshape(*records.shape, records.dtype.itemsize // kind.itemsize)


def as_records(numbers: npt.NDArray[Any], like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The inverse of `plain`: numbers as records of the dtype of `like`. No copy of contiguous numbers."""
    if like.dtype.names is None:
        return numbers
    return np.ascontiguousarray(numbers).reshape(-1).view(like.dtype).reshape(numbers.shape[:-1])


def viewed(buffer: pa.Buffer | None, dtype: type[np.generic], start: int, count: int) -> npt.NDArray[Any]:
    """The `count` values from `start` on in an Arrow buffer, without a copy. The buffer may be None if
    `count` is 0.

    The view is read-only, even if Arrow could write to the buffer, so that kernels are compiled for one kind
    of array.
    """
    offset = start * np.dtype(dtype).itemsize
    values: npt.NDArray[Any] = np.empty(0, dtype)
    if count:
        assert buffer is not None
        values = np.frombuffer(buffer, dtype, count, offset)
    values.flags.writeable = False
    return values


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array. A column that is one chunk already is not copied."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


@lru_cache(maxsize=256)
def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows.

    Use it instead of a slice of length 0, for which Arrow writes all the offsets of the whole column.
    """
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
