import logging

import pytest

from controller.log_lines import LogLines, judgement_words
from controller.memory import snapshot_record
from controller.realise import SaidReplicas
from evenflow.plans import Plan
from tests.unit.controller.parts import Pipeline, batch, partitioner, settings_of
from tests.unit.reporting.clock import Clock


def judged(number: int, **fields: object) -> Pipeline:
    """A pipeline after so many micro-batches that take 6 of 5 s."""
    pipeline = Pipeline(settings_of())
    for _ in range(number):
        pipeline.now += 5
        time = round(pipeline.now * 1000)
        pipeline.hear(
            partitioner(pipeline.settings, event_time=time, mark=time - 100),
            batch(pipeline.settings, duration_ms=6_000, mark=time - 1_500, **fields),
        )
    return pipeline


def test_a_dry_run_says_of_each_observation_what_would_be_done_and_why() -> None:
    lines = [judgement_words(one) for one in judged(3).judged]
    assert lines[0].startswith(
        "1: p 4, r 4, W 1.20 (zone 3), 1,000 tuples/s, 100 keys, lag 0: keeps the plan: W 1.20"
    )
    assert "would publish plan 1: p 5, r 4 from 1970-01-01 00:02:00 UTC: W 1.20 is in zone 3" in lines[-1]
    silent = Pipeline(settings_of())
    silent.now += 20
    silent.look()
    assert judgement_words(silent.judged[0]).startswith(
        "1: p 4, r 4: holds: nothing is decided: 1 of 1 partitioners has"
    )


def test_plans_are_said_at_once_and_figures_every_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    pipeline, clock = judged(3), Clock()
    talk = LogLines(pipeline.settings, clock=clock)
    with caplog.at_level(logging.INFO):
        for one in pipeline.judged:
            talk.judged(one)
            talk.look({"of another query": 2})
        assert [text.split(":")[0] for text in caplog.messages] == ["plan 1"]
        clock.now += 10
        talk.look({"of another query": 2})
    assert caplog.messages[-1].startswith("3 observations, 1 plans, p 4, r 4, W 1.20 (zone 3)")
    assert caplog.messages[-1].endswith("2 records ignored")


def test_a_plan_that_is_not_realised_is_said_once_and_that_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pipeline = judged(1, executors=2)
    pipeline.publish(Plan(epoch=1, p=4, r=4, effective_from=0))
    talk = LogLines(pipeline.settings, clock=Clock())
    with caplog.at_level(logging.INFO):
        for executors in [2] * 25 + [4]:
            pipeline.now += 5
            pipeline.hear(
                partitioner(pipeline.settings, event_time=round(pipeline.now * 1000)),
                batch(pipeline.settings, executors=executors, epoch=1),
            )
            talk.judged(pipeline.judged[-1])
            talk.look({})
    assert caplog.messages == [
        (
            "the newest plan is not realised, so nothing more is asked for: the fused stage has 2 executors"
            " of the 4 it needs"
        ),
        "the newest plan is realised",
    ]


def test_another_number_of_instances_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    replicas = SaidReplicas()
    with caplog.at_level(logging.INFO):
        for wanted in (2, 2, 3):
            replicas.ask(now=1, target=wanted, reason="busy")
    assert caplog.messages == [f"{n} partitioner instances would do, 1 run: busy" for n in (2, 3)]


def test_what_a_policy_knows_is_kept_under_a_key_that_no_instance_has() -> None:
    pipeline = judged(2)
    key, value = snapshot_record(pipeline.decider.policy)
    assert b"/" in key
    again = Pipeline(pipeline.settings)
    again.decider.policy.resume(value)
    assert again.decider.policy.snapshot() == value
