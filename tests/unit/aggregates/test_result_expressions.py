"""Result columns that are expressions over other result columns of the same row."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from evenflow.aggregates import AggregatePlan
from evenflow.settings import Query

AGGREGATES = {
    "n": "count", "hi": "max(x)", "lo": "min(x)", "day": "max(d)", "spread": "= hi - lo",
    "mean": "= hi / (n - 1)",
    "late": "= day > DATE '2026-01-01'", "tenths": "= n * 0.1",
}  # fmt: skip


def plan_of(aggregates: dict[str, str]) -> AggregatePlan:
    types = {"x": "int64", "d": "date"} if "max(d)" in aggregates.values() else {}
    return AggregatePlan.of(Query(aggregates=aggregates, types=types))


def test_expressions_are_computed_of_the_results_of_each_row_and_need_no_partials() -> None:
    plan = plan_of(AGGREGATES)
    plain = {name: spec for name, spec in AGGREGATES.items() if not spec.startswith("=")}
    assert plan.partials == plan_of(plain).partials
    columns = {
        "pane": [0, 0, 0], "key": [b"a", b"a", b"b"], "v:x": [9, 2, 7], "v:d": [date(2026, 1, 2), None, None],
    }  # fmt: skip
    rows = pa.table([columns[field.name] for field in plan.frame_schema], schema=plan.frame_schema)
    halves = [plan.combine(rows.slice(0, 1)), plan.combine(rows.slice(1))]
    partials = plan.merge(halves).drop_columns(["pane"])
    first, second = plan.finish(partials).to_pylist()
    assert list(first) == list(AGGREGATES)
    assert (first["spread"], first["mean"], first["late"], str(first["tenths"])) == (7, 9.0, True, "0.2")
    assert (second["spread"], second["mean"], second["late"]) == (0, None, None)
    assert plan.unfit(partials) == 1, "a division by zero has no value; null of null is no such value"
    assert plan.finish(partials.slice(0, 0)).schema == plan.output_schema


def test_an_expression_is_written_back_as_it_was_and_orders_the_first_rows() -> None:
    query = Query(aggregates={"n": "count", "half": "=  n / 2 "}, emit="top(3, half)")
    assert query.canonical()["aggregates"] == {"n": "count", "half": "= n / 2"}
    again = Query.model_validate_json(query.model_dump_json())
    assert again == query
    assert again.aggregates["half"].expression == "n / 2"


@pytest.mark.parametrize(
    ("aggregates", "problem"),
    [
        ({"r": "= n / 2"}, "reads 'n', which is no aggregate beside it"),
        ({"count": "count", "r": "= coumt / 2"}, "did you mean 'count'"),
        ({"n": "count", "a": "= n / 2", "b": "= a / 2"}, "reads 'a', which is no aggregate beside it"),
        (
            {"t": "top_k(x, 3)", "r": "= t / 2"},
            "which no expression can read; take an aggregate that gives one value",
        ),
        (
            {"n": "count", "r": "= CASE WHEN n > 1 THEN 'a' END"},
            "gives text; an expression over results gives a number",
        ),
        ({"n": "count", "r": "= n +"}, "is no SQL expression"),
        ({"n": "count", "r": "="}, "is not one SQL expression"),
        ({"n": "count", "r": "= n and 1"}, "aggregate r"),
    ],
)
def test_an_expression_that_cannot_be_computed_is_refused(aggregates: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        plan_of(aggregates)


def test_a_sum_of_decimals_is_too_wide_for_an_expression_and_it_is_said_what_to_do() -> None:
    with pytest.raises(ValidationError, match=r"declare the column of a sum as float64"):
        Query(aggregates={"s": "sum(p)", "r": "= s / 2"}, types={"p": "decimal(2)"})
