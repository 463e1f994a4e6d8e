"""Records to columns: keep what the query needs, give every bad record a reason of its own.

A block is parsed column-wise by Arrow in one call. When that fails, the block is halved until the bad
records stand alone, so that a record's fate never depends on its neighbours. Guards see to it that
line n of the joined block is record n.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from evenflow.arrays import Bools, Int64s
from evenflow.settings import Settings
from partitioner_service.plain_json import PlainReader

MAX_TIME = 8_640_000_000_000_000
"""Largest event time in ms either side of 1970 (about 273,000 years): what ISO 8601 libraries can hold."""

_ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?\s?(Z|[+-]\d{2}:?\d{2})?$"
_ARROW_TYPES = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string()}

_BOM = b"\xef\xbb\xbf"

Bad = dict[int, str]
"""Row of the block -> why it is unreadable."""


@dataclass(frozen=True)
class Parsed:
    """The readable tuples of a block.

    rows: their positions in the block, ascending, shape (m,); keys: binary (m,); times: event time in ms
    (m,); values: the aggregated columns, m rows; bad: reason of every other row.
    """

    rows: Int64s
    keys: pa.BinaryArray
    times: Int64s
    values: pa.RecordBatch
    bad: Bad


def taken_apart(parsed: Parsed, sizes: Sequence[int]) -> list[Parsed]:
    """What was parsed of consecutive stretches of a block; sizes: records in each. Rows count from its own first."""
    ends = np.cumsum(np.asarray(sizes, np.int64))
    cuts = np.searchsorted(parsed.rows, ends)
    bad: list[Bad] = [{} for _ in sizes]
    for row in sorted(parsed.bad):
        piece = int(np.searchsorted(ends, row, side="right"))
        bad[piece][row - int(ends[piece]) + sizes[piece]] = parsed.bad[row]
    pieces = []
    for number, (begin, stop) in enumerate(pairwise([0, *cuts.tolist()])):
        first = int(ends[number]) - sizes[number]
        values = parsed.values.slice(begin, stop - begin) if parsed.values.num_columns else parsed.values
        keys, times = parsed.keys.slice(begin, stop - begin), parsed.times[begin:stop]
        pieces.append(Parsed(parsed.rows[begin:stop] - first, keys, times, values, bad[number]))
    return pieces


class Parser:
    """Parses blocks of records as `settings.input` and `settings.query` say.

    `before_halving` is called before a block with bad records is taken apart, which can take seconds.
    """

    def __init__(self, settings: Settings) -> None:
        self._query = settings.query
        self._input = settings.input
        self._columns = settings.needed_columns
        self._schema = pa.schema([(name, self._column_type(name)) for name in self._columns])
        self._value_schema = pa.schema(
            [(name, _ARROW_TYPES[kind]) for name, kind in settings.query.value_columns.items()]
        )
        self._plain = PlainReader(self._schema)
        self.before_halving: Callable[[], None] = lambda: None
        self._read = {"json": self._read_json, "csv": self._read_csv, "text": self._read_text}[
            settings.input.format
        ]

    @property
    def needs_key(self) -> bool:
        """Whether the raw record key is read."""
        return self._query.key == "@key"

    @property
    def needs_timestamp(self) -> bool:
        """Whether the record timestamp is read."""
        return self._query.time == "@timestamp"

    def parse(
        self,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[bytes | None] | None = None,
        timestamps: Sequence[int] | None = None,
    ) -> Parsed:
        """Columns of n records; `keys` and `timestamps` (ms) have n entries where the query needs them."""
        bad: Bad = {}
        rows, table = self._columns_of(values, bad)
        key = self._keys_of(rows, table, keys, bad)
        time = self._times_of(rows, table, timestamps, bad)
        readable = self._finite(rows, table, bad)
        readable &= pc.is_valid(key).to_numpy(zero_copy_only=False) & pc.is_valid(time).to_numpy(
            zero_copy_only=False
        )
        chosen = table.select(self._value_schema.names) if self._value_schema.names else None
        if not readable.all():
            keep = pa.array(readable)
            rows, key, time = rows[readable], key.filter(keep), time.filter(keep)
            chosen = chosen.filter(keep) if chosen is not None else None
        batch = (
            pa.RecordBatch.from_arrays([], schema=pa.schema([]))
            if chosen is None
            else pa.RecordBatch.from_arrays(
                [_one_chunk(c) for c in chosen.columns], schema=self._value_schema
            )
        )
        return Parsed(rows, key, time.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), batch, bad)

    def _columns_of(self, values: Sequence[bytes | None], bad: Bad) -> tuple[Int64s, pa.Table]:
        if not self._columns:
            return np.arange(len(values)), pa.table({})
        if None in values:
            for row, value in enumerate(values):
                if value is None:
                    bad[row] = "the record has no value"
            rows = np.array([row for row, value in enumerate(values) if value is not None], dtype=np.int64)
        else:
            rows = np.arange(len(values))
        good: list[Int64s] = []
        tables: list[pa.Table] = []
        self._halve(values, rows, good, tables, bad)
        if not tables:
            return np.empty(0, dtype=np.int64), self._schema.empty_table()
        return np.concatenate(good), pa.concat_tables(tables).combine_chunks()

    def _halve(
        self,
        values: Sequence[bytes | None],
        rows: Int64s,
        good: list[Int64s],
        tables: list[pa.Table],
        bad: Bad,
    ) -> None:
        if not len(rows):
            return
        chunk = values if len(rows) == len(values) else [values[row] for row in rows]
        try:
            table = self._read(chunk, self._schema)
            table.validate(full=True)
        except (pa.ArrowException, ValueError) as error:
            if len(rows) > 1:
                self.before_halving()
                middle = len(rows) // 2
                self._halve(values, rows[:middle], good, tables, bad)
                self._halve(values, rows[middle:], good, tables, bad)
                return
            bad[int(rows[0])] = _short(error)
            return
        good.append(rows)
        tables.append(table)

    def _read_json(self, chunk: Sequence[bytes | None], schema: pa.Schema) -> pa.Table:
        table = self._plain.read(chunk) if len(chunk) > 1 else None
        return _read_json(chunk, schema) if table is None else table

    def _read_csv(self, chunk: Sequence[bytes | None], schema: pa.Schema) -> pa.Table:
        block = b"\n".join(chunk)  # type: ignore[arg-type]
        single = len(chunk) == 1
        if not single:
            if block.count(b"\n") != len(chunk) - 1 or b"\r" in block:
                raise ValueError("a record with a line break is parsed alone")
            if _BOM in block:
                raise ValueError("a record with a byte order mark is parsed alone")
            if b'"' in block and any(value.count(b'"') % 2 for value in chunk):  # type: ignore[union-attr]
                raise ValueError("a record with an open quote is parsed alone")
        elif not block.strip(b"\r\n") or block.startswith(_BOM):
            raise ValueError("the record is empty or begins with a byte order mark")
        table = pyarrow.csv.read_csv(
            io.BytesIO(block),
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, block_size=max(len(block) + 1, 64), column_names=self._input.columns
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self._input.delimiter, newlines_in_values=single, ignore_empty_lines=False
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=schema.names,
                column_types=schema,
                null_values=["", "NA", "null", "NULL"],
                strings_can_be_null=False,
            ),
        )
        return _exactly(table, len(chunk))

    def _read_text(self, chunk: Sequence[bytes | None], schema: pa.Schema) -> pa.Table:
        return pa.table({"value": pa.array(chunk, pa.binary()).cast(pa.string())}, schema=schema)

    def _column_type(self, name: str) -> pa.DataType:
        if name == self._query.time:
            unit = self._query.time_unit
            return pa.string() if unit == "iso" else pa.float64() if unit == "s" else pa.int64()
        return _ARROW_TYPES[self._query.column_type(name)]

    def _keys_of(
        self, rows: Int64s, table: pa.Table, keys: Sequence[bytes | None] | None, bad: Bad
    ) -> pa.BinaryArray:
        if self.needs_key:
            assert keys is not None
            array = pa.array([keys[row] for row in rows], pa.binary())
            what = "the record has no key"
        else:
            array = _one_chunk(table.column(self._query.key))
            if not pa.types.is_string(array.type):
                array = array.cast(pa.string())
            array = array.cast(pa.binary())
            what = f"key column {self._query.key!r} is missing or null"
        _explain_nulls(array, rows, what, bad)
        return array

    def _times_of(
        self, rows: Int64s, table: pa.Table, timestamps: Sequence[int] | None, bad: Bad
    ) -> pa.Int64Array:
        if self.needs_timestamp:
            assert timestamps is not None
            stamps = np.asarray(timestamps, dtype=np.int64)[rows]
            array = pa.array(stamps, mask=stamps < 0)
            what = "the record has no timestamp"
            _explain_nulls(array, rows, what, bad)
            return _in_range(array, rows, bad)
        raw = _one_chunk(table.column(self._query.time))
        _explain_nulls(raw, rows, f"time column {self._query.time!r} is missing or null", bad)
        convert: Callable[[pa.Array], pa.Int64Array] = {
            "iso": _iso_to_ms,
            "s": _seconds_to_ms,
            "ms": lambda array: array,
            "us": _micros_to_ms,
        }[self._query.time_unit]
        array = _convert_each(raw, convert, self.before_halving)
        lost = pc.and_(pc.is_valid(raw), pc.is_null(array))
        for position in np.flatnonzero(lost.to_numpy(zero_copy_only=False)):
            bad[int(rows[position])] = _short(
                ValueError(
                    f"time column {self._query.time!r} does not hold a time ({raw[position].as_py()!r})"
                )
            )
        return _in_range(array, rows, bad)

    def _finite(self, rows: Int64s, table: pa.Table, bad: Bad) -> Bools:
        readable = np.ones(len(rows), dtype=bool)
        for name, kind in zip(self._value_schema.names, self._value_schema.types, strict=True):
            if pa.types.is_floating(kind):
                fine = pc.fill_null(pc.is_finite(_one_chunk(table.column(name))), True)
                if not pc.all(fine).as_py():
                    wrong = ~fine.to_numpy(zero_copy_only=False)
                    for position in np.flatnonzero(wrong):
                        bad[int(rows[position])] = f"column {name!r} is not a finite number"
                    readable &= ~wrong
        return readable


def _read_json(chunk: Sequence[bytes | None], schema: pa.Schema) -> pa.Table:
    block = b"\n".join(chunk)  # type: ignore[arg-type]
    single = len(chunk) == 1
    breaks = len(chunk) - 1
    if single:
        # Arrow's reader crashes on a lone `null`; nothing but an object is ever handed to it.
        bare = block.strip(b" \t\r\n")
        if not (bare[:1] == b"{" and bare[-1:] == b"}"):
            raise ValueError("the record is no JSON object")
    elif not (
        block.count(b"\n") == breaks
        and block.count(b"}\n{") == breaks
        and block[:1] == b"{"
        and block[-1:] == b"}"
    ):
        raise ValueError("records that are not one object a line are parsed alone")
    table = pyarrow.json.read_json(
        io.BytesIO(block),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=max(len(block) + 1, 64)),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore", newlines_in_values=single
        ),
    )
    return _exactly(table.select(schema.names), len(chunk))


def _in_range(times: pa.Int64Array, rows: Int64s, bad: Bad) -> pa.Int64Array:
    """These times, null where they are further than MAX_TIME from 1970."""
    far = pc.fill_null(pc.or_(pc.greater(times, MAX_TIME), pc.less(times, -MAX_TIME)), False)
    if not pc.any(far).as_py():
        return times
    for position in np.flatnonzero(far.to_numpy(zero_copy_only=False)):
        bad[int(rows[position])] = f"event time {times[position].as_py()} ms is out of range"
    return pc.if_else(far, pa.scalar(None, pa.int64()), times)


def _exactly(table: pa.Table, rows: int) -> pa.Table:
    if table.num_rows != rows:
        raise ValueError(f"the record holds {table.num_rows} tuples, not one")
    return table


def _convert_each(
    array: pa.Array, convert: Callable[[pa.Array], pa.Int64Array], before_halving: Callable[[], None]
) -> pa.Int64Array:
    """Convert all at once; where that fails, halve until each bad entry alone becomes null."""
    try:
        return convert(array)
    except (pa.ArrowException, OverflowError):
        if len(array) <= 1:
            return pa.nulls(len(array), pa.int64())
        before_halving()
        middle = len(array) // 2
        parts = (array.slice(0, middle), array.slice(middle))
        return pa.concat_arrays([_convert_each(half, convert, before_halving) for half in parts])


def _seconds_to_ms(array: pa.DoubleArray) -> pa.Int64Array:
    return pc.round(pc.multiply(array, 1000.0), round_mode="half_to_even").cast(pa.int64())


def _micros_to_ms(array: pa.Int64Array) -> pa.Int64Array:
    micros = array.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(np.floor_divide(micros, 1000), mask=array.is_null().to_numpy(zero_copy_only=False))


def _iso_to_ms(array: pa.StringArray) -> pa.Int64Array:
    if not len(array):
        return pa.array([], pa.int64())  # of nothing, `pc.all` is null
    if not pc.all(pc.fill_null(pc.match_substring_regex(array, _ISO), True)).as_py():
        raise pa.ArrowInvalid("not ISO 8601")
    whole = pc.replace_substring_regex(array, r"(\.\d{3})\d+", r"\1")
    whole = pc.replace_substring_regex(whole, r"\s([Z+-])", r"\1")
    zoned = pc.fill_null(pc.match_substring_regex(whole, r"(Z|[+-]\d{2}:?\d{2})$"), True)
    dates = pc.fill_null(pc.match_substring_regex(whole, r"^\d{4}-\d{2}-\d{2}$"), False)
    zoned = pc.and_(zoned, pc.invert(dates))
    if pc.all(zoned).as_py():
        return whole.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    if not pc.any(pc.and_(zoned, pc.is_valid(array))).as_py():
        return whole.cast(pa.timestamp("ms")).cast(pa.int64())
    raise pa.ArrowInvalid("with and without zone: converted apart")


def _explain_nulls(array: pa.Array, rows: Int64s, why: str, bad: Bad) -> None:
    if array.null_count:
        for position in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)):
            bad.setdefault(int(rows[position]), why)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _short(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text[:300]
