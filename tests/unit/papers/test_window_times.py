"""The priced times of 004's windows: which windows there are, what a stage counts, and what it takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.numeric.arrays import Int32s, Int64s
from papers.cells.run_plan import RunPlan, StreamCache
from papers.data import read_rides
from papers.paper_004 import window_times
from papers.paper_004.window_times import (
    AREAS,
    QUERIES,
    READINGS,
    ROUTES,
    Stage,
    distinct_keys,
    overlapping,
    row_times,
    staged,
    taxi_times,
    time_cell,
)
from papers.unit_costs import Costs, unit_costs

ROUND = Costs(tuple=1, make=10, send=100, receive=1_000, hold=0, emit=10_000, hear=0)
PLACES, KEYS = 4, 5
TUPLES = st.lists(st.tuples(st.integers(0, PLACES - 1), st.integers(0, KEYS - 1)), min_size=1, max_size=40)


def ints(*values: int) -> Int32s:
    return np.array(values, np.int32)


def longs(*values: int) -> Int64s:
    return np.array(values, np.int64)


def a_stage() -> Stage:
    """Two windows of two workers. In the first one key 0 is at both, and worker 1 also has key 1."""
    workers, codes, windows = ints(0, 0, 1, 1, 0), ints(0, 0, 0, 1, 2), longs(0, 0, 0, 0, 1)
    return staged(workers, codes, windows, n=2, count=2)


def test_windows_overlap_and_the_last_one_ends_with_the_last_tuple() -> None:
    result = overlapping(longs(0, 10, 20, 30, 40), span=20, slide=10)
    assert result.count == 3
    assert result.rows.tolist() == [0, 1, 1, 2, 2, 3]
    assert result.numbers.tolist() == [0, 0, 1, 1, 2, 2]


def test_times_shorter_than_a_window_are_one_window() -> None:
    result = overlapping(longs(5, 6, 7), span=100, slide=10)
    assert (result.count, result.rows.tolist()) == (1, [0, 1, 2])


def test_a_stage_by_hand() -> None:
    stage = a_stage()
    assert stage.tuples.tolist() == [[2, 2], [1, 0]]
    assert stage.partials.tolist() == [[1, 2], [1, 0]]
    assert stage.gamma.tolist() == [3, 1]


def test_the_time_of_a_window_is_that_of_its_slowest_worker_and_of_the_aggregation() -> None:
    rows = longs(2, 1)
    gathered = row_times(a_stage(), rows, ROUND, skips=False)
    assert gathered.workers.tolist() == [2 + 2 * 110, 1 + 110]
    assert gathered.aggregation.tolist() == [3 * 1_000 + 2 * 10_000, 1_000 + 10_000]
    direct = row_times(a_stage(), rows, ROUND, skips=True)
    assert direct.workers.tolist() == [2 + 2 * 10_010, 1 + 10_010]
    assert direct.aggregation.tolist() == [0, 0]
    assert (gathered + direct).both.tolist() == [23_222 + 20_022, 11_111 + 10_011]


def test_last_cells_of_taxis_are_gathered_only_where_a_worker_does_not_know_them() -> None:
    fares = staged(ints(0, 1), ints(0, 0), longs(0, 0), n=2, count=2)
    split, whole = (taxi_times(a_stage(), fares, ROUND, skips=skips) for skips in (False, True))
    assert split.aggregation.tolist() == [(2 + 3) * 1_000, 1_000]
    assert whole.aggregation.tolist() == [2 * 1_000, 0]
    assert split.workers.tolist() == whole.workers.tolist() == [2 + 3 * 110, 1 + 110]


@given(TUPLES)
def test_keys_of_places_are_the_same_by_a_table_and_by_sorting(tuples: list[tuple[int, int]]) -> None:
    places, codes = (np.array(column) for column in zip(*tuples, strict=True))
    expected = [len({code for place, code in tuples if place == at}) for at in range(PLACES)]
    assert distinct_keys(places, codes.astype(np.int32), PLACES).tolist() == expected
    # A place far away makes a table of all pairs too large.
    far = distinct_keys(np.append(places, 10_000), np.append(codes, 0).astype(np.int32), 10_001)
    assert far[:PLACES].tolist() == expected


@given(TUPLES)
def test_a_rule_that_splits_no_key_never_takes_longer_if_it_skips_the_aggregation(
    tuples: list[tuple[int, int]],
) -> None:
    codes = np.array([code for _, code in tuples], np.int32)
    stage = staged(codes % 2, codes, np.zeros(len(codes), np.int64), n=2, count=1)
    rows = distinct_keys(np.zeros(len(codes), np.int64), codes, 1)
    assert stage.gamma.tolist() == rows.tolist()
    skips, gathers = (row_times(stage, rows, unit_costs(), skips=skips) for skips in (True, False))
    assert skips.both[0] <= gathers.both[0]


@pytest.fixture
def rides(tmp_path: Path) -> RunPlan:
    """A folder with 60 rides of 20 taxis within 59 minutes, a minute apart, in the format of both files."""
    lines = [f"T{ride % 20},0,{60 * ride},{ride % 7},1,{ride % 5},1,2.5,0" for ride in range(60)]
    for name in ("frequent_route", "profitable_cell"):
        (tmp_path / f"debs_{name}_compact_ride_10000.csv").write_text("\n".join(lines) + "\n")
    return RunPlan("quick", (1, 2), tmp_path)


def test_the_cells_of_rides_are_in_the_order_of_the_drop_offs_and_share_their_numbers(rides: RunPlan) -> None:
    result = read_rides(rides.data)
    assert result.taxis.key_count == 20
    assert len(result.pickups) == len(result.dropoffs) == len(result.taxis) == 60
    assert (result.pickups.times == result.taxis.times).all()
    # Cells 0 to 4 are begun in and ended in, so both have the numbers of 7 cells.
    assert result.pickups.key_count == result.dropoffs.key_count == 7
    assert (result.pickups.codes[:5] == result.dropoffs.codes[:5]).all()


@pytest.mark.parametrize("query", [ROUTES, AREAS])
def test_a_query_has_times_for_every_seed_and_both_readings(rides: RunPlan, query: str) -> None:
    result = {}
    for rule in ("hashing", "shuffle"):
        cell = time_cell(rides, query, 4, rule)
        result[rule] = window_times.measure(cell, StreamCache(cell.stream, rides), rides)
        assert {len(series) for series in result[rule].values()} == {len(rides.more_seeds)} == {4}
        for reading in READINGS:
            assert all(value > 0 for value in result[rule][f"{reading} mean"])
            assert all(0 <= share < 1 for share in result[rule][f"{reading} share"])
    assert result["shuffle"]["direct mean"] == result["shuffle"]["gather mean"]
    assert result["hashing"]["direct mean"] < result["hashing"]["gather mean"]


def test_cells_of_all_queries_are_measured_with_the_kept_costs() -> None:
    plan = RunPlan("quick", (1,), Path())
    cells = window_times.cells(plan)
    assert {cell.stream.kind for cell in cells} == set(QUERIES.values())
    assert all(unit_costs().mark in cell.experiment for cell in cells)
