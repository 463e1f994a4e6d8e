import pytest

from controller.decide import ReplicaDecider, policy_of
from controller.plan_history import PlanHistory
from evenflow.errors import ConfigError
from evenflow.plans import LAST_EPOCH, Plan
from evenflow.settings import load_settings
from evenflow.telemetry import DecisionRecord, parse
from tests.unit.controller.parts import Pipeline, batch, partitioner, settings_of


def overloaded(pipeline: Pipeline, batches: int, **fields: object) -> None:
    """So many micro-batches that take 6 of 5 s, while event time goes on."""
    for _ in range(batches):
        pipeline.now += 5
        time = round(pipeline.now * 1000)
        pipeline.hear(
            partitioner(pipeline.settings, event_time=time, mark=time - 100, rate=10.0 * pipeline.now),
            batch(pipeline.settings, duration_ms=6_000, mark=time - 1_000, **fields),
        )


def test_an_overload_becomes_a_plan_of_more_workers_from_a_slide_boundary_ahead_on() -> None:
    pipeline = Pipeline(settings_of())
    overloaded(pipeline, 12)
    plans = [judged.plan for judged in pipeline.judged if judged.plan is not None]
    assert plans
    assert plans[0].p > 4
    assert plans[0].epoch == 1
    first = next(judged for judged in pipeline.judged if judged.plan is not None)
    assert plans[0].effective_from % 1_000 == 0
    assert first.evaluation.reached is not None
    assert plans[0].effective_from > first.evaluation.reached
    assert "W" in plans[0].reason


def test_a_decision_is_exported_with_the_observation_that_caused_it() -> None:
    settings = settings_of()
    pipeline = Pipeline(settings)
    overloaded(pipeline, 12)
    judged = next(judged for judged in pipeline.judged if judged.plan is not None)
    record = judged.record(settings, "prompt-plus", time_ms=5)
    again = parse(record.encode())
    assert isinstance(again, DecisionRecord)
    assert again == record
    assert (again.p, again.epoch, again.zone) == (4, 1, 3)
    assert again.wanted_p > 4
    assert again.observation["load"] == pytest.approx(1.2)
    assert judged.record(settings, "prompt-plus", time_ms=5, dry_run=True).epoch is None


def test_nothing_is_decided_while_a_part_is_silent() -> None:
    pipeline = Pipeline(settings_of(instances=2))
    overloaded(pipeline, 12)
    assert all(judged.decision.held and judged.plan is None for judged in pipeline.judged)
    assert "1 of 2 partitioners has never spoken" in pipeline.judged[-1].decision.reason


def test_more_is_not_asked_for_while_the_cluster_manager_does_not_give_what_was_asked_for() -> None:
    pipeline = Pipeline(settings_of())
    pipeline.publish(Plan(epoch=7, p=5, r=4, effective_from=0))
    for _ in range(60):
        pipeline.now += 5
        time = round(pipeline.now * 1000)
        pipeline.hear(
            partitioner(pipeline.settings, workers=5, event_time=time, rate=10.0 * pipeline.now),
            batch(pipeline.settings, duration_ms=6_000, executors=1, epoch=7),
        )
    assert not [judged for judged in pipeline.judged if judged.plan is not None]
    last = pipeline.judged[-1].decision
    assert (last.p, last.r, last.held, last.cause) == (5, 4, True, "unrealised")
    assert last.reason.startswith("plan 7 is not realised: the fused stage has 1 executors of the 4 it needs")


def test_behind_a_plan_of_the_last_epoch_nothing_is_published_and_that_is_said() -> None:
    pipeline = Pipeline(settings_of())
    pipeline.publish(Plan(epoch=LAST_EPOCH, p=4, r=4, effective_from=0))
    overloaded(pipeline, 30)
    assert not [judged for judged in pipeline.judged if judged.plan is not None]
    assert any("none can follow" in judged.decision.reason for judged in pipeline.judged)


def test_a_plan_by_hand_is_what_the_policy_goes_on_from() -> None:
    pipeline = Pipeline(settings_of())
    overloaded(pipeline, 1)
    pipeline.publish(Plan(epoch=40, p=6, r=4))
    for finished in range(1_001, 1_013):
        pipeline.now += 5
        time = round(pipeline.now * 1000)
        pipeline.hear(
            partitioner(pipeline.settings, workers=6, event_time=time, rate=10.0 * pipeline.now),
            batch(pipeline.settings, duration_ms=6_000, mark=time - 1_000, finished=finished),
        )
    plan, *_ = [judged.plan for judged in pipeline.judged if judged.plan is not None]
    assert (plan.epoch, plan.p) == (41, 7)


def test_policies_stay_within_the_partitions_and_buckets_there_are() -> None:
    bounds = policy_of(settings_of()).bounds
    assert (bounds.p_max, bounds.r_max) == (8, 4)
    bounds = policy_of(settings_of(control={"p_max": 6, "r_min": 2, "r_max": 3})).bounds
    assert (bounds.p_min, bounds.p_max, bounds.r_min, bounds.r_max) == (1, 6, 2, 3)


def test_without_a_cluster_manager_r_stays_as_it_is_set() -> None:
    bounds = policy_of(settings_of(spark={"master": "local[2]", "reducers": 3})).bounds
    assert (bounds.p_min, bounds.p_max, bounds.r_min, bounds.r_max) == (1, 8, 3, 3)


def test_options_of_a_former_default_are_refused_with_what_to_set() -> None:
    options = {"proportional": True}
    with pytest.raises(ConfigError, match="unknown option 'proportional' of ds2") as refused:
        policy_of(load_settings(control={"options": options}))
    assert "control.policy is not set, and is ds2 then" in str(refused.value.hint)
    with pytest.raises(ConfigError) as refused:
        policy_of(settings_of(control={"policy": "ds2", "options": options}))
    assert "not set" not in str(refused.value.hint)


def test_an_unknown_policy_is_a_mistake_of_the_user() -> None:
    with pytest.raises(ConfigError, match="unknown policy 'promt-plus'; did you mean 'prompt-plus'"):
        policy_of(settings_of(control={"policy": "promt-plus"}))


def test_busy_partitioners_ask_for_more_replicas_up_to_the_input_partitions() -> None:
    pipeline = Pipeline(settings_of())
    decider = ReplicaDecider(pipeline.settings)
    pipeline.hear(partitioner(pipeline.settings, busy=0.5), batch(pipeline.settings))
    assert decider.judge(pipeline.seen[-1]) is None or decider.judge(pipeline.seen[-1]).p <= 1  # type: ignore[union-attr]
    pipeline.now += 5
    pipeline.hear(partitioner(pipeline.settings, busy=1.0), batch(pipeline.settings))
    wanted = decider.judge(pipeline.seen[-1])
    assert wanted is not None
    assert wanted.p == 2
    assert "busy" in wanted.reason


def test_what_counts_is_repeated_under_the_next_epoch_while_there_is_one() -> None:
    plans = PlanHistory(settings_of())
    assert plans.repeated() is None
    plans.learn([Plan(epoch=3, p=2, r=1, group=1)], reached=None, now=0)
    reason = "as plan 3, of which there are two"
    assert plans.repeated() == Plan(epoch=4, p=2, r=1, reason=reason)
    plans.learn([Plan(epoch=LAST_EPOCH, p=2, r=1)], reached=None, now=0)
    assert plans.repeated() is None
