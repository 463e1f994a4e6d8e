"""What is readable, and what is read, is what Arrow's own readers say of the record alone, and `verify`
agrees.

Two things are otherwise on purpose: the grammar of JSON decides about a number, not RapidJSON's guess from
its exponent (it refuses 1e400 in a column that nobody needs, and 0e999999); and one column may be the time
and a value.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.settings import Settings, load_settings
from partitioner_service.reading.parse import Parser
from tests.examples import examples
from tests.hostile import BYTES
from tests.unit.partitioner_service.reading.one_by_one import OneByOne
from workbench.verify.input.strict_reader import StrictReader, Unreadable, cell_types

_GUESSED = re.compile(rb"[eE]\+?0*[0-9]{3}")
Tuple_ = tuple[bytes, int, dict[str, Any]] | None


def make(key: str = "string", unit: str = "ms", value: str = "float64", **input_: Any) -> Settings:
    """Key k, time t, values f and v, w not needed."""
    return load_settings(
        query={
            "key": "k",
            "time": "t",
            "time_unit": unit,
            "window": "10s",
            "types": {"k": key, "v": value},
            "aggregates": {"s": "sum(v)", "m": "max(f)"},
        },
        input=input_,
    )


def csv(**parts: str) -> Settings:
    """The same of csv."""
    return make(**parts, format="csv", columns=["k", "t", "w", "v", "f"])


def read(query: Settings, records: list[bytes | None]) -> list[Tuple_]:
    """What the partitioner reads of a block."""
    parsed = Parser(query).parse(records)
    result: list[Tuple_] = [None] * len(records)
    rows = zip(parsed.rows, parsed.keys.to_pylist(), parsed.times, parsed.values.to_pylist(), strict=True)
    for row, key, time, values in rows:
        result[row] = (key, int(time), values)
    assert sorted([*parsed.rows, *parsed.bad]) == list(range(len(records)))
    assert all(why and len(why) < 400 for why in parsed.bad.values())
    return result


def strictly(query: Settings, record: bytes | None) -> Tuple_:
    """What `verify` reads."""
    try:
        result = StrictReader(query).read(None, record, 0)
    except Unreadable:
        return None
    cells = dict(zip(cell_types(query.query), result.cells, strict=True))
    values = {name: cells[name] for name in query.query.value_columns}
    return str(cells[query.query.key]).encode(), result.time, values


def assert_read_alike(query: Settings, records: list[bytes | None]) -> None:
    """By the partitioner, by Arrow and by verify; repr tells -0.0 from 0."""
    alone = OneByOne(query)
    for record, result in zip(records, read(query, records), strict=True):
        assert repr(result) == repr(strictly(query, record)), record
        if record is None or not _GUESSED.search(record):
            assert repr(result) == repr(alone.read(record)), record


NUMBERS = [
    "0", "-0", "-0.0", "7", "-17", "1.5", "-0.125", "1e3", "1E+5", "2e-3", "1e400", "-1e400", "1e-400",
    "5e-324", "0e999999",
    "1.7976931348623157e308", "123456789012345", "1234567890123456", "0.1234567890123456",
    "999999999999999999",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551616",
    "8640000000000001", "1" + "0" * 400, "0." + "0" * 400 + "1", "NaN", "-NaN", "Inf", "-Infinity",
    "Infinity",
]  # fmt: skip
NO_NUMBERS = [
    "01",
    "-",
    "1.",
    ".5",
    "+1",
    "1e",
    "1e+",
    "--1",
    "0x10",
    "1_0",
    "Infin",
    "nan",
    "N",
    "-I",
    "1.5e3.2",
    "٣",
]
TIMES = [
    "1970-01-01", "1970-01-01 ", "2013-01-01Z", "2013-01-01T10:00", "2013-01-01 10:00:01.5Z", "2013-01-01T10",
    "0000-02-29",
    "2013-01-01T10:00 Z", "2013-01-01T10:00  Z", "2013-01-01T10:00\tZ", "2013-01-01T10:00\n+0130",
    "2013-01-01T10:00 ",
    "2013-01-01T10:00:00.", "2013-01-01T10:00:00.1234567891", "2013-01-01T10:00:00.123456789-23:59",
    "2013-01-01T10:00:60",
    "2013-01-01T24:00", "2013-02-29", "2012-02-29", "2100-02-29", "2000-02-29", "9999-12-31T23:59:59.999Z",
    "0001-01-01",
    "2013-01-01T10:00+24:00", "2013-01-01T10:00+00:60", "2013-01-01T10:00+01", "2013-1-1", "2013-00-01",
    "2013-13-01",
    "2013-01-32", "2013-01-01t10:00", "2013-01-01T10:00z", "2013-01-01T10:00.5", "2013-01-01T10:00-01000", "",
    "soon",
]  # fmt: skip
STRINGS = [
    "", "a", "key", "NA", "null", "Zürich", "\x00", "\x7f", "日本", "😀", '"', "\\", "/", "\n", "12,50",
    *TIMES,
]  # fmt: skip
ODD_STRINGS = [
    b'"\\u0041\\u00e9\\u20ac"', b'"\\uD83D\\uDE00"', b'"\\ud83d"', b'"\\ude00"', b'"\\ud83dx"',
    b'"\\ud83d\\u0041"',
    b'"\\u00"', b'"\\u12G4"', b'"\\x"', b'"\\/\\b\\f\\n\\r\\t\\"\\\\"', b'"\xff"', b'"\xed\xa0\x80"',
    b'"\xc0\xaf"',
    b'"\xf4\x90\x80\x80"', b'"\xe2\x82"', b'"\xf0\x9f\x98\x80"', b'"a\tb"', b'"a\x00b"', b'"a\nb"', b'"open',
    b'"\\"',
    b'"\\u0031970-01-01"', b'"\xff\\ud83d"',
]  # fmt: skip
OTHERS = [
    b"null", b"true", b"false", b"nul", b"nulll", b"True", b"[]", b"{}", b"[1,[2,{}]]", b'{"k":"x","t":5}',
    b"[1,]", b"[,]",
    b'{"a"}', b"{1:2}", b'{"a":1,}', b"[1}", b'{"a":[}', b"[1 2]", b'["\\ud83d"]', b'{"\\ud83d":1}',
    b'[ 1 , { "a" : NaN } ]', b"/**/1", b"'x'", b"", b" ", b"[[[[[[[[[[" + b"]" * 10, b"[" * 10 + b"]" * 9,
]  # fmt: skip
JSON_VALUE = st.one_of(
    st.sampled_from([n.encode() for n in NUMBERS + NO_NUMBERS]),
    st.sampled_from([json.dumps(s).encode() for s in STRINGS] + ODD_STRINGS + OTHERS),
    st.integers(-(2**70), 2**70).map(lambda n: str(n).encode()),
    st.floats().map(lambda n: json.dumps(n).encode()),
    st.text(max_size=6).map(lambda t: json.dumps(t, ensure_ascii=len(t) % 2 == 0).encode("utf-8",
    "surrogatepass")),
)  # fmt: skip
NAMES = st.sampled_from(
    [b"k", b"t", b"v", b"f", b"w", b"", b"\\u006b", b"\\u0074", b"\xff", b"kk", b"\\ud800"]
)
SPACE = st.sampled_from([b"", b"", b"", b" ", b"\n", b"\t\r\n ", b"\x0b", b"\x00"])
RARE = st.sampled_from([b""] * 12 + [b",", b"}", b"{", b"x", b"\x00", b" {}", b"null", b"\n{}"])
UNITS = st.sampled_from(["ms", "s", "us", "iso"])
TYPES = st.sampled_from(["int64", "float64"])


@st.composite
def json_records(draw: Any) -> bytes:
    """An object of mostly right fields, sometimes one more or one cut, with odd white space and odd ends."""
    good = {b"k": b'"a"', b"t": b"1000", b"v": b"2", b"f": b"2.5"}
    fields = list(good.items())
    for _ in range(draw(st.integers(0, 2))):
        field = (draw(NAMES), draw(JSON_VALUE))
        place = draw(st.integers(0, 4))
        fields[place : place + draw(st.integers(0, 1))] = [field]
    space = draw(SPACE)
    text = (b"," + space).join(b'"' + name + b'"' + space + b":" + value for name, value in fields)
    record: bytes = draw(RARE) + space + b"{" + text + space + b"}" + space + draw(RARE)
    cut = draw(st.integers(0, len(record) * 4))
    return record[:cut] if cut < len(record) else record


@given(st.lists(json_records(), min_size=1, max_size=8), UNITS, TYPES, st.sampled_from(["int64", "string"]))
@examples(100)
def test_json_records_are_read_as_arrow_reads_each_alone(
    records: list[bytes], unit: str, kind: str, key: str
) -> None:
    assert_read_alike(make(key, unit, kind), list(records))


@pytest.mark.family
@pytest.mark.parametrize("unit", ["ms", "s", "us", "iso"])
@pytest.mark.parametrize("kind", ["int64", "float64"])
@pytest.mark.parametrize("column", ["k", "t", "v", "f", "w"])
def test_any_value_in_any_column_is_read_as_arrow_reads_it(unit: str, kind: str, column: str) -> None:
    values = [v.encode() for v in NUMBERS + NO_NUMBERS] + [json.dumps(s).encode() for s in STRINGS]
    good = {"k": b'"a"', "t": b'"1970-01-02"' if unit == "iso" else b"1000", "v": b"2"}
    rows = [good | {column: value} for value in values + ODD_STRINGS + OTHERS]
    records = [b"{" + b",".join(b'"%s":%s' % (n.encode(), v) for n, v in row.items()) + b"}" for row in rows]
    assert_read_alike(make("string", unit, kind), list(records))
    assert_read_alike(make("int64", unit, kind), list(records))


@pytest.mark.family
@pytest.mark.parametrize("query", [make(), make("int64", "iso", "int64"), csv(), csv(unit="iso")])
def test_hostile_bytes_are_judged_as_arrow_judges_them(query: Settings) -> None:
    assert_read_alike(query, [*BYTES, None])


CSV_CELLS = [
    *NUMBERS, *NO_NUMBERS, *TIMES, *STRINGS, " 7", "7\t", " NA", " ", "0xF ", "0x" + "F" * 16,
    "0x" + "F" * 17, "0x", "-0x1",
    "007", "-007", "0" * 120 + "7", "+.5", "+-5", "1E5", "inf", "-nan", "1d5", "NULL", "Null", "\ufeff",
    "12.5 ", "1 2",
]  # fmt: skip


def quoted(text: str) -> str:
    """As csv is quoted."""
    return '"' + text.replace('"', '""') + '"'


CSV_FIELD = st.one_of(
    st.sampled_from(CSV_CELLS),
    st.sampled_from(CSV_CELLS).map(quoted),
    st.sampled_from(['"1"2', '"a"b', 'a"b', '"a"b"c', '"a""', '"', '""', '"""', '"a" ', ' "a"', '"a\nb"',
    '"a\r\nb"']),
    st.text(alphabet='ab",\n\r 1é', max_size=5),
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(repr),
)  # fmt: skip


