"""Turns keys and event times as a user has them (lists, numpy, Arrow, pandas) into the columns
that kernels read.

A key is text, bytes or a whole number. As in the pipeline, text stands for its UTF-8 bytes and a whole number
for its decimal text. So 8, "8" and b"8" are the same key, on the same worker. One column holds keys of one
kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import date, datetime
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenflow.numeric.arrays import Bools, Int64s

Keys: TypeAlias = (
    Sequence[str] | Sequence[bytes] | Sequence[int] | npt.NDArray[Any] | pa.Array | pa.ChunkedArray
)
Times: TypeAlias = Sequence[int] | Sequence[datetime] | npt.NDArray[Any] | pa.Array | pa.ChunkedArray

# In this order: a bool is an int too, and a datetime is a date too.
_KINDS: dict[str, tuple[type, ...]] = {
    "nothing": (type(None),),
    "truth value": (bool, np.bool_),
    "text": (str,),
    "bytes": (bytes, bytearray),
    "whole number": (int, np.integer),
    "date and time": (datetime,),
    "day": (date,),
    "numpy time": (np.datetime64,),
}
_MS = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}
"""Unit of an Arrow timestamp -> (factor, divisor) that make milliseconds of it."""
_DAY_MS = 86_400_000
_INT64_MAX = 2**63 - 1
_FINER = ("ms", "us", "ns", "ps", "fs", "as")
"""Units of numpy times whose values fit int64 as milliseconds."""


def key_column(keys: Keys) -> pa.Array | pa.ChunkedArray:
    """The keys as an Arrow column of text, bytes or a dictionary. Arrow columns of these types are returned
    as they are.

    Raises TypeError for other Python and numpy types and for a mixture, ValueError for a key that is None and
    for an array of more than one dimension. Arrow columns of other types are returned too, for `hash_keys` to
    refuse.
    """
    if not isinstance(keys, pa.Array | pa.ChunkedArray):
        keys = _from_values(_values("keys", keys))
    kind = keys.type
    if pa.types.is_integer(kind):
        return keys.cast(pa.large_string())
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return keys.cast(pa.large_binary())
    if len(keys) == 0 and pa.types.is_null(kind):
        return pa.array([], pa.large_binary())
    return keys


def time_column(times: Times) -> Int64s:
    """Event times as int64 milliseconds since 1970 UTC, rounded down. Shape (n,).

    Whole numbers are milliseconds already. Points in time may be numpy's, Arrow's or Python's, of any unit. A
    point in time without a zone is UTC. Raises TypeError for other types, ValueError for a time that is
    missing or beyond int64.
    """
    if isinstance(times, pa.ChunkedArray):
        times = times.combine_chunks()
    if isinstance(times, pa.Array):
        return _arrow_times(times)
    values = _values("times", times)
    if isinstance(values, list):
        kind = _kind("times", values)
        if kind in ("date and time", "day"):
            return _arrow_times(pa.array(values))
        if kind not in ("whole number", "numpy time", ""):
            raise TypeError(f"times must be whole numbers of ms or points in time, not {kind}")
        try:
            values = np.array(values, None if kind == "numpy time" else np.int64)
        except OverflowError:
            raise ValueError("times: a number of ms is beyond int64") from None
    return _numpy_times(values)


def _values(noun: str, column: Any) -> npt.NDArray[Any] | list[Any]:
    """The values as a list or a one-dimensional numpy array, in order.

    TypeError if they are no sequence, ValueError for more than one dimension. `noun` names them in messages.
    """
    if isinstance(column, str | bytes | bytearray | Set | Mapping) or not hasattr(column, "__len__"):
        raise TypeError(f"{noun} must be a sequence with one of them per tuple, not {type(column).__name__}")
    values = column if isinstance(column, list | np.ndarray) else _listed(column)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(f"{noun} must have one dimension, not {values.ndim}")
        return values.tolist() if values.dtype.kind == "O" else values
    return values


def _listed(column: Any) -> npt.NDArray[Any] | list[Any]:
    return list(column) if isinstance(column, Sequence) else np.asarray(column)


def _kind(noun: str, values: list[Any]) -> str:
    """The one kind of all values, or "" if there are none. ValueError for None, TypeError for two kinds."""
    # Kinds are looked up once per type, not once per value.
    types = dict.fromkeys(map(type, values))
    kinds = {type_: _kind_of(type_) for type_ in types}
    if "nothing" in kinds.values():
        raise ValueError(f"{noun}: {values.count(None)} of {len(values)} are None")
    if len(set(kinds.values())) > 1:
        first = kinds[type(values[0])]
        row = next(row for row, value in enumerate(values) if kinds[type(value)] != first)
        raise TypeError(
            f"{noun} must be of one kind, but row 0 is {first} ({values[0]!r}) and row {row} is "
            f"{kinds[type(values[row])]} ({values[row]!r})"
        )
    return next(iter(kinds.values()), "")


def _kind_of(type_: type) -> str:
    return next((kind for kind, types in _KINDS.items() if issubclass(type_, types)), type_.__name__)


def _from_values(values: npt.NDArray[Any] | list[Any]) -> pa.Array:
    if isinstance(values, list):
        kind = _kind("keys", values)
        if kind == "whole number":
            # Arrow makes the texts faster, but only for numbers that fit int64.
            try:
                return pa.array(values, pa.int64()).cast(pa.large_string())
            except OverflowError:
                return pa.array([str(int(value)) for value in values], pa.large_string())
        if kind not in ("text", "bytes", ""):
            raise TypeError(f"keys must be text, bytes or whole numbers, not {kind}")
        return pa.array(values, {"text": pa.large_string()}.get(kind, pa.large_binary()))
    if values.dtype.kind not in "SUTiu":
        raise TypeError(f"keys must be text, bytes or whole numbers, not {values.dtype}")
    return pa.array(values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("=")))


def _numpy_times(values: npt.NDArray[Any]) -> Int64s:
    kind = values.dtype.kind
    if kind == "M":
        if np.isnat(values).any():
            raise ValueError(f"times: {int(np.isnat(values).sum())} of {len(values)} are NaT")
        return _numpy_ms(values)
    if kind not in "iu":
        raise TypeError(f"times must be whole numbers of ms or points in time, not {values.dtype}")
    if kind == "u" and len(values) and int(values.max()) >= 2**63:
        raise ValueError(f"times: {int(values.max())} ms is beyond int64")
    return values.astype(np.int64, copy=False)


def _arrow_times(times: pa.Array) -> Int64s:
    if times.null_count:
        raise ValueError(f"times: {times.null_count} of {len(times)} are null")
    kind = times.type
    if pa.types.is_integer(kind):
        return _numpy_times(times.to_numpy(zero_copy_only=False))
    if pa.types.is_null(kind):
        return np.empty(0, np.int64)
    if pa.types.is_date(kind):
        return times.cast(pa.date32()).cast(pa.int32()).to_numpy().astype(np.int64) * _DAY_MS
    if not pa.types.is_timestamp(kind):
        raise TypeError(f"times must be whole numbers of ms or points in time, not {kind}")
    up, down = _MS[kind.unit]
    # numpy's // rounds down for times before 1970 too.
    ticks = times.cast(pa.int64()).to_numpy(zero_copy_only=False) // down
    _refuse_beyond((ticks > _INT64_MAX // up) | (ticks < -_INT64_MAX // up))
    return ticks * up


def _numpy_ms(values: npt.NDArray[Any]) -> Int64s:
    ms = values.astype("M8[ms]")
    if (
        np.datetime_data(values.dtype)[0] not in _FINER
    ):  # numpy multiplies without a look at what does not fit
        _refuse_beyond(ms.astype(values.dtype) != values)
    return ms.astype(np.int64)


def _refuse_beyond(wrong: Bools) -> None:
    if wrong.any():
        count, first = int(wrong.sum()), int(wrong.argmax())
        raise ValueError(f"times: {count} of {len(wrong)} are beyond int64 in ms, the first in row {first}")
