"""What cooperating Daltons tell their reducer, and the table that they hear, as values and as bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from evenflow.errors import IncompatibleStateError
from evenflow.numeric.arrays import Float64s, Int64s, State, UInt64s
from evenflow.partitioners.snapshots import VERSION, pack, unpack
from evenflow.text.strict_json import INT64, StrictObject

_NUMBERS = {"total", "late", "dsync_ms"}
_MOST = 1 << 40
"""Tuples of an interval or of a window that one instance can have. So no sum over all instances leaves
int64.
"""
_DTYPES = {
    "keys": np.uint64,
    "frequencies": np.int64,
    "row_keys": np.uint64,
    "values": np.float64,
    "loads": np.int64,
}


def not_told() -> Int64s:
    """The `loads` of a message that tells none: an empty array."""
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class SyncMessage:
    """From a partitioner to the reducer: what it has learned and counted since its last message."""

    total: int
    """Tuples of the interval."""
    late: int
    """The interval, ms, that was over before the last table came, so that it should double. 0: the table
    was in time.
    """
    keys: UInt64s
    """The most frequent keys of the interval, at most one per worker, and all keys that have a row."""
    frequencies: Int64s
    """Tuples of each of `keys` in the interval, exact."""
    row_keys: UInt64s
    """Keys that have a row of values."""
    values: Float64s
    """(row_keys, workers): the value of each worker in each row."""
    loads: Int64s = field(default_factory=not_told)
    """(workers,): tuples of the window that this partitioner sent to each worker. Empty if they are not
    told.
    """

    def to_bytes(self) -> bytes:
        """The body of a message."""
        return _to_bytes(self, ("total", "late"))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The message of these bytes. IncompatibleStateError if they are damaged or something else."""
        return _from_bytes(cls, data)


@dataclass(frozen=True, eq=False, kw_only=True)
class GlobalTable:
    """From the reducer to every partitioner: the common table, until the next one comes."""

    total: int
    """GL: tuples of the round over all partitioners."""
    dsync_ms: int
    """Interval of synchronisation from now on, ms."""
    keys: UInt64s
    """Keys that are hot over all partitioners, ascending."""
    values: Float64s
    """(keys, workers): the value of each worker for each key."""
    loads: Int64s = field(default_factory=not_told)
    """(workers,): tuples of the window that all partitioners sent to each worker. Empty if one did not
    tell.
    """

    def to_bytes(self) -> bytes:
        """The body of a table."""
        return _to_bytes(self, ("total", "dsync_ms"))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The table of these bytes. IncompatibleStateError if they are damaged or something else."""
        return _from_bytes(cls, data)


def _to_bytes(message: SyncMessage | GlobalTable, numbers: tuple[str, ...]) -> bytes:
    fields = vars(message)
    arrays: State = {name: value for name, value in fields.items() if name not in numbers}
    header = {"version": VERSION, "message": type(message).__name__}
    return pack({**header, "fields": {name: fields[name] for name in numbers}}, arrays)


def _from_bytes(kind: type[Any], data: bytes) -> Any:
    try:
        header, arrays = unpack(data)
    except IncompatibleStateError as error:
        raise IncompatibleStateError(
            f"this is no {kind.__name__}: {error.message}", hint=error.hint
        ) from None
    if header.get("message") != kind.__name__:
        raise IncompatibleStateError(f"this is a {header.get('message', 'snapshot')}, not a {kind.__name__}")
    # The digest was right, so the bytes are as they were written. But another version may have written other
    # fields.
    try:
        return _checked(kind(**header["fields"], **arrays))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise IncompatibleStateError(f"this is no {kind.__name__}: {error!r}") from None


def _checked(message: Any) -> Any:
    """The message itself. ValueError unless its numbers and arrays are as declared,
    because kernels do not check.
    """
    numbers = StrictObject(vars(message))
    for name in _NUMBERS & vars(message).keys():
        numbers.whole(name, 0, INT64[1])
    for name in _DTYPES.keys() & vars(message).keys():
        array = vars(message)[name]
        if array.dtype != _DTYPES[name] or array.ndim != (2 if name == "values" else 1):
            raise ValueError(f"{name} is of {array.dtype} and shape {array.shape}")
    if (message.loads < 0).any():
        raise ValueError("there is a load below 0")
    if not np.isfinite(message.values).all():
        raise ValueError("there is a value that is no number")
    if (message.keys[1:] <= message.keys[:-1]).any():
        raise ValueError("the keys do not ascend")
    # A table has no `row_keys` and no `frequencies`: its values are those of `keys`.
    rows = getattr(message, "row_keys", message.keys)
    if len(message.values) != len(rows):
        raise ValueError(f"{len(message.values)} rows of values for {len(rows)} keys")
    if isinstance(message, SyncMessage):
        _check_counts(message)
    return message


def _check_counts(message: SyncMessage) -> None:
    if len(message.frequencies) != len(message.keys):
        raise ValueError("keys and frequencies differ in number")
    if len(np.unique(message.row_keys)) != len(message.row_keys):
        raise ValueError("a key has two rows")
    counts = np.concatenate([message.frequencies, message.loads])
    if message.total > _MOST or (counts < 0).any() or (counts > _MOST).any():
        raise ValueError("a number of tuples is out of range")
