"""Turns columns into record values of the input format.

Vectorised: whole columns become text, then rows are joined.

Numbers keep their exact value: integers stay integers, and floats get the shortest text that reads back the
same. Nulls and NaN become `null` in JSON and an empty field in CSV. JSON has no infinities, so they are
refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from evenflow.errors import ConfigError
from evenflow.settings import InputSettings
from evenflow.sources.source import Batch


def values_of(batch: Batch, form: InputSettings, *, key: str) -> pa.Array:
    """The record values of a batch (large binary), in the format of the input topic.

    In the format `text`, a value is the column `key` if the batch has it, else the only column. Raises
    ConfigError for columns that the format cannot carry.
    """
    if form.format == "json":
        return batch.lines if batch.lines is not None else json_values(batch.columns)
    if form.format == "csv":
        return csv_values(batch.columns, form.columns, form.delimiter)
    chosen = batch.columns
    return text_values(chosen.select([key]) if key in chosen.column_names else chosen)


def json_values(columns: pa.Table) -> pa.Array:
    """One JSON object per row (large binary), with fields in the order of the columns."""
    return _join(_json_pieces(columns), len(columns), null="null")


def csv_values(columns: pa.Table, order: list[str], delimiter: str) -> pa.Array:
    """One CSV line per row (large binary), without line end.

    Fields come in the given order, quoted where needed. Raises ConfigError if a column of `order` is missing.
    """
    return _join(_csv_pieces(columns, order, delimiter), len(columns), null="")


class ValuesAtAnyTime:
    """The record values of n tuples whose event time is not known yet, rendered as far as that goes.

    time: the column of the event time. Raises ConfigError as `values_of` does. Of the other formats than JSON
    and CSV, or without this column in the records, there is nothing to fill in: `applies` says so.
    """

    def __init__(self, columns: pa.Table, form: InputSettings, *, time: str) -> None:
        rows, is_json = len(columns), form.format == "json"
        unknown = columns.set_column(columns.column_names.index(time), time, pa.nulls(rows, pa.int64()))
        pieces = _json_pieces(unknown) if is_json else _csv_pieces(unknown, form.columns, form.delimiter)
        place = 2 * (columns.column_names if is_json else form.columns).index(time) + 1
        null = "null" if is_json else ""
        self._name, self._form = time, form
        self._before = _join(pieces[:place], rows, null=null)
        self._behind = _join(pieces[place + 1 :], rows, null=null)

    @staticmethod
    def applies(columns: pa.Table, form: InputSettings, *, time: str | None) -> bool:
        """Whether records of this format carry the event time, and can be rendered around it."""
        if form.format == "json":
            return time in columns.column_names
        return form.format == "csv" and time in columns.column_names and time in form.columns

    def at(self, low: int, high: int, time: pa.Array) -> pa.Array:
        """The values of the tuples low .. high - 1 (large binary), all with this event time. time: as a
        column of one row.
        """
        is_json = self._form.format == "json"
        text = _json_text(time, self._name) if is_json else _csv_text(time, self._name, self._form.delimiter)
        text = text.cast(pa.large_binary())[0]
        parts = self._before[low:high], text, self._behind[low:high], pa.scalar(b"", pa.large_binary())
        return pc.binary_join_element_wise(*parts)


def _json_pieces(columns: pa.Table) -> list[pa.Array | str]:
    """What the values are joined of: before each column the text that leads to it, and a text at the end."""
    pieces: list[pa.Array | str] = []
    for place, name in enumerate(columns.column_names):
        label = json.dumps(name, ensure_ascii=False)
        pieces += [("{" if place == 0 else ",") + label + ":", _json_text(_flat(columns, name), name)]
    return [*pieces, "}"]


def _csv_pieces(columns: pa.Table, order: list[str], delimiter: str) -> list[pa.Array | str]:
    """As `_json_pieces`."""
    missing = [name for name in order if name not in columns.column_names]
    if missing:
        raise ConfigError(
            f"input.columns names {', '.join(missing)}, which the source does not send",
            hint=f"it sends {', '.join(columns.column_names)}",
        )
    pieces: list[pa.Array | str] = []
    for place, name in enumerate(order):
        pieces += [delimiter if place else "", _csv_text(_flat(columns, name), name, delimiter)]
    return [*pieces, ""]


def text_values(columns: pa.Table) -> pa.Array:
    """The values of the only column, as they are (large binary). A null becomes an empty record.

    Raises ConfigError if there is not exactly one column.
    """
    if columns.num_columns != 1:
        raise ConfigError(
            f"input.format = 'text' sends one column, but there are {', '.join(columns.column_names)}",
            hint="choose it with --value",
        )
    column = _flat(columns, columns.column_names[0])
    if pa.types.is_nested(column.type):
        raise _nested(columns.column_names[0])
    return pc.fill_null(column.cast(pa.large_string()), "").cast(pa.large_binary())


def _join(pieces: list[pa.Array | str], rows: int, *, null: str) -> pa.Array:
    if rows == 0:
        return pa.array([], pa.large_binary())
    scalars = [pa.scalar(piece, pa.large_string()) if isinstance(piece, str) else piece for piece in pieces]
    # Of scalars alone, Arrow would make one text, not one for each row.
    if not any(isinstance(piece, pa.Array) for piece in scalars):
        return pa.array(["".join(piece.as_py() for piece in scalars)] * rows, pa.large_string()).cast(
            pa.large_binary()
        )
    # The last argument is what Arrow puts between the pieces.
    empty = pa.scalar("", pa.large_string())
    joined = pc.binary_join_element_wise(*scalars, empty, null_handling="replace", null_replacement=null)
    return joined.cast(pa.large_binary())


def _flat(columns: pa.Table, name: str) -> pa.Array:
    column = columns.column(name).combine_chunks()
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def _json_text(column: pa.Array, name: str) -> pa.Array:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quoted_json(column.cast(pa.large_string()))
    if pa.types.is_temporal(kind):
        return _quoted_json(column.cast(pa.large_string()))
    return _plain_text(column, name)


def _plain_text(column: pa.Array, name: str) -> pa.Array:
    """Numbers, booleans and nulls as text.

    NaN becomes null. Raises ConfigError for infinities and other types.
    """
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise _nested(name)
    if pa.types.is_floating(kind):
        if pc.any(pc.is_inf(column)).as_py():
            raise ConfigError(
                f"column {name!r} holds an infinite number, which a record cannot carry",
                hint="leave the column out with --columns, or correct the data",
            )
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
    return column.cast(pa.large_string())


def _quoted_json(text: pa.Array) -> pa.Array:
    # Few texts need escapes, and one search costs less than 34 replacements.
    if pc.any(pc.match_substring_regex(text, r'[\x00-\x1f"\\]')).as_py():
        for raw, escaped in _ESCAPES:
            text = pc.replace_substring(text, raw, escaped)
    return _surrounded(text)


def _csv_text(column: pa.Array, name: str, delimiter: str) -> pa.Array:
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_temporal(kind)):
        return _plain_text(column, name)
    text = column.cast(pa.large_string())
    # An empty text is quoted, because an empty field without quotes is a null.
    special = pc.or_(
        pc.match_substring_regex(text, r'["\r\n]'),
        pc.or_(pc.match_substring(text, delimiter), pc.equal(text, "")),
    )
    if not pc.any(special).as_py():
        return text
    return pc.if_else(special, _surrounded(pc.replace_substring(text, '"', '""')), text)


def _surrounded(text: pa.Array) -> pa.Array:
    quote = pa.scalar('"', pa.large_string())
    return pc.binary_join_element_wise(quote, text, quote, pa.scalar("", pa.large_string()))


def _nested(name: str) -> ConfigError:
    return ConfigError(
        f"column {name!r} holds objects, lists or bytes, which cannot be rendered",
        hint="leave it out with --columns, or send JSON lines whole (input.format = 'json', no --columns)",
    )


def _escapes() -> list[tuple[str, str]]:
    encode: Callable[[str], str] = json.dumps
    # The backslash must come first: all other replacements insert backslashes.
    first = [("\\", "\\\\"), ('"', '\\"')]
    return first + [(chr(code), encode(chr(code))[1:-1]) for code in range(32)]


_ESCAPES = _escapes()
