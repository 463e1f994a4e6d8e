"""PartLy's section of the papers' figures: what a batch's tasks take, and what of it is kept."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.keys import bucket_of, salts
from evenflow.simulation.streams import rank_hashes
from evenflow.training.batches import BatchLaw
from evenflow.training.learner import Training
from papers.cells.run_plan import StreamCache, full_plan, quick_plan
from papers.partly import grid, measuring
from papers.partly.claims import _reached
from papers.unit_costs import unit_costs
from tests.examples import examples

PLAN = full_plan(Path(), 1)


def figures(blocks: list[int], codes: list[int]) -> dict[str, float]:
    arrays = np.array(blocks, np.int32), np.array(codes, np.int64)
    return measuring.block_figures(*arrays, rank_hashes(max(codes) + 1), 1)


def test_a_map_task_pays_for_tuples_and_keys() -> None:
    """23 data blocks have 2 tuples of one key, and one has 4 tuples of two keys."""
    blocks = [block for block in range(24) for _ in range(2)] + [0, 0]
    codes = [block for block in range(24) for _ in range(2)] + [24, 24]
    ours, prices = figures(blocks, codes), unit_costs()
    more = (2 * prices.tuple + prices.make + prices.send) / 1e3
    assert ours["map"] == pytest.approx(more**2 * (1 / 24) * (23 / 24))
    assert (ours["split"], ours["ksr"]) == (0, 1)
    assert ours["bsi"] == pytest.approx(2 - 2 / 24)
    assert ours["bci"] == pytest.approx(1 - 1 / 24)


@given(st.lists(st.tuples(st.integers(0, 23), st.integers(0, 30)), min_size=1, max_size=200))
@examples(30)
def test_reduce_tasks_get_every_fragment_and_key_once(pairs: list[tuple[int, int]]) -> None:
    blocks, codes = (np.array(column) for column in zip(*pairs, strict=True))
    of_key, salt, prices = rank_hashes(31), salts(5, 1)[0], unit_costs()
    times = np.zeros(24)
    for _, code in set(pairs):
        times[bucket_of(of_key[[code]] ^ salt, 24)[0]] += prices.receive
    for code in set(codes.tolist()):
        times[bucket_of(of_key[[code]] ^ salt, 24)[0]] += prices.hold + prices.emit
    table = np.zeros((31, 24), np.int64)
    np.add.at(table, (codes, blocks), 1)
    assert measuring._reduced(table, of_key, salt)[0] == pytest.approx(float(np.var(times / 1e3)))


def test_one_split_key_is_counted_with_its_fragments() -> None:
    ours = figures([0, 1, 2, 3], [0, 0, 0, 1])
    assert (ours["split"], ours["ksr"]) == (1, 2)


def test_the_training_batches_are_those_that_the_training_drew() -> None:
    training = Training()
    rng = np.random.default_rng([training.seed, 0])
    drawn = [BatchLaw().draw(rng).counts for _ in range(6)]
    result = [
        np.sort(np.bincount(codes))[::-1] for seed in (1, 2, 3) for _, codes in measuring._trained(seed, 2)
    ]
    assert [counts.tolist() for counts in result] == [counts.tolist() for counts in drawn]


def test_every_seed_has_the_batches_of_its_streams() -> None:
    plan = quick_plan(Path(), 1)
    cell = grid.block_cell(plan, "Zipf 1.0", grid.PARTLY)
    result = measuring.measure(cell, StreamCache(cell.stream, plan), plan)
    assert {len(values) for values in result.values()} == {len(plan.seeds)}


def test_what_is_kept_has_all_that_the_claims_ask_for() -> None:
    for which in grid.TRAININGS:
        result = measuring.measure(
            grid.training_cell(PLAN, which), StreamCache(grid.trained(PLAN), PLAN), PLAN
        )
        assert result["steps"] == sorted(result["steps"])
    for planner in grid.PLANNERS:
        times = measuring._times(planner)
        assert set(times) == {f"{over}{ms}" for over in grid.OVER for ms in ("", " ms")}
        assert all(len(times[over]) == len(times[f"{over} ms"]) for over in grid.OVER)


def test_a_cost_that_is_never_reached_has_no_number_of_actions() -> None:
    curve = [(10.0, 0.5), (20.0, 0.2), (30.0, 0.3)]
    assert [_reached(curve, cost) for cost in (0.5, 0.3, 0.1)] == [10, 20, None]
