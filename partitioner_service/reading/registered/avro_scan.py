"""A compiled pass over a block of Avro records, which walks through each record by the steps of its schema.

Nothing that a record says is believed. A length never reaches beyond the record, every turn of a loop and
every call takes at least one byte, and the depth of both is bounded. So whatever the bytes are, time and
memory are of the order of their number.
"""

from __future__ import annotations

from evenflow.numeric.arrays import Bools, Rows
from evenflow.numeric.kernels import inlined, kernel
from partitioner_service.reading.registered.avro_schema import (
    BOOL,
    BYTES,
    CALL,
    EMPTY,
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
from partitioner_service.reading.registered.binary import Walk, double, single, varint, zigzag

_VALUES, _VALUES_PER_BYTE = 100_000, 100
"""Bound of the values in a record. Those without bytes count, though no step is for them alone.
`verify` makes objects of all, and refuses the same records.
"""
_PREFIX = 5
"""Bytes of the schema's id before a record. They count as bytes of the record."""
_DEEPEST = 250
"""Bound of the records, arrays and maps that are within each other, as in `verify`."""
STACK = _DEEPEST + 1
"""Bound of the loops and calls that are within each other."""


@inlined
def _value(walk: Walk, step: Rows, at: int, stop: int, row: int) -> int:
    """Where the value of this step ends, -1 if no such value stands here.

    The value is kept if a column needs it.
    """
    op = step["op"]
    column = step["column"]
    raw = walk.raw
    if column >= 0:
        raw.leaves[column, row] = step["leaf"]
    if op == NESTED:  # only notes that something nested is there: other steps walk through it
        return at
    if op in (VARINT, ENUM, BYTES):
        value, at = varint(walk.data, at, stop)
        value = zigzag(value)
        if at < 0:
            return -1
        if op == BYTES:
            if value < 0 or value > stop - at:  # so written, the comparison cannot overflow
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
    if stop - at < size or (op == BOOL and walk.data[at] > 1):
        return -1
    if column >= 0:
        if op == FLOAT8:
            raw.floats[column, row] = double(walk, at)
        elif op == FLOAT4:
            raw.floats[column, row] = single(walk, at)
        elif op == BOOL:
            raw.ints[column, row] = walk.data[at]
        else:
            raw.begins[column, row] = at
            raw.lengths[column, row] = size
    return at + size


@inlined
def _more(walk: Walk, depth: int, at: int, stop: int) -> tuple[int, int]:
    """How many items of the innermost loop are left -> (items, where the next one begins).

    The place is -1 if the bytes are wrong. If none is left of the present block of items, the head of the
    next block is read. No items means that the loop ends.
    """
    left = walk.stack[depth - 1]
    if left != 0:
        return left, at
    left, at = varint(walk.data, at, stop)
    left = zigzag(left)
    if at >= 0 and left < 0:  # a negative count says that the size of the block in bytes follows
        left = -left
        _, at = varint(walk.data, at, stop)
    # Each item takes a byte at least. So a larger count is a lie, and would make a long loop of nothing.
    return (left, at) if at >= 0 and 0 <= left <= stop - at else (0, -1)


@inlined
def _record(walk: Walk, program: Steps, at: int, stop: int, row: int) -> bool:
    """Go through one record. Returns whether its bytes are such a record.

    stack: for a call, the step to return to. For a loop, the number of items that are left.
    """
    stack = walk.stack
    pc = 0
    depth = 0
    outer = 0  # records around the outermost loop or call, which have no entry in the stack
    left_values = _VALUES + _VALUES_PER_BYTE * (stop - at + _PREFIX)
    while True:
        step = program.steps[pc]
        op = step["op"]
        left_values -= step["values"]
        if left_values <= 0:
            return False
        pc += 1
        if op <= LAST_VALUE:
            at = _value(walk, step, at, stop, row)
            if at < 0:
                return False
        elif op == END:
            return at == stop
        elif op == UNION:
            value, at = varint(walk.data, at, stop)
            value = zigzag(value)
            if at < 0 or value < 0 or value >= step["size"]:
                return False
            pc = program.branches[step["to"] + value]
        elif op == JUMP:
            pc = step["to"]
        elif op in (CALL, ENTER):
            if depth == 0:
                outer = step["size"]
            if op == CALL and outer + depth >= _DEEPEST:  # its fields would be a level below
                return False
            stack[depth] = pc if op == CALL else 0
            depth += 1
            if op == CALL:
                pc = step["to"]
        elif op == RETURN:
            depth -= 1
            pc = stack[depth]
        elif op == EMPTY:
            around = outer + depth if depth > 0 else 0
            if around + step["to"] > _DEEPEST:
                return False
        else:  # REPEAT, the head of a loop
            left, at = _more(walk, depth, at, stop)
            if at < 0 or (left > 0 and outer + depth > _DEEPEST):
                return False
            if left == 0:
                depth -= 1
                pc = step["to"]
            else:
                stack[depth - 1] = left - 1


@kernel
def scan(walk: Walk, program: Steps, failed: Bools) -> None:
    """Find the needed cells of these records.

    failed: is set for each record whose bytes do not fit the schema.
    """
    for number in range(walk.rows.shape[0]):
        failed[number] = not _record(
            walk, program, walk.starts[number], walk.stops[number], walk.rows[number]
        )
