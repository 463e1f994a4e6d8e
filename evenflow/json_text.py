"""Columns as JSON text, built by Arrow a column at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

_CONTROL = r"[\x00-\x1f]"


def escaped(texts: pa.Array) -> pa.Array:
    """What stands between the quotes of a JSON text. Null stays null."""
    if pc.any(pc.match_substring_regex(texts, _CONTROL)).as_py():
        return pa.array(
            [text and json.dumps(text, ensure_ascii=False)[1:-1] for text in texts.to_pylist()], pa.string()
        )
    for plain, written in (("\\", "\\\\"), ('"', '\\"')):
        if pc.any(pc.match_substring(texts, plain)).as_py():
            texts = pc.replace_substring(texts, plain, written)
    return texts


def joined(*pieces: str | pa.Array | pa.ChunkedArray | pa.Scalar) -> pa.Array:
    """The pieces side by side, row by row. Null where one is."""
    texts = [pa.scalar(piece, pa.string()) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(*texts, pa.scalar("", pa.string()))


def arrays(columns: Sequence[pa.Array]) -> pa.StringArray:
    """`["DE",5]` of each row, without white space: of text, whole numbers, truths or days. Null where one is null."""
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
