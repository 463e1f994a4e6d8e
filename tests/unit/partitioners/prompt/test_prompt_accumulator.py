"""Prompt's Algorithm 1: exact counts, a bounded number of renewals, and the tree a naive model predicts."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.partitioners.prompt.accumulator import Accumulator, BufferedBatch, descending
from tests.examples import examples
from tests.unit.partitioners.streams import STREAMS, Stream, all_distinct, one_key, zipf

orders = pytest.mark.parametrize("order", ["exact", "quasi"])
batches = st.builds(
    zipf, st.integers(1, 800), keys=st.integers(1, 200), z=st.floats(0, 2.5), seed=st.integers(0, 99)
)


def buffered(stream: Stream, cuts: tuple[int, ...] = (), **options: object) -> BufferedBatch:
    return feed(Accumulator(**options), stream, cuts)  # type: ignore[arg-type]


def feed(accumulator: Accumulator, stream: Stream, cuts: tuple[int, ...] = ()) -> BufferedBatch:
    add(accumulator, stream, cuts)
    return accumulator.finish()


def feed_tree(accumulator: Accumulator, stream: Stream) -> tuple[BufferedBatch, np.ndarray, np.ndarray]:
    """As `feed`, with the count in the tree and the renewals of each key of the list."""
    add(accumulator, stream)
    tree, pace = accumulator._tree, accumulator._pace
    batch = accumulator.finish()
    return batch, tree.counts[batch.order], accumulator._budget - pace.left[batch.order]


def add(accumulator: Accumulator, stream: Stream, cuts: tuple[int, ...] = ()) -> None:
    keys, times = stream
    end = int(times.max(initial=0)) + 1
    edges = [0, *sorted(cut for cut in cuts if cut < len(keys)), len(keys)]
    for a, b in pairwise(edges):
        accumulator.add(keys[a:b], times[a:b], end_ms=end)


def naive(stream: Stream, budget: int, past: tuple[float, float] | None) -> list[tuple[int, int, int, int]]:
    """Algorithm 1 by the listing, with the decisions of the module: (key, count, tree count, renewals)."""
    keys, times = (column.tolist() for column in stream)
    end, now = max(times) + 1, times[0]
    table: dict[int, dict[str, float]] = {}
    for seen, (key, time) in enumerate(zip(keys, times, strict=True), 1):
        now = max(now, time)
        if key not in table:
            table[key] = {"freq": 1, "updated": 1, "last": now, "left": budget}
            n_est, k_avg = past or (seen, len(table))
            table[key]["f"] = max(1.0, n_est / k_avg / budget)
            table[key]["t"] = max(1.0, (end - now) / budget)
            continue
        k = table[key]
        k["freq"] += 1
        if not k["left"]:
            continue
        if k["freq"] - k["updated"] >= k["f"]:
            k["left"] -= 1
            k["f"] = max(1.0, (past[0] if past else seen) / budget * k["freq"] / seen)
        elif now - k["last"] >= k["t"]:
            k["left"] -= 1
            if k["left"]:
                k["t"] = max(1.0, (end - now) / k["left"])
        else:
            continue
        k["updated"], k["last"] = k["freq"], now
    listed = sorted(table.items(), key=lambda item: (-item[1]["updated"], item[0]))
    return [(key, int(k["freq"]), int(k["updated"]), budget - int(k["left"])) for key, k in listed]


@orders
@given(stream=batches, budget=st.integers(1, 20))
@examples(40)
def test_counts_are_exact_and_tuples_are_conserved(order: str, stream: Stream, budget: int) -> None:
    batch = buffered(stream, order=order, budget=budget)
    keys, counts = np.unique(stream[0], return_counts=True)
    assert dict(zip(batch.keys.tolist(), batch.counts.tolist(), strict=True)) == dict(
        zip(keys.tolist(), counts.tolist(), strict=True)
    )
    assert batch.counts.sum() == len(stream[0])
    assert batch.keys[batch.position].tolist() == stream[0].tolist()
    assert sorted(batch.order.tolist()) == list(range(len(keys)))


@given(stream=batches)
@examples(40)
def test_the_exact_list_is_sorted_by_count_and_then_by_key(stream: Stream) -> None:
    batch = buffered(stream)
    listed = list(zip((-batch.counts).tolist(), batch.keys.tolist(), strict=True))
    assert listed == sorted(listed)


@given(stream=batches, budget=st.integers(1, 20), warm=st.booleans(), pause=st.integers(0, 50))
@examples(40)
def test_the_tree_equals_a_naive_model_of_the_listing(
    stream: Stream, budget: int, warm: bool, pause: int
) -> None:
    keys, times = stream
    stream = keys, times + times // 100 * pause - times // 37
    accumulator = Accumulator(order="quasi", budget=budget)
    past = None
    if warm:
        first = zipf(600, seed=5)
        feed(accumulator, first)
        past = (600.0, float(len(np.unique(first[0]))))
    batch, tree_counts, renewals = feed_tree(accumulator, stream)
    columns = (batch.keys, batch.counts, tree_counts, renewals)
    assert list(zip(*(c.tolist() for c in columns), strict=True)) == naive(stream, budget, past)


@given(stream=batches, budget=st.integers(1, 20))
@examples(30)
def test_tree_counts_never_exceed_the_counts_and_renewals_never_the_budget(
    stream: Stream, budget: int
) -> None:
    batch, tree_counts, renewals = feed_tree(Accumulator(order="quasi", budget=budget), stream)
    assert (tree_counts <= batch.counts).all()
    assert (tree_counts >= 1).all()
    assert (np.diff(tree_counts) <= 0).all()
    assert ((renewals >= 0) & (renewals <= budget)).all()


@orders
@given(stream=batches, cuts=st.lists(st.integers(0, 800), max_size=6))
@examples(30)
def test_a_batch_may_arrive_in_any_pieces(order: str, stream: Stream, cuts: list[int]) -> None:
    whole, pieces = buffered(stream, order=order), buffered(stream, tuple(cuts), order=order)
    for name in ("keys", "counts", "entry", "order"):
        assert getattr(whole, name).tolist() == getattr(pieces, name).tolist()


def test_with_a_generous_budget_the_quasi_list_is_the_exact_one() -> None:
    """f_step stays at its floor of one tuple, so every tuple renews its key's place."""
    stream = zipf(3000)
    quasi = buffered(stream, order="quasi", budget=3000)
    assert quasi.keys.tolist() == buffered(stream).keys.tolist()


