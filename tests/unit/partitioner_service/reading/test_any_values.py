"""Values of any kind, which count_distinct counts: by json.loads, by both readers of each format, and in
SQL.
"""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.settings import Settings
from partitioner_service.reading.parse import Parser
from tests.examples import examples
from tests.unit.partitioner_service.reading.registered_records import (
    Both,
    Kept,
    avro,
    descriptor,
    make,
    message_of,
    prefix,
    record_of,
    text_of,
)
from workbench.verify import INPUT_SCHEMA, REJECTED_SCHEMA
from workbench.verify.input.records import load
from workbench.verify.input.strict_reader import StrictReader, Unreadable, cell_types

COUNTED = {"d": "count_distinct(v)"}


def settings_of(input: dict[str, Any] | None = None, **query: Any) -> Settings:
    return Settings(
        query={"window": "1h", "aggregates": COUNTED, **query}, input={"partitions": 1, **(input or {})}
    )


JSON = settings_of()
CSV = settings_of({"format": "csv", "columns": ["key", "time", "v"]})
TEXT = settings_of(
    {"format": "text"}, key="@key", time="@timestamp", aggregates={"d": "count_distinct(value)"}
)


def parsed(settings: Settings, records: list[bytes]) -> list[str | None]:
    """The text of each value, and the reason where a record is rejected, behind an exclamation mark."""
    result = Parser(settings).parse(records, keys=[b"k"] * len(records), timestamps=[1] * len(records))
    values = iter(result.values.column(0).to_pylist())
    return [f"!{result.bad[row]}" if row in result.bad else next(values) for row in range(len(records))]


def strictly(settings: Settings, record: bytes) -> str | None:
    """As `parsed`, by the strict reader of verify, which gives no reason."""
    try:
        read = StrictReader(settings).read(b"k", record, 1)
    except Unreadable:
        return "!"
    (name,) = settings.query.value_columns
    result: str | None = read.cells[list(cell_types(settings.query)).index(name)]
    return result


def in_sql(settings: Settings, records: list[bytes]) -> tuple[list[str | None], int]:
    """As `strictly`, by all of verify, and how many records SQL read alone."""
    db = duckdb.connect()
    db.register("committed", pa.table({"partition": pa.array([0], pa.int32()), "offset": [len(records)]}))
    db.register("rejected", REJECTED_SCHEMA.empty_table())
    rows = [
        {"partition": 0, "offset": i, "timestamp": 1, "key": b"k", "value": v} for i, v in enumerate(records)
    ]
    load(db, settings, pa.Table.from_pylist(rows, schema=INPUT_SCHEMA))
    result: list[str | None] = ["!"] * len(records)
    for offset, value in db.execute('SELECT "offset", v0 FROM tuples').fetchall():
        result[offset] = value
    fast = db.execute("SELECT count(*) FROM records WHERE readable").fetchall()[0][0]
    return result, fast


def record(value: str) -> bytes:
    return f'{{"key":"k","time":1,"v":{value}}}'.encode()


def counted(value: str) -> tuple[str, Any] | None:
    """What a JSON value is counted by: its kind and itself. None for null."""
    result = json.loads(value, parse_int=Decimal, parse_float=Decimal)
    return None if result is None else (type(result).__name__, result)


NUMBERS = st.builds(
    lambda sign, whole, behind, exponent: f"{sign}{whole}{behind}{exponent}",
    st.sampled_from(["", "-"]),
    st.sampled_from(["0", "1", "10", "100", "12", "9007199254740993", "12345678901234567890123"])
    | st.integers(0, 10**25).map(str),
    st.sampled_from(["", ".0", ".5", ".50", ".05", ".000"]) | st.from_regex(r"\.[0-9]{1,25}", fullmatch=True),
    st.sampled_from(["", "", "e0", "E1", "e-1", "e+2", "e-02", "e300", "e-400", "e999999999"]),
)
VALUES = (
    NUMBERS
    | st.sampled_from(["null", "true", "false", '"true"', '"1"', '""', '"null"', '"1e0"'])
    | st.text(max_size=4).map(json.dumps)
    | st.text(max_size=4).map(lambda text: json.dumps(text, ensure_ascii=False))
    | NUMBERS.map(json.dumps)
)


