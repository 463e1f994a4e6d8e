"""Texts that Postgres can hold. It holds every character but the zero byte, which any JSON text may have.

A text is written with an escape character, U+001A (substitute), in front of what it stands for: the zero byte
becomes U+001A and "0", and U+001A itself becomes U+001A and "1". Texts without these two characters, which
are nearly all, stay as they are. `original` undoes it, so no text is changed on the way. A text becomes at
most `GROWTH` times as long.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_ZERO, _ESCAPE = "\0", "\x1a"
GROWTH = 2
"""Into how many bytes a byte of a text grows at most. Both escaped characters have one byte in UTF-8."""


def storable(column: pa.Array) -> pa.Array:
    """The column as Postgres can hold it. Other columns than texts and lists of texts stay as they are."""
    # The escape character first: otherwise those that stand for a zero byte would be escaped again.
    return _replaced(column, (_ESCAPE, f"{_ESCAPE}1"), (_ZERO, f"{_ESCAPE}0"))


def original(column: pa.Array) -> pa.Array:
    """The column that `storable` made this one of."""
    return _replaced(column, (f"{_ESCAPE}0", _ZERO), (f"{_ESCAPE}1", _ESCAPE))


def _replaced(column: pa.Array, *pairs: tuple[str, str]) -> pa.Array:
    if pa.types.is_list(column.type):
        if not pa.types.is_string(column.type.value_type):
            return column
        items = _replaced(column.flatten(), *pairs)
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
        return pa.ListArray.from_arrays(offsets, items, mask=column.is_null())
    if not pa.types.is_string(column.type):
        return column
    for pattern, replacement in pairs:
        column = pc.replace_substring(column, pattern, replacement)
    return column
