"""HyperLogLog: error bounds, merging, and what a change of a register means."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.sketches.hyperloglog import HyperLogLog
from tests.examples import examples

few = examples(60)
words = st.lists(st.integers(0, 2**64 - 1), max_size=200)


def sketch_of(keys: list[int] | np.ndarray, precision: int = 8) -> HyperLogLog:
    sketch = HyperLogLog(precision)
    sketch.add(np.array(keys, np.uint64))
    return sketch


@pytest.mark.parametrize("precision", [4, 5, 6, 8, 10, 12, 14])
@pytest.mark.parametrize("seed", range(3))
def test_the_error_is_below_four_standard_errors_at_every_size(precision: int, seed: int) -> None:
    m = 1 << precision
    keys = np.random.default_rng(seed).integers(0, 2**64, 40 * m, np.uint64)
    sketch, done = HyperLogLog(precision), 0
    for share in (0.1, 0.5, 1, 2, 2.5, 2.9, 3, 3.1, 3.5, 5, 10, 40):
        sketch.add(keys[done : int(share * m)])
        done = int(share * m)
        assert abs(sketch.estimate() / done - 1) < 4 * 1.04 / math.sqrt(m)


def test_the_mean_over_many_streams_is_unbiased() -> None:
    for keys in (50, 2000, 5000, 10_240, 12_288, 13_000, 40_000):
        errors = [
            sketch_of(np.random.default_rng(seed).integers(0, 2**64, keys, np.uint64), 12).estimate() / keys
            - 1
            for seed in range(100)
        ]
        assert abs(np.mean(errors)) < 0.012
        assert np.std(errors) < 1.3 * 1.04 / 64


@few
@given(words)
def test_few_keys_are_counted_almost_exactly(keys: list[int]) -> None:
    distinct = len(set(keys))
    assert abs(sketch_of(keys, 14).estimate() - distinct) <= max(1.0, 0.05 * distinct)


def test_an_empty_sketch_has_no_keys() -> None:
    assert HyperLogLog().estimate() == 0
    assert HyperLogLog().would_change(1)


@few
@given(st.integers(4, 9), st.integers(0, 99))
def test_the_estimate_never_decreases(precision: int, seed: int) -> None:
    keys = np.random.default_rng(seed).integers(0, 2**64, 6 << precision, np.uint64)
    sketch, last = HyperLogLog(precision), 0.0
    for key in keys:
        sketch.add(np.array([key]))
        assert sketch.estimate() >= last
        last = sketch.estimate()


@few
@given(words, words)
def test_an_added_key_changes_nothing_and_a_change_is_announced(before: list[int], after: list[int]) -> None:
    sketch = sketch_of(before, 4)
    assert not any(sketch.would_change(key) for key in before)
    for key in after:
        values, announced = sketch.values, sketch.would_change(key)
        sketch.add(np.array([key], np.uint64))
        assert announced == (not np.array_equal(values, sketch.values))


@few
@given(words, st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(keys: list[int], random: object) -> None:
    shuffled = keys + keys[: len(keys) // 2]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, two = sketch_of(keys, 5), sketch_of(shuffled, 5)
    assert np.array_equal(one.values, two.values)
    assert one.estimate() == two.estimate() == HyperLogLog.from_values(one.values).estimate()


@few
@given(words, words, words)
def test_merging_is_the_sketch_of_the_union(a: list[int], b: list[int], c: list[int]) -> None:
    one, two, three = sketch_of(a, 5), sketch_of(b, 5), sketch_of(c, 5)
    union = sketch_of(a + b + c, 5)
    assert np.array_equal(one.merge(two).merge(three).values, union.values)
    assert np.array_equal(three.merge(two.merge(one)).values, union.values)
    assert one.merge(two).merge(three).estimate() == union.estimate()


def test_a_new_key_is_taken_for_an_old_one_as_often_as_the_registers_say() -> None:
    rng = np.random.default_rng(0)
    sketch = sketch_of(rng.integers(0, 2**64, 100_000, np.uint64), 12)
    share = np.mean([not sketch.would_change(int(key)) for key in rng.integers(0, 2**64, 4000, np.uint64)])
    expected = 1 - np.mean(2.0 ** -sketch.values.astype(float))
    assert abs(share - expected) < 0.01
    assert expected > 0.9


def test_impossible_precisions_and_merges_are_refused() -> None:
    for precision in (3, 19):
        with pytest.raises(ConfigError, match="precision must be between 4 and 18"):
            HyperLogLog(precision)
    with pytest.raises(ConfigError, match="cannot be merged"):
        HyperLogLog(8).merge(HyperLogLog(9))
