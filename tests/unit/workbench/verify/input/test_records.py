from __future__ import annotations

import json
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from evenflow.settings import Settings
from partitioner_service.reading.parse import Parser
from tests.examples import examples
from tests.unit.workbench.verify.pipeline_model import Record, end, record, run
from workbench.verify import INPUT_SCHEMA, REJECTED_SCHEMA
from workbench.verify.input.deep_json import read_deep
from workbench.verify.input.records import load
from workbench.verify.input.strict_reader import StrictReader, Unreadable, cell_types

_SUM = {"total": "sum(v)"}


class Read(NamedTuple):
    """A tuple: key bytes, event time in ms, and the aggregated columns in the query's order."""

    key: bytes
    time: int
    values: tuple[Any, ...]


def _settings(input: dict[str, Any] | None = None, **query: Any) -> Settings:
    return Settings(
        query={"window": 10, "aggregates": _SUM, **query}, input={"partitions": 1, **(input or {})}
    )


def _csv(**query: Any) -> Settings:
    return _settings({"format": "csv", "columns": ["key", "time", "v"]}, **query)


def _read(
    settings: Settings, value: bytes | None, key: bytes | None = None, timestamp: int = 0
) -> Read | None:
    try:
        result = StrictReader(settings).read(key, value, timestamp)
    except Unreadable:
        return None
    cells = dict(zip(cell_types(settings.query), result.cells, strict=True))
    own_key = result.key if result.key is not None else str(cells[settings.query.key]).encode()
    return Read(own_key, result.time, tuple(cells[name] for name in settings.query.value_columns))


def _loaded(settings: Settings, values: list[bytes | None]) -> tuple[list[Read | None], int]:
    """What SQL and strict reader together make of these records; how many SQL read alone."""
    db = duckdb.connect()
    committed = pa.table({"partition": pa.array([0], pa.int32()), "offset": [len(values)]})
    rejected = REJECTED_SCHEMA.empty_table()
    db.register("committed", committed)
    db.register("rejected", rejected)
    rows = [
        {"partition": 0, "offset": i, "timestamp": 7, "key": b"k", "value": v} for i, v in enumerate(values)
    ]
    load(db, settings, pa.Table.from_pylist(rows, schema=INPUT_SCHEMA))
    result: list[Read | None] = [None] * len(values)
    for _, offset, _, key, time, *columns in db.execute("SELECT * EXCLUDE (chosen) FROM tuples").fetchall():
        result[offset] = Read(key, time, tuple(columns))
    fast = db.execute("SELECT count(*) FROM records WHERE readable").fetchall()[0][0]
    return result, fast


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"{",
        b"[]",
        b"7",
        b'{"time":1}',
        b'{"key":null,"time":1}',
        b'{"key":1,"time":1}',
        b'{"key":"a"}',
        b'{"key":"a","time":null}',
        b'{"key":"a","time":"1"}',
        b'{"key":"a","time":1.0}',
        b'{"key":"a","time":1e3}',
        b'{"key":"a","time":true}',
        b'{"key":"a","time":9223372036854775808}',
        b'{"key":"a","time":8640000000000001}',
        b'{"key":"a","time":1,"v":"2"}',
        b'{"key":"a","time":1,"v":NaN}',
        b'{"key":"a","time":1,"v":1e999}',
        b'{"key":"a","time":1,"v":false}',
        b'{"key":"a","time":1,"time":2}',
        b'{"key":"a","time":1,}',
        b'{"key":"a","time":1} {}',
        b'{"key":"\xff","time":1}',
        b'{"key":"\\ud800","time":1}',
        b'{"key":"a","time":01}',
        b'{"key":"a","time":1,"other":["\\ud800"]}',
        b'{"nested":{"key":"a","time":1}}',
    ],
)
def test_a_json_record_without_a_tuple_is_unreadable(value: bytes | None) -> None:
    assert _read(_settings(), value) is None
    assert _loaded(_settings(), [value]) == ([None], 0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"key":"","time":-5,"v":null}', Read(b"", -5, (None,))),
        (b'{"key":"a","time":1}', Read(b"a", 1, (None,))),
        (b' {"v":-0.5e1,"time":0,"key":"\\"\\u0000\\n"}\n', Read(b'"\x00\n', 0, (-5.0,))),
        (b'{"key":"time","time":1,"v":3}', Read(b"time", 1, (3.0,))),
        (b'{"key":"a","time":1,"other":"\xff"}', Read(b"a", 1, (None,))),
        (b'{"key":"a","time":1,"other":NaN}', Read(b"a", 1, (None,))),
        (b'{"key":"a","time":1,"other":"\\ud83d\\ude00"}', Read(b"a", 1, (None,))),
        (b'{"key":"a","time":1,"other":{"time":2}}', Read(b"a", 1, (None,))),
        (b'{"key":"\xc3\xa9","time":8640000000000000}', Read(b"\xc3\xa9", 8_640_000_000_000_000, (None,))),
    ],
)
def test_a_json_record_is_read_by_its_needed_columns(value: bytes, expected: Read) -> None:
    assert _read(_settings(), value) == expected
    assert _loaded(_settings(), [value])[0] == [expected]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"a,1,2.5", Read(b"a", 1, (2.5,))),
        (b",-1,", Read(b"", -1, (None,))),
        (b"NA,1,NA", Read(b"NA", 1, (None,))),
        (b'"a,""b""\n",1, 2 \r\n', Read(b'a,"b"\n', 1, (2.0,))),
        (b"a,1", None),
        (b"a,1,2,3", None),
        (b"a,,2", None),
        (b"a,x,2", None),
        (b"a,1,x", None),
        (b"a,1,nan", None),
        (b"\xff,1,2", None),
        (b"a,1,2\nb,1,2", None),
        (b"", None),
        (None, None),
    ],
)
def test_a_csv_record_is_read_field_by_field(value: bytes | None, expected: Read | None) -> None:
    assert _read(_csv(), value) == expected
    assert _loaded(_csv(), [value])[0] == [expected]


