"""The live environment with recorded telemetry: steps become plans, and observations that count become
outcomes.
"""

from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import pytest

from controller.decide import Decider, Judgement, bounds_of
from controller.evaluate import Evaluation
from controller.live import ActionPolicy, ElasticLive
from evenflow import elasticity
from evenflow.elasticity.simulated.environments import ElasticChain, ElasticStage
from evenflow.elasticity.simulated.objective import Objective, Outcome
from evenflow.elasticity.simulated.queues import service_rate
from evenflow.errors import ConfigError, ServiceError
from evenflow.plans import Plan
from evenflow.settings import Settings
from evenflow.telemetry import PartWork
from tests.unit.controller.parts import INTERVAL_MS, Pipeline, batch, partitioner, settings_of


@dataclass
class Recorded:
    """An application whose parts write their records at a clock of the test's own (s)."""

    settings: Settings
    silent: bool = False
    follows: bool = True
    """Whether the partitioner follows a plan, one micro-batch after it was published."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Of the micro-batches."""
    plans: list[Plan] = field(default_factory=list)
    closed: bool = False

    def __post_init__(self) -> None:
        self.bounds = bounds_of(self.settings)
        self.parts = Pipeline(self.settings)
        self.policy = ActionPolicy(bounds=self.bounds)
        self.decider = Decider(self.settings, self.policy)
        self.routes, self.finished = 4, 9

    @property
    def now(self) -> float:
        return self.parts.now

    def observe(self) -> Evaluation:
        parts = self.parts
        while True:
            parts.now += INTERVAL_MS / 1000
            time = round(parts.now * 1000)
            if not self.silent:
                said = partitioner(
                    self.settings, event_time=time, mark=time - 100, workers=self.routes, rate=900.0
                )
                records = [said, *self._batches(time)]
                for record in records:
                    parts.collector.take(record.encode(), fresh=True)
                if self.follows and self.plans:
                    self.routes = self.plans[-1].p
            if parts.rounds.due(parts.collector.known, parts.now):
                return parts.evaluator.observe(parts.collector.known, parts.log, parts.now)

    def _batches(self, time: int) -> list[Any]:
        self.finished += 1
        made = {"mark": time - 1_000, "finished": self.finished, "warm_ms": 90_000, **self.fields}
        if self.settings.spark.wiring == "fused":
            return [batch(self.settings, **made)]
        work = PartWork(tasks=4, busy_ms=6_000, longest_ms=2_000, rows=5_000)
        return [
            batch(self.settings, **made | {"stage": part, "parts": {part: work}})
            for part in ("combine", "reduce")
        ]

    def decide(self, evaluation: Evaluation, p: int, r: int) -> Judgement:
        self.policy.target = (p, r)
        judgement = self.decider.judge(evaluation, self.parts.log)
        if judgement.plan is not None:
            self.plans.append(judgement.plan)
            self.parts.log.learn([judgement.plan], reached=evaluation.reached, now=self.now)
            self.decider.groups.learn(judgement.plan)
        return judgement

    def close(self) -> None:
        self.closed = True


def made(*, options: dict[str, Any] | None = None, **settings: Any) -> tuple[ElasticLive, Recorded]:
    settings = {"control": {"scale_in_wait": 0}, **settings}
    application = Recorded(settings_of(**settings))
    environment = gymnasium.make(
        "evenflow/ElasticLive-v0",
        settings=application.settings,
        application=application,
        clock=lambda: application.now,
        **(options or {}),
    ).unwrapped
    assert isinstance(environment, ElasticLive)
    return environment, application


@pytest.mark.parametrize(("wiring", "simulated"), [("fused", ElasticStage), ("split", ElasticChain)])
def test_the_spaces_are_those_of_the_simulated_environment(wiring: str, simulated: Any) -> None:
    environment, _ = made(wiring=wiring, control={"r_max": 8}, spark={"buckets": 8})
    same = simulated(kmax=8)
    assert environment.observation_space == same.observation_space
    assert environment.action_space == same.action_space


def test_a_step_asks_for_a_plan_and_returns_the_first_outcome_under_it() -> None:
    environment, application = made()
    seen, info = environment.reset(seed=1)
    assert environment.observation_space.contains(seen)
    assert (info["in_force"], info["decided"]) == ((4, 4), None)
    assert seen[3] == 4 / 8
    seen, reward, terminated, truncated, info = environment.step(6)
    assert [plan.p for plan in application.plans] == [6]
    assert (info["in_force"], info["decided"], info["epoch"]) == ((6, 4), (6, 4), 1)
    assert info["skipped"] >= 1, "while the plan is being realised, an outcome is of the former units"
    assert seen[3] == 6 / 8
    assert not terminated
    assert not truncated
    observed = info["observation"].stage("combine")
    outcome = Outcome(arrivals=900.0, service=observed.capacity, waiting=0, queue=0, units=6)
    assert reward == pytest.approx(Objective(latency_s=4 * INTERVAL_MS / 1000, most_units=8).reward(outcome))
    _, again, _, _, info = environment.step(6)
    assert (again, info["epoch"], info["skipped"]) == (reward, None, 0)


