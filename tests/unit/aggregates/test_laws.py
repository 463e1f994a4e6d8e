"""The law of partials, for every aggregate in the registry: a newcomer is tested by being registered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.aggregates import AGGREGATES, AggregatePlan
from evenflow.aggregates.grouping import group_rows
from evenflow.aggregates.reductions import reduce_column
from evenflow.errors import ConfigError
from evenflow.settings import AggregateSpec, Query

KEYS = st.sampled_from([b"", b"a", b"b", b"\xff\x00", b"k" * 70])
INTS = st.one_of(
    st.none(),
    st.integers(-(2**40), 2**40),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([-(2**63), 2**63 - 1]),
)
# Dyadic floats of few bits: their sums are exact in every order, so that equality can be demanded.
FLOATS = st.one_of(st.none(), st.integers(-(2**20), 2**20).map(lambda n: n / 8))
ROWS = st.lists(st.tuples(st.integers(-3, 3), KEYS, INTS, FLOATS), max_size=60)
SETTINGS = settings(max_examples=60, deadline=None)


def plan_of(function: str, column: str | None = None) -> AggregatePlan:
    spec = function if column is None else f"{function}({column})"
    return AggregatePlan.of(Query(aggregates={"out": spec}, types={"i": "int64"} if column == "i" else {}))


def plans() -> list[Any]:
    found = []
    for name, aggregate in AGGREGATES.items():
        columns: list[str | None] = ["i", "f"] if aggregate.takes_column else [None]
        found += [pytest.param(plan_of(name, column), column, id=f"{name}-{column}") for column in columns]
    return found


def rows_table(plan: AggregatePlan, rows: list[tuple[int, bytes, int | None, float | None]]) -> pa.Table:
    columns = {"pane": [r[0] for r in rows], "key": [r[1] for r in rows], "i": [r[2] for r in rows]}
    columns["f"] = [r[3] for r in rows]
    return pa.table(
        {
            field.name: pa.array(columns[field.name.removeprefix("v:")], field.type)
            for field in plan.frame_schema
        }
    )


def values_of(plan: AggregatePlan, table: pa.Table) -> dict[tuple[int, bytes], Any]:
    finished = plan.finish(table)["out"].to_pylist()
    return dict(
        zip(zip(table["pane"].to_pylist(), table["key"].to_pylist(), strict=True), finished, strict=True)
    )


def direct(name: str, values: list[Any]) -> Any:
    if name == "count":
        return len(values)
    present = [value for value in values if value is not None]
    if not present:
        return None
    value = {"sum": sum, "min": min, "max": max, "mean": lambda v: float(sum(v)) / len(v)}[name](present)
    return value if isinstance(value, float) or -(2**63) <= value < 2**63 else None


@pytest.mark.parametrize(("plan", "column"), plans())
@SETTINGS
@given(rows=ROWS, data=st.data())
def test_combine_then_merge_is_the_direct_aggregation_for_any_routing_and_any_cut(
    plan: AggregatePlan, column: str | None, rows: list[Any], data: st.DataObject
) -> None:
    workers = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    parts = [[row for row, worker in zip(rows, workers, strict=True) if worker == w] for w in range(4)]
    merged = plan.merge([plan.combine(rows_table(plan, part)) for part in parts])
    expected: dict[tuple[int, bytes], list[Any]] = {}
    for pane, key, i, f in rows:
        expected.setdefault((pane, key), []).append(i if column == "i" else f)
    name = plan.outputs[0][1].name
    if name in ("count", "sum", "mean", "min", "max"):
        assert values_of(plan, merged) == {at: direct(name, values) for at, values in expected.items()}
    whole = plan.combine(rows_table(plan, rows))
    assert values_of(plan, merged) == values_of(plan, whole)
    assert merged["rows"].to_pylist().count(0) == 0
    assert merged.schema == plan.partial_schema
    merged.validate(full=True)


@pytest.mark.parametrize(("plan", "column"), plans())
@SETTINGS
@given(a=ROWS, b=ROWS, c=ROWS)
def test_merge_is_associative(plan: AggregatePlan, column: str | None, a: Any, b: Any, c: Any) -> None:
    x, y, z = (plan.combine(rows_table(plan, rows)) for rows in (a, b, c))
    left, right = plan.merge([plan.merge([x, y]), z]), plan.merge([x, plan.merge([y, z])])
    assert left.sort_by([("pane", "ascending"), ("key", "ascending")]).equals(
        right.sort_by([("pane", "ascending"), ("key", "ascending")])
    )


@pytest.mark.parametrize(("plan", "column"), plans())
@SETTINGS
@given(kept=ROWS, gone=ROWS)
def test_an_invertible_plan_forgets_what_is_evicted_exactly(
    plan: AggregatePlan, column: str | None, kept: Any, gone: Any
) -> None:
    if not plan.invertible:
        return

    def keyed(rows: Any) -> pa.Table:
        return plan.merge([plan.combine(rows_table(plan, rows)).drop_columns(["pane"])])

    both = plan.evict(keyed(gone), [], [keyed(kept)])
    left = plan.evict(both, [keyed(gone)], [])
    assert left.sort_by("key").equals(keyed(kept).sort_by("key"))


@pytest.mark.parametrize(("plan", "column"), plans())
def test_no_rows_make_no_results(plan: AggregatePlan, column: str | None) -> None:
    empty = plan.combine(plan.frame_schema.empty_table())
    assert empty.num_rows == 0
    assert plan.merge([empty, empty]).num_rows == 0
    assert plan.merge([]).schema == plan.partial_schema
    assert plan.finish(empty).num_rows == 0


@pytest.mark.parametrize(("plan", "column"), plans())
def test_a_key_with_only_nulls_counts_its_tuples_and_is_null_otherwise(
    plan: AggregatePlan, column: str | None
) -> None:
    table = plan.combine(rows_table(plan, [(0, b"a", None, None), (0, b"a", None, None)]))
    name = plan.outputs[0][1].name
    assert values_of(plan, table) == {(0, b"a"): 2 if name == "count" else None}


def test_equal_partial_columns_are_shared() -> None:
    plan = AggregatePlan.of(Query(aggregates={"a": "mean(x)", "b": "sum(x)", "c": "count", "d": "max(x)"}))
    assert [partial.name for partial in plan.partials] == ["rows", "sum_x", "cnt_x", "max_x"]


def test_only_integer_sums_and_counts_are_invertible() -> None:
    types = {"i": "int64"}
    assert AggregatePlan.of(Query(aggregates={"a": "mean(i)", "b": "count"}, types=types)).invertible
    assert not AggregatePlan.of(Query(aggregates={"a": "sum(f)"})).invertible
    assert not AggregatePlan.of(Query(aggregates={"a": "min(i)"}, types=types)).invertible


def test_an_unknown_function_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'median'.*count, max, mean, min, sum"):
        plan_of("median", "i")


def test_a_sum_of_strings_is_refused() -> None:
    with pytest.raises(ValueError, match=r"column 'carrier' is a string, but sum needs a number"):
        Query(aggregates={"a": "sum(carrier)"}, types={"carrier": "string"})


@pytest.mark.parametrize(
    ("written", "message"), [("sum", "names no column"), ("count(x)", "takes no column")]
)
def test_a_column_too_many_or_too_few_is_refused(written: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Query(aggregates={"a": written})


def test_nan_is_a_float_like_any_other_in_sums_and_yields_to_numbers_in_extremes() -> None:
    rows = [(0, b"a", None, float("nan")), (0, b"a", None, 1.0), (0, b"b", None, float("nan"))]
    assert math.isnan(
        values_of(plan_of("sum", "f"), plan_of("sum", "f").combine(rows_table(plan_of("sum", "f"), rows)))[
            (0, b"a")
        ]
    )
    for name in ("min", "max"):
        plan = plan_of(name, "f")
        found = values_of(plan, plan.combine(rows_table(plan, rows)))
        assert found[(0, b"a")] == 1.0
        assert math.isnan(found[(0, b"b")])


def test_keys_whose_hashes_collide_are_never_merged() -> None:
    keys = pa.array([b"a", b"b", b"a", b"", b"ab", b"b"], pa.binary())
    groups = group_rows(keys, np.zeros(6, np.int64), hashes=np.zeros(6, np.uint64))
    assert groups.of.tolist() == [0, 1, 0, 2, 3, 1]


def test_panes_whose_mixed_hashes_collide_are_never_merged() -> None:
    golden = 0x9E3779B97F4A7C15
    hashes = np.array([golden, 2 * golden % 2**64], np.uint64)  # hash ^ pane * golden is 0 for panes 1 and 2
    groups = group_rows(pa.array([b"a", b"a"], pa.binary()), np.array([1, 2]), hashes=hashes)
    assert groups.of.tolist() == [0, 1]


def test_grouping_works_on_slices_and_grows_its_table() -> None:
    keys = pa.array([b"%d" % (n // 2) for n in range(20_000)], pa.binary()).slice(3, 15_001)
    groups = group_rows(keys)
    firsts = dict.fromkeys(keys.to_pylist())
    assert keys.take(pa.array(groups.first)).to_pylist() == list(firsts)
    numbers = {key: number for number, key in enumerate(firsts)}
    assert groups.of.tolist() == [numbers[key] for key in keys.to_pylist()]


def test_a_reduction_that_is_not_ours_is_run_by_arrow() -> None:
    groups = group_rows(pa.array([b"a", b"b", b"a"], pa.binary()))
    assert reduce_column("product", pa.array([2, 3, 5]), groups).to_pylist() == [10, 3]
    with pytest.raises(ConfigError, match="nonsense"):
        reduce_column("nonsense", pa.array([2, 3, 5]), groups)


def test_value_columns_may_be_called_like_the_columns_of_a_frame() -> None:
    query = Query(
        aggregates={"a": AggregateSpec(function="sum", column="key")}, key="pane", types={"key": "int64"}
    )
    plan = AggregatePlan.of(query)
    rows = pa.table([pa.array([0, 0]), pa.array([b"k", b"k"]), pa.array([2, 3])], schema=plan.frame_schema)
    assert plan.finish(plan.combine(rows))["a"].to_pylist() == [5]
