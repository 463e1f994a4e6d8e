"""A block of Protobuf records walked one by one in a compiled pass.

Nothing a record says is believed: a length never reaches beyond the message it is in. Only messages on the way to a needed
cell are entered, so the depth is that of the longest path; groups that nobody reads are passed over, to a bounded depth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenflow.kernels import inlined, kernel
from partitioner_service.reading.avro_scan import little, varint, zigzag
from partitioner_service.reading.leaves import NOTHING
from partitioner_service.reading.protobuf_schema import (
    CLEARS,
    CLEARS_END,
    COLUMN,
    DO,
    DOUBLE,
    FIXED32,
    FIXED64,
    INTO,
    LEAF,
    LENGTH,
    MESSAGE,
    NANOS,
    NUMBER,
    PASS,
    REPEATED,
    SIGNED_32,
    SINGLE,
    SPAN,
    TRUE,
    UNSIGNED_32,
    VARINT,
    WIRE,
    ZIGZAG,
)

STACK = 512
_GROUPS = 100
_BEGIN_GROUP, _END_GROUP = 3, 4


@inlined
def _passed(data: Any, at: int, stop: int, wire: int) -> int:
    """Where a value of this wire type (no group) ends; -1 when it does not."""
    if wire == VARINT:
        _, at = varint(data, at, stop)
        return at
    if wire == FIXED64:
        return at + 8 if stop - at >= 8 else -1
    if wire == FIXED32:
        return at + 4 if stop - at >= 4 else -1
    if wire == LENGTH:
        length, at = varint(data, at, stop)
        return at + length if at >= 0 and 0 <= length <= stop - at else -1
    return -1


@kernel
def _group_passed(data: Any, at: int, stop: int, number: int, open_groups: Any) -> int:
    """Where the group of this number, which has begun, ends; -1 when it does not."""
    depth = 1
    open_groups[0] = number
    while depth > 0:
        tag, at = varint(data, at, stop)
        if at < 0 or tag < 8 or tag >= 1 << 32:
            return -1
        wire = tag & 7
        if wire == _BEGIN_GROUP:
            if depth >= _GROUPS:
                return -1
            open_groups[depth] = tag >> 3
            depth += 1
        elif wire == _END_GROUP:
            depth -= 1
            if open_groups[depth] != tag >> 3:
                return -1
        else:
            at = _passed(data, at, stop, wire)
            if at < 0:
                return -1
    return at


@inlined
def _begin(program: Any, message: int, raw: Any, row: int) -> None:
    """Fill what a message holds though its field is not there, unless an earlier part of it has."""
    for place in range(program[3][message], program[3][message + 1]):
        leaf = program[2][place, 0]
        column = program[2][place, 1]
        if raw.leaves[column, row] == NOTHING:
            raw.leaves[column, row] = leaf
            raw.ints[column, row] = 0
            raw.floats[column, row] = 0.0
            raw.lengths[column, row] = 0


@inlined
def _as_said(value: int, do: int) -> int:
    """What the number on the wire means."""
    if do in (SIGNED_32, NANOS):
        return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
    if do == UNSIGNED_32:
        return value & 0xFFFFFFFF
    if do == ZIGZAG:
        return zigzag(value)
    if do == TRUE:
        return 1 if value != 0 else 0
    return value


@kernel
def scan(
    data: Any, starts: Any, stops: Any, rows: Any, program: Any, stack: Any, raw: Any, words: Any, failed: Any
) -> None:
    """Find the needed cells of these rows; failed: of each, whether its bytes are no such record.

    program: fields, bounds, defaults, default_bounds, clears. stack: int64 (STACK,). words: int64 (1,), a place in which
    numbers of IEEE 754 are taken apart.
    """
    fields = program[0]
    bounds = program[1]
    clears = program[4]
    for number in range(rows.shape[0]):
        row = rows[number]
        at = starts[number]
        stop = stops[number]
        message = 0
        depth = 0
        right = True
        _begin(program, 0, raw, row)
        while right:
            if at == stop:
                if depth == 0:
                    break
                depth -= 2
                message = stack[depth]
                stop = stack[depth + 1]
                continue
            tag, at = varint(data, at, stop)
            right = at >= 0 and 8 <= tag < 1 << 32
            if not right:
                break
            wire = tag & 7
            found = -1
            for place in range(bounds[message], bounds[message + 1]):
                if fields[place, NUMBER] == tag >> 3:
                    found = place
                    break
            if wire == _BEGIN_GROUP:
                at = _group_passed(data, at, stop, tag >> 3, stack[STACK - _GROUPS :])
                right = at >= 0
                continue
            do = PASS if found < 0 else fields[found, DO]
            known = do != PASS and (do == REPEATED or fields[found, WIRE] == wire)
            if found >= 0 and (known or do == PASS):
                for place in range(fields[found, CLEARS], fields[found, CLEARS_END]):
                    raw.leaves[clears[place], row] = NOTHING
            if not known:
                at = _passed(data, at, stop, wire)
                right = at >= 0
                continue
            column = fields[found, COLUMN]
            begin = at
            if do == MESSAGE:
                length, at = varint(data, at, stop)
                right = at >= 0 and 0 <= length <= stop - at and depth + 2 <= STACK - _GROUPS
                if right:
                    stack[depth] = message
                    stack[depth + 1] = stop
                    depth += 2
                    message = fields[found, INTO]
                    stop = at + length
                    _begin(program, message, raw, row)
                continue
            at = _passed(data, at, stop, wire)
            right = at >= 0
            if not right:
                break
            raw.leaves[column, row] = fields[found, LEAF]
            if do == REPEATED:
                continue
            if do == SPAN:
                length, begin = varint(data, begin, stop)
                raw.begins[column, row] = begin
                raw.lengths[column, row] = length
            elif do in (DOUBLE, SINGLE):
                words[0] = little(data, begin, 8 if do == DOUBLE else 4)
                raw.floats[column, row] = _double(words) if do == DOUBLE else _single(words)
            else:
                if wire == VARINT:
                    value, _ = varint(data, begin, stop)
                else:
                    value = little(data, begin, at - begin)
                value = _as_said(value, do)
                if do == NANOS:
                    raw.lengths[column, row] = value
                else:
                    raw.ints[column, row] = value
        failed[number] = not right


@inlined
def _double(words: Any) -> float:
    return words.view(np.float64)[0]


@inlined
def _single(words: Any) -> float:
    return words.view(np.float32)[0]
