"""The law of partials, for every aggregate in the registry: a newcomer is tested by being registered."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.aggregates import AGGREGATES, AggregatePlan
from evenflow.aggregates.aggregate import Call
from evenflow.aggregates.partials.grouping import group_rows
from evenflow.aggregates.partials.reductions import reduce_column
from evenflow.aggregates.plan import Output
from evenflow.errors import ConfigError
from evenflow.settings import AggregateSpec, Query
from evenflow.twostep.reducing.state_blobs import table_bytes
from tests.examples import examples

WIDE = Context(prec=40)

KEYS = st.sampled_from([b"", b"a", b"b", b"\xff\x00", b"k" * 70])
INTS = st.one_of(
    st.none(),
    st.integers(-(2**40), 2**40),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([-(2**63), 2**63 - 1]),
)
# Dyadic floats of few bits: their sums are exact in every order, so that equality can be demanded.
FLOATS = st.one_of(st.none(), st.integers(-(2**20), 2**20).map(lambda n: n / 8))
TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "ab", "b", "Z", "\u00e9", "\U0001f600"]))
DECIMALS = st.one_of(
    st.none(), st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: Decimal(n).scaleb(-2, WIDE))
)
BOOLS = st.one_of(st.none(), st.booleans())
DAYS = st.one_of(st.none(), st.integers(-9, 9).map(lambda n: date(2000, 1, 10) + timedelta(n)))
TYPES = {"i": "int64", "f": "float64", "s": "string", "d": "decimal(2)", "b": "bool", "t": "date"}
ROWS = st.lists(
    st.tuples(st.integers(-3, 3), KEYS, st.integers(0, 5), INTS, FLOATS, TEXTS, DECIMALS, BOOLS, DAYS),
    max_size=40,
)
SETTINGS = examples(15)
ROUNDED = {"variance", "stddev", "clusters"}
Rows = list[tuple[Any, ...]]


def plan_of(form: str, column: str | None = None) -> AggregatePlan:
    spec = form.replace("(column", f"({column}")
    return AggregatePlan.of(
        Query(aggregates={"out": spec}, types={column: TYPES[column]} if column in TYPES else {})
    )


def plans() -> list[Any]:
    result = []
    for aggregate in AGGREGATES.values():
        for form in aggregate.forms:
            form = (
                form.replace("10, 1000", "2, 2")
                .replace("10)", "2)")
                .replace("100)", "3)")
                .replace("0.99", "0.5")
            )
            kinds = [
                column
                for column, kind in TYPES.items()
                if kind.replace("2", "S") in aggregate.over or kind in aggregate.over
            ]
            for column in kinds if "(" in form else [None]:
                result.append(
                    pytest.param(plan_of(form, column), column, id=form.replace("column", str(column)))
                )
    return result


def exact_plans() -> list[Any]:
    """Those whose partials depend on the tuples alone; the law of any cut holds the others to their
    bounds.
    """
    result = []
    for case in plans():
        _, aggregate, call = case.values[0].outputs[0]
        if aggregate.name not in ROUNDED and not (aggregate.name == "top_k" and call.options[1]):
            result.append(case)
    return [case for case in result if case.values[1] in (None, "f", "s")]


def invertible_plans() -> list[Any]:
    return [case for case in plans() if case.values[0].invertible]


def rows_table(plan: AggregatePlan, rows: Rows) -> pa.Table:
    names = ("pane", "key", "time", *TYPES)
    return pa.table(
        {
            field.name: pa.array(
                [row[names.index(field.name.removeprefix("v:"))] for row in rows], field.type
            )
            for field in plan.frame_schema
        }
    )


def values_of(plan: AggregatePlan, table: pa.Table) -> dict[tuple[int, bytes], Any]:
    finished = plan.finish(table)["out"].to_pylist()
    return dict(
        zip(zip(table["pane"].to_pylist(), table["key"].to_pylist(), strict=True), finished, strict=True)
    )


def direct(call: Call, name: str, tuples: list[tuple[int, Any]]) -> Any:
    """What the aggregate is of these (time, value), by plain Python; of sketches the exact value."""
    order = (lambda v: v.encode()) if pa.types.is_string(call.type) else (lambda v: v)
    if name == "count" and not call.column:
        return len(tuples)
    timed = sorted(((t, v) for t, v in tuples if v is not None), key=lambda one: (one[0], order(one[1])))
    values = sorted((v for _, v in timed), key=order)
    if name == "count":
        return len(values)
    if name == "count_distinct":
        return len(set(values))
    if not values:
        return None
    if name in ("variance", "stddev"):
        return spread(call, name, values)
    if name == "mean":
        return float(sum(map(Fraction, values)) / len(values))
    if name == "sum":
        return fitting(call, sum(values[1:], values[0]))
    if name == "top_k":
        result = sorted(Counter(values).items(), key=lambda one: -one[1])  # stable: equal counts by value
        return [{"value": value, "count": count} for value, count in result[: call.options[0]]]
    return {
        "min": values[0],
        "max": values[-1],
        "first": timed[0][1],
        "last": next(v for t, v in reversed(timed) if t == timed[-1][0]),
        "quantile": values[max(1, math.ceil(call.options[0] * len(values))) - 1]
        if name == "quantile"
        else None,
        "collect": [v for _, v in timed[: call.options[0]]] if name == "collect" else None,
    }[name]


def spread(call: Call, name: str, values: list[Any]) -> float | None:
    over = len(values) - (0 if call.options else 1)
    if over == 0:
        return None
    mean = sum(map(Fraction, values)) / len(values)
    result = float(sum((Fraction(v) - mean) ** 2 for v in values) / over)
    return math.sqrt(result) if name == "stddev" else result


def fitting(call: Call, total: Any) -> Any:
    return total if not pa.types.is_integer(call.type) or -(2**63) <= total < 2**63 else None


def is_close(output: Output, found: Any, tuples: list[tuple[int, Any]]) -> bool:
    """Whether a value is what docs/aggregates.md promises."""
    _, aggregate, call = output
    if aggregate.name == "clusters":
        texts = Counter(v for _, v in tuples if v is not None)
        inside = [one for cluster in found or () for one in cluster]
        return len(inside) == len(texts) and {one["value"]: one["count"] for one in inside} == texts
    exact = direct(call, aggregate.name, tuples)
    values = [v for _, v in tuples if v is not None]
    if aggregate.name in ("variance", "stddev") and exact is not None and found is not None:
        mean = abs(float(sum(map(Fraction, values)) / len(values)))
        root = exact if aggregate.name == "stddev" else math.sqrt(exact)
        bound = root + mean if aggregate.name == "stddev" else exact + mean * root + 1e-9 * mean**2
        return abs(found - exact) <= 1e-9 * bound
    if aggregate.name == "mean" and exact is not None:
        return abs(found - exact) <= 2**-51 * abs(exact)
    if aggregate.name == "quantile" and exact is not None and not call.options[1]:
        return abs(found - exact) <= abs(exact) / 256
    if aggregate.name == "count_distinct" and not call.options:
        return abs(found - exact) <= exact / 10 + 4
    if aggregate.name == "top_k" and call.options[1] and exact is not None:
        return are_bounds(found, Counter(values), *call.options)
    return found == exact


def are_bounds(found: list[dict[str, Any]], counts: Counter[Any], k: int, counters: int) -> bool:
    if not found:
        return max(counts.values()) <= counts.total() // (counters + 1)
    inside = [one["count"] - one["error"] <= counts[one["value"]] <= one["count"] for one in found]
    errors = {one["error"] for one in found}
    least = max(min(one["count"] for one in found), *errors) if len(found) == k else max(errors)
    left_out = [count for value, count in counts.items() if value not in {one["value"] for one in found}]
    right_order = [one["count"] for one in found] == sorted((one["count"] for one in found), reverse=True)
    small = all(error <= counts.total() // (counters + 1) for error in errors)
    return all(inside) and len(errors) == 1 and small and right_order and max(left_out, default=0) <= least


def grouped(rows: Rows, column: str | None) -> dict[tuple[int, bytes], list[tuple[int, Any]]]:
    at = 3 + list(TYPES).index(column) if column else 3
    result: dict[tuple[int, bytes], list[tuple[int, Any]]] = {}
    for row in rows:
        result.setdefault((row[0], row[1]), []).append((row[2], row[at]))
    return result


@pytest.mark.family
@pytest.mark.parametrize(("plan", "column"), plans())
@SETTINGS
@given(rows=ROWS, data=st.data())
def test_combine_then_merge_is_the_direct_aggregation_for_any_routing_and_any_cut(
    plan: AggregatePlan, column: str | None, rows: Rows, data: st.DataObject
) -> None:
    workers = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    parts = [[row for row, worker in zip(rows, workers, strict=True) if worker == w] for w in range(4)]
    merged = plan.merge([plan.combine(rows_table(plan, part)) for part in parts])
    expected = grouped(rows, column)
    for table in (merged, plan.combine(rows_table(plan, rows))):
        result = values_of(plan, table)
        assert result.keys() == expected.keys()
        for at, value in result.items():
            assert is_close(plan.outputs[0], value, expected[at]), (at, value, expected[at])
        assert table["rows"].to_pylist().count(0) == 0
        assert table.schema == plan.partial_schema
        table.validate(full=True)
    plan.finish(merged).validate(full=True)


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: (row.get("pane", 0), row["key"]))


@pytest.mark.parametrize(("plan", "column"), exact_plans())
@SETTINGS
@given(a=ROWS, b=ROWS, c=ROWS)
def test_merge_is_associative(plan: AggregatePlan, column: str | None, a: Any, b: Any, c: Any) -> None:
    x, y, z = (plan.combine(rows_table(plan, rows)) for rows in (a, b, c))
    left, right = plan.merge([plan.merge([x, y]), z]), plan.merge([x, plan.merge([y, z])])
    assert in_order(left) == in_order(right)


@pytest.mark.parametrize(("plan", "column"), [case for case in plans() if case.values[1] in ("f", "s")])
@SETTINGS
@given(a=ROWS, b=ROWS)
def test_equal_tuples_in_equal_order_make_equal_bytes(
    plan: AggregatePlan, column: str | None, a: Any, b: Any
) -> None:
    def made() -> bytes:
        parts = [plan.combine(rows_table(plan, rows)) for rows in (a, b)]
        return table_bytes(plan.merge(parts)) + table_bytes(parts[0])

    assert made() == made()


@pytest.mark.parametrize(("plan", "column"), invertible_plans())
@SETTINGS
@given(kept=ROWS, gone=ROWS)
def test_an_invertible_plan_forgets_what_is_evicted_exactly(
    plan: AggregatePlan, column: str | None, kept: Any, gone: Any
) -> None:
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
    table = plan.combine(rows_table(plan, [(0, b"a", 0, *[None] * 6)] * 2))
    name = plan.outputs[0].aggregate.name
    empty = 2 if name == "count" and column is None else 0 if name in ("count", "count_distinct") else None
    assert values_of(plan, table) == {(0, b"a"): empty}


def test_equal_partial_columns_are_shared() -> None:
    plan = AggregatePlan.of(Query(aggregates={"a": "mean(x)", "b": "sum(x)", "c": "count", "d": "max(x)"}))
    assert [partial.name for partial in plan.partials] == ["rows", "sum_x", "cnt_x", "max_x"]


def test_only_integer_sums_and_counts_are_invertible() -> None:
    types = {"i": "int64"}
    assert AggregatePlan.of(Query(aggregates={"a": "mean(i)", "b": "count"}, types=types)).invertible
    assert not AggregatePlan.of(Query(aggregates={"a": "sum(f)"})).invertible
    assert not AggregatePlan.of(Query(aggregates={"a": "min(i)"}, types=types)).invertible
    assert AggregatePlan.of(Query(aggregates={"a": "sum(d)"}, types={"d": "decimal(2)"})).invertible


def test_an_unknown_function_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'median'.*known aggregates: clusters, collect, count, "):
        plan_of("median(column)", "i")


def test_a_name_that_is_nearly_known_is_suggested() -> None:
    with pytest.raises(ValueError, match="did you mean 'count_distinct'"):
        plan_of("distinct_count(column)", "i")
    with pytest.raises(ValueError, match="did you mean 'quantile'"):
        plan_of("quantil(column, 0.5)", "i")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("avg", "mean"),
        ("approx_count_distinct", "count_distinct"),
        ("median", "quantile"),
        ("std", "stddev"),
    ],
)
def test_the_name_that_other_systems_have_for_an_aggregate_is_answered_with_ours(
    theirs: str, ours: str
) -> None:
    with pytest.raises(ValueError, match=f"there is no aggregate '{theirs}'; did you mean '{ours}'"):
        plan_of(f"{theirs}(column)", "i")


def test_a_sum_of_strings_is_refused() -> None:
    with pytest.raises(ValueError, match=r"column 'carrier' is a string, but sum needs a number"):
        Query(aggregates={"a": "sum(carrier)"}, types={"carrier": "string"})


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("sum", "names no column"),
        ("sum(x, 3)", "takes no options"),
        ("sum(, 3)", "names no column"),
        ("quantile(x)", "needs a number from 0 to 1"),
        ("quantile(x, 1.5)", "1.5 is not from 0 to 1"),
        ("quantile(x, nan)", "nan is not from 0 to 1"),
        ("quantile(x, 0.5, roughly)", "only option behind the number is exact"),
        ("top_k(x)", "needs a number of values"),
        ("top_k(x, 0)", "k must be a whole number from 1 to 1,000, not '0'"),
        ("top_k(x, 10, 9)", "counters must be a whole number from 10 to 100,000"),
        ("collect(x)", "how many values it keeps"),
        ("collect(x, 10001)", "from 1 to 10,000"),
        ("count_distinct(x, about)", "only option is exact"),
        ("variance(x, sample)", "only option is population"),
    ],
)
def test_a_call_that_cannot_be_is_refused(written: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Query(aggregates={"a": written})


def test_nan_is_a_float_like_any_other_in_sums_and_yields_to_numbers_in_extremes() -> None:
    rows: Rows = [
        (0, key, 0, None, f, *[None] * 4) for key, f in [(b"a", math.nan), (b"a", 1.0), (b"b", math.nan)]
    ]
    plan = plan_of("sum(column)", "f")
    assert math.isnan(values_of(plan, plan.combine(rows_table(plan, rows)))[(0, b"a")])
    for name in ("min", "max"):
        plan = plan_of(f"{name}(column)", "f")
        result = values_of(plan, plan.combine(rows_table(plan, rows)))
        assert result[(0, b"a")] == 1.0
        assert math.isnan(result[(0, b"b")])


def test_keys_whose_hashes_collide_are_never_merged() -> None:
    keys = pa.array([b"a", b"b", b"a", b"", b"ab", b"b"], pa.binary())
    groups = group_rows(keys, np.zeros(6, np.int64), hashes=np.zeros(6, np.uint64))
    assert groups.ids.tolist() == [0, 1, 0, 2, 3, 1]


def test_panes_whose_mixed_hashes_collide_are_never_merged() -> None:
    golden = 0x9E3779B97F4A7C15
    hashes = np.array([golden, 2 * golden % 2**64], np.uint64)  # hash ^ pane * golden is 0 for panes 1 and 2
    groups = group_rows(pa.array([b"a", b"a"], pa.binary()), np.array([1, 2]), hashes=hashes)
    assert groups.ids.tolist() == [0, 1]


def test_grouping_works_on_slices_and_grows_its_table() -> None:
    keys = pa.array([b"%d" % (n // 2) for n in range(20_000)], pa.binary()).slice(3, 15_001)
    groups = group_rows(keys)
    firsts = dict.fromkeys(keys.to_pylist())
    assert keys.take(pa.array(groups.first)).to_pylist() == list(firsts)
    numbers = {key: number for number, key in enumerate(firsts)}
    assert groups.ids.tolist() == [numbers[key] for key in keys.to_pylist()]


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