def test_a_text_record_is_its_own_key() -> None:
    settings = _settings({"format": "text"}, key="value", time="@timestamp", aggregates={"n": "count"})
    result, _ = _loaded(settings, [b"word", b"", b"\xff", None, b'a "b"\n'])
    assert result == [Read(b"word", 7, ()), Read(b"", 7, ()), None, None, Read(b'a "b"\n', 7, ())]


def test_the_raw_record_key_may_be_any_bytes_but_not_missing() -> None:
    settings = _settings(key="@key", time="@timestamp", aggregates={"n": "count"})
    assert _read(settings, None, key=b"\xff\x00", timestamp=3) == Read(b"\xff\x00", 3, ())
    assert _read(settings, b"x", key=None, timestamp=3) is None
    assert _read(settings, b"x", key=b"", timestamp=-1) is None


def test_an_integer_key_is_its_decimal_text() -> None:
    settings = _csv(types={"key": "int64"})
    assert _loaded(settings, [b"007,1,", b"-0,1,", b"1.5,1,", b",1,"])[0] == [
        Read(b"7", 1, (None,)),
        Read(b"0", 1, (None,)),
        None,
        None,
    ]


def test_an_integer_may_have_more_leading_zeros_than_python_converts() -> None:
    settings = _csv(types={"key": "int64"})
    zeros, sign = b"0" * 5_000, b"-"
    records = [
        zeros + b"7,1,",
        sign + zeros + b"7,1,",
        zeros + b"9223372036854775808,1,",
        b"9" * 5_000 + b",1,",
    ]
    assert _loaded(settings, list(records))[0] == [
        Read(b"7", 1, (None,)),
        Read(b"-7", 1, (None,)),
        None,
        None,
    ]
    assert [_read(settings, value) for value in records] == [
        Read(b"7", 1, (None,)),
        Read(b"-7", 1, (None,)),
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("unit", "text", "time"),
    [
        ("s", "1.001", 1001),
        ("s", "-0.0009", -1),
        ("s", "1.0006", 1001),
        ("s", "1700000000.123499", 1700000000123),
        ("us", "-1", -1),
        ("us", "1999", 1),
        ("iso", "1970-01-01T00:00:01.0019Z", 1001),
        ("iso", "1969-12-31 23:59:59.9999", -1),
        ("iso", "1970-01-01T01:00:00+02:00", -3_600_000),
        ("iso", "1970-01-02", 86_400_000),
        ("iso", "1970-01-01T00:01", 60_000),
        ("iso", "2013-02-29T00:00:00", None),
        ("iso", "yesterday", None),
        ("iso", "2013-01-01T25:00:00", None),
    ],
)
def test_event_times_become_milliseconds_as_documented(unit: str, text: str, time: int | None) -> None:
    quoted = json.dumps(text) if unit == "iso" else text
    expected = None if time is None else Read(b"a", time, (None,))
    as_json, as_csv = f'{{"key":"a","time":{quoted}}}'.encode(), f"a,{text},".encode()
    assert _loaded(_settings(time_unit=unit), [as_json])[0] == [expected]
    assert _loaded(_csv(time_unit=unit), [as_csv])[0] == [expected]


_cell = st.one_of(
    st.text(max_size=4),
    st.sampled_from(
        ["NA", "nan", "null", "1e5", "0x10", " 7", "1_0", "+1", "1.", ".5", "inf", "٣", "1970-01-01T00:00:00"]
    ),
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(repr),
)
_json_value = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.just("1970-01-01T00:00:00Z"),
)
_json_nested = st.recursive(
    _json_value, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=2), inner)
)
_json_record = st.dictionaries(st.sampled_from(["key", "time", "v", "w"]), _json_value, max_size=4).map(
    json.dumps
)
_units = st.sampled_from(["s", "ms", "us", "iso"])


