"""Derived columns, conditions and typed columns: the partitioner and verify make the same tuples of the
same records.
"""

from __future__ import annotations

import json
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.settings import Settings
from partitioner_service.reading.parse import Parser
from tests.examples import examples
from workbench.verify import INPUT_SCHEMA, REJECTED_SCHEMA
from workbench.verify.input.records import load

_COLUMNS = ["key", "time", "price", "quantity", "country", "day", "paid"]
QUERIES: dict[str, dict[str, Any]] = {
    "a condition": {"where": "country = 'DE' and quantity > 10", "types": {"quantity": "int64"}},
    "a product": {
        "columns": {"revenue": "CAST(price AS DOUBLE) * quantity"},
        "aggregates": {"r": "sum(revenue)", "n": "count"},
        "types": {"price": "decimal(2)", "quantity": "int64"},
    },
    "a whole number that may not fit": {
        "columns": {"square": "quantity * quantity", "half": "square / 2"},
        "aggregates": {"s": "sum(square)", "h": "max(half)"},
        "types": {"quantity": "int64"},
    },
    "a division": {
        "columns": {"ratio": "100 / quantity"},
        "aggregates": {"r": "min(ratio)"},
        "types": {"quantity": "int64"},
    },
    "a derived key": {
        "key": "region",
        "columns": {"region": "upper(left(country, 1))"},
        "where": "day >= DATE '2026-01-01'",
    },
    "a key that may be null": {"key": "k", "columns": {"k": "nullif(country, 'DE')"}},
    "the year": {
        "key": "year",
        "columns": {"year": "year(day)"},
        "where": "paid OR price > 1",
        "types": {"price": "decimal(2)"},
    },
    "a key of all types": {
        "key": ["country", "quantity", "paid", "day"],
        "types": {"quantity": "int64", "paid": "bool", "day": "date"},
    },
    "a key with a derived part": {"key": ["year", "country"], "columns": {"year": "year(day)"}},
    "a day": {"key": "day", "types": {"day": "date"}},
    "a truth": {"key": "paid", "types": {"paid": "bool"}},
    "the event time": {"columns": {"hour": "time % 24"}, "aggregates": {"h": "max(hour)"}},
}  # fmt: skip


def query(name: str, format_: str) -> Settings:
    columns = {"columns": _COLUMNS} if format_ == "csv" else {}
    return Settings(
        query={"window": 10, **QUERIES[name]}, input={"partitions": 1, "format": format_, **columns}
    )


def by_partitioner(settings: Settings, values: list[bytes | None]) -> list[Any]:
    parsed = Parser(settings).parse(values)
    result: list[Any] = [None] * len(values)
    columns = parsed.values.to_pylist() if parsed.values.num_columns else [{}] * len(parsed.keys)
    tuples = zip(parsed.keys.to_pylist(), columns, strict=True)
    counts = np.ones(len(parsed.rows), np.int64) if parsed.counts is None else parsed.counts
    for row, time, count in zip(parsed.rows, parsed.times, counts, strict=True):
        of_row = [next(tuples) for _ in range(count)]
        result[row] = (int(time), [(key, *values_.values()) for key, values_ in of_row])
    assert not list(tuples)
    assert all(parsed.bad.values())
    return result


def by_verify(settings: Settings, values: list[bytes | None], reason: str | None) -> list[Any]:
    """reason: that every record was rejected for: what was, is read by the strict reader alone."""
    with duckdb.connect() as db:
        db.register("committed", pa.table({"partition": pa.array([0], pa.int32()), "offset": [len(values)]}))
        rejected = (
            [{"partition": 0, "offset": i, "reason": reason} for i in range(len(values))] if reason else []
        )
        db.register("rejected", pa.Table.from_pylist(rejected, schema=REJECTED_SCHEMA))
        rows = [
            {"partition": 0, "offset": i, "timestamp": 7, "key": b"k", "value": v}
            for i, v in enumerate(values)
        ]
        load(db, settings, pa.Table.from_pylist(rows, schema=INPUT_SCHEMA))
        result: list[Any] = [None] * len(values)
        for offset, time in db.execute('SELECT "offset", time FROM readable').fetchall():
            result[offset] = (time, [])
        for _, offset, _, key, time, *columns in db.execute(
            "SELECT * EXCLUDE (chosen) FROM tuples WHERE chosen"
        ).fetchall():
            assert result[offset][0] == time
            result[offset][1].append((key, *columns))
        unreadable = {
            row[0] for row in db.execute('SELECT "offset" FROM strict WHERE NOT readable').fetchall()
        }
    assert unreadable == {row for row, one in enumerate(result) if one is None}
    return result


