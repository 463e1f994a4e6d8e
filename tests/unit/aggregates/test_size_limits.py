"""Values beyond their room are null, for any cut and any order, for every aggregate in the registry."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.partials.clustering import clusters_room
from evenflow.aggregates.plan import Output
from evenflow.limits import ENTRY_BYTES, ROW_BYTES, json_row, partial_row
from evenflow.settings import Query
from evenflow.wire.cut import weights
from tests.unit.aggregates.test_laws import (
    ROWS,
    SETTINGS,
    TYPES,
    Rows,
    are_bounds,
    exact_plans,
    grouped,
    in_order,
    is_close,
    plans,
    rows_table,
    values_of,
)

SMALL = {"max_state_bytes": 160, "max_result_bytes": 110}
LONG = ["a" * 40, "a" * 40 + "b", "é" * 60, "é" * 60 + "x", "b" * 111, "\U0001f600" * 28, "Z" * 300, "zz"]
LONG_ROWS = st.lists(
    st.tuples(
        st.integers(-1, 1),
        st.sampled_from([b"a", b"b"]),
        st.integers(0, 3),
        st.integers(-20, 20),
        st.integers(-20, 20).map(float),
        st.one_of(st.none(), st.sampled_from(["", "a", "ab", *LONG])),
        st.none(),
        st.booleans(),
        st.none(),
    ),
    max_size=40,
)


def small(plan: AggregatePlan, column: str | None) -> AggregatePlan:
    """The same plan with little room."""
    ((_, aggregate, call),) = plan.outputs
    spec = aggregate.name
    if call.column:
        written = [str(one) for one in _written(aggregate.name, call.options)]
        spec += f"({', '.join([call.column, *written])})"
    types = {column: TYPES[column]} if column in TYPES else {}
    return AggregatePlan.of(Query(aggregates={"out": spec}, types=types, **SMALL))


def _written(name: str, options: tuple[Any, ...]) -> list[Any]:
    if name == "quantile":
        return [options[0], *(["exact"] if options[1] else [])]
    if name == "top_k":
        return [options[0], *([options[1]] if options[1] else [])]
    return list(options)


def size(value: Any) -> int:
    return ENTRY_BYTES + (len(value.encode()) if isinstance(value, str) else 0)


def has_room(output: Output, found: Any, tuples: list[tuple[int, Any]]) -> bool:
    """Whether the value of these (time, value) fits, by plain Python. found: what the engine says, for
    sketches.
    """
    _, aggregate, call = output
    name, values = aggregate.name, [value for _, value in tuples if value is not None]
    order = (lambda v: v.encode()) if values and isinstance(values[0], str) else (lambda v: v)
    timed = sorted(((t, v) for t, v in tuples if v is not None), key=lambda one: (one[0], order(one[1])))
    different = sum(map(size, set(values)))
    if not values:
        return True
    if name in ("min", "max", "first", "last"):
        last = [v for t, v in timed if t == timed[-1][0]][-1]
        picked = {
            "min": min(values, key=order),
            "max": max(values, key=order),
            "first": timed[0][1],
            "last": last,
        }
        return size(picked[name]) - ENTRY_BYTES <= call.room.result
    if name == "collect":
        return sum(size(v) for _, v in timed[: call.options[0]]) <= call.room.result
    if name == "clusters":
        return different <= clusters_room(call)
    if name == "quantile" and not call.options[1]:
        return different <= call.room.state  # whole numbers below 256 have a bin each
    if name in ("count_distinct", "quantile") and call.options and call.options[-1]:
        return different <= call.room.state
    if name == "top_k" and not call.options[1]:
        counts = sorted(set(values), key=lambda v: (-values.count(v), order(v)))
        return different <= call.room.state and sum(map(size, counts[: call.options[0]])) <= call.room.result
    return True


@pytest.mark.parametrize(
    ("plan", "column"), [case for case in plans() if case.values[1] in ("i", "f", "s", "b", None)]
)
@SETTINGS
@given(rows=LONG_ROWS, data=st.data())
def test_a_value_is_null_where_its_tuples_take_more_than_their_room_for_any_routing_and_any_cut(
    plan: AggregatePlan, column: str | None, rows: Rows, data: st.DataObject
) -> None:
    plan = small(plan, column)
    (output,) = plan.outputs
    workers = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    parts = [[row for row, worker in zip(rows, workers, strict=True) if worker == w] for w in range(4)]
    merged = plan.merge([plan.combine(rows_table(plan, part)) for part in parts])
    expected = grouped(rows, column)
    for table in (merged, plan.combine(rows_table(plan, rows))):
        result, beyond = values_of(plan, table), 0
        for at, value in result.items():
            if has_room(output, value, expected[at]):
                assert _is_right(output, value, expected[at]), (at, value, expected[at])
            else:
                assert value is None, (at, value, expected[at])
                beyond += 1
        if not (output.aggregate.name == "top_k" and output.call.options[1]):
            assert plan.unfit(table) == beyond
        table.validate(full=True)


def _is_right(output: Output, value: Any, tuples: list[tuple[int, Any]]) -> bool:
    name, call = output.aggregate.name, output.call
    values = [one for _, one in tuples if one is not None]
    if name != "top_k" or not call.options[1] or not values:
        return is_close(output, value, tuples)
    k, counters = call.options
    longest = max(map(size, values))
    if value is None:
        return k * longest > call.room.result
    fit = min(counters, call.room.state // longest)
    return are_bounds(value, Counter(values), k, fit)


@pytest.mark.parametrize(("plan", "column"), exact_plans())
@SETTINGS
@given(a=LONG_ROWS, b=LONG_ROWS, c=ROWS)
def test_merge_is_associative_and_commutative_with_little_room(
    plan: AggregatePlan, column: str | None, a: Any, b: Any, c: Any
) -> None:
    plan = small(plan, column)
    x, y, z = (plan.combine(rows_table(plan, rows)) for rows in (a, b, c))
    left, right = plan.merge([plan.merge([x, y]), z]), plan.merge([x, plan.merge([y, z])])
    assert in_order(left) == in_order(right) == in_order(plan.merge([z, y, x]))


@pytest.mark.parametrize(("plan", "column"), plans())
@SETTINGS
@given(rows=LONG_ROWS)
def test_a_row_of_partials_takes_no_more_than_the_limits_say(
    plan: AggregatePlan, column: str | None, rows: Rows
) -> None:
    plan = small(plan, column)
    table = plan.merge([plan.combine(rows_table(plan, rows))])
    fixed = 4_096 * 5 + 200  # registers of HyperLogLog, and columns of fixed width
    most = partial_row(key=1, state=SMALL["max_state_bytes"], result=SMALL["max_result_bytes"]) + fixed
    for batch in table.combine_chunks().to_batches():
        assert weights(batch).max(initial=0) <= most


def test_the_columns_of_a_query_share_the_room_evenly() -> None:
    plan = AggregatePlan.of(
        Query(
            aggregates={
                "a": "min(s)",
                "b": "collect(s, 5)",
                "c": "count_distinct(s, exact)",
                "d": "top_k(s, 3)",
                "e": "sum(f)",
            },
            types={"s": "string"},
            max_state_bytes=3_000,
            max_result_bytes=3_000,
        )
    )
    rooms = {output.call.room for output in plan.outputs}
    # The set of all texts is one column for two aggregates. Three results are texts or lists.
    assert [(room.state, room.result) for room in rooms] == [(3_000, 1_000)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"max_state_bytes": ROW_BYTES},
            "a row of partials could have .* lower max_state_bytes or max_result_bytes",
        ),
        (
            {"max_result_bytes": 5_000_000},
            "a result in JSON could have .* lower max_result_bytes or max_key_bytes",
        ),
        ({"max_key_bytes": 1_000_000}, "a result in JSON could have"),
        ({"max_value_bytes": 8_000_001}, "less than or equal to 8000000"),
    ],
)
def test_settings_whose_rows_would_not_fit_into_a_record_are_refused(
    settings: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Query(**settings)


def test_the_usual_settings_leave_room() -> None:
    query = Query()
    assert json_row(key=query.max_key_bytes, result=query.max_result_bytes) <= ROW_BYTES
