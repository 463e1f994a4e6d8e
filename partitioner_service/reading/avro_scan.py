"""A block of Avro records walked one by one in a compiled pass, by the steps of their schema.

Nothing a record says is believed: a length never reaches beyond the record, every turn of a loop takes at least a byte, and
the depth of calls is bounded. So any bytes take time and memory of the order of their own number.
"""

from __future__ import annotations

from evenflow.arrays import Bools, Rows
from evenflow.kernels import inlined, kernel
from partitioner_service.reading.avro_schema import (
    BOOL,
    BYTES,
    CALL,
    END,
    ENTER,
    ENUM,
    FLOAT4,
    FLOAT8,
    JUMP,
    LAST_VALUE,
    NESTED,
    RETURN,
    UNION,
    VARINT,
    Steps,
)
from partitioner_service.reading.binary import Walk, double, single, varint, zigzag

_STEPS, _STEPS_PER_BYTE = 100_000, 100
"""Most steps through a record: types that take no bytes can name each other so often that a walk never ends."""
STACK = 256
"""Loops and calls within each other."""


@inlined
def _value(it: Walk, step: Rows, at: int, stop: int, row: int) -> int:
    """Where the value of this step ends, -1 when there is none. It is kept if a column needs it."""
    op = step["op"]
    column = step["column"]
    raw = it.raw
    if column >= 0:
        raw.leaves[column, row] = step["leaf"]
    if op == NESTED:
        return at
    if op in (VARINT, ENUM, BYTES):
        value, at = varint(it.data, at, stop)
        value = zigzag(value)
        if at < 0:
            return -1
        if op == BYTES:
            if value < 0 or value > stop - at:
                return -1
            if column >= 0:
                raw.begins[column, row] = at
                raw.lengths[column, row] = value
            return at + value
        if op == ENUM and (value < 0 or value >= step["size"]):
            return -1
        if column >= 0:
            raw.ints[column, row] = value
        return at
    size = step["size"]
    if stop - at < size or (op == BOOL and it.data[at] > 1):
        return -1
    if column >= 0:
        if op == FLOAT8:
            raw.floats[column, row] = double(it, at)
        elif op == FLOAT4:
            raw.floats[column, row] = single(it, at)
        elif op == BOOL:
            raw.ints[column, row] = it.data[at]
        else:
            raw.begins[column, row] = at
            raw.lengths[column, row] = size
    return at + size


@inlined
def _more(it: Walk, depth: int, at: int, stop: int) -> tuple[int, int]:
    """How many items of a loop are left, after a look at how many its next block has -> (items, where they begin or -1)."""
    left = it.stack[depth - 1]
    if left != 0:
        return left, at
    left, at = varint(it.data, at, stop)
    left = zigzag(left)
    if at >= 0 and left < 0:  # the block says its size too
        left = -left
        _, at = varint(it.data, at, stop)
    # Each item takes a byte at least.
    return (left, at) if at >= 0 and 0 <= left <= stop - at else (0, -1)


@inlined
def _record(it: Walk, program: Steps, at: int, stop: int, row: int) -> bool:
    """Go through one record. False where its bytes are no such record."""
    stack = it.stack
    pc = 0
    depth = 0
    for _ in range(_STEPS + _STEPS_PER_BYTE * (stop - at)):
        step = program.steps[pc]
        op = step["op"]
        pc += 1
        if op <= LAST_VALUE:
            at = _value(it, step, at, stop, row)
            if at < 0:
                return False
        elif op == END:
            return at == stop
        elif op == UNION:
            value, at = varint(it.data, at, stop)
            value = zigzag(value)
            if at < 0 or value < 0 or value >= step["size"]:
                return False
            pc = program.branches[step["to"] + value]
        elif op == JUMP:
            pc = step["to"]
        elif op in (CALL, ENTER):
            if depth >= STACK:
                return False
            stack[depth] = pc if op == CALL else 0
            depth += 1
            if op == CALL:
                pc = step["to"]
        elif op == RETURN:
            depth -= 1
            pc = stack[depth]
        else:  # REPEAT
            left, at = _more(it, depth, at, stop)
            if at < 0:
                return False
            if left == 0:
                depth -= 1
                pc = step["to"]
            else:
                stack[depth - 1] = left - 1
    return False


@kernel
def scan(it: Walk, program: Steps, failed: Bools) -> None:
    """Find the needed cells of these records. failed: of each, whether its bytes are no such record."""
    for number in range(it.rows.shape[0]):
        failed[number] = not _record(it, program, it.starts[number], it.stops[number], it.rows[number])
