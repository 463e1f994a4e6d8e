"""Values at the ends of int64 and float64 go through combiner, blobs, state and sliding windows unharmed."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.twostep import json_rows
from tests.examples import examples
from tests.unit.twostep.pipe import EVERYTHING, INVERTIBLE, Pipe, Row, direct, feed, plan_of

MIN, MAX = -(2**63), 2**63 - 1
TREE = INVERTIBLE | {"lo": "min(i)"}
EITHER = pytest.mark.parametrize("aggregates", [INVERTIBLE, TREE], ids=["invertible", "tree"])


def slid(aggregates: dict[str, str], values: list[int | None], panes: int) -> tuple[Pipe, list[Row]]:
    """One value a pane and micro-batch, two keys in turn, under windows of this many panes."""
    pipe, rows = Pipe(plan_of(aggregates, panes), buckets=1), []
    for pane, value in enumerate(values):
        rows += feed(pipe, [(pane % 2, [(pane, b"ab"[pane % 2 : pane % 2 + 1], value, None)], 10 * pane)])
        pipe.step()
    pipe.end()
    return pipe, rows


@EITHER
def test_a_window_slides_over_the_least_int64_and_over_sums_that_do_not_fit(
    aggregates: dict[str, str],
) -> None:
    pipe, rows = slid(aggregates, [1, 2, MIN, MAX, MIN, MAX, 3, 4, None, 5], 5)
    sums = [row["s"] for row in pipe.found]
    assert pipe.results() == direct(pipe.plan, rows)
    assert sums.count(None) > 1
    assert sums[-1] == 5


@EITHER
@examples(60)
@given(
    values=st.lists(st.one_of(st.none(), st.sampled_from([MIN, MAX, -1]), st.integers(MIN, MAX)), max_size=9),
    panes=st.integers(1, 4),
)
def test_sliding_sums_over_all_of_int64_are_those_of_python(
    aggregates: dict[str, str], values: list[int | None], panes: int
) -> None:
    pipe, rows = slid(aggregates, values, panes)
    assert pipe.results() == direct(pipe.plan, rows)


def test_an_infinite_sum_of_finite_floats_is_written_as_such_and_leaves_with_its_window() -> None:
    pipe = Pipe(plan_of(EVERYTHING, 2), buckets=1)
    feed(pipe, [(0, [(0, b"a", 1, 1e308), (1, b"a", 1, 1e308), (2, b"a", 1, 1.0), (3, b"a", 1, 2.0)], 0)])
    pipe.end()
    sums = {start: row["s"] for (start, _), row in pipe.results().items()}
    assert sums == {-10: 1e308, 0: math.inf, 10: 1e308, 20: 3.0, 30: 2.0}
    written = json_rows(pa.Table.from_pylist(pipe.found, pipe.plan.result_schema)).to_pylist()
    assert [json.loads(row)["s"] for row in written] == [1e308, "Infinity", 1e308, 3.0, 2.0]


def test_a_sum_that_does_not_fit_is_null_in_a_written_row() -> None:
    pipe, _ = slid({"s": "sum(i)"}, [MAX, None, MAX], 3)
    written = [
        json.loads(row)
        for row in json_rows(pa.Table.from_pylist(pipe.found, pipe.plan.result_schema)).to_pylist()
    ]
    assert [row["s"] for row in written if row["key"] == "a"] == [MAX, MAX, None, MAX, MAX]
