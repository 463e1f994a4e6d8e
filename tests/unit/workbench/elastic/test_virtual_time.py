"""Closed loops in virtual time: the real controller over a model of Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from evenflow.errors import ConfigError
from workbench.elastic import SHAPES, Course, CourseVerdict, LoopOptions, shape_of, verdict_of
from workbench.elastic.loop import loop_settings
from workbench.elastic.shapes import Shape
from workbench.elastic.virtual_stream import VirtualStream
from workbench.elastic.virtual_time import Bound, Times, play

SPIKE = SHAPES["spike"]
EVEN = Times(overhead=(0.8, 0.8), registration=(3.0, 3.0), cold_start=(3.0, 3.0), spread=0.0)
"""Nothing is drawn but where in a batch interval the shape begins."""


def course(
    shape: Shape = SPIKE, *, seed: int = 1, policy: str | None = "ds2", reserve: int = 0, **more: object
) -> Course:
    return play(LoopOptions(shape=shape, policy=policy, reserve=reserve), seed=seed, **more)  # type: ignore[arg-type]


def verdict(played: Course) -> CourseVerdict:
    return verdict_of(played, slo_ms=20_000)


def steady(rate: float, seconds: float = 60) -> Shape:
    return replace(shape_of(f"spike:base={rate:g},peak={rate:g},at=1s,for=1s"), seconds=seconds)


def test_the_same_seed_gives_the_same_course_and_another_seed_another_one() -> None:
    assert course() == course()
    assert course().batches != course(seed=2).batches


@pytest.mark.parametrize(("rate", "load"), [(500, 0.46), (1_000, 0.76)])
def test_a_micro_batch_takes_its_overhead_and_600_us_for_each_tuple(rate: float, load: float) -> None:
    batches = course(steady(rate), policy=None, times=EVEN).batches
    # How old the newest tuple is still varies: up to half a second of tuples more or less.
    about = pytest.approx(load, abs=rate * 0.5 * 600e-6 / 5)
    assert [batch.load for batch in batches] == [about] * len(batches)
    assert sum(batch.tuples for batch in batches) == pytest.approx(rate * 60, rel=0.1)


def test_a_window_comes_when_the_micro_batch_ends_that_begins_an_interval_after_its_end() -> None:
    played = course(steady(1_000), policy=None, times=EVEN)
    assert {round(latency) for _, latency in played.latencies} <= set(range(8_300, 8_901))
    assert len(played.latencies) in (10, 11), "a window each slide of 5 s, until the last micro-batch"


def test_two_executors_halve_what_two_workers_take_and_three_workers_on_two_take_two_thirds() -> None:
    alone, reserved = (course(steady(1_000), policy=None, reserve=reserve, times=EVEN) for reserve in (0, 1))
    one, two = (sum(batch.load for batch in each.batches) / len(each.batches) for each in (alone, reserved))
    assert (one - 0.16) / (two - 0.16) == pytest.approx(2, rel=0.02)
    assert {batch.executors for batch in reserved.batches} == {2}


def test_without_a_controller_the_spike_stays_overloaded_and_with_one_it_does_not() -> None:
    nothing, ds2 = verdict(course(policy=None)), verdict(course())
    assert nothing.overloaded > 2 * ds2.overloaded > 0
    assert nothing.slo_violations
    assert not ds2.slo_violations
    assert nothing.actions == 0 < ds2.actions


def test_a_plan_adds_executors_after_their_start_and_the_partitioner_follows_at_a_slide() -> None:
    played = course(times=EVEN)
    planned = played.changes[0].at
    more = [batch.at for batch in played.batches if batch.executors == 2]
    assert planned + 3 <= more[0] < planned + 15
    assert all(batch.executors == 1 for batch in played.batches if batch.at < planned)
    assert [batch.epoch for batch in played.batches] == sorted(batch.epoch for batch in played.batches)


def test_a_load_that_falls_for_good_lets_executors_go() -> None:
    shape = replace(shape_of("spike:base=500,peak=2000,at=20s,for=40s"), seconds=300)
    played = course(shape)
    most = max(batch.executors or 0 for batch in played.batches)
    assert most > 1 == played.batches[-1].executors


def test_a_bound_keeps_micro_batches_short_only_while_the_pipeline_scales() -> None:
    free, bounded = course(), course(bound=Bound(intervals=1))
    assert max(batch.tuples for batch in bounded.batches) < max(batch.tuples for batch in free.batches)
    assert any(batch.backlog for batch in bounded.batches)
    assert not any(batch.backlog for batch in free.batches)
    assert bounded.batches[-1].backlog == 0, "what was left behind is read once the bound is over"


def test_nothing_scales_so_nothing_is_bounded() -> None:
    shape = steady(1_000)
    assert course(shape, bound=Bound(intervals=0.1, switch_s=5)) == course(shape)


def test_a_bound_that_costs_a_restart_makes_windows_later() -> None:
    free, costly = (
        sum(latency for _, latency in course(bound=Bound(intervals=1, switch_s=cost)).latencies)
        for cost in (0, 3)
    )
    assert costly > free


def test_each_tuple_is_routed_once_by_the_real_partitioner_and_a_rescale_leaves_none_out() -> None:
    shape = SHAPES["flash-crowd"]
    options = LoopOptions(shape=shape, partitioner="hashing")
    with TemporaryDirectory() as folder:
        settings = loop_settings(options, Path(folder))
    stream = VirtualStream(shape, settings, began=1_700_000_000.0, warm_up_s=10.0)
    warm_up, calm = stream.loads(2, stream.began), stream.loads(2, stream.began + 20)
    stream.loads(2, stream.began + 40)
    crowd = stream.loads(4, stream.began + 60)
    assert (warm_up.sum(), calm.sum(), len(crowd)) == (10_000, 20_000, 4)
    assert crowd.max() / crowd.sum() > 0.6 > calm.max() / calm.sum(), "the hot key stays whole"
    stream.loads(4, stream.began + shape.seconds)
    assert not stream.loads(4, stream.began + shape.seconds).any()


def test_a_hot_key_overloads_a_loop_that_hashes_and_no_loop_that_splits() -> None:
    shares = {}
    for name in ("evenflow", "hashing"):
        options = LoopOptions(shape=SHAPES["flash-crowd"], policy="ds2", reserve=1, partitioner=name)
        shares[name] = verdict(play(options, seed=1)).overloaded
    assert shares["hashing"] > 0.3 > shares["evenflow"]


def test_a_partitioner_of_whole_micro_batches_is_refused() -> None:
    with pytest.raises(ConfigError, match="whole micro-batches"):
        play(LoopOptions(shape=SPIKE, partitioner="prompt"), seed=1)


def test_the_split_wiring_is_refused() -> None:
    with pytest.raises(ConfigError, match="fused"):
        play(LoopOptions(shape=SPIKE, wiring="split"), seed=1)
