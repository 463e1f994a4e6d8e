"""One record at a time through Arrow's own JSON and CSV readers: what is readable, said by other code than
ours.

Slow, and of one record only, so that nothing depends on neighbours. The compiled readers must agree with it
but for what `test_reading_as_arrow_does.py` names.
"""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from evenflow.settings import Settings

ARROW_TYPES = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string()}
MAX_TIME = 8_640_000_000_000_000
ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?\s?(Z|[+-]\d{2}:?\d{2})?$"


class OneByOne:
    """Reads single records as `settings.input` and `settings.query` say, with key and time in columns."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._query = settings.query
        self._schema = pa.schema([(name, self._type(name)) for name in settings.needed_columns])

    def read(self, record: bytes | None) -> tuple[bytes, int, dict[str, Any]] | None:
        """Key, event time in ms and values of the tuple in this record; None when it is unreadable."""
        if record is None:
            return None
        try:
            table = (self._json if self._settings.input.format == "json" else self._csv)(record)
            if table.num_rows != 1:
                return None
            table.validate(full=True)
            time = self._time(table.column(self._query.time))
        except (pa.ArrowException, ValueError, OverflowError):
            return None
        key = table.column(self._query.key)[0].as_py()
        values = {name: table.column(name)[0].as_py() for name in self._query.value_columns}
        finite = all(abs(v) < float("inf") for v in values.values() if isinstance(v, float))
        if key is None or time is None or not -MAX_TIME <= time <= MAX_TIME or not finite:
            return None
        return str(key).encode(), time, values

    def _type(self, name: str) -> pa.DataType:
        if name == self._query.time:
            return {"iso": pa.string(), "s": pa.float64()}.get(self._query.time_unit, pa.int64())
        return ARROW_TYPES[self._query.column_type(name)]

    def _json(self, record: bytes) -> pa.Table:
        bare = record.strip(b" \t\r\n")
        if not (bare[:1] == b"{" and bare[-1:] == b"}"):  # Arrow's reader crashes on a lone `null`
            raise ValueError
        table = pyarrow.json.read_json(
            io.BytesIO(record),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=max(len(record) + 1, 64)),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=self._schema, unexpected_field_behavior="ignore", newlines_in_values=True
            ),
        )
        return table.select(self._schema.names)

    def _csv(self, record: bytes) -> pa.Table:
        if not record.strip(b"\r\n") or record.startswith(b"\xef\xbb\xbf"):
            raise ValueError
        return pyarrow.csv.read_csv(
            io.BytesIO(record),
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False,
                block_size=max(len(record) + 1, 64),
                column_names=self._settings.input.columns,
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self._settings.input.delimiter, newlines_in_values=True, ignore_empty_lines=False
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=self._schema.names,
                column_types=self._schema,
                null_values=["", "NA", "null", "NULL"],
                strings_can_be_null=False,
            ),
        )

    def _time(self, column: pa.ChunkedArray) -> int | None:
        unit = self._query.time_unit
        if unit == "iso":
            return _iso(column)
        if unit == "s":
            return (
                pc.round(pc.multiply(column, 1000.0), round_mode="half_to_even").cast(pa.int64())[0].as_py()
            )
        value = column[0].as_py()
        return value // 1000 if unit == "us" and value is not None else value


def _iso(column: pa.ChunkedArray) -> int | None:
    if not pc.all(pc.fill_null(pc.match_substring_regex(column, ISO), True)).as_py():
        raise ValueError
    whole = pc.replace_substring_regex(column, r"(\.\d{3})\d+", r"\1")
    whole = pc.replace_substring_regex(whole, r"\s([Z+-])", r"\1")
    zoned = pc.match_substring_regex(whole, r"(Z|[+-]\d{2}:?\d{2})$")[0].as_py()
    date = pc.match_substring_regex(whole, r"^\d{4}-\d{2}-\d{2}$")[0].as_py()
    kind = pa.timestamp("ms", "UTC") if zoned and not date else pa.timestamp("ms")
    return whole.cast(kind).cast(pa.int64())[0].as_py()