def test_the_quasi_list_is_nearly_sorted_from_the_second_batch_on() -> None:
    accumulator = Accumulator(order="quasi", budget=8)
    feed(accumulator, zipf(20_000, seed=1))
    batch, tree_counts, _ = feed_tree(accumulator, zipf(20_000, seed=2))
    top = set(batch.keys[:50].tolist())
    exact = buffered(zipf(20_000, seed=2))
    assert len(top & set(exact.keys[:50].tolist())) >= 40
    assert tree_counts.sum() > 0.7 * batch.counts.sum()


def test_expected_sizes_are_a_weighted_mean_of_the_past_batches() -> None:
    accumulator = Accumulator(smoothing=0.25)
    assert accumulator.past.item() == (0, 0)
    feed(accumulator, one_key(100))
    assert accumulator.past.item() == (100, 1)
    feed(accumulator, all_distinct(500))
    assert accumulator.past.item() == (200, 1 + 499 / 4)
    accumulator.finish()
    assert accumulator.past.item() == (200, 1 + 499 / 4), "a batch without tuples teaches nothing"


@orders
@pytest.mark.parametrize("name", [name for name in STREAMS if name != "empty"])
def test_a_batch_leaves_nothing_behind_for_the_next(order: str, name: str) -> None:
    used, fresh = Accumulator(order=order), Accumulator(order=order)  # type: ignore[arg-type]
    feed(used, zipf(5000, seed=8))
    fresh.past[()] = used.past
    after, first = feed(used, STREAMS[name]), feed(fresh, STREAMS[name])
    for column in ("keys", "counts", "entry", "order"):
        assert getattr(after, column).tolist() == getattr(first, column).tolist()


@orders
def test_an_empty_batch_is_a_batch(order: str) -> None:
    batch = buffered(zipf(0), order=order)
    assert len(batch.keys) == len(batch.counts) == len(batch.entry) == len(batch.order) == 0


@orders
def test_memory_follows_the_usual_batch_not_the_largest_one(order: str) -> None:
    accumulator = Accumulator(order=order, smoothing=1.0)  # type: ignore[arg-type]
    feed(accumulator, all_distinct(100_000))
    large = accumulator.nbytes
    feed(accumulator, one_key(10))
    assert accumulator.nbytes < large / 20


def test_columns_of_different_length_are_refused() -> None:
    keys, times = zipf(10)
    with pytest.raises(ValueError, match="10 keys but 9 times"):
        Accumulator().add(keys, times[:9], end_ms=10)


@given(
    st.dictionaries(
        st.one_of(st.integers(0, 40), st.integers(0, 2**64 - 1)), st.integers(1, 6), min_size=1, max_size=60
    ),
    st.sampled_from([1, 1, 2**30, 2**58]),
)
@settings(deadline=None)
def test_descending_equals_a_full_sort_also_when_first_bits_do_not_tell_keys_apart(
    counted: dict[int, int], scale: int
) -> None:
    keys, counts = np.array(list(counted), np.uint64), np.array(list(counted.values()), np.int64) * scale
    expected = sorted(range(len(keys)), key=lambda i: (-int(counts[i]), int(keys[i])))
    assert descending(keys, counts).tolist() == expected
