"""The Q-table: argmax without scanning, exact holders, who stays when a window begins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.numeric.arrays import NEVER
from evenflow.partitioners.dalton.q_table import (
    COLD,
    CommonRows,
    Home,
    admit,
    adopt,
    best_of,
    defer,
    find,
    hold,
    learn,
    nth_holder,
    purge,
    slide_on,
)
from evenflow.partitioners.dalton.split_keys import SplitKeyTable
from tests.examples import examples

few = examples(60)


def enter(made: SplitKeyTable, key: int, *, home: int = 0, home_slide: int = NEVER, expiry: int = 5) -> int:
    if made.full:
        made.grow()
    row = find(made.table, np.uint64(key))
    return int(admit(made.table, np.uint64(key), row, Home(home, home_slide, 0), expiry))


@few
@given(
    st.integers(1, 6),
    st.integers(0, 5),
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from([-1.0, -0.5, 0.0, 0.25])), max_size=60),
    st.sampled_from([0.1, 0.5, 1.0]),
)
def test_the_best_worker_is_the_argmax_home_first_on_a_tie(
    workers: int, home: int, rewards: list[tuple[int, float]], gamma: float
) -> None:
    made = SplitKeyTable(workers)
    home %= workers
    row = enter(made, 9, home=home)
    t = made.table
    for worker, reward in rewards:
        learn(t, row, worker % workers, reward, gamma)
        q = t.q[row]
        assert best_of(t, row) == (home if q[home] == q.max() else q.argmax())
        assert np.delete(q, best_of(t, row)).max(initial=-np.inf) <= t.bound[row]


@few
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2)), max_size=120),
    st.integers(1, 5),
)
def test_holders_are_the_workers_of_the_windows_slides(
    steps: list[tuple[int, int, int]], slides: int
) -> None:
    made = SplitKeyTable(5, cap=2)
    rows = [enter(made, key, home=key) for key in range(4)]
    t, now, sent = made.table, 0, []
    for key, worker, gap in steps:
        if gap:
            now += gap
            slide_on(t, now - slides + 1)
        hold(t, rows[key], worker, now, now - slides + 1)
        sent.append((now, key, worker))
        exact = {k: {w for s, other, w in sent if other == k and s > now - slides} for k in range(4)}
        assert made.holders(now - slides + 1) == exact
        assert [t.row[r]["held"] for r in rows] == [len(exact[k]) for k in range(4)]
        assert t.meta["capped"] == sum(len(holders) >= t.meta["cap"] for holders in exact.values())
        held = sorted(exact[key])
        assert [nth_holder(t, rows[key], i, now - slides + 1) for i in range(len(held))] == held


@few
@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 6)), max_size=80), st.integers(1, 7))
def test_a_new_window_keeps_hot_rows_and_those_held_away_from_home(
    entered: list[tuple[int, int]], window: int
) -> None:
    made, expected = SplitKeyTable(3), {}
    for key, expiry in entered:
        row = enter(made, key, expiry=expiry)
        made.table.row[row]["expiry"] = expiry
        hold(made.table, row, key % 3, 4, 0)
        expected[key] = expiry
    purge(made.table, window, 0)
    hot = {key for key, expiry in expected.items() if expiry >= window}
    assert set(made.values()) == hot
    assert made.hot == len(hot)
    assert set(made.holders(0)) == hot | {key for key in expected if key % 3 != 0}
    for key in expected:
        row = find(made.table, np.uint64(key))
        assert (row >= 0) == (key in made.holders(0))
        assert row < 0 or made.table.key[row] == key


def test_home_is_a_holder_from_the_start_when_it_had_the_key_in_the_window() -> None:
    made = SplitKeyTable(4)
    for key, slide in ((1, NEVER), (2, -1), (3, 0), (4, 7)):
        enter(made, key, home=2, home_slide=slide)
    assert made.holders(0) == {1: set(), 2: set(), 3: {2}, 4: {2}}


@pytest.mark.parametrize("deferring", [True, False])
def test_state_is_the_same_after_growing_and_loading(deferring: bool) -> None:
    made = SplitKeyTable(4, deferring=deferring, cap=3)
    for key in range(100):
        row = enter(made, key * 7919, home=key % 4)
        learn(made.table, row, key % 3, -0.5, 0.1)
    again = SplitKeyTable(4, deferring=deferring, cap=3)
    again.load(made.state())
    for name, array in made.state().items():
        assert again.state()[name].tolist() == array.tolist()
    assert again.values().keys() == made.values().keys()
    assert len(again) == 100
    assert again.nbytes > 0


@pytest.mark.parametrize("deferring", [False, True])
def test_memory_stays_within_its_bound_row_by_row(deferring: bool) -> None:
    made = SplitKeyTable(3, deferring=deferring)
    for rows in range(1, 70):
        enter(made, 7 * rows)
        if made.full:
            made.grow()
        assert len(made) == rows
        assert made.nbytes == made.bound(rows)


def take_over(made: SplitKeyTable, values: dict[int, list[float]]) -> None:
    """`adopt` these rows in statistics window 6, all at home on worker 0."""
    while len(made.table.key) < len(made) + len(values) + 1:
        made.grow()
    keys = np.array(list(values), np.uint64)
    rows = np.array(list(values.values()), np.float64).reshape(len(values), made.table.q.shape[1])
    homes, slides = np.zeros(len(keys), np.int32), np.full(len(keys), NEVER)
    adopt(made.table, CommonRows(keys, rows, homes, slides), 0, 6)


def test_rewards_kept_back_are_learned_on_top_of_the_values_taken_over() -> None:
    made = SplitKeyTable(3, deferring=True)
    row = enter(made, 9)
    made.table.q[row] = -0.125
    made.table.retention[row] = 0.5, 1.0, 0.25
    made.table.gain[row] = -0.25, 0.0, 0.125
    take_over(made, {9: [-1.0, -0.75, -2.0], 4: [-0.5, -1.0, -1.5]})
    assert {key: q.tolist() for key, q in made.values().items()} == {
        9: [-0.75, -0.75, -0.375],
        4: [-0.5, -1.0, -1.5],
    }
    t = made.table
    row = find(t, np.uint64(9))
    assert best_of(t, row) == 2
    assert t.bound[row] == -0.75
    assert (t.retention == 1).all()
    assert (t.gain == 0).all()


tables = st.dictionaries(st.integers(0, 7), st.lists(st.floats(-2, 0.5), min_size=3, max_size=3), max_size=8)


@few
@given(
    st.sets(st.integers(0, 7)),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2), st.floats(-1, 0.5)), max_size=60),
    tables,
    st.floats(0.01, 1),
)
def test_a_table_taken_over_equals_one_held_all_along_that_learned_each_reward_at_once(
    known: set[int],
    rewards: list[tuple[int, int, float]],
    values: dict[int, list[float]],
    gamma: float,
) -> None:
    waiting, knowing = SplitKeyTable(3, deferring=True), SplitKeyTable(3)
    rows = {key: enter(waiting, key) for key in known}
    for key in values:
        knowing.table.q[enter(knowing, key)] = values[key]
    for key, worker, reward in rewards:
        if key in rows:
            defer(waiting.table, rows[key], worker, reward, gamma)
            if key in values:
                t = knowing.table
                row = find(t, np.uint64(key))
                learn(t, row, worker, reward, gamma)
    take_over(waiting, values)
    expected, t = knowing.values(), waiting.table
    assert waiting.values().keys() == expected.keys()
    assert waiting.hot == len(values)
    for key, q in waiting.values().items():
        np.testing.assert_allclose(q, expected[key], atol=1e-12)
        row = find(t, np.uint64(key))
        assert t.row[row]["expiry"] == 7
        assert best_of(t, row) == q.argmax()
    assert all(t.row[row]["expiry"] in (7, COLD) for row in range(len(waiting)))
    assert (t.retention == 1).all()
    assert (t.gain == 0).all()
