"""SpaceSaving: its error bounds against exact counts, its order, merging and state."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.sketches.space_saving import SpaceSaving
from tests.examples import examples
from tests.unit.partitioners.streams import all_distinct, zipf

words = st.lists(st.integers(0, 40), max_size=300)
weighed = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9) | st.integers(1, 10**6)), max_size=300)
"""Keys with their costs."""
few = examples(60)


def offered(capacity: int, keys: list[int] | np.ndarray, costs: list[int] | None = None) -> SpaceSaving:
    sketch = SpaceSaving(capacity)
    sketch.offer(np.array(keys, np.uint64), None if costs is None else np.array(costs, np.int64))
    return sketch


def summed(rows: list[tuple[int, int]]) -> Counter[int]:
    """What each key costs."""
    exact = Counter[int]()
    for key, cost in rows:
        exact[key] += cost
    return exact


def check_bounds(sketch: SpaceSaving, exact: Counter[int]) -> None:
    keys, counts, errors = sketch.counters()
    assert len(set(keys.tolist())) == len(keys)
    assert np.all(np.diff(counts) >= 0)
    for key, count, error in zip(keys.tolist(), counts.tolist(), errors.tolist(), strict=True):
        assert exact[key] <= count <= exact[key] + error
        assert error <= count
    for key, frequency in exact.items():
        assert frequency <= sketch.estimate(key)
        if key not in set(keys.tolist()):
            assert frequency <= sketch.least


@few
@given(words, st.integers(1, 50))
def test_every_estimate_is_within_its_bounds(keys: list[int], capacity: int) -> None:
    sketch = offered(capacity, keys)
    check_bounds(sketch, Counter(keys))
    counts = sketch.counters()[1]
    assert counts.sum() == sketch.total == len(keys)
    assert sketch.least <= len(keys) / capacity
    assert all(sketch.counters()[2] <= sketch.least)
    monitored = set(sketch.counters()[0].tolist())
    assert {key for key, f in Counter(keys).items() if f > len(keys) / capacity} <= monitored


@few
@given(weighed, st.integers(1, 50))
def test_with_costs_the_same_bounds_hold_for_sums_of_costs(
    rows: list[tuple[int, int]], capacity: int
) -> None:
    exact = summed(rows)
    sketch = offered(capacity, [key for key, _ in rows], [cost for _, cost in rows])
    check_bounds(sketch, exact)
    assert sketch.counters()[1].sum() == sketch.total == exact.total()
    assert sketch.least <= exact.total() / capacity
    assert all(sketch.counters()[2] <= sketch.least)
    assert {key for key, f in exact.items() if f > exact.total() / capacity} <= set(
        sketch.counters()[0].tolist()
    )
    sketch.halve()
    check_bounds(sketch, Counter({key: f // 2 for key, f in exact.items()}))


@few
@given(words, st.integers(1, 50), st.floats(0.02, 1))
def test_the_keys_that_reach_a_share_are_few_and_all_that_do_are_among_them(
    keys: list[int], capacity: int, theta: float
) -> None:
    """At most 1/theta by their estimates, for any capacity; and none far below theta - 1/capacity."""
    sketch, exact = offered(capacity, keys), Counter(keys)
    result, counts, _ = sketch.counters()
    reach = set(result[counts >= theta * len(keys)].tolist()) if keys else set()
    assert len(reach) <= 1 / theta
    assert all(exact[key] >= (theta - 1 / capacity) * len(keys) - 1e-9 for key in reach)
    if theta > 1 / capacity:
        assert {key for key, f in exact.items() if f >= theta * len(keys)} <= reach


@few
@given(st.lists(words, min_size=1, max_size=6), st.integers(1, 50))
def test_after_halving_the_bounds_hold_for_frequencies_that_were_halved(
    blocks: list[list[int]], capacity: int
) -> None:
    sketch, exact, total = SpaceSaving(capacity), Counter[int](), 0
    for block in blocks:
        sketch.offer(np.array(block, np.uint64))
        exact.update(block)
        total += len(block)
        check_bounds(sketch, exact)
        before = sketch.counters()[0].tolist()
        sketch.halve()
        exact, total = Counter({key: count // 2 for key, count in exact.items()}), total // 2
        check_bounds(sketch, exact)
        assert sketch.counters()[0].tolist() == before
        assert sketch.total == total


def naive(capacity: int, keys: list[int], costs: list[int]) -> list[list[int]]:
    """[key, count, error] rows, ascending: a new key takes the last of the least, a raise moves an entry to
    the last place of its count, and then past the groups below its new count, the last entry of each of
    which goes below it."""
    rows: list[list[int]] = []
    for key, cost in zip(keys, costs, strict=True):
        at = next((row for row, (known, _, _) in enumerate(rows) if known == key), -1)
        if at < 0 and len(rows) < capacity:
            rows.insert(0, [key, 0, 0])
            at = 0
        elif at < 0:
            at = max(row for row, (_, count, _) in enumerate(rows) if count == rows[0][1])
            rows[at] = [key, rows[at][1], rows[at][1]]
        last = max(row for row, (_, count, _) in enumerate(rows) if count == rows[at][1])
        rows[at], rows[last] = rows[last], rows[at]
        raised = rows.pop(last)
        raised[1] += cost
        while last < len(rows) and rows[last][1] < raised[1]:
            top = max(row for row, (_, count, _) in enumerate(rows) if count == rows[last][1])
            rows.insert(last, rows.pop(top))
            last = top + 1
        rows.insert(last, raised)
    return rows


@examples(150)
@given(words, st.integers(1, 50))
def test_counters_and_their_order_equal_a_plain_list(keys: list[int], capacity: int) -> None:
    """Whatever its layout in memory: the same keys are given up, at the same moments."""
    result = [column.tolist() for column in offered(capacity, keys).counters()]
    assert list(map(list, zip(*result, strict=True))) == naive(capacity, keys, [1] * len(keys))


@examples(150)
@given(weighed, st.integers(1, 50))
def test_counters_and_their_order_equal_a_plain_list_with_costs(
    rows: list[tuple[int, int]], capacity: int
) -> None:
    keys, costs = [key for key, _ in rows], [cost for _, cost in rows]
    sketch = offered(capacity, keys, costs)
    result = [column.tolist() for column in sketch.counters()]
    assert list(map(list, zip(*result, strict=True))) == naive(capacity, keys, costs)
    for key in keys:  # the table of keys agrees with the order
        at = sketch.entry_of(key)
        assert (at is None) == (key not in result[0])
        assert at is None or sketch.estimate(key) == result[1][result[0].index(key)]


@pytest.mark.parametrize("capacity", [1, 7, 100, 1280])
def test_bounds_hold_on_long_streams(capacity: int) -> None:
    for keys, _ in (zipf(50_000, keys=5000, z=1.0), all_distinct(20_000)):
        sketch = offered(capacity, keys)
        check_bounds(sketch, Counter(keys.tolist()))
        assert sketch.counters()[1].sum() == len(keys)


@few
@given(words)
def test_counts_are_exact_while_there_are_counters_enough(keys: list[int]) -> None:
    sketch = offered(64, keys)
    result, counts, errors = sketch.counters()
    assert dict(zip(result.tolist(), counts.tolist(), strict=True)) == Counter(keys)
    assert not errors.any()


@few
@given(words, words, st.integers(1, 20))
def test_a_summary_rebuilt_from_its_counters_continues_identically(
    before: list[int], after: list[int], capacity: int
) -> None:
    sketch = offered(capacity, before)
    twin = SpaceSaving.from_counters(capacity, *sketch.counters(), total=sketch.total, least=sketch.least)
    for one in (sketch, twin):
        one.offer(np.array(after, np.uint64))
    for mine, theirs in zip(sketch.counters(), twin.counters(), strict=True):
        assert mine.tolist() == theirs.tolist()
    assert sketch.total == twin.total


@few
@given(weighed, weighed, st.integers(1, 20))
def test_a_summary_rebuilt_amid_costs_continues_identically(
    before: list[tuple[int, int]], after: list[tuple[int, int]], capacity: int
) -> None:
    sketch = offered(capacity, [key for key, _ in before], [cost for _, cost in before])
    twin = SpaceSaving.from_counters(capacity, *sketch.counters(), total=sketch.total, least=sketch.least)
    for one in (sketch, twin):
        one.offer(np.array([key for key, _ in after], np.uint64), np.array([c for _, c in after], np.int64))
    for mine, theirs in zip(sketch.counters(), twin.counters(), strict=True):
        assert mine.tolist() == theirs.tolist()


@few
@given(words, words, words, st.integers(1, 50), st.integers(1, 50))
def test_merging_keeps_the_bounds_and_goes_on(
    left: list[int], right: list[int], more: list[int], a: int, b: int
) -> None:
    merged = offered(a, left).merge(offered(b, right))
    assert merged.total == len(left) + len(right)
    assert len(merged) <= a
    check_bounds(merged, Counter(left) + Counter(right))
    merged.offer(np.array(more, np.uint64))
    check_bounds(merged, Counter(left) + Counter(right) + Counter(more))


@few
@given(words, words, st.integers(1, 30), st.integers(1, 60))
def test_resizing_keeps_the_bounds_and_goes_on(before: list[int], after: list[int], a: int, b: int) -> None:
    sketch = offered(a, before).resized(b)
    check_bounds(sketch, Counter(before))
    sketch.offer(np.array(after, np.uint64))
    check_bounds(sketch, Counter(before) + Counter(after))


def test_colliding_and_extreme_keys_are_told_apart() -> None:
    keys = [0, 2**64 - 1, 2**32, 2**63] + [i << 48 for i in range(1, 60)]
    sketch = offered(16, keys * 3)
    check_bounds(sketch, Counter(keys * 3))


def test_impossible_capacities_and_states_are_refused() -> None:
    with pytest.raises(ValueError, match="counters, not 0"):
        SpaceSaving(0)
    one, two = np.array([1, 1], np.uint64), np.array([1, 2])
    with pytest.raises(ValueError, match="two counters"):
        SpaceSaving.from_counters(4, one, two, two, total=3)
    with pytest.raises(ValueError, match="ascend"):
        SpaceSaving.from_counters(4, np.array([1, 2], np.uint64), two[::-1], two, total=3)
