"""`emit = "top(K, COLUMN)"`: of every window the rows that sorting all of them puts first, whoever closes
it when.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.grammar.emission import Emission
from evenflow.twostep import Tally, merge_leaders, reduce_leaders
from evenflow.twostep.reducing.top import _first
from tests.examples import examples
from tests.unit.twostep.pipe import INPUTS, ROUTED, SLIDE, Dict, Pipe, feed, plan_of, streams

COLUMNS = {"n": "count", "s": "sum(i)", "lo": "min(f)", "f": "sum(f)"}


class Merging:
    """Blobs in, results out, the buckets in any order and in any micro-batches."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.state = Dict()
        self.sent: list[bytes] = []
        self.found: list[dict[str, Any]] = []
        self.told: list[Tally] = []

    def lead(self, blobs: list[list[bytes]], buckets: list[int]) -> None:
        plan, layout = self.pipe.plan, self.pipe.layout
        for bucket in buckets:
            state = self.pipe.states[bucket]
            self.sent += reduce_leaders(plan, layout, state, blobs[bucket], on_tally=self.told.append)

    def merge(self) -> None:
        plan, layout = self.pipe.plan, self.pipe.layout
        for table in merge_leaders(plan, layout, self.state, self.sent, on_tally=self.told.append):
            self.found += table.to_pylist()
        self.sent = []


def sorted_rows(every: Pipe, emission: Emission) -> list[dict[str, Any]]:
    """The first rows of each window of `all`, by Python's sort."""
    windows: dict[int, list[dict[str, Any]]] = {}
    for row in sorted(every.found, key=lambda row: row["key"]):
        windows.setdefault(row["window_end"], []).append(row)
    result = []
    for end in sorted(windows):
        rows = sorted(windows[end], key=lambda row: _place(row[emission.column], emission.ascending))
        of_all = sum(row.get("_tuples", row.get("n")) for row in rows)
        result += [
            row | {"rank": rank, "_tuples_of_all": of_all}
            for rank, row in enumerate(rows[: emission.rows], 1)
        ]
    return result


def _place(value: Any, ascending: bool) -> Any:
    if value is None or value != value:
        return 2 if value is None else 1, 0
    return 0, value if ascending else -value


@examples(25)
@given(
    stream=streams(),
    panes=st.sampled_from([1, 2, 5]),
    rows=st.sampled_from([1, 2, 4]),
    order=st.sampled_from(["n", "s", "lo", "f, ascending", "s, ascending"]),
    emit_from=st.sampled_from([None, 7]),
    data=st.data(),
)
def test_what_comes_out_is_what_sorting_all_rows_puts_first(
    stream: list[Any], panes: int, rows: int, order: str, emit_from: int | None, data: st.DataObject
) -> None:
    aggregates = COLUMNS if "f" in order or "lo" in order else {"n": "count", "s": "sum(i)"}
    if order != "n" and data.draw(st.booleans()):
        aggregates = {name: spec for name, spec in aggregates.items() if name != "n"}
    top, every = (
        Pipe(plan_of(aggregates, panes, emit=emit, emit_from=emit_from), buckets=2)
        for emit in (f"top({rows}, {order})", "all")
    )
    merging = Merging(top)
    for batch in [*stream, None]:
        for pipe in (top, every):
            if batch is not None:
                feed(pipe, batch)
        if batch is None:
            every.end()
            for routed in range(ROUTED):
                top.write(routed, [], dict.fromkeys(range(INPUTS), 2**62))
        else:
            every.step()
        blobs = top.combine()
        first = data.draw(st.integers(0, 1))
        merging.lead(blobs, [first])
        if data.draw(st.booleans()):
            merging.merge()
        merging.lead(blobs, [1 - first])
        merging.merge()
    assert merging.found == sorted_rows(every, top.plan.emission)
    assert "rows" not in merging.state, "nothing waits any more"
    told = sum(merging.told, Tally())
    assert told.rows == len(merging.found)
    assert told.windows == len({row["window_end"] for row in merging.found})


def test_a_window_waits_for_a_bucket_that_has_no_row_of_it() -> None:
    pipe = Pipe(plan_of(COLUMNS, 1, emit="top(3, n)"), buckets=3)
    merging = Merging(pipe)
    feed(pipe, [(0, [(0, b"a", 1, 1.0)], 0), (0, [], 2 * SLIDE)])
    blobs = pipe.combine()
    for bucket in range(3):
        assert merging.found == []
        merging.lead(blobs, [bucket])
        merging.merge()
    assert [(row["window_start"], row["key"], row["rank"]) for row in merging.found] == [(0, b"a", 1)]


@examples(80)
@given(
    values=st.lists(
        st.sampled_from([None, math.nan, 0.0, -0.0, 1.5, -1.5, math.inf, -math.inf]), max_size=60
    ),
    rows=st.integers(1, 6),
    ascending=st.booleans(),
)
def test_nan_is_behind_all_numbers_and_null_last(
    values: list[float | None], rows: int, ascending: bool
) -> None:
    keys = [b"%d" % (7 * at % 61) for at in range(len(values))]
    emission = Emission(mode="top", rows=rows, column="v", ascending=ascending)
    result = _first(emission, pa.array(values, pa.float64()), pa.array(keys, pa.large_binary()))
    expected = sorted(range(len(values)), key=lambda at: (_place(values[at], ascending), keys[at]))
    assert np.array_equal(result, expected[:rows])


@pytest.mark.parametrize(
    ("emit", "message"),
    [
        ("some", "is none of 'all', 'changes'"),
        ("top(0, n)", "1 to 10,000 rows"),
        ("top(10001, n)", "1 to 10,000 rows"),
        ("top(10)", "is none of"),
        ("top(10, m)", "'m' is no result column; order by an aggregate .* n, s, lo, f"),
        ("top(3, all)", "'all' is a list"),
    ],
)
def test_an_order_that_cannot_be_is_refused(emit: str, message: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=message):
        plan_of(COLUMNS | {"all": "collect(i, 2)"}, 2, emit=emit)


@pytest.mark.parametrize(("emit", "name"), [("changes", "gone"), ("top(2, rank)", "rank")])
def test_an_aggregate_cannot_have_the_name_of_a_column_that_the_mode_adds(emit: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} cannot name an aggregate: with emit"):
        plan_of({name: "count"}, 2, emit=emit)
    assert plan_of({name: "count"}, 2).result_schema.names[-1] == name