@given(values=st.lists(VALUES, min_size=1, max_size=12))
@example(values=["1", "1.0", "1e0", "10e-1", '"1"', "true", '"true"', "0", "-0.0", "0e7", "100", "1e2"])
@example(values=["9007199254740993", "9007199254740992", "0.1", "0.10", "0.1000000000000000000001"])
@examples(300)
def test_two_values_of_json_are_one_where_their_kinds_and_values_are_by_pythons_own_reader(
    values: list[str],
) -> None:
    result = parsed(JSON, [record(value) for value in values])
    known = [counted(value) for value in values]
    assert [text is None for text in result] == [one is None for one in known]
    for text, one in zip(result, known, strict=True):
        for other, another in zip(result, known, strict=True):
            assert (text == other) is (one == another), (text, other)


@given(values=st.lists(VALUES, min_size=1, max_size=12))
@example(
    values=[
        "1e9999999999",
        "1e-9999999999",
        "0e9999999999",
        "1e0000000000009",
        "NaN",
        "-Infinity",
        "{}",
        "[1]",
    ]
)
@examples(150)
def test_verify_reads_each_value_of_json_as_the_partitioner_does(values: list[str]) -> None:
    records = [record(value) for value in values]
    result = [text if text is None or text[0] != "!" else "!" for text in parsed(JSON, records)]
    assert [strictly(JSON, one) for one in records] == result
    assert in_sql(JSON, records)[0] == result


def test_plain_values_are_read_by_sql_alone() -> None:
    values = ["1", "0", "-0", "-120", "1000", '"a"', '"é"', "true", "false", "null"]
    result, fast = in_sql(JSON, [record(value) for value in values])
    assert result == ["1", "0", "0", "-12e1", "1e3", '"a', '"é', "true", "false", None]
    assert fast == len(values)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("{}", "column 'v' holds an object or a list where text, a number, true or false is needed"),
        ("[1]", "column 'v' holds an object or a list where text, a number, true or false is needed"),
        ("1e9999999999", "column 'v' holds a number whose exponent has more than 9 digits (1e9999999999)"),
        ("-Infinity", "column 'v' is not a finite number (-Infinity)"),
        ('"\udcff"', "column 'v' is not valid UTF-8"),
    ],
)
def test_what_no_value_is_counted_for_is_rejected_in_words(value: str, why: str) -> None:
    assert parsed(
        JSON, [record("1"), b'{"key":"k","time":1,"v":' + value.encode("utf-8", "surrogateescape") + b"}"]
    ) == [
        "1",
        f"!{why}",
    ]


CELLS = st.sampled_from(
    ["", "NA", "null", "NULL", "1", "1.0", "true", "a b", " 1", '"x,y"', '"a""b"', '""', "é"]
)


@given(values=st.lists(CELLS, min_size=1, max_size=12))
@examples(60)
def test_a_field_of_csv_counts_as_the_text_it_is_and_an_empty_one_as_null(values: list[str]) -> None:
    records = [f"k,1,{value}".encode() for value in values]
    bare = [value[1:-1].replace('""', '"') if value[:1] == '"' else value for value in values]
    expected = [None if text in ("", "NA", "null", "NULL") else f'"{text}' for text in bare]
    assert parsed(CSV, records) == expected
    assert [strictly(CSV, one) for one in records] == expected
    assert in_sql(CSV, records)[0] == expected


def test_a_record_of_text_counts_as_the_text_it_is() -> None:
    records = [b"a", b"", b"null", b"1", b"\xff"]
    expected = ['"a', '"', '"null', '"1', "!"]
    assert [text if text is None or text[0] != "!" else "!" for text in parsed(TEXT, records)] == expected
    assert [strictly(TEXT, one) for one in records] == expected
    assert in_sql(TEXT, records)[0] == expected


