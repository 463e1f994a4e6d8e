"""Records to columns: exactness, and that a bad record never takes its neighbours with it."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.settings import Settings, load_settings
from partitioner_service.reading.cells.times import MAX_TIME
from partitioner_service.reading.parse import Parser
from workbench.unreadable import Unreadable
from workbench.verify.input.strict_reader import StrictReader


def make(**parts) -> Settings:
    query = {"key": "k", "time": "t", "window": "10s", "aggregates": {"n": "count", "s": "sum(v)"}}
    query |= parts.pop("query", {})
    return load_settings(query=query, **parts)


CSV = {"input": {"format": "csv", "columns": ["k", "t", "v"]}}


def rows_of(parsed):
    return list(
        zip(
            parsed.rows.tolist(),
            parsed.keys.to_pylist(),
            parsed.times.tolist(),
            parsed.values.to_pylist(),
            strict=True,
        )
    )


GOOD = st.fixed_dictionaries(
    {"k": st.text(max_size=8), "t": st.integers(-(10**14), 10**14)},
    optional={
        "v": st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-99, 99))
    },
).map(lambda row: json.dumps(row, ensure_ascii=len(row.get("k", "")) % 2 == 0).encode())
BAD = st.sampled_from(
    [
        b"",
        b" ",
        b"{",
        b"}",
        b"{}",
        b"[]",
        b"null",
        b"not json",
        b'{"k":"a"}',
        b'{"t":1}',
        b'{"k":null,"t":1}',
        b'{"k":"a","t":null}',
        b'{"k":1,"t":1}',
        b'{"k":"a","t":"1"}',
        b'{"k":"a","t":1.5}',
        b'{"k":"a","t":1,"v":"x"}',
        b'{"k":"a","t":1,"v":NaN}',
        b'{"k":"a","t":1,"v":Infinity}',
        b'{"k":"a","t":1}{"k":"b","t":2}',
        b'{"k":"a","t":1}\n{"k":"b","t":2}',
        b'{"k":"a","t":1} trailing',
        b'{"k":"a","k":"b","t":1}',
        b'{"k":"\xff","t":1}',
        b'{"k":"a","t":99999999999999999999}',
        b'{"k":"a","t":8640000000000001}',
    ]
)
RECORDS = st.lists(
    st.one_of(GOOD, BAD.map(lambda value: ("bad", value)), st.just(("bad", None))), max_size=25
)


@settings(deadline=None)
@given(RECORDS)
def test_a_records_fate_and_content_do_not_depend_on_its_neighbours(records):
    values = [record[1] if isinstance(record, tuple) else record for record in records]
    parser = Parser(make())
    parsed = parser.parse(values)
    assert sorted([*parsed.rows.tolist(), *parsed.bad]) == list(range(len(values)))
    assert set(parsed.bad) == {i for i, record in enumerate(records) if isinstance(record, tuple)}
    for row, key, time, value in rows_of(parsed):
        alone = json.loads(values[row])
        assert key == alone["k"].encode()
        assert time == alone["t"]
        assert value["v"] == alone.get("v")


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (None, "the record has no value"),
        (b"", "the record is no JSON object"),
        (b"[1]", "the record is no JSON object"),
        (b'{"k":"a"}', "time column 't' is missing or null"),
        (b'{"k":null,"t":1}', "key column 'k' is missing or null"),
        (b'{"k":1.5,"t":1}', "column 'k' holds a number where text is needed (1.5)"),
        (b'{"k":true,"t":1}', "column 'k' holds true or false where text is needed"),
        (b'{"k":"a","t":[]}', "column 't' holds an object or a list where a whole number is needed"),
        (b'{"k":"a","t":1.5}',
        "column 't' holds a number that is not whole where a whole number is needed (1.5)"),
        (b'{"k":"a","t":-9223372036854775809}',
         "column 't' holds a whole number that 64 bits do not hold (-9223372036854775809)"),
        (b'{"k":"a","t":8640000000000001}',
        "time column 't' holds a time that is out of range (8640000000000001)"),
        (b'{"k":"a","t":1,"v":"12,50"}', "column 'v' holds text where a number is needed (\"12,50\")"),
        (b'{"k":"a","t":1,"v":NaN}', "column 'v' is not a finite number (NaN)"),
        (b'{"k":"a","t":1,"v":1e400}', "column 'v' is not a finite number (1e400)"),
        (b'{"k":"a","t":1,"v":1,"v":1}', "column 'v' is there twice"),
        (b'{"k":"\xff","t":1}', "column 'k' is not valid UTF-8"),
        (b'{"k":"a","t":1', "the record is not valid JSON: it ends at byte 14, before the object does"),
        (b'{"k":"a" "t":1}', "the record is not valid JSON at byte 9"),
        (b'{"k":"\\ud800","t":1}', "the record is not valid JSON: half of a surrogate pair at byte 6"),
        (b'{"k":"a","t":1}{}', "the record holds more than one JSON object: something follows at byte 15"),
    ],
)  # fmt: skip
def test_every_unreadable_json_record_gets_a_reason_that_names_the_trouble(record, why):
    assert Parser(make()).parse([b'{"k":"a","t":1}', record]).bad == {1: why}


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (b"\r\n", "the record is empty"),
        (b"a,1", "the record holds 2 fields instead of 3"),
        (b"a,1,2\nb,1,2", "the record holds more than one line: another begins at byte 6"),
        (b"\xef\xbb\xbfa,1,2", "the record begins with a byte order mark"),
        (b"a,,2", "time column 't' is missing or null"),
        (b"a,1.5,2", "column 't' holds a number that is not whole where a whole number is needed (1.5)"),
        (b'a,1," 12,50 "', "column 'v' holds text where a number is needed (\"12,50\")"),
        (b"a,1,nan", "column 'v' holds text where a number is needed (\"nan\")"),
    ],
)  # fmt: skip
def test_every_unreadable_csv_record_gets_a_reason_that_names_the_trouble(record, why):
    assert Parser(make(**CSV)).parse([b"a,1,2", record]).bad == {1: why}


def test_a_reason_shows_little_of_a_record_and_only_text():
    record = b'{"k":"a","t":1,"v":"%s"}' % (b"\x7f\xff" + "ü".encode() * 500)
    (why,) = Parser(make()).parse([record]).bad.values()
    assert why == "column 'v' holds text where a number is needed (\"?" + "?" + "ü" * 19 + '...")'


def test_reasons_are_counted_without_what_they_show_of_the_records():
    parsed = Parser(make()).parse([b'{"k":%d,"t":1}' % n for n in range(5)] + [b"{", b'{"a"'])
    assert parsed.bad.counted() == {
        "column 'k' holds a number where text is needed (...)": 5,
        "the record is not valid JSON: it ends at byte ..., before the object does": 2,
    }


def test_a_column_may_be_the_time_and_a_value():
    parsed = Parser(make(query={"aggregates": {"last": "max(t)"}})).parse([b'{"k":"a","t":1}'])
    assert parsed.values.to_pylist() == [{"t": 1.0}]
    with pytest.raises(ConfigError, match=r"column 't' is needed as the event time \(string\) and a number"):
        make(query={"aggregates": {"last": "max(t)"}, "time_unit": "iso"})


def test_json_may_be_written_over_several_lines():
    parsed = Parser(make()).parse([b'{"k":"a",\n "t":1}', b'{"k":"b","t":2}'])
    assert parsed.keys.to_pylist() == [b"a", b"b"]


def test_integer_keys_are_their_decimal_text_when_declared():
    parsed = Parser(make(query={"types": {"k": "int64"}})).parse([b'{"k":17850,"t":1}', b'{"k":-3,"t":1}'])
    assert parsed.keys.to_pylist() == [b"17850", b"-3"]


def test_integer_values_stay_integers_when_declared():
    parser = Parser(make(query={"types": {"v": "int64"}}))
    parsed = parser.parse([b'{"k":"a","t":1,"v":9007199254740993}', b'{"k":"a","t":1,"v":1.5}'])
    assert parsed.values.column("v").to_pylist() == [9007199254740993]
    assert set(parsed.bad) == {1}


@pytest.mark.parametrize("written", ["json", "csv"])
@pytest.mark.parametrize(
    ("kind", "fits", "does_not_fit"),
    [
        ("int64", [2**63 - 1, -(2**63)], ["9223372036854775808", "-9223372036854775809", "1" + "0" * 400]),
        ("float64", [1.7976931348623157e308, -5e-324], ["1e309", "-1e309", "1" + "0" * 400]),
    ],
)
def test_a_value_that_does_not_fit_its_declared_type_is_unreadable_and_its_neighbours_are_not(
    written, kind, fits, does_not_fit
):
    row = {"json": '{"k":"a","t":1,"v":%s}', "csv": "a,1,%s"}[written]
    source = CSV if written == "csv" else {}
    values = [str(fits[0]), *does_not_fit, str(fits[1])]
    parsed = Parser(make(query={"types": {"v": kind}}, **source)).parse([(row % v).encode() for v in values])
    assert parsed.values.column("v").to_pylist() == fits
    assert set(parsed.bad) == set(range(1, 4))
    assert all(parsed.bad.values())


def test_the_raw_record_key_may_be_any_bytes_and_empty_but_not_missing():
    parser = Parser(make(query={"key": "@key"}))
    parsed = parser.parse([b'{"t":1}'] * 3, keys=[b"\xff\x00", b"", None])
    assert parsed.keys.to_pylist() == [b"\xff\x00", b""]
    assert "no key" in parsed.bad[2]


def test_a_query_that_needs_nothing_of_the_value_reads_none_of_it():
    settings_ = load_settings(query={"key": "@key", "time": "@timestamp", "window": "1s"})
    parsed = Parser(settings_).parse([None, b"\xff"], keys=[b"a", b"b"], timestamps=[5, -1])
    assert parsed.times.tolist() == [5]
    assert "no timestamp" in parsed.bad[1]


@pytest.mark.parametrize(
    ("unit", "written", "ms"),
    [
        ("ms", "1500", 1500),
        ("s", "1.5", 1500),
        ("s", "1.001", 1001),
        ("s", "-1", -1000),
        ("us", "1500999", 1500),
        ("us", "-1", -1),
        ("iso", '"1970-01-01T00:00:01Z"', 1000),
        ("iso", '"1970-01-01 00:00:01"', 1000),
        ("iso", '"1970-01-01T01:00:01+01:00"', 1000),
        ("iso", '"1970-01-01T00:00:00.0019999Z"', 1),
        ("iso", '"1970-01-02"', 86_400_000),
        ("iso", '"2013-01-01T10:00:00Z"', 1357034400000),
    ],
)
def test_times_are_read_in_their_unit(unit, written, ms):
    parsed = Parser(make(query={"time_unit": unit})).parse([b'{"k":"a","t":%s}' % written.encode()])
    assert parsed.bad == {}
    assert parsed.times.tolist() == [ms]


def test_iso_times_with_and_without_zone_may_be_mixed_with_bad_ones():
    written = ["2013-01-01T10:00:00Z", "2013-01-01T10:00:00", "2013-13-01T10:00:00Z", "soon", "2013-01-01"]
    parser = Parser(make(query={"time_unit": "iso"}))
    parsed = parser.parse([b'{"k":"a","t":"%s"}' % text.encode() for text in written])
    assert parsed.times.tolist() == [1357034400000, 1357034400000, 1356998400000]
    assert set(parsed.bad) == {2, 3}


def test_times_beyond_what_libraries_hold_are_unreadable():
    parsed = Parser(make()).parse([b'{"k":"a","t":%d}' % t for t in (MAX_TIME, MAX_TIME + 1, -MAX_TIME - 1)])
    assert parsed.times.tolist() == [MAX_TIME]
    assert set(parsed.bad) == {1, 2}


POSTGRES = {"results": {"sink": "postgres", "path": "postgresql://h/db/rows"}}


@pytest.mark.parametrize("unit", ["ms", "us", "s", "iso"])
def test_times_beyond_what_postgres_holds_are_unreadable_where_results_go_there(unit):
    texts = {
        "ms": ["-59011459200001", "-59011459200000", "250246627199999", "250246627200000"],
        "us": ["-59011459200000001", "-59011459200000000", "250246627199999999", "250246627200000000"],
        "s": ["-59011459200.001", "-59011459200", "250246627199.999", "250246627200"],
        "iso": [
            '"0099-12-31T23:59:59Z"',
            '"0100-01-01T00:00Z"',
            '"9899-12-31T23:59Z"',
            '"9900-01-01T00:00Z"',
        ],
    }[unit]
    values = [b'{"k":"a","t":%s}' % text.encode() for text in texts]
    query = {"time_unit": unit}
    assert set(Parser(make(query=query, **POSTGRES)).parse(values).bad) == {0, 3}
    assert not Parser(make(query=query)).parse(values).bad
    strict = StrictReader(make(query=query, **POSTGRES))
    for row, value in enumerate(values):
        with nullcontext() if row in (1, 2) else pytest.raises(Unreadable, match="out of range"):
            strict.read(None, value, 0)


def test_timestamps_beyond_what_postgres_holds_are_unreadable_where_results_go_there():
    query = {"key": "@key", "time": "@timestamp", "window": "1s"}
    parser = Parser(load_settings(query=query, **POSTGRES))
    parsed = parser.parse([None] * 2, keys=[b"a"] * 2, timestamps=[250246627199999, 250246627200000])
    assert set(parsed.bad) == {1}


def test_csv_records_with_quotes_line_breaks_and_missing_fields_are_told_apart():
    values = [
        b"a,1,2.5",
        b'"a,b",2,',
        b'"open,3,1',
        b"a,4",
        b'"two\nlines",5,1',
        b"",
        b"a,x,1",
        b",7,NA",
        b"a,8,nan",
    ]
    parsed = Parser(make(**CSV)).parse(values)
    assert parsed.keys.to_pylist() == [b"a", b"a,b", b"two\nlines", b""]
    assert parsed.values.column("v").to_pylist() == [2.5, None, 1.0, None]
    assert set(parsed.bad) == {2, 3, 5, 6, 8}


def test_text_records_are_their_own_key():
    settings_ = load_settings(
        query={"key": "value", "time": "@timestamp", "window": "1s"}, input={"format": "text"}
    )
    parsed = Parser(settings_).parse([b"word", "wörd".encode(), b"\xff"], timestamps=[1, 2, 3])
    assert parsed.keys.to_pylist() == [b"word", "wörd".encode()]
    assert set(parsed.bad) == {2}


def test_record_timestamps_that_are_no_event_times_are_unreadable():
    parser = Parser(load_settings(query={"key": "@key", "time": "@timestamp", "window": "1s"}))
    parsed = parser.parse([None] * 4, keys=[b"a"] * 4, timestamps=[-1, MAX_TIME, MAX_TIME + 1, 2**63 - 1])
    assert parsed.times.tolist() == [MAX_TIME]
    assert set(parsed.bad) == {0, 2, 3}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "iso"])
@pytest.mark.parametrize("values", [[], [None], [b"{}"], [b"x", b'{"k":1}']])
def test_a_block_without_any_readable_record_has_no_tuples(unit, values):
    # an end-of-stream marker alone is such a block
    parsed = Parser(make(query={"time_unit": unit})).parse(values)
    assert (len(parsed.rows), len(parsed.keys), len(parsed.times), parsed.values.num_rows) == (0, 0, 0, 0)
    assert set(parsed.bad) == set(range(len(values)))
