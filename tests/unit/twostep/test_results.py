"""Result rows as JSON: keys that are no text, numbers that JSON lacks."""

from __future__ import annotations

import json

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
    table = pa.table(columns, schema=plan.result_schema)
    assert [json.loads(text)["f"] for text in json_rows(table).to_pylist()] == [
        "NaN",
        "Infinity",
        "-Infinity",
        1.5,
        None,
    ]
