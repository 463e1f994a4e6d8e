"""A compiled loop that hands records from arrays to librdkafka, one call of its function a record.

`rd_kafka_produceva` takes its arguments as an array of unions (`rd_kafka_vu_t` in librdkafka's public
header). The array is filled once, and only what differs is written for each record. `rd_kafka_produce_batch`
would need fewer locks, but its records have no timestamps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numba import types

from evenflow.numeric.arrays import Int32s, Int64s, UInt8s, UInt64s, viewed
from evenflow.numeric.kernels import kernel
from topics.librdkafka.calls import WORD, Codegen, calling, for_kernels, half_at

TOPIC, PARTITION, VALUE, KEY, FLAGS, TIMESTAMP, HEADER = (2, 3, 4, 5, 7, 8, 9)
"""librdkafka's numbers of what an argument is."""
WORDS = 9
"""Words of an argument: what it is, and room for its content."""
_COPY = 2
"""The flag that says that librdkafka copies key and value before the call returns."""
_PARTITION_AT, _VALUE_AT, _KEY_AT, _TIMESTAMP_AT = (place * WORDS + 1 for place in (2, 3, 4, 5))
"""Where the contents of the arguments that differ stand, in words. The topic and the flags come first."""
_NOTHING = np.uint64(0)
_ERROR, _IN_PARTITION = np.uint64(0), np.uint64(16)
"""Where the error code and the partition of a message stand, in bytes."""


class Strings(NamedTuple):
    """n byte strings of one buffer, as Arrow has them. Its owner has to be held meanwhile."""

    address: np.uint64
    """Where the buffer begins. Never 0: librdkafka takes a string at 0 for a missing one."""
    begins: Int64s
    """String i stands from byte begins[i] up to begins[i + 1]. Shape (n + 1,)."""
    missing: UInt8s
    """1 for a string that is none. Shape (n,)."""

    @classmethod
    def of(cls, column: pa.LargeBinaryArray) -> Strings:
        """The strings of this column, of which no byte is copied."""
        _, offsets, data = column.buffers()
        rows = len(column)
        begins = viewed(offsets, np.int64, column.offset, rows + 1) if rows else _EMPTY
        missing = np.zeros(rows, np.uint8)
        if column.null_count:
            missing[:] = column.is_null().to_numpy(zero_copy_only=False)
        missing.setflags(write=False)
        address = data.address if data is not None and data.size else _EMPTY.ctypes.data
        return cls(np.uint64(address), begins, missing)


_EMPTY = np.zeros(1, np.int64)
_EMPTY.setflags(write=False)


@for_kernels
def _error_of(_: Any, function: Any, handle: Any, arguments: Any, count: Any) -> Codegen:
    """function(handle, arguments, count), the address of an error, 0 for none."""
    word = types.uint64
    return word(word, word, word, word), calling((WORD, WORD, WORD), WORD)


def arguments_of(topic: int, more: int = 0) -> UInt64s:
    """The arguments of a call, to be filled in by `hand_over`. Shape (arguments, WORDS).

    topic: address of librdkafka's topic. more: room for so many headers behind the others.
    """
    arguments = np.zeros((6 + more, WORDS), np.uint64)
    arguments[:6, 0] = TOPIC, FLAGS, PARTITION, VALUE, KEY, TIMESTAMP
    arguments[6:, 0] = HEADER
    arguments[0, 1], arguments[1, 1] = topic, _COPY
    return arguments


@kernel
def hand_over(
    function: np.uint64,
    handle: np.uint64,
    arguments: UInt64s,
    own: np.uint64,
    values: Strings,
    keys: Strings,
    partitions: Int32s,
    times: Int64s,
    error: UInt64s,
) -> int:
    """Hand these n records over in order. Returns how many were taken, which is fewer only with an error.

    function: address of `rd_kafka_produceva`. handle: of the producer. arguments: as of `arguments_of`,
    without their shape. own: their address. partitions, times (ms since 1970): shape (n,). error: gets the
    address of librdkafka's error, 0 for none, shape (1,).
    """
    count = np.uint64(len(arguments) // WORDS)
    for row in range(len(times)):
        begin = values.begins[row]
        arguments[_VALUE_AT] = _NOTHING if values.missing[row] else values.address + np.uint64(begin)
        arguments[_VALUE_AT + 1] = np.uint64(values.begins[row + 1] - begin)
        begin = keys.begins[row]
        arguments[_KEY_AT] = _NOTHING if keys.missing[row] else keys.address + np.uint64(begin)
        arguments[_KEY_AT + 1] = np.uint64(keys.begins[row + 1] - begin)
        arguments[_PARTITION_AT] = np.uint64(partitions[row])
        arguments[_TIMESTAMP_AT] = np.uint64(times[row])
        error[0] = _error_of(function, handle, own, count)
        if error[0] != _NOTHING:
            return row
    return len(times)


@kernel
def read_failures(messages: UInt64s, codes: Int32s, partitions: Int32s) -> None:
    """Read the error code and the partition of each of n messages. All arrays have shape (n,)."""
    for row in range(len(messages)):
        codes[row] = half_at(messages[row] + _ERROR)
        partitions[row] = half_at(messages[row] + _IN_PARTITION)


def compile_kernels() -> None:
    """Compile the kernels of this module without any record."""
    nothing = Strings.of(pa.array([], pa.large_binary()))
    arguments = arguments_of(0).reshape(-1)
    places, times = np.zeros(0, np.int32), np.zeros(0, np.int64)
    none = np.uint64(0)
    hand_over(none, none, arguments, none, nothing, nothing, places, times, np.zeros(1, np.uint64))
    read_failures(np.zeros(0, np.uint64), places, np.zeros(0, np.int32))
