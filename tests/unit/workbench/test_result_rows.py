"""JSON rows of results, read back as the typed rows that they were."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ProtocolError
from evenflow.settings import Query
from evenflow.twostep import json_rows, readable, readable_schema
from spark_consumers.sinks.base import JSON_RECORDS
from tests.examples import examples
from workbench.result_rows import NewRows, json_lines, typed_rows

QUERY = Query(
    key="@key",
    aggregates={
        "n": "count",
        "whole": "sum(i)",
        "most": "max(f)",
        "price": "max(p)",
        "day": "max(d)",
        "name": "max(s)",
        "flag": "last(b)",
        "all": "collect(s, 5)",
        "top": "top_k(s, 3)",
    },
    types={"i": "int64", "p": "decimal(2)", "d": "date", "s": "string", "b": "bool"},
)
KINDS = {field.name: field.type for field in AggregatePlan.of(QUERY).result_schema}


def present(kind: pa.DataType) -> st.SearchStrategy[object]:
    """Any value of this type but null."""
    if pa.types.is_list(kind):
        return st.lists(present(kind.value_type), max_size=3)
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: present(field.type) for field in kind})
    if pa.types.is_decimal(kind):
        return st.integers(-(10**17), 10**17).map(lambda number: Decimal(number).scaleb(-kind.scale))
    if pa.types.is_date(kind):
        return st.dates(min_value=date(1, 1, 1))
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_floating(kind):
        return st.floats(allow_nan=False)
    if pa.types.is_integer(kind):
        return st.integers(-(2**63), 2**63 - 1)
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


def values(kind: pa.DataType) -> st.SearchStrategy[object]:
    """Any value of this type, or null. Lists are never null."""
    return present(kind) if pa.types.is_list(kind) else st.none() | present(kind)


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            name: st.integers(-(10**12), 10**12)
            if name.startswith("window")
            else st.binary(max_size=4)
            if name == "key"
            else values(kind)
            for name, kind in KINDS.items()
        }
    ),
    min_size=1,
    max_size=5,
)


def records(texts: list[bytes]) -> pa.RecordBatch:
    """JSON rows as they come from a topic."""
    rows = [
        {"partition": 3, "offset": number, "value": text, "key": b""} for number, text in enumerate(texts)
    ]
    return pa.RecordBatch.from_pylist(rows, JSON_RECORDS)


@given(rows=ROWS)
@examples(100)
def test_json_rows_are_read_back_as_the_typed_rows_that_they_were(rows: list[dict[str, object]]) -> None:
    table = pa.Table.from_pylist(rows, AggregatePlan.of(QUERY).result_schema)
    texts = json_rows(table).to_pylist()
    result = typed_rows(records([text.encode() for text in texts]), QUERY)
    assert result.schema == readable_schema(QUERY)
    assert result.equals(readable(table, readable_schema(QUERY)))
    assert json_lines(result) == texts


def test_rows_of_a_key_of_several_columns_are_read_back_and_repetitions_are_known_by_all_parts() -> None:
    query = Query(
        key=["shop", "n", "day", "paid"],
        types={"n": "int64", "day": "date", "paid": "bool"},
        aggregates={"tuples": "count"},
    )
    keys = [b'["a",1,"2026-01-31",true]', b'["a",1,"2026-01-31",false]', b'["",-1,"0001-01-01",true]']
    columns = [[0] * 4, [60_000] * 4, [*keys, keys[0]], [1, 2, 3, 1]]
    schema = AggregatePlan.of(query).result_schema
    table = readable(
        pa.table([pa.array(column) for column in columns], schema=schema), readable_schema(query)
    )
    result = typed_rows(records([text.encode() for text in json_lines(table)]), query)
    assert result.equals(table)
    assert NewRows(query.result_keys).of(result).equals(table.slice(0, 3))
    with pytest.raises(ProtocolError, match="is no row of query"):
        typed_rows(records([b'{"window_start":0,"window_end":1,"key":"[]","tuples":1}']), query)


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"null", b"\xff", b'{"window_start": 0}', b"[" * 100_000, b'{"window_start": "0"}'],
)
def test_a_record_that_is_no_row_is_refused_with_its_place(text: bytes) -> None:
    with pytest.raises(ProtocolError, match="partition 3, offset 0 of the results is no row of query"):
        typed_rows(records([text]), QUERY)


@given(batches=st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6), max_size=6))
@examples(100)
def test_of_rows_in_any_pieces_each_comes_once_and_in_order(batches: list[list[tuple[int, int]]]) -> None:
    new_rows = NewRows()
    result: list[tuple[int, int]] = []
    for batch in batches:
        table = pa.table({"window_end": [end for end, _ in batch], "key": [key for _, key in batch]})
        table = table.cast(pa.schema([("window_end", pa.int64()), ("key", pa.int64())]))
        fresh = new_rows.of(table)
        result += zip(fresh["window_end"].to_pylist(), fresh["key"].to_pylist(), strict=True)
    assert result == list(dict.fromkeys(row for batch in batches for row in batch))
