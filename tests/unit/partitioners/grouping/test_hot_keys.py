"""Hot keys equal a recount of the present window and the one before."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.numeric.arrays import LAST_TIME
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.grouping.hot_keys import HotKeys, HotTable, count, crowded, roll
from tests.examples import examples
from tests.unit.partitioners.costs import drawn, some_costs


@kernel
def _offer(table: HotTable, share: float, time: int, key: np.uint64, cost: np.int64) -> int:
    roll(table, time)
    if crowded(table):
        return -1
    return 1 if count(table, share, key, cost) else 0


def offer(hot: HotKeys, share: float, time: int, key: int, cost: int = 1) -> bool:
    while (answer := _offer(hot.table, share, time, np.uint64(key), np.int64(cost))) < 0:
        hot.make_room()
    return bool(answer)


class Recount:
    def __init__(self, length: int) -> None:
        self.length, self.now, self.counts, self.tuples = length, None, Counter[int](), Counter[int]()
        self.before, self.until = 0, dict[int, int]()

    def offer(self, share: float, time: int, key: int, cost: int = 1) -> bool:
        window = time // self.length
        if self.now is None or window > self.now:
            self.before, self.counts, self.now = self.counts.total(), Counter(), window
            self.tuples = Counter()
        self.counts[key] += cost
        self.tuples[key] += 1
        if self.before and self.tuples[key] > 1 and self.counts[key] > share * self.before:
            self.until[key] = self.now + 1
        return self.until.get(key, self.now - 1) >= self.now

    @property
    def hot(self) -> int:
        return sum(until >= self.now for until in self.until.values()) if self.now is not None else 0


@examples(80)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2**64 - 1) | st.integers(0, 9),
            st.integers(-500, 1500) | st.integers(LAST_TIME - 500, LAST_TIME),
        ),
        max_size=200,
    ),
    st.sampled_from([0.0, 0.05, 0.2, 0.7]),
    st.booleans(),
    some_costs,
)
def test_hot_keys_equal_a_recount(
    rows: list[tuple[int, int]], share: float, monotone: bool, some: list[int]
) -> None:
    if monotone:
        rows = [(key % 7, at * 9) for at, (key, _) in enumerate(rows)]
    hot, recount = HotKeys(window_ms=100), Recount(100)
    costs = drawn(some, len(rows)).tolist()
    for row, (key, time) in enumerate(rows):
        assert offer(hot, share, time, key, costs[row]) == recount.offer(share, time, key, costs[row])
        assert hot.hot == recount.hot
        if row % 13 == 0:
            state = hot.snapshot()
            twin = HotKeys(window_ms=100)
            twin.load({name: array.copy() for name, array in state.items()})
            assert all(np.array_equal(twin.snapshot()[name], state[name]) for name in state)
            hot = twin


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01])
def test_a_long_stream_equals_a_recount_in_bounded_memory(share: float) -> None:
    rng = np.random.default_rng(1)
    hot, recount, most = HotKeys(window_ms=100), Recount(100), 0
    for time in range(4000):
        for key in rng.zipf(1.3, 5):
            assert offer(hot, share, time, int(key)) == recount.offer(share, time, int(key))
        most = max(most, hot.nbytes)
    assert hot.hot == recount.hot
    assert most < 500 * 2 * 256 + 4096


def test_at_most_one_key_per_share_becomes_hot_and_none_in_the_first_window() -> None:
    hot = HotKeys(window_ms=1000)
    assert not any(offer(hot, 0.1, time, 7) for time in range(1000))
    for time in range(1000, 2000):
        offer(hot, 0.1, time, time % 9)
        assert hot.hot <= 10
    assert hot.hot == 9


def test_after_a_pause_no_key_is_hot() -> None:
    hot = HotKeys(window_ms=10)
    for time in range(20):
        offer(hot, 0.1, time, 1)
    assert hot.hot == 1
    assert not offer(hot, 0.1, 1000, 1)
    assert hot.hot == 0


def test_the_last_window_of_all_does_not_end() -> None:
    hot, recount = HotKeys(window_ms=100), Recount(100)
    for time in [LAST_TIME - 100] * 20 + [LAST_TIME] * 20 + [0, LAST_TIME - 1, LAST_TIME] * 9:
        assert offer(hot, 0.3, time, time % 3) == recount.offer(0.3, time, time % 3)
        assert hot.hot == recount.hot
    assert hot.hot > 0


@examples(60)
@given(st.lists(st.integers(1, 150), min_size=2, max_size=6), st.sampled_from([0.0, 0.3]))
def test_memory_stays_within_the_bound_of_two_windows(sizes: list[int], share: float) -> None:
    hot = HotKeys(window_ms=100)
    key = 0
    for window, size in enumerate(sizes):
        for _ in range(size):
            key += 1
            offer(hot, share, 100 * window, key)
        assert hot.nbytes <= hot.bound(max(a + b for a, b in pairwise([0, *sizes[: window + 1]])))


def test_one_tuple_makes_no_key_hot_however_few_a_window_has() -> None:
    hot = HotKeys(window_ms=100)
    result = [offer(hot, 1e-3, 100 * window, key) for window in range(20) for key in (window, 99)]
    assert result == [False, False] * 20
    assert [offer(hot, 1e-3, 2000, 7) for _ in range(3)] == [False, True, True]


def test_one_tuple_makes_no_key_hot_whatever_it_costs() -> None:
    hot = HotKeys(window_ms=100)
    for window in range(5):
        assert not offer(hot, 1e-3, 100 * window, 7, 1_000_000)
    assert offer(hot, 1e-3, 450, 7)


def test_all_keys_of_two_windows_may_be_kept() -> None:
    hot = HotKeys(window_ms=100)
    for key in range(1 + 2 * 96):
        for _ in range(2):  # one tuple makes no key hot
            offer(hot, 0.0, 100 * ((key + 95) // 96), key)
    hot.make_room()
    assert hot.bound(96) < hot.nbytes == hot.bound(2 * 96)