def test_what_waits_after_a_step_has_waited_when_the_next_one_begins() -> None:
    environment, application = made(options={"lmax_ms": 60_000.0, "objective": "linear"})
    environment.reset()
    application.fields = {"backlog": 40}
    _, first, *_ = environment.step(4)
    _, second, _, _, info = environment.step(4)
    stage = info["observation"].stage("combine")
    assert stage.queue == 4_000

    def expected(waiting: float) -> float:
        service = service_rate(4, mu=stage.capacity / service_rate(4, mu=1.0, rho=0.9), rho=0.9)
        return Objective(latency_s=60, most_units=8, form="linear").reward(
            Outcome(arrivals=900.0, service=service, waiting=waiting, queue=4_000, units=4)
        )

    assert (first, second) == (pytest.approx(expected(0)), pytest.approx(expected(4_000)))


def test_a_policy_of_the_registry_runs_in_it() -> None:
    environment, application = made()
    policy = elasticity.create("ds2", bounds=application.bounds)
    application.fields = {"duration_ms": 6_000}
    _, info = environment.reset()
    for _ in range(6):
        _, _, _, _, info = environment.step(environment.action(policy.decide(info["observation"])))
    assert application.plans
    assert application.plans[-1].p > 4, "900 of 1,111 tuples/s, beside a reducer that shares the slots"


def test_a_pipeline_that_falls_silent_ends_the_step_with_an_error_that_names_the_part() -> None:
    environment, application = made()
    environment.reset()
    application.silent = True
    with pytest.raises(ServiceError, match="is silent: no record of partitioner 0 for 20 s") as caught:
        environment.step(5)
    assert "evenflow status" in (caught.value.hint or "")
    application.silent = False
    environment.reset()
    _, _, _, _, info = environment.step(5)
    assert info["in_force"] == (5, 4)


def test_a_plan_that_nobody_follows_ends_the_step_with_an_error() -> None:
    environment, application = made()
    environment.reset()
    application.follows = False
    with pytest.raises(ServiceError, match="not realised: partitioner 0 routes to 4 workers"):
        environment.step(7)


def test_figures_that_never_come_end_in_an_error_after_the_longest_wait() -> None:
    environment, application = made(options={"longest_wait": 60.0})
    application.fields = {"parts": {}, "tuples": 0}
    with pytest.raises(ServiceError, match="no observation that counts for 60 s: the arrivals of combine"):
        environment.reset()


def test_a_change_that_the_controllers_rules_forbid_is_told() -> None:
    environment, application = made(control={"scale_in_wait": "10min"})
    environment.reset()
    environment.step(6)
    _, _, _, _, info = environment.step(3)
    assert (info["in_force"], info["decided"]) == ((6, 4), (6, 4))
    assert "no scale-in yet" in info["reason"]
    assert [plan.p for plan in application.plans] == [6]


def test_an_episode_begins_where_the_application_is_and_is_truncated_at_its_horizon() -> None:
    environment, application = made(options={"horizon": 2})
    _, info = environment.reset(options={"units": 7})
    assert info["in_force"] == (7, 4)
    assert [environment.step(7)[3] for _ in range(2)] == [False, True]
    _, info = environment.reset()
    assert info["in_force"] == (7, 4)
    environment.close()
    assert application.closed


def test_mistakes_are_refused_before_the_application_is_touched() -> None:
    environment, application = made()
    with pytest.raises(ConfigError, match="has not been reset"):
        environment.step(4)
    environment.reset()
    for action in (0, 9, np.array([4, 4])):
        with pytest.raises(ConfigError, match="not in the action space"):
            environment.step(action)
    assert not application.plans
    for options in ({"rho": 0.0}, {"horizon": 0}, {"lmax_ms": -1.0}, {"longest_wait": 0.0}):
        with pytest.raises(ConfigError, match="must be above 0"):
            made(options=options)
    with pytest.raises(ConfigError, match="neither p nor r of query q can change"):
        made(control={"p_min": 4, "p_max": 4})


def test_an_idle_application_is_judged_by_the_capacity_that_was_measured_last() -> None:
    environment, application = made()
    before, _ = environment.reset()
    idle = PartWork(tasks=4, busy_ms=6_000, longest_ms=2_000, rows=0)
    application.fields = {"parts": {"combine": idle}, "tuples": 0}
    after, _, _, _, info = environment.step(4)
    assert info["observation"].stage("combine").capacity is None
    assert after.tolist() == before.tolist()