@given(
    values=st.lists(_json_record | st.text(max_size=6), min_size=1, max_size=20),
    unit=_units,
    kind=st.sampled_from(["int64", "float64"]),
)
@example(values=['{"key": "a", "time": 1.797693134862316e+305}'], unit="s", kind="int64")
@examples(100, suppress_health_check=[HealthCheck.too_slow])
def test_sql_never_reads_a_json_record_otherwise_than_the_strict_reader(
    values: list[str], unit: str, kind: str
) -> None:
    settings = _settings(time_unit=unit, types={"v": kind})
    records = [value.encode("utf-8", "surrogatepass") for value in values]
    assert _loaded(settings, records)[0] == [_read(settings, value) for value in records]


@given(
    values=st.lists(st.lists(_cell, min_size=2, max_size=4).map(",".join), min_size=1, max_size=20),
    unit=_units,
    kind=st.sampled_from(["int64", "float64"]),
)
@examples(100, suppress_health_check=[HealthCheck.too_slow])
def test_sql_never_reads_a_csv_record_otherwise_than_the_strict_reader(
    values: list[str], unit: str, kind: str
) -> None:
    settings = _csv(time_unit=unit, types={"v": kind, "key": "int64" if unit == "s" else "string"})
    records = [value.encode("utf-8", "surrogatepass") for value in values]
    assert _loaded(settings, records)[0] == [_read(settings, value) for value in records]


@pytest.mark.parametrize("depth", [500, 2_000, 20_000])
@pytest.mark.parametrize("before", [b"", b'"x":"\\ud83d\\ude00",', b'"x":"\\\\",'])
def test_a_record_may_be_nested_at_any_depth_as_for_the_partitioner(depth: int, before: bytes) -> None:
    """Its own parser takes any; Python's gives up at some depth that depends on who calls it."""
    begin = b'{"key":"a","time":1,' + before + b'"o":' + b"[" * depth
    good = begin + b"]" * depth + b',"v":2.5}'
    bad = [good[:-1], good + b"x", good.replace(b"],", b",]"), begin + b"]" * (depth - 1) + b"}"]
    bad.append(good.replace(b"[]", b'["\\ud83d"]'))
    assert _read(_settings(), good) == Read(b"a", 1, (2.5,))
    assert [_read(_settings(), value) for value in bad] == [None] * len(bad)
    parsed = Parser(_settings()).parse([good, *bad])
    assert sorted(parsed.bad) == list(range(1, len(bad) + 1))
    assert _loaded(_settings(), [good, *bad])[0] == [Read(b"a", 1, (2.5,)), *(None for _ in bad)]


def _as_fields(value: Any) -> Any:
    if isinstance(value, tuple):
        return [(name, _as_fields(held)) for name, held in value]
    return [_as_fields(held) for held in value] if isinstance(value, list) else value


@given(fields=st.lists(st.tuples(st.text(max_size=3), _json_nested), max_size=4), cut=st.integers(0, 40))
@examples(100)
def test_the_reader_of_deep_json_reads_what_pythons_own_reads(fields: list[Any], cut: int) -> None:
    text = "{" + ", ".join(f"{json.dumps(name)} : {json.dumps(value)}" for name, value in fields) + " }"
    for shown in (text, text[:cut] + text[cut + 1 :]):
        try:
            expected = json.loads(
                shown, object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=str
            )
        except ValueError:
            expected = None
        if not isinstance(expected, tuple):
            with pytest.raises(ValueError, match=r".*"):
                read_deep(shown, str)
            continue
        assert read_deep(shown, str) == _as_fields(expected)


@pytest.mark.parametrize("format", ["json", "csv"])
def test_plain_records_are_read_by_sql(format: str) -> None:
    values = [b'{"key": "k%d", "time": %d, "v": %d.5, "w": [1, {"x": null}]}' % (i, i, i) for i in range(50)]
    if format == "csv":
        values = [b"k%d,%d,%d.5" % (i, i, i) for i in range(50)]
    settings = _settings() if format == "json" else _csv()
    assert _loaded(settings, list(values))[1] == 50


def test_odd_keys_go_all_the_way() -> None:
    settings = _settings(key="@key", aggregates={"n": "count"}, window=10)
    keys = [b"", b"\xff\xfe", b'"quoted"\n', b"x" * 65_536, b"\x00"]
    records = [
        Record(b'{"time":%d}' % time, (key, time, {}), key=key) for time in (-25, -3, 4) for key in keys
    ]
    report = run(settings, [[*records, end(len(records))]]).check()
    assert (report.first, report.rows, report.windows) == ((), 15, 3)


def test_long_keys_are_shown_cut() -> None:
    topics = run(_settings(), [[record("y" * 65_536, 1, v=1.0), end(1)]])
    topics.rows = []
    (difference,) = topics.check().first
    assert difference.key is not None
    assert difference.key.endswith("(65536 bytes)")
    assert len(difference.key) < 200
