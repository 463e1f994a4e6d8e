"""Count-Min: its error bound against exact counts, conservative counting, merging."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.partitioners.dalton.count_min import CountMin, width_for
from tests.examples import examples
from tests.unit.partitioners.streams import SPREAD, all_distinct, zipf

words = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40), max_size=200)
few = examples(60)


def counted(keys: np.ndarray | list[int], width: int, depth: int = 4, seed: int = 0) -> CountMin:
    sketch = CountMin(width, depth, seed=seed)
    sketch.count(np.array(keys, np.uint64))
    return sketch


@few
@given(words, st.integers(1, 100), st.integers(1, 6), st.integers(0, 9))
def test_an_estimate_is_never_below_the_frequency(keys: list[int], width: int, depth: int, seed: int) -> None:
    exact = Counter(keys)
    sketch = counted(keys, width, depth, seed)
    result = sketch.estimates(np.array(list(exact), np.uint64))
    assert all(estimate >= f for estimate, f in zip(result.tolist(), exact.values(), strict=True))
    assert all(estimate <= len(keys) for estimate in result.tolist())


@few
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10**6)), max_size=200),
    st.integers(1, 100),
    st.integers(1, 6),
)
def test_an_estimate_is_never_below_the_sum_of_costs(
    rows: list[tuple[int, int]], width: int, depth: int
) -> None:
    exact = Counter[int]()
    for key, cost in rows:
        exact[key] += cost
    sketch = CountMin(width, depth)
    sketch.count(np.array([key for key, _ in rows], np.uint64), np.array([c for _, c in rows], np.int64))
    result = sketch.estimates(np.array(list(exact), np.uint64)).tolist()
    assert all(f <= estimate <= exact.total() for estimate, f in zip(result, exact.values(), strict=True))


@pytest.mark.parametrize("stream", [zipf(50_000, keys=20_000, z=1.0), all_distinct(50_000)])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_too_high_estimates_are_as_rare_as_the_bound_says(stream: tuple, depth: int) -> None:
    keys, exact = np.unique(stream[0], return_counts=True)
    bad = total = 0
    for seed in range(20):
        sketch = counted(stream[0], width_for(1 / 256), depth, seed)
        assert sketch.error <= 1 / 256
        over = sketch.estimates(keys) - exact
        bad += int((over > sketch.error * 50_000).sum())
        total += len(keys)
    assert bad / total <= math.exp(-depth)


def test_two_different_keys_share_a_column_as_rarely_as_in_a_pairwise_independent_family() -> None:
    for a, b in ((1, 2), (0, 1 << 63), (5, 5 + (1 << 32)), (0, 2**64 - 1)):
        together = 0
        for seed in range(2000):
            sketch = CountMin(64, 1, seed=seed)
            sketch.count(np.array([a], np.uint64))
            together += int(sketch.estimates(np.array([b], np.uint64))[0])
        assert abs(together - 2000 / 64) < 6 * math.sqrt(2000 / 64)


def test_all_columns_of_every_row_are_used() -> None:
    sketch = counted(all_distinct(20_000)[0], 256)
    assert (sketch.table.cells > 0).all()


def test_conservative_counting_is_closer_than_the_plain_sketch() -> None:
    stream = zipf(20_000, keys=5000, z=1.0)[0]
    keys, exact = np.unique(stream, return_counts=True)
    sketch = counted(stream, 64)
    plain = np.zeros_like(sketch.table.cells)
    columns = np.empty((len(keys), 4), np.int64)
    for at, key in enumerate(keys):
        one = CountMin(64)
        one.count(np.array([key], np.uint64))
        columns[at] = one.table.cells.argmax(axis=1)
    for row in range(4):
        np.add.at(plain[row], columns[:, row], exact)
    of_plain = plain[np.arange(4), columns].min(axis=1)
    result = sketch.estimates(keys)
    assert (result <= of_plain).all()
    assert result.sum() < 0.8 * of_plain.sum()


@few
@given(words, words, st.integers(1, 60))
def test_merging_keeps_the_bound(left: list[int], right: list[int], width: int) -> None:
    merged = counted(left, width).merge(counted(right, width))
    exact = Counter(left) + Counter(right)
    result = merged.estimates(np.array(list(exact), np.uint64))
    assert all(estimate >= f for estimate, f in zip(result.tolist(), exact.values(), strict=True))


@pytest.mark.parametrize(("error", "width"), [(1 / 4, 16), (1 / 256, 1024), (1.0, 4)])
def test_the_width_for_an_error_is_the_least_power_of_two_that_keeps_it(error: float, width: int) -> None:
    assert width_for(error) == width
    assert math.e / width <= error < 2 * math.e / width


def test_impossible_shapes_errors_and_merges_are_refused() -> None:
    for width, depth in ((0, 4), (1 << 27, 4), (8, 0), (8, 65)):
        with pytest.raises(ValueError, match="Count-Min needs"):
            CountMin(width, depth)
    with pytest.raises(ValueError, match="share of the stream"):
        width_for(0)
    with pytest.raises(ValueError, match="same seed"):
        CountMin(8).merge(CountMin(8, seed=1))
    with pytest.raises(ValueError, match="same seed"):
        CountMin(8).merge(CountMin(16))


def test_an_estimate_depends_on_the_whole_key() -> None:
    sketch = counted(np.full(10, 7, np.uint64) * SPREAD, 1 << 12)
    assert sketch.estimates(np.array([7], np.uint64) * SPREAD).tolist() == [10]
    assert sketch.estimates(np.array([8, 9, 1 << 40], np.uint64)).tolist() == [0, 0, 0]
