"""The parts of a key of several columns are columns of their own in results, and encoded again they are
the key's bytes.
"""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ProtocolError
from evenflow.settings import Query, Settings
from evenflow.text.json_text import arrays
from evenflow.twostep import json_rows, key_schema, readable, readable_schema, with_key_columns
from partitioner_service.reading.parse import Parser
from tests.examples import examples

KEY = ["shop.id", '"a.b".c', "paid", "day", "count of"]
QUERY = Query(
    key=KEY,
    time="t",
    types={"count of": "int64", "paid": "bool", "day": "date"},
    aggregates={"n": "count"},
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ROWS = st.lists(
    st.tuples(
        TEXTS,
        TEXTS,
        st.booleans(),
        st.dates(date(1, 1, 1), date(9999, 12, 31)),
        st.integers(-(2**63), 2**63 - 1),
    ),
    min_size=1,
    max_size=5,
)


def result_table(keys: pa.Array, query: Query = QUERY) -> pa.Table:
    """A row of one tuple for each key, as the reducer hands it to a sink."""
    schema = AggregatePlan.of(query).result_schema
    columns = {"window_start": [0] * len(keys), "window_end": [60_000] * len(keys), "n": [1] * len(keys)}
    return pa.table([pa.array(columns.get(name, keys)) for name in schema.names], schema=schema)


@given(rows=ROWS)
@examples(100)
def test_the_columns_are_those_of_the_record_and_encoded_again_they_are_the_key(rows: list[Any]) -> None:
    records = [
        json.dumps(
            {
                "t": 0,
                "shop": {"id": shop},
                "a.b": {"c": other},
                "paid": paid,
                "day": str(day),
                "count of": count,
            }
        ).encode()
        for shop, other, paid, day, count in rows
    ]
    parsed = Parser(Settings(query=QUERY.model_dump(), input={"partitions": 1})).parse(records)
    assert not len(parsed.bad)
    keys = parsed.keys.cast(pa.binary())
    result = with_key_columns(result_table(keys), key_schema(QUERY))
    assert result.schema.names == ["window_start", "window_end", *KEY, "n"]
    assert list(zip(*(result[name].to_pylist() for name in KEY), strict=True)) == rows
    assert arrays([result[name].combine_chunks() for name in KEY]).cast(pa.binary()).equals(keys)
    for row, text in zip(rows, json_rows(result).to_pylist(), strict=True):
        values = dict(
            zip(KEY, [str(value) if isinstance(value, date) else value for value in row], strict=True)
        )
        assert json.loads(text) == {"window_start": 0, "window_end": 60_000, **values, "n": 1}


def test_the_schema_names_each_part_with_its_type() -> None:
    assert key_schema(QUERY) == pa.schema(
        [
            ("shop.id", pa.string()),
            ('"a.b".c', pa.string()),
            ("paid", pa.bool_()),
            ("day", pa.date32()),
            ("count of", pa.int64()),
        ]
    )
    assert readable_schema(QUERY).names == ["window_start", "window_end", *KEY, "n"]


def test_a_derived_part_has_the_name_and_type_of_its_column() -> None:
    query = Query(key=["country", "year"], columns={"year": "year(day)"}, aggregates={"n": "count"})
    keys = pa.array([b'["DE",2026]', b'["",1]'])
    rows = readable(result_table(keys, query), readable_schema(query)).select(["country", "year"])
    assert rows.to_pylist() == [{"country": "DE", "year": 2026}, {"country": "", "year": 1}]
    assert rows.schema.types == [pa.string(), pa.int64()]


@pytest.mark.parametrize("key", [b"\xff", b'["a",1]', b"[]", b"a"])
def test_bytes_that_are_no_key_of_the_query_are_refused(key: bytes) -> None:
    query = Query(key=["a", "b"], aggregates={"n": "count"})
    with pytest.raises(ProtocolError, match="a key does not hold the query's key columns a, b") as refused:
        with_key_columns(result_table(pa.array([b'["x","y"]', key]), query), key_schema(query))
    assert "another program" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (Query(key="a", types={"a": "int64"}), pa.int64()),
        (Query(key=["a"]), pa.string()),
        (Query(key="@key"), pa.binary()),
    ],
)
def test_a_key_of_one_column_stays_in_the_column_key(query: Query, kind: pa.DataType) -> None:
    assert query.result_keys == ("key",)
    assert key_schema(query) == pa.schema([("key", kind)])
    keys = pa.array([b'["x","y"]'] if kind == pa.string() else [b"8"])
    rows = with_key_columns(
        result_table(keys, query.model_copy(update={"aggregates": QUERY.aggregates})), key_schema(query)
    )
    assert rows["key"].type == kind
