"""Compiled loops over librdkafka's messages: what they hold goes into arrays,
and no Python object is made of a record.

A message is a C structure (`rd_kafka_message_t` in librdkafka's public header), and a function of librdkafka
is its address. Two passes: the first learns sizes, so that the caller can make room. The second copies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from evenflow.numeric.arrays import Int32s, Int64s, UInt8s, UInt64s, Whole
from evenflow.numeric.kernels import inlined, kernel
from topics.librdkafka.calls import (
    HALF,
    VOID,
    WORD,
    Codegen,
    byte_at,
    calling,
    copy_from,
    for_kernels,
    half_at,
    word_at,
)

_ERROR, _PARTITION, _VALUE, _VALUE_SIZE, _KEY, _KEY_SIZE, _OFFSET = map(
    np.uint64, (0, 16, 24, 32, 40, 48, 56)
)
"""Where the fields of a message stand, in bytes. All 64-bit machines lay them out alike."""
_NULL = np.uint64(0)
_WITHIN_PAGE = np.uint64(4095)
_LINE_FEED = np.uint8(10)


class Functions(NamedTuple):
    """Addresses of librdkafka's functions."""

    timestamp: np.uint64
    """Address of `rd_kafka_message_timestamp`."""
    headers: np.uint64
    """Address of `rd_kafka_message_headers`."""
    header: np.uint64
    """Address of `rd_kafka_header_get_all`."""
    destroy: np.uint64
    """Address of `rd_kafka_message_destroy`."""
    take: np.uint64
    """Address of `rd_kafka_consume_batch_queue`."""


class Measures(NamedTuple):
    """What the first pass finds out about n messages. Each array has shape (n,)."""

    errors: Int32s
    """Kafka's error codes, 0 for a record."""
    partitions: Int64s
    """Partition of each message."""
    offsets: Int64s
    """Offset of each message in its partition."""
    stamps: Int64s
    """Timestamp of each message, in ms."""
    kinds: Int32s
    """Kind of each timestamp, as librdkafka numbers them."""
    value_sizes: Int64s
    """Bytes of each value, -1 for none."""
    key_sizes: Int64s
    """Bytes of each key, -1 for none."""
    header_counts: Int64s
    """Number of headers of each message."""
    name_bytes: Int64s
    """Bytes of the names of these headers."""
    held_bytes: Int64s
    """Bytes of the values of these headers."""

    @classmethod
    def room(cls, count: int) -> Measures:
        """Room for so many messages."""

        def wide() -> Int64s:
            return np.empty(count, np.int64)

        errors, kinds = np.empty(count, np.int32), np.empty(count, np.int32)
        return cls(errors, wide(), wide(), wide(), kinds, wide(), wide(), wide(), wide(), wide())


class Strings(NamedTuple):
    """Room for byte strings, as of `Payloads`."""

    data: UInt8s
    """All strings, one after the other."""
    begins: Int64s
    """Where each string begins in `data`, and where the last one ends."""
    missing: UInt8s
    """Which strings are none. `Payloads` has None if all are there, this array is there in any case."""


@for_kernels
def _call(_: Any, function: Any, message: Any) -> Codegen:
    """function(message)."""
    return types.void(types.uint64, types.uint64), calling((WORD,), VOID)


@for_kernels
def _call_with(_: Any, function: Any, message: Any, out: Any) -> Codegen:
    """function(message, out), a 64-bit number."""
    return types.int64(types.uint64, types.uint64, types.uint64), calling((WORD, WORD), WORD)


@for_kernels
def _code_of(_: Any, function: Any, message: Any, out: Any) -> Codegen:
    """function(message, out), an error code."""
    return types.int32(types.uint64, types.uint64, types.uint64), calling((WORD, WORD), HALF)


@for_kernels
def _code_of_header(
    _: Any, function: Any, headers: Any, row: Any, name: Any, content: Any, size: Any
) -> Codegen:
    """function(headers, row, name, content, size), an error code."""
    word = types.uint64
    return types.int32(word, word, word, word, word, word), calling((WORD,) * 5, HALF)


@for_kernels
def _messages_of(_: Any, function: Any, queue: Any, wait_ms: Any, room: Any, most: Any) -> Codegen:
    """function(queue, wait_ms, room, most), how many messages came, or -1."""
    word = types.uint64
    return types.int64(word, word, types.int32, word, word), calling((WORD, HALF, WORD, WORD), WORD)


@kernel
def take_turns(
    queues: UInt64s, first: int, turn: int, messages: UInt64s, room: np.uint64, functions: Functions
) -> tuple[int, int, bool]:
    """Take up to `turn` messages of each of these queues, in turns from `queues[first]` on, until there is no
    room left. Waits for none.

    messages: room for pointers to messages, which have to be destroyed. room: its address. Returns how many
    came, with which queue the next round begins, and whether a queue may hold more.
    """
    count, place, more = 0, first, False
    for _ in range(len(queues)):
        most = min(turn, len(messages) - count)
        if most == 0:
            break
        at = room + np.uint64(8 * count)
        came = _messages_of(functions.take, queues[place], np.int32(0), at, np.uint64(most))
        place = (place + 1) % len(queues)
        count += max(came, 0)
        more = more or came == most
    return count, place, more


