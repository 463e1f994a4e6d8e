"""Result tables as JSON rows, built by Arrow a column at a time.

    {"window_start":0,"window_end":60000,"key":"AA","flights":3,"delay":1.5}

The key is a number or text as its column's type says. Raw bytes are text, or "key_base64" where they are not UTF-8.
Numbers read back as exactly what they were; null is
null. NaN and infinities, which JSON lacks, are the strings "NaN", "Infinity", "-Infinity".
"""

from __future__ import annotations

import base64
import json
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

_CONTROL = r"[\x00-\x1f]"


def json_rows(table: pa.Table) -> pa.Array:
    """One JSON object (string) per row of a result table; rows in order."""
    if table.num_rows == 0:
        return pa.array([], pa.string())
    pieces: list[str | pa.Array | pa.ChunkedArray] = ["{"]
    for name in ("window_start", "window_end"):
        pieces += [f'"{name}":', _bound(table[name]), ","]
    pieces += _key_fields(_one(table["key"]))
    for name in table.schema.names[3:]:
        pieces += ["," + json.dumps(name, ensure_ascii=False) + ":", _numbers(table[name])]
    return _one(pc.binary_join_element_wise(*_joined([*pieces, "}"]), _text("")))


def _bound(column: pa.ChunkedArray) -> str | pa.ChunkedArray:
    """A window's bound as text: once where all rows are of one window, which is usual and cheap."""
    bounds = pc.min_max(column)
    return str(bounds["min"]) if bounds["min"] == bounds["max"] else column.cast(pa.string())


def _joined(pieces: list[str | pa.Array | pa.ChunkedArray]) -> list[pa.Array | pa.ChunkedArray | pa.Scalar]:
    """The pieces with neighbouring words made one."""
    found: list[pa.Array | pa.ChunkedArray | pa.Scalar] = []
    for are_words, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        own = list(group)
        found += [_text("".join(own))] if are_words else own
    return found


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    text = column.cast(pa.string())
    if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column), min_count=0).as_py():
        text = pc.if_else(pc.is_nan(column), '"NaN"', text)
        infinite = pc.if_else(pc.greater(column, 0), '"Infinity"', '"-Infinity"')
        text = pc.if_else(pc.is_inf(column), infinite, text)
    return pc.fill_null(text, "null") if column.null_count else text


def _key_fields(keys: pa.Array) -> list[str | pa.Array]:
    """`"key":8`, `"key":"..."`, or `"key_base64":"..."` for each key that is not UTF-8."""
    if pa.types.is_integer(keys.type):
        return ['"key":', keys.cast(pa.string())]
    try:
        texts = keys.cast(pa.string())
    except pa.ArrowInvalid:
        return [pa.array([_key_field(key) for key in keys.to_pylist()], pa.string())]
    if pc.any(pc.match_substring_regex(texts, _CONTROL)).as_py():
        return [pa.array([_key_field(key) for key in keys.to_pylist()], pa.string())]
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"')):
        if pc.any(pc.match_substring(texts, plain)).as_py():
            texts = pc.replace_substring(texts, plain, escaped)
    return ['"key":"', texts, '"']


def _key_field(key: bytes | str) -> str:
    if isinstance(key, str):
        return f'"key":{json.dumps(key, ensure_ascii=False)}'
    try:
        return _key_field(key.decode())
    except UnicodeDecodeError:
        return f'"key_base64":"{base64.b64encode(key).decode()}"'


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.string())


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
