"""A compiled pass over a block of Protobuf records, which walks through each record by its field numbers.

Nothing that a record says is believed: a length never reaches beyond the message that it stands in. Only
messages on the way to a needed cell are entered, so the depth is that of the longest path to a cell. Groups
are passed over, because no column can be in one, and their depth is bounded.

What no library writes, but Google's reads, means the same here: bits beyond a number's own are dropped, tags
and lengths may have five bytes.
"""

from __future__ import annotations

from evenflow.numeric.arrays import Bools, Int64s, Rows, UInt8s
from evenflow.numeric.kernels import inlined, kernel
from partitioner_service.reading.registered.binary import (
    Walk,
    double,
    little,
    low_bits,
    single,
    varint,
    zigzag,
)
from partitioner_service.reading.registered.leaves import NOTHING
from partitioner_service.reading.registered.protobuf_schema import (
    DOUBLE,
    FIXED32,
    FIXED64,
    LENGTH,
    MESSAGE,
    NANOS,
    PASS,
    REPEATED,
    SIGNED_32,
    SINGLE,
    SPAN,
    TRUE,
    UNSIGNED_32,
    VARINT,
    ZIGZAG,
    ZIGZAG_32,
    Tables,
)

STACK = 512
"""Two entries for each of the messages that are within each other, and _GROUPS entries for groups."""
_GROUPS = 100
"""Bound of the groups that are within each other."""
_BEGIN_GROUP, _END_GROUP = 3, 4
_WIRE_BITS = 3
"""A tag is the number of a field, followed by its wire type in the three lowest bits."""
_WIRE = (1 << _WIRE_BITS) - 1
_FIRST_TAG = 1 << _WIRE_BITS
"""Tags are from _FIRST_TAG on, because field numbers begin with 1."""
_SIZE_BYTES, _BEHIND_SIZES = 5, 1 << 32
"""Bound of the bytes of a tag or a length, and what it is less than."""
_FEW = 8
"""Among so few rows a search one by one is the fastest."""
_MOST_INDEXES = 16
"""Longest path to a message within the messages of a file."""
_INDEX_BYTES = 5
"""Bytes of a number in such a path, which has 32 bits."""
NO_MESSAGE, NO_PATH = -1, -2
"""The file has no message at this path, and the bytes hold no path."""


@inlined
def _index(data: UInt8s, at: int, stop: int) -> tuple[int, int]:
    """A number of a path and where it ends, -1 if there is none. Confluent writes it as a signed one."""
    value, end = varint(data, at, stop)
    value = zigzag(value)
    if end < 0 or end - at > _INDEX_BYTES or value < 0:
        return 0, -1
    return value, end


@inlined
def _within(inner: Int64s, message: int, index: int) -> int:
    """The number of the message with this index within another."""
    if message < 0 or index >= inner[message + 1] - inner[message]:
        return NO_MESSAGE
    return int(inner[message] + index)


@kernel
def find_messages(data: UInt8s, starts: Int64s, stops: Int64s, inner: Int64s, messages: Int64s) -> None:
    """Fill `messages` with the number of each record's message, or with NO_MESSAGE or NO_PATH.

    A record begins with the path of its message: a count, then an index per level. The path of the first
    message of a file, which is the usual one, is written as a count of 0.

    starts, stops: where each record begins and ends. `starts` moves behind the path. inner: as of
    `ProtobufFile`.
    """
    for place in range(starts.shape[0]):
        stop = stops[place]
        count, at = _index(data, starts[place], stop)
        message = 0
        if count > _MOST_INDEXES:
            at = -1
        elif count == 0:
            message = _within(inner, 0, 0)
        else:
            for _ in range(count):
                index, at = _index(data, at, stop)
                if at < 0:
                    break
                message = _within(inner, message, index)
        messages[place] = message if at >= 0 else NO_PATH
        starts[place] = max(at, starts[place])