_PRICES = [
    "1.25",
    "-0.05",
    "0",
    "12",
    "1.250",
    "1.255",
    "1e2",
    "9999999999999999.99",
    "99999999999999999",
    "+3.5",
    ".5",
    "5.",
    "0.10",
]
_COUNTRIES = ["DE", "de", "FR", "", "É", "ß", '"', "a\\\n\x1f\x7f"]
_DAYS = [
    "2026-01-31",
    "2025-12-31",
    "2026-02-30",
    "0001-01-01",
    "0000-01-01",
    "9999-12-31",
    "2026-1-1",
    "2026-01-01T00:00",
    "",
]
_QUANTITIES = [
    "0",
    "11",
    "-3",
    "3037000500",
    "9223372036854775807",
    "-9223372036854775808",
    "1.5",
    "9223372036854775808",
]


@st.composite
def json_records(draw: st.DrawFn) -> bytes:
    cells = {
        "key": draw(st.sampled_from(['"a"', '"b"', "null"])),
        "time": draw(st.sampled_from(["5", "-1", "26"])),
        "price": draw(st.sampled_from([*_PRICES, "null", '"1.25"', "true"])),
        "quantity": draw(st.sampled_from([*_QUANTITIES, "null", '"3"'])),
        "country": draw(st.sampled_from([json.dumps(text) for text in _COUNTRIES] + ["null", "7", "true"])),
        "day": draw(st.sampled_from([json.dumps(text) for text in _DAYS] + ["null", "7"])),
        "paid": draw(st.sampled_from(["true", "false", "null", '"true"', "1"])),
    }
    names = draw(st.permutations(_COLUMNS))
    left = [name for name in names if draw(st.integers(0, 9))]
    return ("{" + ",".join(f'"{name}":{cells[name]}' for name in left) + "}").encode()


@st.composite
def csv_records(draw: st.DrawFn) -> bytes:
    nulls = ["", "NA", "null"]
    cells = [
        draw(st.sampled_from(["a", "b", ""])),
        draw(st.sampled_from(["5", "-1", "26"])),
        draw(st.sampled_from([*_PRICES, *nulls, "+3.5", ".5", "5.", " 1.5\t", '"2.50"', '"2""50"'])),
        draw(st.sampled_from([*_QUANTITIES, *nulls, '"11"'])),
        draw(st.sampled_from([*_COUNTRIES[:-2], '"D""E"', "a\\\x1f\x7f"])),
        draw(st.sampled_from([*_DAYS, *nulls, '"2026-01-31"'])),
        draw(st.sampled_from(["true", "FALSE", "False", "yes", *nulls, '"true"'])),
    ]
    return ",".join(cells).encode()


@pytest.mark.family
@pytest.mark.parametrize("name", QUERIES)
@examples(15)
@given(records=st.lists(json_records(), min_size=1, max_size=12))
@example(
    records=[
        b'{"key":"a","time":1,"quantity":3037000500,"country":"DE","price":1.25,"day":"2026-01-31","paid":true}'
    ]
)
def test_json_records_become_the_same_tuples(name: str, records: list[bytes]) -> None:
    settings = query(name, "json")
    result = by_partitioner(settings, [*records, None])
    assert by_verify(settings, [*records, None], None) == result
    assert by_verify(settings, [*records, None], "unreadable") == result


@pytest.mark.family
@pytest.mark.parametrize("name", QUERIES)
@examples(15)
@given(records=st.lists(csv_records(), min_size=1, max_size=12))
def test_csv_records_become_the_same_tuples(name: str, records: list[bytes]) -> None:
    settings = query(name, "csv")
    result = by_partitioner(settings, [*records])
    assert by_verify(settings, [*records], None) == result
    assert by_verify(settings, [*records], "unreadable") == result
