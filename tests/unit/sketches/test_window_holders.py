"""The window of holders equals a recount of the tuples in it, whatever the pool went through."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.numeric.arrays import LAST_TIME
from evenflow.numeric.kernels import kernel
from evenflow.sketches.window_holders import HolderPool, WindowHolders, find
from tests.examples import examples

few = examples(80)
SIZES = [(1000, 100), (300, 100), (100, 100), (1000, 1000), (5, 1)]
rows = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.integers(0, 4),
        st.integers(-3000, 4000) | st.integers(LAST_TIME - 4000, LAST_TIME),
    ),
    min_size=1,
    max_size=150,
)


@kernel
def is_held(pool: HolderPool, key: np.uint64, worker: int) -> bool:
    return find(pool, key, worker) >= 0


class Recount:
    """Keeps every tuple and counts again."""

    def __init__(self, window_ms: int, slide_ms: int) -> None:
        self.slides, self.slide_ms = window_ms // slide_ms, slide_ms
        self.tuples: list[tuple[int, int, int]] = []
        self.now: int | None = None

    def advance(self, time: int) -> None:
        slide = time // self.slide_ms
        self.now = slide if self.now is None else max(self.now, slide)
        self.tuples = [t for t in self.tuples if t[2] > self.now - self.slides]

    def touch(self, key: int, worker: int) -> bool:
        new = (key, worker) not in self.pairs
        self.tuples.append((key, worker, self.now or 0))
        return new

    @property
    def pairs(self) -> set[tuple[int, int]]:
        return {(key, worker) for key, worker, _ in self.tuples}


def check(window: WindowHolders, recount: Recount, keys: range, workers: int) -> None:
    pool, pairs = window.pool, recount.pairs
    assert window.pairs == len(pairs)
    per_worker = Counter(worker for _, worker in pairs)
    assert pool.distinct.tolist() == [per_worker[w] for w in range(workers)]
    for key in keys:
        held = {worker for k, worker in pairs if k == key}
        result = window.holders(key)
        assert len(result) == len(set(result))
        assert set(result) == held
        for worker in range(workers):
            assert is_held(pool, np.uint64(key), worker) == (worker in held)


@few
@given(rows, st.sampled_from(SIZES))
def test_the_window_equals_a_recount(tuples: list[tuple[int, int, int]], size: tuple[int, int]) -> None:
    window_ms, slide_ms = size
    window, recount = WindowHolders(5, window_ms=window_ms, slide_ms=slide_ms), Recount(*size)
    for key, worker, time in tuples:
        window.advance(time)
        recount.advance(time)
        assert window.touch(key, worker) == recount.touch(key, worker)
        check(window, recount, range(13), 5)


@few
@given(rows, rows, st.sampled_from(SIZES))
def test_a_restored_window_is_the_same_and_continues_identically(
    before: list[tuple[int, int, int]], after: list[tuple[int, int, int]], size: tuple[int, int]
) -> None:
    window_ms, slide_ms = size
    window = WindowHolders(5, window_ms=window_ms, slide_ms=slide_ms)
    for key, worker, time in before:
        window.advance(time)
        window.touch(key, worker)
    state = window.snapshot()
    twin = WindowHolders.restored(state, 5, window_ms=window_ms, slide_ms=slide_ms)
    assert same(twin.snapshot(), state)
    for key, worker, time in after:
        for one in (window, twin):
            one.advance(time)
        assert window.touch(key, worker) == twin.touch(key, worker)
        assert [window.holders(k) for k in range(13)] == [twin.holders(k) for k in range(13)]
    assert same(twin.snapshot(), window.snapshot())


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize(("slides", "keys"), [(1, 3000), (7, 3000), (60, 500)])
def test_long_streams_with_growth_gaps_and_trims_equal_a_recount(slides: int, keys: int) -> None:
    rng = np.random.default_rng(slides)
    window, recount = WindowHolders(16, window_ms=100 * slides, slide_ms=100), Recount(100 * slides, 100)
    time = -20_000
    for step in range(40):
        time += int(rng.choice([0, 30, 100, 250, 100 * slides + 7]))
        window.advance(time)
        recount.advance(time)
        for _ in range(int(rng.choice([1, 10, 400]))):
            key, worker = int(rng.zipf(1.2) % keys), int(rng.integers(16))
            assert window.touch(key, worker) == recount.touch(key, worker)
        if step % 3 == 0:
            window.trim()
        check(window, recount, range(0, keys, 40), 16)


def test_the_newest_holder_of_a_key_comes_first() -> None:
    window = WindowHolders(8, window_ms=1000, slide_ms=100)
    window.advance(0)
    for worker in (3, 1, 7, 1, 3):
        window.touch(5, worker)
    assert window.holders(5) == [7, 1, 3]
    assert window.holders(6) == []


def test_before_the_first_time_and_without_advancing_everything_is_kept() -> None:
    window = WindowHolders(3, window_ms=1, slide_ms=1)
    for key in range(5000):
        assert window.touch(key, key % 3)
        assert not window.touch(key, key % 3)
    assert window.pairs == 5000
    assert window.pool.distinct.tolist() == [1667, 1667, 1666]


def test_memory_follows_the_window_up_and_down() -> None:
    window = WindowHolders(4, window_ms=300, slide_ms=100)
    small = window.nbytes
    for key in range(20_000):
        window.advance(key // 10)
        window.touch(key, key % 4)
    assert window.pairs <= 3 * 1000
    assert window.nbytes < 200 * 2 * 3000
    window.advance(10_000_000)
    window.trim()
    assert window.pairs == 0
    assert window.nbytes == small


def test_workers_share_keys_without_mixing_them_up() -> None:
    window = WindowHolders(64, window_ms=1000, slide_ms=1000)
    for key in range(100):
        for worker in range(64):
            assert window.touch(key, worker)
    assert window.pairs == 6400
    assert sorted(window.holders(42)) == list(range(64))
    window.advance(0)
    assert window.pairs == 6400, "the first time that is seen begins the window: nothing leaves it"
    window.advance(5000)
    assert window.pairs == 0
