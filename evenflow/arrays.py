"""Names of array types, the time before all times and the last one. An Arrow column as one piece.

Kernels cannot hold None, so a clock that has not begun is NEVER: no event time and no slide is earlier.
"""

from __future__ import annotations

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
        """Records: rows of named fields, or a single one with shape (). What a field holds, its dtype says."""

        def __getitem__(self, key: Any) -> Any: ...
else:
    Rows = npt.NDArray[np.void]
Whole = int | np.integer[Any]
"""A whole number, of Python or of a column: kernels are compiled for each kind that they get."""
State = dict[str, Any]
"""State as named arrays of any shape, some of them records."""

NEVER = -(2**63)
LAST_TIME = 2**63 - 1


def record(kind: np.dtype[Any], **values: int) -> Rows:
    """One record, shape (), with these numbers and else zeros: `made[()]` is what a kernel reads and writes."""
    made = records((), kind)
    for name, value in values.items():
        made[name] = value
    return made


def records(shape: int | tuple[int, ...], kind: np.dtype[Any]) -> Rows:
    """Records of zeros."""
    return cast(Rows, np.zeros(shape, kind))


def plain(records: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Records as their numbers, which are equally wide: shape (rows, numbers), or (numbers,) of one record. No copy.

    An array of something else is given back as it is.
    """
    if records.dtype.names is None:
        return records
    kind = records.dtype[0]
    return records.reshape(-1).view(kind).reshape(*records.shape, records.dtype.itemsize // kind.itemsize)


def as_records(numbers: npt.NDArray[Any], like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """What `plain` gave of records of the kind of `like`, as records again. No copy."""
    if like.dtype.names is None:
        return numbers
    return np.ascontiguousarray(numbers).reshape(-1).view(like.dtype).reshape(numbers.shape[:-1])


def viewed(buffer: pa.Buffer | None, dtype: type[np.generic], start: int, count: int) -> npt.NDArray[Any]:
    """Values start..start+count of an Arrow buffer, without a copy. There may be no buffer where there is no value.

    Always read-only, whether Arrow could write to the buffer or not: a kernel is compiled for one kind of array.
    """
    offset = start * np.dtype(dtype).itemsize
    values: npt.NDArray[Any] = np.empty(0, dtype)
    if count:
        assert buffer is not None
        values = np.frombuffer(buffer, dtype, count, offset)
    values.flags.writeable = False
    return values


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array. Without a copy where it is one already."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows. Not a slice of length 0: Arrow writes all the offsets of a slice's whole column."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
