"""The replayed queues of micro-batches: what a batch costs, which rate it allows, and what clustering
compares.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.partitioners.prompt_plan import COSTS, planning_costs
from evenflow.generation.rank_laws import labels
from evenflow.keys import bucket_of, hash_keys
from evenflow.numeric.arrays import Int32s, UInt64s
from papers.batch_work import BatchWork, Tasks, batch_work
from papers.cells.run_plan import Stream, quick_plan
from papers.paper_000 import clustering
from papers.paper_000.batches import rates as batch_rates
from papers.paper_000.grid import CAM
from papers.paper_001 import queue_grid, queue_rates
from papers.routing import circling, renamed
from papers.unit_costs import Costs, planning_unit_costs, unit_costs

KEYS, MAPS, REDUCES = 6, 3, 2
TASKS = Tasks(MAPS, REDUCES)
ROUND = Costs(tuple=1, make=10, send=100, receive=1, hold=10, emit=100, hear=0)
HASHES: UInt64s = hash_keys(labels(np.arange(KEYS)))


def ints(*values: int) -> Int32s:
    return np.array(values, np.int32)


def work(blocks: Int32s, codes: Int32s, tasks: Tasks = TASKS, costs: Costs = ROUND) -> BatchWork:
    return batch_work(blocks, codes, HASHES, tasks=tasks, costs=costs)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Int32s, Int32s]:
    """The data block and the key of each tuple of a batch."""
    size = draw(st.integers(1, 40))
    blocks = draw(st.lists(st.integers(0, MAPS - 1), min_size=size, max_size=size))
    codes = draw(st.lists(st.integers(0, KEYS - 1), min_size=size, max_size=size))
    return ints(*blocks), ints(*codes)


def test_a_batch_by_hand() -> None:
    """Key 0 in blocks 0 and 1, key 1 in block 1. Block 2 is empty."""
    batch = work(ints(0, 1, 0, 1, 1), ints(0, 0, 0, 1, 1))
    assert batch.maps.tolist() == [2 + 110, 3 + 220, 0]
    at = bucket_of(HASHES[:2], REDUCES).tolist()
    reduces = [0.0, 0.0]
    reduces[at[0]] += 2 + 110
    reduces[at[1]] += 1 + 110
    assert batch.reduces.tolist() == reduces
    assert (batch.tuples, batch.keys, batch.partials) == (5, 2, 3)
    assert batch.stages == 223 + max(reduces)


def test_a_batch_of_one_data_block_has_one_busy_map_task() -> None:
    batch = work(ints(0, 0, 0, 0), ints(0, 1, 2, 3))
    assert batch.maps.tolist() == [4 + 4 * 110, 0, 0]
    assert batch.reduces.sum() == 4 * 111


def test_a_batch_of_one_key_has_one_busy_reduce_task() -> None:
    batch = work(ints(0, 1, 2, 2), ints(3, 3, 3, 3))
    assert sorted(batch.reduces.tolist()) == [0, 3 + 110]
    assert batch.maps.tolist() == [111, 111, 112]


@pytest.mark.parametrize("tasks", [TASKS, TASKS._replace(allocated=True)])
def test_an_empty_batch_takes_no_time(tasks: Tasks) -> None:
    batch = work(ints(), ints(), tasks)
    assert batch.stages == 0
    assert (batch.tuples, batch.keys, batch.partials) == (0, 0, 0)


@given(batches(), st.booleans())
def test_no_batch_is_faster_than_its_work_in_equal_shares(
    batch: tuple[Int32s, Int32s], allocated: bool
) -> None:
    result = work(*batch, Tasks(MAPS, REDUCES, allocated), unit_costs())
    ideal = result.maps.sum() / MAPS + result.reduces.sum() / REDUCES
    assert result.stages >= ideal * (1 - 1e-12)


@given(batches())
def test_placing_keys_by_alg_3_moves_work_and_makes_none(batch: tuple[Int32s, Int32s]) -> None:
    hashed, placed = (work(*batch, Tasks(MAPS, REDUCES, allocated)) for allocated in (False, True))
    assert placed.maps.tolist() == hashed.maps.tolist()
    assert placed.reduces.sum() == hashed.reduces.sum()
    assert (placed.keys, placed.partials) == (hashed.keys, hashed.partials)


@given(batches())
def test_splitting_keys_less_is_never_more_work(batch: tuple[Int32s, Int32s]) -> None:
    blocks, codes = batch
    whole = work((codes % MAPS).astype(np.int32), codes)
    split = work(blocks, codes)
    assert whole.maps.sum() <= split.maps.sum()
    assert whole.reduces.sum() <= split.reduces.sum()


def test_equal_shares_give_the_ideal_rate() -> None:
    """Every block holds two tuples of a key of its own, and every bucket one key."""
    buckets = bucket_of(HASHES, REDUCES)
    codes = ints(*(int(np.flatnonzero(buckets == bucket)[0]) for bucket in range(REDUCES)))
    batch = work(ints(0, 0, 1, 1), np.repeat(codes, 2), Tasks(2, REDUCES))
    assert batch.stages == batch.maps.sum() / 2 + batch.reduces.sum() / REDUCES
    assert batch_rates.rate([batch] * 5) == pytest.approx(
        1e3 * 4 / max(batch.maps[0], batch.reduces[0]) * 6 / 5, rel=1e-9
    ), "five batches may be behind by one"


@given(st.lists(batches(), min_size=1, max_size=5))
def test_no_rate_is_above_that_of_equal_shares(several: list[tuple[Int32s, Int32s]]) -> None:
    result = [work(*batch, costs=unit_costs()) for batch in several]
    tuples = sum(batch.tuples for batch in result)
    slowest = max(
        sum(batch.maps.sum() for batch in result) / MAPS,
        sum(batch.reduces.sum() for batch in result) / REDUCES,
    )
    # Behind by a batch at the end is allowed.
    spare = (len(result) + 1) / len(result)
    assert batch_rates.rate(result) <= 1e3 * tuples / slowest * spare * (1 + 1e-9)


@given(st.floats(0.5, 1.0), st.floats(1e-6, 1e-3), st.integers(1, 3))
def test_the_highest_rate_takes_the_interval(power: float, cost: float, interval: int) -> None:
    rate = queue_rates.highest_rate(lambda at: cost * at**power, interval, first=1_000.0)
    assert cost * rate**power == pytest.approx(interval, rel=0.01)


def test_no_rate_is_the_highest_if_nothing_takes_time() -> None:
    with pytest.raises(ValueError, match="no time"):
        queue_rates.highest_rate(lambda at: 0.0, 1, first=1.0)


def test_a_sine_has_its_mean_over_a_period_and_its_peak_in_the_second_quarter() -> None:
    period = queue_grid.PERIOD
    times = queue_rates.sine_times(1_000, period)
    assert len(times) == pytest.approx(1_000 * period, abs=1)
    assert (np.diff(times) >= 0).all()
    assert times[-1] < period * queue_rates.TICKS
    quarters = np.bincount(times * 4 // (period * queue_rates.TICKS)) / len(times)
    swing = queue_grid.AMPLITUDE / (2 * np.pi)
    assert quarters == pytest.approx([0.25 + swing, 0.25 + swing, 0.25 - swing, 0.25 - swing], abs=1e-3)


def test_a_batch_waits_only_for_batches_that_take_longer_than_the_interval() -> None:
    late = queue_rates.latencies(np.array([1.0, 3.0, 1.0, 1.0]), 2)
    assert late.tolist() == [3.0, 5.0, 4.0, 3.0]


@pytest.mark.parametrize("rule", ["prompt", "time-based", "dalton-batch"])
def test_a_queue_has_the_batches_of_one_period(rule: str) -> None:
    pool = Stream("zipf", 5_000, 100, 1.0).opened(Path())
    queue = queue_rates.Queue(pool, rule, 2, 1, 500)
    result = queue.batches(500.0)
    assert len(result) == queue_grid.PERIOD // 2
    assert sum(batch.tuples for batch in result) == pytest.approx(500 * queue_grid.PERIOD, abs=1)
    assert all(queue.seconds(batch) > 0 for batch in result)


def test_the_seeds_read_the_circle_from_elsewhere() -> None:
    pool = Stream("uniform", 100, 50).opened(Path())
    first, second = (circling(pool, 120, seed=seed, seeds=10) for seed in (1, 2))
    assert first[:100].tolist() == pool.codes.tolist()
    assert first[100:].tolist() == pool.codes[:20].tolist()
    assert second[:110].tolist() == first[10:].tolist()
    hashes = renamed(pool, 1)
    assert len(np.unique(hashes[pool.codes])) == len(np.unique(pool.codes))
    assert not (hashes == renamed(pool, 2)).any()


def test_prompt_is_measured_with_and_without_its_planning() -> None:
    plan = quick_plan(Path(), 1)
    cells = queue_grid.cells(plan)
    planned = {cell.partitioner for cell in cells if planning_unit_costs().mark in cell.experiment}
    assert planned == set(queue_grid.PLANNED.values())
    assert {cell.partitioner for cell in cells} >= set(CAM)


def test_the_kept_planning_costs_are_those_that_are_measured() -> None:
    assert set(vars(planning_unit_costs())) == set(COSTS)
    assert all(cost > 0 for cost in vars(planning_unit_costs()).values())
    made = planning_costs(HASHES[np.arange(60) % KEYS], repetitions=1)
    assert set(made) == set(COSTS) - {"plan"}


def test_clustering_compares_every_two_records_of_a_key_once() -> None:
    """Key 0: 3 records on combiner 0 and 2 on combiner 1. Key 1: 2 records on combiner 1."""
    done, merged = clustering.comparisons(ints(0, 0, 0, 1, 1, 1, 1), ints(0, 0, 0, 0, 0, 1, 1), ints(4, 5), 2)
    assert done.tolist() == [3, 1 + 1]
    assert merged.tolist() == [0, 0, 0, 0, 6, 0, 0, 0]


@given(batches())
def test_wherever_records_go_all_pairs_of_a_key_are_compared(batch: tuple[Int32s, Int32s]) -> None:
    blocks, codes = batch
    done, merged = clustering.comparisons(blocks, codes, bucket_of(HASHES, clustering.REDUCERS), MAPS)
    records = np.bincount(codes)
    assert done.sum() + merged.sum() == (records * (records - 1) / 2).sum()


def test_drawn_tweets_have_the_share_of_table_2() -> None:
    for name, share in (("T4SA, drawn", 0.0269), ("Elections, drawn", 0.072)):
        keys, zipf = batch_rates.TWEETS[name]
        assert 1 / (np.arange(1, keys + 1) ** -zipf).sum() == pytest.approx(share, rel=0.01)
