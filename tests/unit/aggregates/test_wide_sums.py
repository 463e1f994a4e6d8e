"""No value of a tuple stops a query: sums of int64 are exact at any size, null where they do not fit."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.partials.wide_sums import WIDE, as_doubles, narrowed
from evenflow.settings import Query
from tests.examples import examples

MIN, MAX = -(2**63), 2**63 - 1
AGGREGATES = {"n": "count", "s": "sum(i)", "m": "mean(i)"}
PLAN = AggregatePlan.of(Query(aggregates=AGGREGATES, types={"i": "int64"}))
FLOATS = AggregatePlan.of(Query(aggregates={"s": "sum(f)", "m": "mean(f)"}))
KEYS = st.sampled_from([b"a", b"b", b"c"])
VALUES = st.one_of(st.none(), st.sampled_from([MIN, MIN + 1, -1, 0, 1, MAX]), st.integers(MIN, MAX))
ROWS = st.lists(st.tuples(KEYS, VALUES), max_size=40)
BIG = st.one_of(st.integers(-(2**126), 2**126), st.integers(MIN - 2, MAX + 2), st.sampled_from([MIN, MAX]))
Rows = list[tuple[bytes, int | None]]


def partials(rows: Rows, plan: AggregatePlan = PLAN) -> pa.Table:
    keys, values = [row[0] for row in rows], [row[1] for row in rows]
    types = plan.frame_schema.types
    columns = [pa.array([0] * len(rows)), pa.array(keys, types[1]), pa.array(values, types[2])]
    return plan.merge([plan.combine(pa.table(columns, schema=plan.frame_schema)).drop_columns(["pane"])])


def finished(table: pa.Table) -> dict[bytes, Any]:
    table.validate(full=True)
    return dict(zip(table["key"].to_pylist(), PLAN.finish(table).to_pylist(), strict=True))


def direct(rows: Rows) -> dict[bytes, Any]:
    result = {}
    for key in {key for key, _ in rows}:
        values = [value for other, value in rows if other == key]
        known = [value for value in values if value is not None]
        total = sum(known)
        result[key] = {
            "n": len(values),
            "s": total if known and MIN <= total <= MAX else None,
            "m": float(total) / len(known) if known else None,
        }
    return result


def unfit(rows: Rows) -> int:
    return sum(result["s"] is None and result["m"] is not None for result in direct(rows).values())


@examples(200)
@given(old=ROWS, kept=ROWS, new=ROWS)
def test_sums_over_all_of_int64_are_those_of_python_through_merging_and_eviction(
    old: Rows, kept: Rows, new: Rows
) -> None:
    before = PLAN.merge([partials(old), partials(kept)])
    assert finished(before) == direct(old + kept)
    assert PLAN.unfit(before) == unfit(old + kept)
    after = PLAN.evict(before, [partials(old)], [partials(new)])
    assert finished(after) == direct(kept + new)
    assert PLAN.unfit(after) == unfit(kept + new)
    keys = [("key", "ascending")]
    assert after.sort_by(keys).equals(PLAN.merge([partials(kept), partials(new)]).sort_by(keys))


def test_the_least_int64_of_all_leaves_a_sliding_sum_as_it_came() -> None:
    least, one = partials([(b"a", MIN)]), partials([(b"a", 1)])
    both = PLAN.evict(least, [], [one])
    assert finished(both)[b"a"]["s"] == MIN + 1
    left = PLAN.evict(both, [least], [])
    assert finished(left)[b"a"] == {"n": 1, "s": 1, "m": 1.0}
    assert PLAN.evict(left, [one], []).num_rows == 0


def test_a_sum_beyond_int64_is_null_and_counted_and_fits_again_once_values_are_evicted() -> None:
    big = partials([(b"a", MAX), (b"b", 7), (b"c", None)])
    twice = PLAN.merge([big, big])
    assert finished(twice) == {
        b"a": {"n": 2, "s": None, "m": float(MAX)},
        b"b": {"n": 2, "s": 14, "m": 7.0},
        b"c": {"n": 2, "s": None, "m": None},
    }
    assert PLAN.unfit(twice) == 1
    once = PLAN.evict(twice, [big], [])
    assert finished(once)[b"a"]["s"] == MAX
    assert PLAN.unfit(once) == PLAN.unfit(PLAN.key_schema.empty_table()) == 0


def test_each_sum_of_a_plan_that_does_not_fit_is_counted() -> None:
    query = Query(
        aggregates={"x": "sum(i)", "y": "sum(j)", "z": "max(i)"}, types={"i": "int64", "j": "int64"}
    )
    plan = AggregatePlan.of(query)
    columns = [pa.array([0, 0]), pa.array([b"a", b"a"], pa.binary()), pa.array([MAX, 1]), pa.array([MIN, -1])]
    table = plan.combine(pa.table(columns, schema=plan.frame_schema))
    assert plan.finish(table).to_pylist() == [{"x": None, "y": None, "z": MAX}]
    assert plan.unfit(table) == 2


@settings(deadline=None)
@given(st.lists(BIG, max_size=20), st.integers(0, 5))
def test_wide_integers_become_int64_where_they_fit_and_the_nearest_double(
    values: list[int], cut: int
) -> None:
    column = pa.array(values, WIDE).slice(cut)
    values = values[cut:]
    whole, fits = narrowed(column)
    assert fits.tolist() == [MIN <= value <= MAX for value in values]
    assert whole[fits].tolist() == [value for value in values if MIN <= value <= MAX]
    assert as_doubles(column).tolist() == [float(value) for value in values]


@settings(deadline=None)
@given(st.lists(st.integers(MIN, MAX), min_size=1, max_size=30))
def test_the_mean_of_integers_is_off_by_less_than_two_roundings(values: list[int]) -> None:
    (result,) = finished(partials([(b"a", value) for value in values])).values()
    numerator, denominator = result["m"].as_integer_ratio()
    error = abs(numerator * len(values) - sum(values) * denominator) * 2**52
    assert error < abs(sum(values)) * denominator or error == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_a_float_sum_beyond_all_floats_is_infinite_and_stops_nothing(sign: int) -> None:
    huge = partials([(b"a", sign * 1e308), (b"b", 1.0)], FLOATS)
    twice = FLOATS.merge([huge, huge])
    assert FLOATS.finish(twice).to_pylist() == [
        {"s": sign * math.inf, "m": sign * math.inf},
        {"s": 2.0, "m": 1.0},
    ]
    assert FLOATS.unfit(twice) == 0


def test_infinite_float_sums_of_both_signs_meet_as_nan_and_stop_nothing() -> None:
    up, down = (partials([(b"a", sign * 1e308)] * 2, FLOATS) for sign in (1, -1))
    (row,) = FLOATS.finish(FLOATS.merge([up, down])).to_pylist()
    assert math.isnan(row["s"])
    assert math.isnan(row["m"])
