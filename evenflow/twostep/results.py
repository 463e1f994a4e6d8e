"""Result tables as JSON rows, built by Arrow a column at a time.

    {"window_start":0,"window_end":60000,"key":"AA","flights":3,"delay":1.5}

The key is a number or text, as its column's type says. Raw bytes are text if they are UTF-8. Otherwise they
stand in base64 under "key_base64" instead of "key". A key of several columns is a field for each, under the
column's own name (`with_key_columns`). Numbers read back as exactly the same numbers. Decimals
have all their digits behind the point. Null is null. JSON lacks NaN and infinities, so they are the strings
"NaN", "Infinity" and "-Infinity". Lists are arrays, structs are objects, and dates are ISO text.
"""

from __future__ import annotations

import base64
import json
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.text.json_text import escaped, joined


def json_rows(table: pa.Table) -> pa.Array:
    """One JSON object (string) for each row of a result table, in order."""
    if table.num_rows == 0:
        return pa.array([], pa.string())
    pieces: list[str | pa.Array | pa.ChunkedArray] = ["{"]
    for name in ("window_start", "window_end"):
        pieces += [f'"{name}":', _bound(table[name]), ","]
    for number, name in enumerate(table.schema.names[2:]):
        column = _single_chunk(table[name])
        pieces += ["," if number else ""]
        pieces += (
            _key_fields(column)
            if name == "key"
            else [json.dumps(name, ensure_ascii=False) + ":", _values(column)]
        )
    return _single_chunk(joined(*_words_made_one([*pieces, "}"])))


def _bound(column: pa.ChunkedArray) -> str | pa.ChunkedArray:
    """A window's bound as text. One text serves all rows if they are of one window, which is usual and
    cheap.
    """
    bounds = pc.min_max(column)
    return str(bounds["min"]) if bounds["min"] == bounds["max"] else column.cast(pa.string())


def _words_made_one(pieces: list[str | pa.Array | pa.ChunkedArray]) -> list[str | pa.Array | pa.ChunkedArray]:
    """The pieces, with neighbouring constant texts made one, so that Arrow joins fewer pieces."""
    texts: list[str | pa.Array | pa.ChunkedArray] = []
    for are_words, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        own = list(group)
        texts += ["".join(own)] if are_words else own
    return texts


def _values(column: pa.Array) -> pa.Array:
    """The JSON text of each value of a column."""
    text = _present(column)
    return pc.if_else(column.is_valid(), text, "null") if column.null_count else text


def _present(column: pa.Array) -> pa.Array:
    """As `_values`, but a null may have any text."""
    kind = column.type
    if pa.types.is_struct(kind):
        return _objects(column)
    if pa.types.is_list(kind):
        # The entries' texts are made as one flat column. Arrow then joins the texts of each list.
        entries = pa.ListArray.from_arrays(_offsets(column), _values(column.flatten()))
        return joined("[", pc.binary_join(entries, ","), "]")
    if pa.types.is_string(kind):
        return joined('"', escaped(column), '"')
    if pa.types.is_date(kind):
        return joined('"', column.cast(pa.string()), '"')
    return _digits(column) if pa.types.is_decimal(kind) else _numbers(column)


def _objects(column: pa.StructArray) -> pa.Array:
    pieces: list[str | pa.Array | pa.ChunkedArray] = []
    for number, field in enumerate(column.type):
        name = ("," if number else "{") + json.dumps(field.name, ensure_ascii=False) + ":"
        pieces += [name, _values(column.field(number))]
    return joined(*_words_made_one([*pieces, "}"]))


def _offsets(column: pa.ListArray) -> pa.Array:
    """Offsets of the lists in what `flatten` returns.
    `flatten` leaves out entries before a slice and under nulls.
    """
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))


def _digits(column: pa.Array) -> pa.Array:
    """Decimals as text with all digits behind the point. Arrow's own text of a small decimal has an
    exponent.
    """
    kind = column.type
    # The same buffers as decimals of scale 0: whole numbers of the last digit, whose text has no exponent.
    last = pa.Array.from_buffers(
        pa.decimal128(kind.precision, 0), len(column), column.buffers(), column.null_count, column.offset
    )
    whole = last.cast(pa.string())
    # At least one digit must be left before the point: 5 of scale 2 becomes 005, then 0.05.
    digits = pc.utf8_lpad(pc.utf8_ltrim(whole, "-"), kind.scale + 1, "0")
    before = pc.utf8_slice_codeunits(digits, 0, -kind.scale)
    sign = pc.if_else(pc.starts_with(whole, "-"), "-", "")
    behind = pc.utf8_slice_codeunits(digits, -kind.scale)
    return joined(sign, before, ".", behind)


def _numbers(column: pa.Array) -> pa.Array:
    text = column.cast(pa.string())
    if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column), min_count=0).as_py():
        # Arrow writes nan and inf, which are no JSON.
        text = pc.if_else(pc.is_nan(column), '"NaN"', text)
        infinite = pc.if_else(pc.greater(column, 0), '"Infinity"', '"-Infinity"')
        text = pc.if_else(pc.is_inf(column), infinite, text)
    return text


def _key_fields(keys: pa.Array) -> list[str | pa.Array]:
    """The field of the key: `"key":8`, `"key":"..."`, or `"key_base64":"..."` for a key that is not UTF-8."""
    if pa.types.is_integer(keys.type):
        return ['"key":', keys.cast(pa.string())]
    try:
        texts = keys.cast(pa.string())
    except pa.ArrowInvalid:  # some key is not UTF-8
        return [pa.array([_key_field(key) for key in keys.to_pylist()], pa.string())]
    return ['"key":"', escaped(texts), '"']


def _key_field(key: bytes | str) -> str:
    if isinstance(key, str):
        return f'"key":{json.dumps(key, ensure_ascii=False)}'
    try:
        return _key_field(key.decode())
    except UnicodeDecodeError:
        return f'"key_base64":"{base64.b64encode(key).decode()}"'


def _single_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