@st.composite
def csv_records(draw: Any) -> bytes:
    """A line of mostly right fields, with odd ends."""
    fields = ["a", "1000", "w", "2", "2.5"]
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, 5))
        fields[place : place + draw(st.sampled_from([0, 1, 1, 1]))] = [draw(CSV_FIELD)]
    before = draw(st.sampled_from([""] * 8 + ["\n", "\r", "\ufeff", '"']))
    after = draw(
        st.sampled_from([""] * 4 + ["\n", "\r\n", "\r", "\n\n", "\n\r", '"', " ", "\na,1,w,2,3", ","])
    )
    record = (before + ",".join(fields) + after).encode("utf-8", "surrogatepass")
    return record.replace(b"w", draw(st.sampled_from([b"w", b"w", b"\xff"])))


@given(st.lists(csv_records(), min_size=1, max_size=8), UNITS, TYPES, st.sampled_from(["int64", "string"]))
@examples(100)
def test_csv_records_are_read_as_arrow_reads_each_alone(
    records: list[bytes], unit: str, kind: str, key: str
) -> None:
    assert_read_alike(csv(key=key, unit=unit, value=kind), list(records))


@pytest.mark.family
@pytest.mark.parametrize("unit", ["ms", "s", "us", "iso"])
@pytest.mark.parametrize("kind", ["int64", "float64"])
@pytest.mark.parametrize("place", range(5))
def test_any_csv_field_is_read_as_arrow_reads_it(unit: str, kind: str, place: int) -> None:
    records = []
    for cell in [*CSV_CELLS, *map(quoted, CSV_CELLS)]:
        fields = ["a", "1970-01-02" if unit == "iso" else "1000", "w", "2", "2.5"]
        fields[place] = cell
        records.append(",".join(fields).encode("utf-8", "surrogatepass"))
    assert_read_alike(csv(unit=unit, value=kind), list(records))
    assert_read_alike(csv(key="int64", unit=unit, value=kind), list(records))


@given(st.lists(st.binary(max_size=12), max_size=6))
@settings(deadline=None)
def test_text_is_readable_when_it_is_utf8(records: list[bytes]) -> None:
    query = load_settings(query={"key": "value", "time": "@timestamp"}, input={"format": "text"})
    parsed = Parser(query).parse(records, timestamps=[5] * len(records))
    fine = [record for record in records if record.decode("utf-8", "replace").encode() == record]
    assert parsed.keys.to_pylist() == fine
    assert len(parsed.bad) == len(records) - len(fine)