@inlined
def _size(data: UInt8s, at: int, stop: int) -> tuple[int, int]:
    """A tag or a length and where it ends, -1 if there is none."""
    value, end = low_bits(data, at, stop)
    if end - at > _SIZE_BYTES or value >= _BEHIND_SIZES:
        return 0, -1
    return value, end


@inlined
def _passed(data: UInt8s, at: int, stop: int, wire: int) -> int:
    """Where a value of this wire type (no group) ends, -1 if it does not end by `stop`."""
    if wire == VARINT:
        _, at = low_bits(data, at, stop)
        return at
    if wire == FIXED64:
        return at + 8 if stop - at >= 8 else -1
    if wire == FIXED32:
        return at + 4 if stop - at >= 4 else -1
    if wire == LENGTH:
        length, at = _size(data, at, stop)
        return at + length if at >= 0 and length <= stop - at else -1
    return -1


@inlined
def _packed(data: UInt8s, at: int, stop: int, wire: int) -> int:
    """How many bytes packed numbers of this wire type take, -1 if they do not end with the last of them.

    stop: where they end. Their length comes first.
    """
    _, begin = _size(data, at, stop)
    at = begin
    while 0 <= at < stop:
        at = _passed(data, at, stop, wire)
    return stop - begin if at == stop else -1


@kernel
def _group_passed(data: UInt8s, at: int, stop: int, number: int, open_groups: Int64s) -> int:
    """Where a group ends whose first tag has been read, -1 if it does not end as it should.

    number: field number of the group. open_groups: a stack for the numbers of the groups that are open.
    """
    depth = 1
    open_groups[0] = number
    while depth > 0:
        tag, at = _size(data, at, stop)
        if at < 0 or tag < _FIRST_TAG:
            return -1
        wire = tag & _WIRE
        if wire == _BEGIN_GROUP:
            if depth >= _GROUPS:
                return -1
            open_groups[depth] = tag >> _WIRE_BITS
            depth += 1
        elif wire == _END_GROUP:
            depth -= 1
            if open_groups[depth] != tag >> _WIRE_BITS:
                return -1
        else:
            at = _passed(data, at, stop, wire)
            if at < 0:
                return -1
    return at


@inlined
def _begin(walk: Walk, tables: Tables, message: int, row: int) -> None:
    """Fill the default values of a message that begins.

    A message may come in several parts, whose fields add up. So a cell that an earlier part has filled is
    kept.
    """
    raw = walk.raw
    for place in range(tables.default_bounds[message], tables.default_bounds[message + 1]):
        leaf = tables.defaults[place]["leaf"]
        column = tables.defaults[place]["column"]
        if raw.leaves[column, row] == NOTHING:
            raw.leaves[column, row] = leaf
            raw.ints[column, row] = 0
            raw.floats[column, row] = 0.0
            raw.lengths[column, row] = 0


@inlined
def _as_said(value: int, do: int) -> int:
    """The value that the number on the wire stands for."""
    if do in (SIGNED_32, NANOS):
        # The lower 32 bits with their sign: the xor moves the sign bit, the subtraction spreads it.
        return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
    if do == UNSIGNED_32:
        return value & 0xFFFFFFFF
    if do == ZIGZAG:
        return zigzag(value)
    if do == ZIGZAG_32:
        return zigzag(value & 0xFFFFFFFF)
    if do == TRUE:
        return 1 if value != 0 else 0
    return value


@inlined
def _row_of(rows: Rows, begin: int, end: int, number: int) -> int:
    """The row of the field with this number, -1 if there is none.

    begin, end: where the rows of its message begin and end. They are in the order of their numbers.
    """
    while end - begin > _FEW:
        middle = (begin + end) >> 1
        if rows[middle]["number"] <= number:
            begin = middle
        else:
            end = middle
    for place in range(begin, end):
        if rows[place]["number"] == number:
            return place
    return -1


@inlined
def _empty(walk: Walk, tables: Tables, of: Rows, row: int) -> None:
    """Empty columns of a oneof. of: the row of FIELD or ONEOF that says which."""
    for place in range(of["clears"], of["clears_stop"]):
        walk.raw.leaves[tables.clears[place], row] = NOTHING


