"""The imbalance of event-time windows while they close is the one that the papers measure afterwards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.metrics import window_imbalance, worker_loads
from evenflow.settings import Query
from evenflow.windows import END_MARK
from partitioner_service.routing import window_loads
from partitioner_service.routing.window_loads import WindowLoads, block_loads

N = 4
SLIDE = 10
blocks = st.lists(
    st.lists(st.tuples(st.integers(-3, 200), st.integers(0, N - 1)), min_size=1, max_size=30),
    min_size=1,
    max_size=5,
)


def query(panes: int) -> Query:
    return Query(window=panes * SLIDE, slide=SLIDE)


def noted(kept: WindowLoads, block: list[tuple[int, int]], *, workers: int = N) -> None:
    panes = np.array([pane for pane, _ in block])
    at = np.array([worker for _, worker in block])
    kept.note(block_loads(at, panes, worker_loads(at, N)), workers=workers)


@given(blocks, st.sampled_from([1, 3]))
def test_the_newest_closed_window_is_measured_as_in_the_papers(
    some: list[list[tuple[int, int]]], panes: int
) -> None:
    kept, routed = WindowLoads(query(panes)), []
    for block in some:
        noted(kept, block)
        routed += block
    closed = sorted(pane for pane, _ in routed)[len(routed) // 2] + 1
    kept.pass_to(closed * SLIDE)
    ends, expected = window_imbalance(
        np.array([worker for _, worker in routed]),
        np.array([pane for pane, _ in routed]),
        N,
        panes_per_window=panes,
    )
    newest = max(pane for pane, _ in routed if pane < closed)
    assert kept.last is not None
    assert kept.last[0] == (newest + 1) * SLIDE
    assert kept.last[1] == pytest.approx(expected[ends.tolist().index(newest)])


@given(st.lists(st.tuples(st.integers(-100, 100), st.integers(0, N - 1)), min_size=1))
def test_every_tuple_is_counted_in_its_pane(block: list[tuple[int, int]]) -> None:
    panes, at = np.array([pane for pane, _ in block]), np.array([worker for _, worker in block])
    present, loads, last = block_loads(at, panes, worker_loads(at, N))
    assert last == panes.max()
    for pane, row in zip(present, loads, strict=True):
        assert (row == worker_loads(at[panes == pane], N)).all()
    assert loads.sum() == len(block)


def test_a_window_that_is_open_is_not_told_and_the_end_closes_all() -> None:
    kept = WindowLoads(query(1))
    noted(kept, [(0, 0), (0, 0), (5, 0), (5, 1), (5, 2), (5, 3)])
    kept.pass_to(5)
    assert kept.last is None
    kept.pass_to(SLIDE)
    assert kept.last == (10, 0.75)
    kept.pass_to(END_MARK)
    assert kept.last == (60, 0.0)


def test_of_a_window_in_which_the_number_of_workers_changed_nothing_is_told() -> None:
    kept = WindowLoads(query(2))
    noted(kept, [(0, 0), (1, 0)], workers=2)
    noted(kept, [(2, 0), (3, 0), (3, 1)], workers=3)
    kept.pass_to(2 * SLIDE)
    assert kept.last == (20, 0.5)
    kept.pass_to(3 * SLIDE)
    assert kept.last is None
    kept.pass_to(4 * SLIDE)
    assert kept.last == (40, pytest.approx(2 / 3 - 1 / 3))


def test_of_a_window_that_was_forgotten_in_part_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_loads, "_MOST_PANES", 4)
    kept = WindowLoads(query(2))
    noted(kept, [(pane, 0) for pane in range(5)])
    kept.pass_to(4 * SLIDE)
    assert kept.last is None, "panes 0 to 2 are gone"
    kept.pass_to(5 * SLIDE)
    assert kept.last == (50, 0.75)


def test_of_a_block_that_spans_very_many_panes_nothing_is_kept_and_later_windows_are_told() -> None:
    kept = WindowLoads(query(2))
    noted(kept, [(0, 0), (1_000_000, 0)])
    kept.pass_to(1_000_001 * SLIDE)
    assert kept.last is None
    noted(kept, [(1_000_001, 0), (1_000_002, 1)])
    kept.pass_to(1_000_002 * SLIDE)
    assert kept.last is None, "half of this window was in that block"
    kept.pass_to(1_000_003 * SLIDE)
    assert kept.last == ((1_000_003) * SLIDE, 0.25)


def test_a_partition_that_is_taken_over_and_lies_behind_takes_nothing_back() -> None:
    kept = WindowLoads(query(3))
    even = [(pane, worker) for pane in range(6) for worker in range(N)]
    noted(kept, even)
    kept.pass_to(6 * SLIDE)
    assert kept.last == (60, 0.0)
    noted(kept, [(2, 0), (4, 0), (5, 0)])
    kept.pass_to(5 * SLIDE)
    assert kept.last == (60, 0.0), "its windows were told before"
