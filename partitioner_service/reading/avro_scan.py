"""A block of Avro records walked one by one in a compiled pass, by the steps of their schema.

Nothing a record says is believed: a length never reaches beyond the record, every turn of a loop takes at least a byte, and
the depth of calls is bounded. So any bytes take time and memory of the order of their own number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenflow.kernels import inlined, kernel
from partitioner_service.reading.avro_schema import (
    BOOL,
    BYTES,
    CALL,
    END,
    ENTER,
    ENUM,
    FIXED,
    FLOAT4,
    FLOAT8,
    JUMP,
    NESTED,
    REPEAT,
    RETURN,
    UNION,
    VARINT,
)

_STEPS, _STEPS_PER_BYTE = 100_000, 100
"""Most steps through a record: types that take no bytes can name each other so often that a walk never ends."""
STACK = 256
"""Loops and calls within each other."""


@inlined
def varint(data: Any, at: int, stop: int) -> tuple[int, int]:
    """A number of 64 bits, seven a byte, and where it ends: -1 when there is none."""
    value = np.uint64(0)
    shift = 0
    while at < stop and shift < 70:
        byte = data[at]
        at += 1
        if shift < 64:
            value |= np.uint64(byte & 0x7F) << np.uint64(shift)
        if byte < 128:
            if shift == 63 and byte > 1:
                return 0, -1
            return int(np.int64(value)), at
        shift += 7
    return 0, -1


@inlined
def zigzag(value: int) -> int:
    """The signed number that Avro and Protobuf's sint write as this one."""
    half = np.int64(np.uint64(value) >> np.uint64(1))
    return int(half ^ -(value & 1))


@inlined
def little(data: Any, at: int, size: int) -> int:
    """A whole number of 4 or 8 bytes, lowest first, without a sign."""
    value = np.uint64(0)
    for byte in range(size):
        value |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
    return int(np.int64(value))


@kernel
def scan(
    data: Any,
    starts: Any,
    stops: Any,
    rows: Any,
    steps: Any,
    branches: Any,
    stack: Any,
    raw: Any,
    words: Any,
    failed: Any,
) -> None:
    """Find the needed cells of these rows; failed: of each, whether its bytes are no such record.

    words: int64 (1,), a place in which numbers of IEEE 754 are taken apart.
    """
    doubles = words.view(np.float64)
    singles = words.view(np.float32)
    for number in range(rows.shape[0]):
        row = rows[number]
        at = starts[number]
        stop = stops[number]
        pc = 0
        depth = 0
        right = True
        steps_left = _STEPS + _STEPS_PER_BYTE * (stop - at)
        while right:
            steps_left -= 1
            if steps_left < 0:
                right = False
                break
            op = steps[pc, 0]
            leaf = steps[pc, 1]
            column = steps[pc, 2]
            extra = steps[pc, 3]
            pc += 1
            if op == END:
                right = at == stop
                break
            if op in (VARINT, ENUM):
                value, at = varint(data, at, stop)
                value = zigzag(value)
                right = at >= 0 and (op == VARINT or 0 <= value < extra)
                if right and column >= 0:
                    raw.leaves[column, row] = leaf
                    raw.ints[column, row] = value
            elif op == BYTES:
                value, at = varint(data, at, stop)
                value = zigzag(value)
                right = at >= 0 and 0 <= value <= stop - at
                if right:
                    if column >= 0:
                        raw.leaves[column, row] = leaf
                        raw.begins[column, row] = at
                        raw.lengths[column, row] = value
                    at += value
            elif op == UNION:
                value, at = varint(data, at, stop)
                value = zigzag(value)
                right = at >= 0 and 0 <= value < column
                if right:
                    pc = branches[leaf + value]
            elif op == JUMP:
                pc = leaf
            elif op == FLOAT8:
                right = stop - at >= 8
                if right:
                    if column >= 0:
                        words[0] = little(data, at, 8)
                        raw.leaves[column, row] = leaf
                        raw.floats[column, row] = doubles[0]
                    at += 8
            elif op == FLOAT4:
                right = stop - at >= 4
                if right:
                    if column >= 0:
                        words[0] = little(data, at, 4)
                        raw.leaves[column, row] = leaf
                        raw.floats[column, row] = singles[0]
                    at += 4
            elif op == BOOL:
                right = at < stop and data[at] <= 1
                if right:
                    if column >= 0:
                        raw.leaves[column, row] = leaf
                        raw.ints[column, row] = data[at]
                    at += 1
            elif op == FIXED:
                right = stop - at >= extra
                if right:
                    if column >= 0:
                        raw.leaves[column, row] = leaf
                        raw.begins[column, row] = at
                        raw.lengths[column, row] = extra
                    at += extra
            elif op == NESTED:
                raw.leaves[column, row] = leaf
            elif op in (CALL, ENTER):
                right = depth < STACK
                if right:
                    stack[depth] = pc if op == CALL else 0
                    depth += 1
                    if op == CALL:
                        pc = leaf
            elif op == RETURN:
                depth -= 1
                pc = stack[depth]
            elif op == REPEAT:
                left = stack[depth - 1]
                if left == 0:
                    left, at = varint(data, at, stop)
                    left = zigzag(left)
                    right = at >= 0
                    if right and left < 0:
                        left = -left
                        _, at = varint(data, at, stop)
                        right = at >= 0
                    # each item takes a byte at least
                    right = right and 0 <= left <= stop - at
                if right and left == 0:
                    depth -= 1
                    pc = leaf
                elif right:
                    stack[depth - 1] = left - 1
            else:
                right = False
        failed[number] = not right