@inlined
def _keep(walk: Walk, field: Rows, at: int, stop: int, row: int) -> None:
    """Keep the value of a needed field, which begins at `at`.

    The caller has passed over the value, so it is whole.
    """
    raw = walk.raw
    column = field["column"]
    do = field["do"]
    raw.leaves[column, row] = field["leaf"]
    if do == REPEATED:
        return
    if do == SPAN:
        length, begin = _size(walk.data, at, stop)
        raw.begins[column, row] = begin
        raw.lengths[column, row] = length
    elif do == DOUBLE:
        raw.floats[column, row] = double(walk, at)
    elif do == SINGLE:
        raw.floats[column, row] = single(walk, at)
    else:
        if field["wire"] == VARINT:
            value, _ = low_bits(walk.data, at, stop)
        else:
            value = little(walk.data, at, 8 if field["wire"] == FIXED64 else 4)
        value = _as_said(value, do)
        if do == NANOS:
            raw.lengths[column, row] = value
        else:
            raw.ints[column, row] = value


@inlined
def _record(walk: Walk, tables: Tables, at: int, stop: int, row: int) -> bool:
    """Go through one record. Returns whether its bytes are such a record.

    stack: for each message that is entered, the number and the end of the message around it.
    """
    data, stack = walk.data, walk.stack
    message = 0
    depth = 0
    _begin(walk, tables, 0, row)
    while True:
        if at == stop:  # the end of this message
            if depth == 0:
                return True
            depth -= 2
            message = stack[depth]
            stop = stack[depth + 1]
            continue
        tag, at = _size(data, at, stop)
        if at < 0 or tag < _FIRST_TAG:
            return False
        wire = tag & _WIRE
        if wire == _BEGIN_GROUP:
            # The end of the stack belongs to groups. Messages never reach it (see the bound below).
            at = _group_passed(data, at, stop, tag >> _WIRE_BITS, stack[STACK - _GROUPS :])
            if at < 0:
                return False
            continue
        begin = at
        number = tag >> _WIRE_BITS
        index = _row_of(tables.fields, tables.bounds[message], tables.bounds[message + 1], number)
        matches = packed = False
        do = PASS
        # A value of the wrong wire type counts as an unknown field, so it does not empty the others of its
        # oneof.
        if index >= 0:
            field = tables.fields[index]
            do = field["do"]
            packed = do == REPEATED and wire == LENGTH and field["wire"] != LENGTH
            matches = packed or field["wire"] == wire
            if matches:
                _empty(walk, tables, field, row)
            matches = matches and do != PASS
        else:
            other = _row_of(
                tables.others, tables.other_bounds[message], tables.other_bounds[message + 1], number
            )
            if other >= 0 and tables.others[other]["wire"] == wire:
                oneof = tables.oneof_bounds[message] + tables.others[other]["oneof"]
                _empty(walk, tables, tables.oneofs[oneof], row)
        if matches and do == MESSAGE:
            length, at = _size(data, at, stop)
            if at < 0 or length > stop - at or depth + 2 > STACK - _GROUPS:
                return False
            stack[depth] = message
            stack[depth + 1] = stop
            depth += 2
            message = tables.fields[index]["into"]
            stop = at + length
            _begin(walk, tables, message, row)
            continue
        at = _passed(data, at, stop, wire)
        if at < 0:
            return False
        if packed:
            numbers = _packed(data, begin, at, tables.fields[index]["wire"])
            if numbers < 0:
                return False
            matches = numbers > 0
        if matches and tables.fields[index]["column"] >= 0:
            _keep(walk, tables.fields[index], begin, stop, row)


@kernel
def scan(walk: Walk, tables: Tables, failed: Bools) -> None:
    """Find the needed cells of these records.

    failed: is set for each record whose bytes do not fit the schema.
    """
    for number in range(walk.rows.shape[0]):
        failed[number] = not _record(walk, tables, walk.starts[number], walk.stops[number], walk.rows[number])