@inlined
def _length(text: np.uint64) -> np.int64:
    """Bytes of a text that ends with a zero byte."""
    size = np.uint64(0)
    while byte_at(text + size) != 0:
        size += np.uint64(1)
    return np.int64(size)


@inlined
def _has_no_headers(value: np.uint64, size: Whole) -> bool:
    """Whether it shows behind the value that a message has no headers. If it does not show, it may have none.

    To ask librdkafka costs more than all else here, because it makes a buffer for each answer. A record as
    Kafka lays it out (format 2) has the number of its headers right behind its value. An older format has no
    headers at all. Only a byte in the page of the value's last byte is looked at: that one can be read. An
    empty value may stand anywhere.
    """
    behind = value + np.uint64(max(size, 0))
    return bool(size > 0 and behind & _WITHIN_PAGE != 0 and byte_at(behind) == 0)


@kernel
def measure(
    messages: UInt64s, count: int, functions: Functions, scratch: UInt64s, own: np.uint64, measures: Measures
) -> None:
    """Learn what these messages hold.

    scratch: four words that functions write to. own: its address.
    """
    word = np.uint64(8)
    for row in range(count):
        message = messages[row]
        measures.errors[row] = half_at(message + _ERROR)
        measures.partitions[row] = half_at(message + _PARTITION)
        measures.offsets[row] = np.int64(word_at(message + _OFFSET))
        present = word_at(message + _VALUE) != _NULL
        measures.value_sizes[row] = np.int64(word_at(message + _VALUE_SIZE)) if present else -1
        present = word_at(message + _KEY) != _NULL
        measures.key_sizes[row] = np.int64(word_at(message + _KEY_SIZE)) if present else -1
        scratch[0] = 0  # librdkafka writes 4 bytes, the kind of timestamp, and this clears the other 4
        measures.stamps[row] = _call_with(functions.timestamp, message, own)
        measures.kinds[row] = np.int32(scratch[0])
        headers, names, contents = 0, np.int64(0), np.int64(0)
        plain = _has_no_headers(word_at(message + _VALUE), measures.value_sizes[row])
        if not plain and _code_of(functions.headers, message, own) == 0:  # otherwise it has no headers
            all_headers = scratch[0]
            while (
                _code_of_header(
                    functions.header,
                    all_headers,
                    np.uint64(headers),
                    own + word,
                    own + np.uint64(2) * word,
                    own + np.uint64(3) * word,
                )
                == 0
            ):
                headers += 1
                names += _length(scratch[1])
                contents += np.int64(scratch[3])
        measures.header_counts[row] = headers
        measures.name_bytes[row] = names
        measures.held_bytes[row] = contents


@inlined
def _put(room: Strings, row: int, address: np.uint64, size: Whole) -> None:
    """Put a string behind those before it. size: -1 if it is missing."""
    at = room.begins[row]
    if size > 0:
        copy_from(room.data, at, address, size)
    end = at + max(size, 0)
    room.data[end] = _LINE_FEED
    room.begins[row + 1] = end + 1
    room.missing[row] = size < 0


@kernel
def gather(messages: UInt64s, order: Int64s, measures: Measures, values: Strings, keys: Strings) -> None:
    """Copy values and keys of the messages in this order. measures: as measured. begins[0] must be 0."""
    for row in range(len(order)):
        place = order[row]
        message = messages[place]
        _put(values, row, word_at(message + _VALUE), measures.value_sizes[place])
        _put(keys, row, word_at(message + _KEY), measures.key_sizes[place])


@kernel
def gather_headers(
    messages: UInt64s,
    order: Int64s,
    functions: Functions,
    scratch: UInt64s,
    own: np.uint64,
    names: Strings,
    contents: Strings,
) -> None:
    """Copy the headers of the messages in this order. scratch, own: as of `measure`."""
    word = np.uint64(8)
    row = 0
    for place in order:
        if _code_of(functions.headers, messages[place], own) != 0:
            continue
        all_headers, number = scratch[0], np.uint64(0)
        while (
            _code_of_header(
                functions.header,
                all_headers,
                number,
                own + word,
                own + np.uint64(2) * word,
                own + np.uint64(3) * word,
            )
            == 0
        ):
            _put(names, row, scratch[1], _length(scratch[1]))
            _put(contents, row, scratch[2], np.int64(scratch[3]) if scratch[2] != _NULL else -1)
            number += np.uint64(1)
            row += 1


@kernel
def destroy(messages: UInt64s, count: int, functions: Functions) -> None:
    """Give these messages back to librdkafka."""
    for row in range(count):
        _call(functions.destroy, messages[row])
