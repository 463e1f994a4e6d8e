"""SpaceSaving in sets: what it is sure of is true, what it forgets is half, and it survives a change of
size.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.numeric.arrays import UInt64s
from evenflow.numeric.kernels import kernel
from evenflow.numeric.words import mix64
from evenflow.partitioners.evenflow.frequent import (
    PARTS,
    Frequent,
    due,
    fade,
    frequent,
    halve,
    move_all,
    offer,
)
from evenflow.sketches.eight_wide import WIDTH
from tests.examples import examples

few = examples(60)


@kernel
def offer_all(summary: Frequent, keys: UInt64s, spots: UInt64s) -> None:
    for row in range(keys.shape[0]):
        spots[row] = mix64(keys[row])
        offer(summary, spots[row], keys[row], 1, 1)
        if due(summary):
            halve(summary)


def offered(capacity: int, memory: int, keys: list[int]) -> Frequent:
    summary = frequent(capacity, memory)
    offer_all(summary, np.array(keys, np.uint64), np.empty(len(keys), np.uint64))
    return summary


def bounds(summary: Frequent) -> dict[int, tuple[int, int]]:
    """Key -> (certain, at most)."""
    rows = zip(summary.key.tolist(), summary.counts.tolist(), summary.errors.tolist(), strict=True)
    return {key: (count - error, count) for key, count, error in rows if count}


@few
@given(st.lists(st.integers(0, 60), max_size=300), st.integers(1, 40))
def test_what_is_certain_is_true_and_what_is_counted_is_no_less(keys: list[int], capacity: int) -> None:
    summary = offered(capacity, 10_000, keys)
    exact = Counter(keys)
    for key, (certain, most) in bounds(summary).items():
        assert certain <= exact[key] <= most
    assert summary.counts.sum() == len(keys) == summary.meta["seen"]
    sets = summary.counts.reshape(-1, WIDTH)
    assert np.all(sets.min(axis=1) <= sets.sum(axis=1) / WIDTH)


@few
@given(st.lists(st.integers(0, 30), max_size=400), st.integers(1, 60))
def test_after_forgetting_it_is_still_certain_only_of_what_is_true(keys: list[int], memory: int) -> None:
    summary = offered(16, memory, keys)
    kept: Counter[int] = Counter()
    seen = 0
    for key in keys:
        kept[key] += 2  # in halves, so that nothing is rounded up
        seen += 1
        if seen >= 2 * memory:
            seen //= 2
            kept = Counter({name: count / 2 for name, count in kept.items()})  # type: ignore[misc]
    for key, (certain, _) in bounds(summary).items():
        assert 2 * certain <= kept[key] + 1e-9
    assert summary.meta["seen"] == seen < 2 * memory


@few
@given(st.lists(st.integers(0, 200), max_size=300), st.integers(1, 60), st.integers(1, 60))
def test_moving_to_another_size_keeps_what_is_certain(keys: list[int], a: int, b: int) -> None:
    old, new = offered(a, 10_000, keys), frequent(b, 10_000)
    spots = np.empty(len(old.key), np.uint64)
    for at, key in enumerate(old.key):
        lone = np.empty(1, np.uint64)
        offer_all(frequent(8, 10), np.array([key]), lone)
        spots[at] = lone[0]
    move_all(old, new, spots)
    exact, before = Counter(keys), bounds(old)
    for key, (certain, most) in bounds(new).items():
        assert (certain, most) == before[key]
        assert certain <= exact[key]
    if b >= a:
        assert bounds(new) == before


def lasting(summary: Frequent) -> dict[int, int]:
    """Key -> the parts of tuples that it lasts with."""
    rows = zip(summary.key.tolist(), summary.counts.tolist(), summary.lasting.tolist(), strict=True)
    return {key: tuples for key, count, tuples in rows if count}


@few
@given(st.lists(st.integers(0, 60), max_size=300), st.integers(1, 40), st.integers(1, 60))
def test_a_key_lasts_with_the_tuples_since_it_got_its_counter(
    keys: list[int], capacity: int, memory: int
) -> None:
    summary = offered(capacity, memory, keys)
    exact = Counter(keys)
    for key, tuples in lasting(summary).items():
        assert PARTS <= tuples <= PARTS * exact[key]
        if len(exact) <= WIDTH:
            assert tuples == PARTS * exact[key], "nobody took a counter over, whatever was forgotten"


@few
@given(st.integers(1, 10**6), st.integers(1, 70), st.lists(st.integers(1, 80), max_size=6))
def test_what_lasts_fades_by_a_share_for_each_slide_and_is_gone_with_the_window(
    tuples: int, slides: int, steps: list[int]
) -> None:
    summary = offered(8, 10_000, [5])
    summary.lasting[:] = np.where(summary.counts > 0, tuples, 0)
    left = tuples
    for gone in steps:
        fade(summary, slides, min(slides, gone))
        for _ in range(gone):
            left -= -(-left // slides)
        left = 0 if gone >= slides else left
        assert lasting(summary)[5] == left


@pytest.mark.parametrize(("tuples", "every"), [(50, 1), (1, 1), (1, 2), (1, 9)])
def test_a_steady_key_lasts_with_its_tuples_of_a_window(tuples: int, every: int) -> None:
    summary = offered(8, 10**6, [])
    for slide in range(450):
        if slide % every == 0:
            offer_all(summary, np.full(tuples, 3, np.uint64), np.empty(tuples, np.uint64))
        fade(summary, 40, 1)
    assert lasting(summary)[3] == pytest.approx(PARTS * 40 * tuples / every, rel=0.13)
