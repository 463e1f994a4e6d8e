"""Columns as JSON text. Arrow builds the text, a column at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

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


def parts(texts: pa.StringArray, kinds: Sequence[pa.DataType]) -> list[pa.Array]:
    """The columns of these types of which `arrays` made the texts. The inverse of `arrays`.

    Raises ValueError for a text that `arrays` does not make of values of these types.
    """
    if not len(texts):
        return [pa.array([], kind) for kind in kinds]
    try:
        # One call for all texts. A text that would join its neighbours does not come back below.
        rows = json.loads(f"[{','.join(texts.to_pylist())}]")
        columns = [_column(values, kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    # A number beyond int64 is an OverflowError, and too deep JSON a RecursionError.
    except (TypeError, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None
    round_trip = arrays(columns)
    if len(round_trip) != len(texts):
        raise ValueError("a text is no array")
    wrong = pc.fill_null(pc.not_equal(round_trip, texts), True)
    if pc.any(wrong).as_py():
        text = texts[pc.index(wrong, True).as_py()].as_py()
        raise ValueError(f"{text[:100]!r} is not an array of {', '.join(map(str, kinds))}")
    return columns


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_date(kind):
        return pa.array(values, pa.string()).cast(kind)
    return pa.array(values, kind)
