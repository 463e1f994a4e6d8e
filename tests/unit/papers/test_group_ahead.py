"""Micro-batches that are scheduled in groups: the queue, the planner in it, and what Spark's triggers
cost.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.pictures import keep_rows
from benchmarks.spark.batches_a_trigger import row
from benchmarks.spark.triggers import Turn, figures
from evenflow.elasticity import Bounds, Policy, create
from papers import group_ahead
from papers.cells.run_plan import StreamCache, quick_plan
from papers.group_ahead import grid, measuring
from papers.group_ahead.loads import LOADS, SPIKE, SPIKES, drawn
from papers.group_ahead.queue import WAYS, QueueCourse, Scheduling, Way, play, throughput
from tests.examples import examples

PLAN = quick_plan(Path(), 1)
DATA = st.lists(st.floats(0, 20), min_size=1, max_size=40).map(np.array)
SCHEDULING = st.builds(Scheduling, st.sampled_from(WAYS), st.integers(1, 12), st.floats(0, 0.8))


def fixed(p: int) -> Policy:
    return create("fixed", bounds=Bounds(p_max=8), p=p)


def fast() -> Policy:
    return create("prompt-plus", bounds=Bounds(p_max=32), d=1, proportional=True)


def after_a_spike(way: Way, *, cost: float = 0.0) -> QueueCourse:
    return play(3.6 * (1 - 1e-9) * SPIKES["lasting"](40), Scheduling(way, 10, cost), fast(), p=4)


def test_a_batch_waits_until_the_one_before_is_done() -> None:
    course = play(np.array([4.0, 1.0, 1.0, 1.0]), Scheduling("group", 10, 0.0), fixed(2), p=2)
    assert course.loads.tolist() == [2.0, 0.5, 0.5, 0.5]
    assert course.delays.tolist() == [2.0, 1.5, 1.0, 0.5]


def test_a_group_shares_the_cost_that_each_batch_alone_pays() -> None:
    shares = [Scheduling(way, 10, 0.5).share for way in WAYS]
    assert shares == [0.5, 0.05, 0.05]


@examples(60)
@given(DATA, SCHEDULING)
def test_no_batch_is_done_before_its_own_work_and_the_work_never_overlaps(
    data: np.ndarray, scheduling: Scheduling
) -> None:
    course = play(data, scheduling, fast(), p=4)
    numbers = np.arange(1, len(data) + 1)
    ends = numbers + course.delays
    assert (course.delays >= course.loads - 1e-9).all()
    assert (np.diff(ends) >= course.loads[1:] - 1e-9).all()
    assert np.allclose(course.loads, scheduling.share + data / course.p)


@examples(60)
@given(DATA, SCHEDULING)
def test_a_batch_has_other_workers_only_if_an_earlier_batch_was_done_before_it_began(
    data: np.ndarray, scheduling: Scheduling
) -> None:
    course = play(data, scheduling, fast(), p=4)
    first_done = 1 + course.delays[0]
    began_before = np.arange(len(data)) <= first_done
    assert (course.p[began_before] == 4).all()


def test_one_at_a_time_changes_first_then_a_group_ahead_then_a_plain_group() -> None:
    changed = [int(np.flatnonzero(after_a_spike(way).p != 4)[0]) + 1 for way in WAYS]
    assert changed == [18, 26, 19]


def test_a_load_that_stays_needs_no_other_workers() -> None:
    for way in WAYS:
        course = play(np.full(60, 3.4), Scheduling(way, 10, 0.0), fast(), p=4)
        assert (course.p == 4).all()


def test_both_spikes_begin_in_the_middle_of_a_group() -> None:
    assert SPIKES["lasting"](20).tolist() == [1.0] * 14 + [2.0] * 6
    assert SPIKES["single"](20).tolist() == [1.0] * 14 + [2.0] + [1.0] * 5
    assert 1 < SPIKE % grid.GROUP < grid.GROUP


@pytest.mark.parametrize("load", LOADS)
def test_a_load_is_drawn_by_its_seed_alone(load: str) -> None:
    one, same, other = (drawn(load, 90, seed=seed) for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()
    assert np.allclose(one, LOADS[load](90), rtol=0.3)


def test_the_workers_at_the_beginning_are_the_fewest_that_are_not_overloaded() -> None:
    how = Scheduling("one at a time", 10, 0.5)
    p = measuring.fewest(how, 3.0)
    assert how.load(3.0, p) <= measuring.THRESHOLD < how.load(3.0, p - 1)
    assert measuring.fewest(how, 1e9) == grid.MOST


def test_a_factor_of_five_needs_a_cost_of_four_fifths_of_an_interval() -> None:
    assert throughput(0.82, 10) == pytest.approx(5.1, abs=0.01)
    assert throughput(0.5, 1) == 1.0
    assert throughput(1.0, 10) == math.inf


@given(st.floats(0, 0.99), st.integers(1, 100))
def test_a_larger_group_sustains_no_less(cost: float, group: int) -> None:
    assert 1 - 1e-9 <= throughput(cost, group) <= throughput(cost, group + 1) + 1e-9


def test_the_cost_of_a_trigger_is_the_slope_of_seconds_over_triggers() -> None:
    turns = {
        str(many): [Turn(20 // many, 0.5 * (20 // many) + 20 * 0.1, 20 / many, 7, 1.0)] * 2
        for many in (1, 2, 5, 10)
    }
    result = figures(turns, 20)
    assert (result["fixed_s"], result["fixed_cpu_s"], result["batch_s"]) == (0.5, 1.0, 0.1)
    assert result["seconds_a_trigger"]["10"]["median"] == 1.5
    assert result["cpu_a_trigger"]["10"]["median"] == 1.0
    assert result["speed"]["10"] == 4.0
    assert row("prompt", result)["factor"] == pytest.approx(throughput(0.5, 10), abs=0.01)


def test_the_section_reads_what_was_measured_on_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = grid.trigger_cell("prompt")
    monkeypatch.setattr(measuring, "TRIGGERS", tmp_path / "rows.json")
    assert not measuring.measurable(cell)
    turns = {str(many): [Turn(20 // many, 20 / many, 1.0, 7, 1.0)] for many in grid.TAKEN}
    keep_rows([row("prompt", figures(turns, 20))], tmp_path / "rows.json")
    assert measuring.measurable(cell)
    values = group_ahead.measure(cell, StreamCache(cell.stream, PLAN), PLAN)
    assert values["seconds"] == [1.0] * 4
    assert values["speed"] == [1.0, 2.0, 5.0, 10.0]


def test_every_setting_has_a_cell_of_its_own() -> None:
    result = list(grid.settings())
    assert len({setting.cell(PLAN) for setting in result}) == len(result)
    assert all(grid.setting_of(setting.cell(PLAN), PLAN) == setting for setting in result)