def test_the_elements_of_a_list_and_the_words_of_a_text_are_counted_by_kind_and_value() -> None:
    lists = settings_of(explode="items", aggregates={"d": "count_distinct(items)"})
    value = b'{"key":"k","time":1,"items":["1",1, 1.0 ,true,null,"a\\n"]}'
    expected = ['"1', "1", "1", "true", None, '"a\n']
    assert Parser(lists).parse([value]).values.column(0).to_pylist() == expected
    assert in_sql_of_elements(lists, value) == expected
    words = settings_of(
        {"format": "text"},
        key="@key",
        time="@timestamp",
        explode="words(value)",
        aggregates={"d": "count_distinct(value)"},
    )
    result = Parser(words).parse([b" one 2  two "], keys=[b"k"], timestamps=[1])
    assert result.values.column(0).to_pylist() == ['"one', '"2', '"two']


def in_sql_of_elements(settings: Settings, value: bytes) -> list[str | None]:
    read = StrictReader(settings).read(None, value, 1)
    result: list[str | None] = read.cells[list(cell_types(settings.query)).index("items")]
    return result


def test_values_of_avro_are_counted_by_what_their_types_say() -> None:
    union = ["null", "boolean", "int", "long", "double", "float", "string", "bytes"]
    kinds: list[Any] = [
        {"type": "enum", "name": "E", "symbols": ["a", "b"]},
        {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"},
        {"type": "array", "items": "int"},
    ]
    dated = record_of(("k", "string"), ("t", "long"), ("v", {"type": "int", "logicalType": "date"}))
    priced = record_of(
        ("k", "string"),
        ("t", "long"),
        ("v", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    )
    plain_day = record_of(("k", "string"), ("t", "long"), ("v", "int"))
    plain_price = record_of(("k", "string"), ("t", "long"), ("v", "bytes"))
    schema = record_of(("k", "string"), ("t", "long"), ("v", [*union, *kinds]))
    kept = Kept("avro", *map(json.dumps, (schema, dated, priced)))
    row = {"k": "a", "t": 1}
    values: list[tuple[Any, str | None]] = [
        (None, None),
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (2**62, "4611686018427387904"),
        (1.0, "1"),
        (0.1, "1e-1"),
        (-2.5e-7, "-25e-8"),
        (1e300, "1e300"),
        ("1", '"1'),
        ("é", '"é'),
        (("E", "b"), '"b'),
        (("U", bytes(range(16))), '"00010203-0405-0607-0809-0a0b0c0d0e0f'),
        (float("inf"), "!"),
        (b"\x01", "!"),
        ([1], "!"),
    ]
    bare = record_of(
        ("k", "string"),
        ("t", "long"),
        ("v", [*union, kinds[0], {"type": "fixed", "name": "U", "size": 16}, kinds[2]]),
    )
    records: list[bytes | None] = [avro(bare, row | {"v": value}) for value, _ in values]
    records += [avro(plain_day, row | {"v": 20_000}, 2), avro(plain_day, row | {"v": 2**31 - 1}, 2)]
    records += [avro(plain_price, row | {"v": (-1230).to_bytes(2, "big", signed=True)}, 3)]
    result = Both(make("avro", aggregates=COUNTED), kept).agree(records)
    expected = [text for _, text in values] + ['"2024-10-04', "!", "-123e-1"]
    assert [("!" if one is None else one["v"]) for one in result] == expected


def test_values_of_protobuf_are_counted_by_what_their_types_say() -> None:
    for kind, value, text in (
        ("string", "a", '"a'),
        ("bool", True, "true"),
        ("uint64", 2**64 - 1, "18446744073709551615"),
        ("sint32", -10, "-1e1"),
        ("double", 0.5, "5e-1"),
        ("float", 0.5, "5e-1"),
        ("bytes", b"a", "!"),
        ("double", struct.unpack("<d", b"\0\0\0\0\0\0\xf8\x7f")[0], "!"),
    ):
        file = descriptor(("k", "string"), ("t", "int64"), ("v", kind))
        both = Both(make("protobuf", aggregates=COUNTED), Kept("protobuf", text_of(file)))
        sent = prefix(1) + b"\0" + message_of(file)(k="a", t=1, v=value).SerializeToString()
        (result,) = both.agree([sent])
        assert ("!" if result is None else result["v"]) == text, kind


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ({}, {"v": "any"}),
        ({"aggregates": {"d": "count_distinct(v)", "e": "count_distinct(v, exact)"}}, {"v": "any"}),
        ({"types": {"v": "string"}}, {"v": "string"}),
        ({"aggregates": {"d": "count_distinct(v)", "s": "sum(v)"}}, {"v": "float64"}),
        ({"aggregates": {"d": "count_distinct(v)", "s": "first(v)"}}, {"v": "float64"}),
        ({"where": "v > 1"}, {"v": "float64"}),
        ({"where": "w > 1"}, {"v": "any"}),
        ({"where": "v IS NOT NULL"}, {"v": "any"}),
        ({"where": "v IS NOT NULL AND v > 1"}, {"v": "float64"}),
        ({"aggregates": {"d": "count_distinct(v)", "n": "count(v)"}}, {"v": "any"}),
        ({"aggregates": {"n": "count(v)"}}, {"v": "float64"}),
        ({"key": "v"}, {"v": "string"}),
        ({"columns": {"v": "upper(key)"}}, {"v": "string"}),
        ({"aggregates": {"d": "count_distinct(time)"}}, {"time": "float64"}),
        ({"views": {"x": {"aggregates": {"s": "sum(v)"}}}}, {"v": "float64"}),
        ({"views": {"x": {"aggregates": {"s": "count_distinct(u)"}}}}, {"v": "any", "u": "any"}),
        ({"aggregates": {"s": "sum(v)"}}, {"v": "float64"}),
    ],
)  # fmt: skip
def test_only_an_undeclared_column_that_nothing_but_count_distinct_reads_has_any_value(
    query: dict[str, Any], columns: dict[str, str]
) -> None:
    assert settings_of(**query).query.value_columns == columns


