"""How good a course was, against courses that are reckoned by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evenflow.errors import ConfigError
from workbench.elastic.course import Batch, Change, Course
from workbench.elastic.course_figures import verdict_of
from workbench.elastic.shapes import SHAPES, shape_of


def batch(at: float, load: float, slots: int = 1, stage: str = "fused") -> Batch:
    return Batch(at=at, stage=stage, load=load, tuples=1, backlog=0, slots=slots, executors=slots, epoch=0)


COURSE = Course(
    interval=5.0,
    p=2,
    r=1,
    batches=(
        batch(0, 3.0),
        batch(5, 0.85),
        batch(10, 0.95),
        batch(20, 0.4, slots=3),
        batch(25, 0.4, slots=3),
    ),
    changes=(Change(at=11, p=4, r=1, epoch=1, zone=3, reason="zone 3"),),
    decisions=5,
    rates=((0.0, 100.0),),
    latencies=((6.0, 1_000.0), (11.0, 3_000.0), (16.0, 30_000.0), (21.0, 2_000.0)),
)


def test_time_outside_of_zone_2_counts_by_the_seconds_between_micro_batches_and_not_the_first_one() -> None:
    result = verdict_of(COURSE, slo_ms=20_000)
    assert (result.seconds, result.batches) == (25.0, 4)
    assert result.overloaded == pytest.approx(5 / 25)
    assert result.under_used == pytest.approx(15 / 25)
    assert result.out_of_zone_2 == pytest.approx(20 / 25)


def test_slots_beyond_the_fewest_that_would_do_are_over_provisioned() -> None:
    # 3 slots at W 0.4 do the work of ceil(3 * 0.4 / 0.9) = 2.
    result = verdict_of(COURSE, slo_ms=20_000)
    assert result.slot_seconds == pytest.approx(5 + 5 + 30 + 15)
    assert result.over_provisioned == pytest.approx(10 + 5)


def test_windows_later_than_the_objective_violate_it() -> None:
    result = verdict_of(COURSE, slo_ms=20_000)
    assert result.slo_violations == pytest.approx(1 / 4)
    assert (result.latency_p50_ms, result.latency_p99_ms) == (2_000, 30_000)
    assert result.actions == 1


def test_of_two_stages_the_one_that_is_loaded_more_is_judged() -> None:
    other = tuple(batch(at, 0.1, stage="reduce") for at in (1, 6, 11, 21, 26))
    stages = tuple(replace(one, stage="combine") for one in COURSE.batches)
    result = verdict_of(replace(COURSE, batches=(*stages, *other)), slo_ms=20_000)
    assert result.overloaded == verdict_of(COURSE, slo_ms=20_000).overloaded


def test_a_course_without_micro_batches_or_results_has_no_latency_and_divides_by_nothing() -> None:
    result = verdict_of(replace(COURSE, batches=(), latencies=()), slo_ms=1)
    assert (result.batches, result.slo_violations, result.latency_p99_ms) == (0, None, None)


@pytest.mark.parametrize("name", list(SHAPES))
def test_a_shape_sends_its_tuples_within_its_seconds(name: str) -> None:
    rates = SHAPES[name].rates()
    numbers = np.arange(0, SHAPES[name].tuples(), 97, dtype=np.float64)
    times = rates.inverse(numbers)
    assert (np.diff(times) >= 0).all()
    assert times[0] == 0
    assert times[-1] <= SHAPES[name].seconds
    assert rates.due(times) == pytest.approx(numbers, abs=0.5)


def test_an_unknown_shape_is_refused_and_a_profile_of_replay_is_taken() -> None:
    assert shape_of("spike:base=100,peak=200,at=5s,for=5s", seconds=20).seconds == 20
    with pytest.raises(ConfigError, match="no profile"):
        shape_of("spikey")
    with pytest.raises(ConfigError, match="rate curve"):
        shape_of("full")
