"""Columns as JSON text. Arrow builds the text, a column at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

_CONTROL = r"[\x00-\x1f]"


def escaped(texts: pa.Array) -> pa.Array:
    """Each text as it stands between the quotes of a JSON string. Null stays null."""
    # Control characters are rare. If there are any, Python escapes row by row.
    if pc.any(pc.match_substring_regex(texts, _CONTROL)).as_py():
        return pa.array(
            [text and json.dumps(text, ensure_ascii=False)[1:-1] for text in texts.to_pylist()], pa.string()
        )
    # The backslash goes first, because an escaped quote has a backslash of its own.
    for plain, written in (("\\", "\\\\"), ('"', '\\"')):
        if pc.any(pc.match_substring(texts, plain)).as_py():
            texts = pc.replace_substring(texts, plain, written)
    return texts


def joined(*pieces: str | pa.Array | pa.ChunkedArray | pa.Scalar) -> pa.Array:
    """The pieces side by side, row by row. A row is null if one of its pieces is null."""
    texts = [pa.scalar(piece, pa.string()) if isinstance(piece, str) else piece for piece in pieces]
    # The last argument is the separator.
    return pc.binary_join_element_wise(*texts, pa.scalar("", pa.string()))


def arrays(columns: Sequence[pa.Array]) -> pa.StringArray:
    """The values of each row as a JSON array without white space, such as `["DE",5]`.

    columns: text, whole numbers, booleans or dates. A row is null if one of its values is null.
    """
    pieces: list[str | pa.Array] = ["["]
    for number, column in enumerate(columns):
        separator = "," if number else ""
        if pa.types.is_string(column.type):
            pieces += [f'{separator}"', escaped(column), '"']
        elif pa.types.is_date(column.type):
            pieces += [f'{separator}"', column.cast(pa.string()), '"']
        else:
            pieces += [separator, column.cast(pa.string())]
    return joined(*pieces, "]")
