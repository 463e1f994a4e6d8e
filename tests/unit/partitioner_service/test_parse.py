"""Records to columns: exactness, and that a bad record never takes its neighbours with it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.settings import Settings, load_settings
from partitioner_service.parse import MAX_TIME, Parser


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


def test_every_unreadable_record_gets_a_reason_that_names_the_trouble():
    parsed = Parser(make()).parse(
        [b'{"k":"a"}', b'{"t":1}', None, b'{"k":1,"t":1}', b'{"k":"a","t":1,"v":NaN}']
    )
    assert "time column 't' is missing" in parsed.bad[0]
    assert "key column 'k' is missing" in parsed.bad[1]
    assert "no value" in parsed.bad[2]
    assert "changed from string to number" in parsed.bad[3]
    assert "column 'v' is not a finite number" in parsed.bad[4]


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


@pytest.mark.parametrize("bad", ['{"k":1,"t":"1970-01-01"}', '{"k":"a","t":"never"}'])
def test_a_warning_is_given_before_a_block_of_bad_records_is_taken_apart(bad):
    # the data plane commits then: taking a block apart can outlast the transaction timeout
    warned = []
    parser = Parser(make(query={"time_unit": "iso"}))
    parser.before_halving = lambda: warned.append(True)
    parser.parse([b'{"k":"a","t":"1970-01-01"}'] * 3)
    assert not warned
    parser.parse([bad.encode()] * 3)
    assert warned


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