def test_which_columns_have_any_value_is_no_part_of_what_a_query_is() -> None:
    settings = settings_of(views={"x": {"aggregates": {"s": "count_distinct(u)"}}})
    assert settings.with_any_columns(()).query.value_columns == {"u": "float64", "v": "float64"}
    assert settings.with_any_columns(()).fingerprint == settings.fingerprint
    assert settings.with_any_columns(()).identity() == settings.identity()


def test_a_cost_reads_the_numbers_among_values_of_any_kind() -> None:
    settings = Settings(
        query={"window": "1h", "aggregates": COUNTED},
        input={"partitions": 1},
        partitioner={"cost": "v"},
    )
    result = Parser(settings).parse(
        [record(value) for value in ("1.5", '"2"', "true", "null", "-100", "1e3")]
    )
    assert result.costs is not None
    assert [None if cost != cost else cost for cost in result.costs.tolist()] == [
        1.5,
        None,
        None,
        None,
        -100,
        1e3,
    ]
    computed = Settings(
        query={"window": "1h", "aggregates": COUNTED}, input={"partitions": 1}, partitioner={"cost": "v * 2"}
    )
    costs = Parser(computed).parse([record("1.5"), record('"x"')]).costs
    assert costs is not None
    assert costs[0] == 3.0
    assert costs[1] != costs[1]


def test_the_text_of_a_value_counts_for_max_value_bytes() -> None:
    settings = settings_of(max_value_bytes=16)
    fits, beyond = '"' + "a" * 15 + '"', '"' + "a" * 16 + '"'
    result = parsed(settings, [record(fits), record(beyond)])
    assert result[0] == f'"{"a" * 15}'
    assert result[1] == "!the texts of a tuple have 17 bytes; 16 is the most (query.max_value_bytes)"
