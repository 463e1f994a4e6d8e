"""The one-pass figures of all windows equal the definitions, window by window."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow import metrics
from evenflow.metrics import sliding

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 12), st.integers(-3, 40)), max_size=80)


def columns(drawn: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    drawn = sorted(drawn, key=lambda row: row[2])
    workers, codes, panes = (np.array([row[at] for row in drawn], np.int64) for at in range(3))
    return workers.astype(np.int32), codes.astype(np.int32), panes


@given(rows, st.integers(1, 9), st.one_of(st.none(), st.integers(-5, 45)))
def test_every_window_has_the_figures_of_its_tuples(
    drawn: list[tuple[int, int, int]], width: int, through: int | None
) -> None:
    workers, codes, panes = columns(drawn)
    result = metrics.window_figures(workers, codes, panes, 5, panes_per_window=width, through=through)
    last = through if through is not None else (panes[-1] if len(panes) else -9)
    expected = {}
    for end in range(-3, last + 1):
        inside = (panes > end - width) & (panes <= end)
        if inside.any():
            w, k = workers[inside], codes[inside]
            expected[end] = (
                metrics.imbalance(metrics.worker_loads(w, 5)),
                metrics.aggregation_cost(w, k),
                metrics.distinct_keys(k),
                metrics.max_holders(w, k),
            )
    assert result.ends.tolist() == list(expected)
    assert result.imbalance.tolist() == pytest.approx([figures[0] for figures in expected.values()])
    assert result.gamma.tolist() == [figures[1] for figures in expected.values()]
    assert result.distinct.tolist() == [figures[2] for figures in expected.values()]
    assert result.max_holders.tolist() == [figures[3] for figures in expected.values()]
    assert result.ksr.tolist() == [figures[1] / figures[2] for figures in expected.values()]


@given(rows)
def test_the_whole_stream_is_one_window(drawn: list[tuple[int, int, int]]) -> None:
    workers, codes, _ = columns(drawn)
    result = metrics.stream_figures(workers, codes, 5)
    assert len(result) == (1 if drawn else 0)
    if drawn:
        assert result.gamma[0] == metrics.aggregation_cost(workers, codes)
        assert result.distinct[0] == metrics.distinct_keys(codes)
        assert result.max_holders[0] == metrics.max_holders(workers, codes)
        assert result.imbalance[0] == pytest.approx(metrics.imbalance(metrics.worker_loads(workers, 5)))


@given(rows, st.integers(1, 9), st.integers(0, 5), st.sampled_from([1, 9, 1_000_000]))
def test_with_costs_the_loads_of_a_window_are_sums_of_costs_and_no_other_figure_changes(
    drawn: list[tuple[int, int, int]], width: int, seed: int, most: int
) -> None:
    workers, codes, panes = columns(drawn)
    costs = np.random.default_rng(seed).integers(1, most + 1, len(drawn))
    counted = metrics.window_figures(workers, codes, panes, 5, panes_per_window=width)
    result = metrics.window_figures(workers, codes, panes, 5, panes_per_window=width, costs=costs)
    for name in ("ends", "gamma", "distinct", "max_holders"):
        assert getattr(result, name).tolist() == getattr(counted, name).tolist()
    ends, imbalance = metrics.window_imbalance(workers, panes, 5, panes_per_window=width, costs=costs)
    points, so_far = metrics.sampled_imbalance(workers, 5, samples=7, costs=costs)
    for end, of_walk, of_panes in zip(result.ends, result.imbalance, imbalance, strict=True):
        inside = (panes > end - width) & (panes <= end)
        loads = [int(costs[inside & (workers == worker)].sum()) for worker in range(5)]
        assert of_walk == of_panes == max(loads) / sum(loads) - 1 / 5
    for point, value in zip(points, so_far, strict=True):
        loads = [int(costs[:point][workers[:point] == worker].sum()) for worker in range(5)]
        assert value == max(loads) / sum(loads) - 1 / 5
    assert ends.tolist() == result.ends.tolist()
    if most == 1:
        assert result.imbalance.tolist() == counted.imbalance.tolist()
        assert so_far.tolist() == metrics.sampled_imbalance(workers, 5, samples=7)[1].tolist()


@given(rows)
def test_small_tables_and_outputs_change_nothing(drawn: list[tuple[int, int, int]]) -> None:
    workers, codes, panes = columns(drawn)
    usual = metrics.window_figures(workers, codes, panes, 5, panes_per_window=7)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sliding, "_FIRST_SLOTS", 2)
        patched.setattr(sliding, "_MOST_OUTPUT", 3)
        small = metrics.window_figures(workers, codes, panes, 5, panes_per_window=7)
    for name in ("ends", "imbalance", "gamma", "distinct", "max_holders"):
        assert getattr(small, name).tolist() == getattr(usual, name).tolist()


def test_a_pause_of_millions_of_panes_costs_nothing() -> None:
    panes = np.array([0, 10**12], np.int64)
    result = metrics.window_figures(
        np.zeros(2, np.int32), np.zeros(2, np.int32), panes, 1, panes_per_window=3
    )
    assert result.ends.tolist() == [0, 1, 2, 10**12]


def test_a_long_stream_agrees_with_the_functions_that_take_one_window() -> None:
    rng = np.random.default_rng(5)
    workers, keys = (
        rng.integers(0, 64, 300_000, dtype=np.int32),
        rng.integers(0, 2**63, 40_000)[rng.integers(0, 40_000, 300_000)],
    )
    codes, distinct = metrics.key_codes(keys)
    assert distinct == metrics.distinct_keys(keys)
    panes = np.arange(300_000) // 10_000
    result = metrics.window_figures(workers, codes, panes, 64, panes_per_window=6)
    for end in (0, 4, 17, 29):
        inside = (panes > end - 6) & (panes <= end)
        assert result.gamma[end] == metrics.aggregation_cost(workers[inside], keys[inside])
        assert result.max_holders[end] == metrics.max_holders(workers[inside], keys[inside])
    ends, imbalance = metrics.window_imbalance(workers, panes, 64, panes_per_window=6)
    assert result.ends.tolist() == ends.tolist()
    assert result.imbalance.tolist() == pytest.approx(imbalance.tolist())


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(1, 20))
def test_samples_of_the_imbalance_are_those_of_the_stream_so_far(drawn: list[int], samples: int) -> None:
    workers = np.array(drawn, np.int32)
    points, values = metrics.sampled_imbalance(workers, 5, samples=samples)
    assert points.tolist() == sorted({len(drawn) * at // samples for at in range(1, samples + 1)} - {0})
    for point, value in zip(points, values, strict=True):
        assert value == pytest.approx(metrics.imbalance(metrics.worker_loads(workers[:point], 5)))


def test_input_that_does_not_fit_is_refused() -> None:
    two = np.zeros(2, np.int32)
    with pytest.raises(ValueError, match="one of each per tuple"):
        metrics.window_figures(two, two[:1], np.zeros(2, np.int64), 1, panes_per_window=1)
    with pytest.raises(ValueError, match="2 workers, 1 costs"):
        metrics.stream_figures(two, two, 1, costs=np.ones(1, np.int64))
    with pytest.raises(ValueError, match="panes decrease"):
        metrics.window_figures(two, two, np.array([1, 0]), 1, panes_per_window=1)
    with pytest.raises(ValueError, match="not all in"):
        metrics.window_figures(two + 1, two, np.zeros(2, np.int64), 1, panes_per_window=1)
    with pytest.raises(ValueError, match="counted from 0"):
        metrics.window_figures(two, two - 1, np.zeros(2, np.int64), 1, panes_per_window=1)
