"""Every metric equals its definition computed naively."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow import metrics

N = 5
tuples = st.lists(
    st.tuples(st.integers(0, N - 1), st.sampled_from([0, 1, 2, 2**63, 2**64 - 1]), st.integers(-3, 12)),
    max_size=40,
)


def columns(rows: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (
        np.array([row[0] for row in rows], np.int32),
        np.array([row[1] for row in rows], np.uint64),
        np.array([row[2] for row in rows], np.int64),
    )


def naive_imbalance(workers: list[int]) -> float:
    return max(workers.count(w) for w in range(N)) / len(workers) - 1 / N if workers else 0.0


@given(tuples)
def test_loads_and_imbalance_equal_brute_force(rows: list[tuple[int, int, int]]) -> None:
    workers, _, _ = columns(rows)
    counts = [workers.tolist().count(w) for w in range(N)]
    loads = metrics.worker_loads(workers, N)
    assert loads.tolist() == counts
    assert metrics.imbalance(loads) == pytest.approx(naive_imbalance(workers.tolist()))
    assert metrics.absolute_imbalance(loads) == pytest.approx(max(counts) - sum(counts) / N)
    assert metrics.block_size_imbalance(workers, N) == pytest.approx(max(counts) - len(rows) / N)


@given(tuples, st.integers(1, 6))
def test_window_imbalance_equals_brute_force_for_every_window(
    rows: list[tuple[int, int, int]], per_window: int
) -> None:
    workers, _, panes = columns(rows)
    ends, values = metrics.window_imbalance(workers, panes, N, panes_per_window=per_window)
    expected = {}
    if rows:
        for end in range(int(panes.min()), int(panes.max()) + 1):
            inside = [w for w, _, pane in rows if end - per_window < pane <= end]
            if inside:
                expected[end] = naive_imbalance(inside)
    assert ends.tolist() == list(expected)
    assert values.tolist() == pytest.approx(list(expected.values()))


@given(tuples)
def test_splitting_equals_brute_force(rows: list[tuple[int, int, int]]) -> None:
    workers, keys, _ = columns(rows)
    holders: dict[int, set[int]] = defaultdict(set)
    held: dict[int, set[int]] = defaultdict(set)
    for worker, key, _pane in rows:
        holders[key].add(worker)
        held[worker].add(key)
    gamma = sum(len(result) for result in holders.values())
    cardinalities = [len(held[w]) for w in range(N)]
    distinct, fragments = metrics.fragmentation(workers, keys)
    assert dict(zip(distinct.tolist(), fragments.tolist(), strict=True)) == {
        key: len(result) for key, result in holders.items()
    }
    assert metrics.distinct_keys(keys) == len(holders)
    assert metrics.aggregation_cost(workers, keys) == gamma
    assert metrics.worker_cardinalities(workers, keys, N).tolist() == cardinalities
    assert metrics.max_holders(workers, keys) == max((len(f) for f in holders.values()), default=0)
    ksr = gamma / len(holders) if holders else 1.0
    assert metrics.replication_factor(workers, keys) == pytest.approx(ksr)
    bci = max(cardinalities) - sum(cardinalities) / N
    assert metrics.cardinality_imbalance(workers, keys, N) == pytest.approx(bci)
    assert metrics.block_cardinality_imbalance(workers, keys, N) == pytest.approx(bci)
    bsi = metrics.block_size_imbalance(workers, N)
    assert metrics.micro_batch_index(workers, keys, N) == pytest.approx((bsi + bci + ksr) / 3)


@given(tuples.filter(bool))
def test_gamma_lies_between_the_keys_and_n_times_the_keys(rows: list[tuple[int, int, int]]) -> None:
    workers, keys, _ = columns(rows)
    distinct = metrics.distinct_keys(keys)
    assert distinct <= metrics.aggregation_cost(workers, keys) <= N * distinct


@given(st.lists(st.integers(1, 100), max_size=30), st.integers(1, 50))
def test_memory_formula_equals_brute_force(frequencies: list[int], choices: int) -> None:
    expected = sum(min(f, choices) for f in frequencies)
    assert metrics.memory_against(np.array(frequencies, np.int64), choices) == expected


def test_a_worker_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="not all in"):
        metrics.worker_loads(np.array([0, 5]), 5)
    with pytest.raises(ValueError, match="not all in"):
        metrics.window_imbalance(np.array([-1]), np.array([0]), 5)


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 workers but 1 keys"):
        metrics.replication_factor(np.array([0, 1]), np.array([1]))
