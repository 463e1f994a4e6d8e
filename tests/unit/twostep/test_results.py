"""Result rows as JSON: keys that are no text, numbers that JSON lacks."""

from __future__ import annotations

import json
import math
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from evenflow.aggregates import AggregatePlan
from evenflow.settings import Query
from evenflow.twostep import json_rows

AWKWARD = [b"", b"plain", b'quo"te\\', b"line\nfeed\x00", "Zürich €".encode(), b"\xff\xfe", b"\x1f"]


@pytest.mark.parametrize("keys", [AWKWARD, AWKWARD[:3], AWKWARD[:5], AWKWARD[1:2]])
def test_json_rows_read_back_as_what_they_were(keys: list[bytes]) -> None:
    plan = AggregatePlan.of(
        Query(aggregates={"n": "count", 'odd "name"\n': "sum(i)", "f": "max(f)"}, types={"i": "int64"})
    )
    floats = [0.1, -0.0, 1e300, 5e-324, None, 1 / 3, 123456789012.5]
    table = pa.table(
        [
            pa.array([-60_000] * len(keys)),
            pa.array([0] * len(keys)),
            pa.array(keys, pa.binary()),
            pa.array([2**63 - 1] * len(keys)),
            pa.array([None, *([-5] * (len(keys) - 1))], pa.int64()),
            pa.array(floats[: len(keys)], pa.float64()),
        ],
        schema=plan.result_schema,
    )
    import base64

    for row, text in zip(table.to_pylist(), json_rows(table).to_pylist(), strict=True):
        read = json.loads(text)
        key = read.pop("key").encode() if "key" in read else base64.b64decode(read.pop("key_base64"))
        assert {**read, "key": key} == row
    assert json_rows(table.slice(0, 0)).to_pylist() == []


def test_numbers_that_json_lacks_are_strings() -> None:
    plan = AggregatePlan.of(Query(aggregates={"f": "max(f)"}))
    values = [float("nan"), float("inf"), float("-inf"), 1.5, None]
    columns = [pa.array([0] * 5), pa.array([1] * 5), pa.array([b"k"] * 5), pa.array(values, pa.float64())]
    columns.append(pa.array([1] * 5))
    table = pa.table(columns, schema=plan.result_schema)
    assert [json.loads(text)["f"] for text in json_rows(table).to_pylist()] == [
        "NaN",
        "Infinity",
        "-Infinity",
        1.5,
        None,
    ]


def test_decimals_dates_booleans_texts_and_lists_read_back_as_what_they_were() -> None:
    top = [{"value": 'q"\\', "count": 2}, {"value": "é\n", "count": 1}]
    columns = {
        "window_start": pa.array([0, 0]),
        "window_end": pa.array([1, 1]),
        "key": pa.array([b"a", b"b"]),
        "small": pa.array([Decimal("-0.0000001"), None], pa.decimal128(38, 7)),
        "large": pa.array([None, Decimal("12345678901234567890123.5")], pa.decimal128(38, 2)),
        "day": pa.array([date(2020, 2, 29), None]),
        "yes": pa.array([False, None]),
        "text": pa.array(["\x00", None]),
        "list": pa.array([[1.5, math.inf, None], []], pa.list_(pa.float64())),
        "top": pa.array([top, None]),
    }
    first, second = json_rows(pa.table(columns)).to_pylist()
    assert '"small":-0.0000001,"large":null,"day":"2020-02-29","yes":false' in first
    assert '"small":null,"large":12345678901234567890123.50,"day":null,"yes":null' in second
    assert json.loads(first)["text"] == "\x00"
    assert json.loads(first)["list"] == [1.5, "Infinity", None]
    assert json.loads(first)["top"] == top
    assert json.loads(second)["list"] == []
    assert json.loads(second)["top"] is None
    assert json_rows(pa.table(columns).slice(1)).to_pylist() == [second]
