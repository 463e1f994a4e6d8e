"""A pipeline that begins does not swing, and a real overload is answered as soon as the start-up is over."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from controller.beginnings import AFTER_A_CHANGE, LEAST, LONGEST_MS
from evenflow.plans import Plan
from tests.unit.controller.parts import Pipeline, batch, heartbeat, partitioner, settings_of
from tests.unit.controller.start_up import Run, Shape

seeds = pytest.mark.parametrize("seed", range(20))
QUIET = Shape(first=3, slow=0.5, tau=3, backlog=0)


@pytest.mark.family
@seeds
@pytest.mark.parametrize(
    ("policy", "interval"), [("prompt-plus", 1.0), ("prompt-plus", 5.0), ("threshold", 5.0)]
)
def test_a_constant_load_changes_the_plan_at_most_once_in_the_first_minute_and_back_only_after_another(
    policy: str, interval: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    run = Run(load=float(rng.uniform(0.2, 0.85)), interval=interval, rng=rng, policy=policy)
    run.drive(Shape.drawn(rng), 150)
    first = run.directions(until=60)
    assert len(first) <= 1, run.changes
    times = [at for at, _, _ in run.changes]
    for (earlier, later), (was, then) in zip(pairwise(times), pairwise(run.directions()), strict=True):
        assert was == then or later - earlier >= 60, run.changes


@pytest.mark.family
@seeds
def test_a_driver_that_begins_again_changes_nothing_that_had_come_to_rest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    run = Run(load=0.82, interval=5.0, rng=rng, noise=0.01)
    run.drive(QUIET, 120)
    before = len(run.changes)
    run.drive(Shape.drawn(rng), 60)
    assert len(run.changes) == before, run.changes


@pytest.mark.family
@seeds
@pytest.mark.parametrize("interval", [1.0, 5.0])
def test_an_overload_from_the_beginning_is_answered_within_two_minutes_and_never_back(
    interval: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    run = Run(load=1.15, interval=interval, rng=rng)
    run.drive(QUIET, 120)
    assert run.changes
    assert set(run.directions()) == {1}, run.changes


def test_the_first_micro_batches_of_a_driver_are_named_and_nothing_is_decided_on_them() -> None:
    settings = settings_of()
    pipeline = Pipeline(settings)
    for finished in range(1, 8):
        pipeline.now += 5
        pipeline.hear(
            partitioner(settings),
            batch(settings, batch=40 + finished, finished=finished, warm_ms=9_000 * (finished - 1)),
        )
    held = [judged.decision.cause == "starting" for judged in pipeline.judged]
    assert held == [True] * LEAST + [False] * (7 - LEAST)
    first = pipeline.judged[0].decision
    assert first.held
    assert first.reason.startswith("nothing is decided: the fused stage has just begun")


def test_a_first_micro_batch_that_never_ends_is_a_start_and_an_idle_driver_is_none() -> None:
    settings = settings_of()
    pipeline = Pipeline(settings)
    pipeline.now += 5
    pipeline.hear(partitioner(settings), heartbeat(settings, batch=None, finished=0, running_ms=30_000))
    assert pipeline.seen[-1].observation.starting
    pipeline.now += 5
    pipeline.hear(partitioner(settings), heartbeat(settings, batch=None, finished=0))
    assert not pipeline.seen[-1].observation.starting
    assert pipeline.seen[-1].no_scale_in


def test_a_start_is_over_a_minute_after_the_first_micro_batch_however_slow_the_next_ones_are() -> None:
    settings = settings_of()
    pipeline = Pipeline(settings)
    for warm_ms in (0, LONGEST_MS - 1, LONGEST_MS):
        pipeline.now += 5
        pipeline.hear(partitioner(settings), batch(settings, finished=2, warm_ms=warm_ms))
    assert [bool(seen.observation.starting) for seen in pipeline.seen] == [True, True, False]


def test_the_first_micro_batches_after_a_change_has_been_realised_do_not_count() -> None:
    settings = settings_of()
    pipeline = Pipeline(settings)

    def starting(finished: int, workers: int) -> bool:
        pipeline.now += 5
        pipeline.hear(
            partitioner(settings, workers=workers, event_time=1_000 * finished),
            batch(settings, finished=finished, warm_ms=10**6),
        )
        return bool(pipeline.seen[-1].observation.starting)

    assert not starting(100, 4)
    pipeline.publish(Plan(epoch=1, p=5, r=4, effective_from=60_000))
    assert not starting(101, 4), "it settles: the partitioner routes to 4"
    after = [starting(102 + n, 5) for n in range(4)]
    assert after == [True] * AFTER_A_CHANGE + [False] * (4 - AFTER_A_CHANGE)


def test_what_has_grown_shrinks_only_after_a_while_and_grows_on_at_once() -> None:
    settings = settings_of(control={"scale_in_wait": "60s", "options": {"d": 1, "look_ahead": False}})
    pipeline = Pipeline(settings)

    def judged(load: float, workers: int) -> int:
        pipeline.now += 5
        time = round(1000 * pipeline.now)
        pipeline.hear(
            partitioner(settings, workers=workers, event_time=time),
            batch(settings, duration_ms=round(5_000 * load), finished=time, warm_ms=10**7),
        )
        return pipeline.judged[-1].decision.p + pipeline.judged[-1].decision.r

    assert judged(0.85, 4) == 8
    pipeline.publish(Plan(epoch=1, p=6, r=4, effective_from=0))
    shrunk_after = next(n for n in range(40) if judged(0.3, 6) < 10)
    assert 5 * shrunk_after >= 50
    waited = [one.decision for one in pipeline.judged if "no scale-in yet" in one.decision.reason]
    assert waited
    assert {decision.cause for decision in waited} == {"waiting"}
    assert "p or r grew less than 1 min ago" in waited[0].reason
