"""A Gymnasium environment whose steps drive the running application: plans are the actions,
telemetry the observations.

`evenflow/ElasticLive-v0`, registered by `import controller.live`. Its spaces and its reward are those of the
simulated environments (`evenflow.elasticity.simulated.environments`), so an agent that was trained there acts
here:

    environment = gymnasium.make("evenflow/ElasticLive-v0", settings=settings)
    seen, info = environment.reset()
    seen, reward, terminated, truncated, info = environment.step(6)

What a live application cannot do: it is neither emptied nor rewound, and its input is not drawn from a seed.
So `reset` only waits until the application has settled, and its first observation depends on all that was
before. It takes the place of the query's controller (one of the two is fenced), and a step takes at least a
micro-batch of real time. The rules of the controller hold: results stay exact, plans begin on slide
boundaries, and nothing shrinks within `control.scale_in_wait` of a growth.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import gymnasium
import numpy as np
from gymnasium.envs.registration import register, registry
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from controller.decide import Judgement, bounds_of
from controller.evaluate import Evaluation, patience
from controller.service import Controller
from evenflow.elasticity import Bounds, Decision, Observation, Policy
from evenflow.elasticity.observation import PARTS, Part, is_known
from evenflow.elasticity.simulated.environments import FEATURES, BoxValues, features
from evenflow.elasticity.simulated.objective import Form, Objective, Outcome
from evenflow.elasticity.simulated.operators import Operator, OperatorGraph
from evenflow.elasticity.simulated.queues import service_rate
from evenflow.errors import ConfigError, ServiceError
from evenflow.settings import Settings
from evenflow.text.options import Options

ID = "evenflow/ElasticLive-v0"
_TURN_SECONDS = 0.2
_BATCHES = 4
"""Batch intervals that a result may take through one part if `lmax_ms` is not given, as in `mblinucb`."""


class ActionPolicy(Policy):
    """Wants what it was told last (`target`).
    Not a policy of the registry: an environment's actions come through it.
    """

    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, bounds: Bounds) -> None:
        super().__init__(name="asked", bounds=bounds, seed=0, options=Options())
        self.target: tuple[int, int] | None = None

    def _decide(self, observation: Observation) -> Decision:
        p, r = self.target or (observation.p, observation.r)
        return Decision(p=p, r=r, reason="a step of an environment asks for it", cause="set")


class Application(Protocol):
    """A running application, as the environment drives it."""

    settings: Settings
    bounds: Bounds

    def observe(self) -> Evaluation:
        """The next observation. It comes with a micro-batch, or after `patience` of silence."""

    def decide(self, evaluation: Evaluation, p: int, r: int) -> Judgement:
        """Answer this observation: ask for p and r from the next possible slide on."""

    def close(self) -> None:
        """Leave the application as it is, with the last plan in force."""


class Driven:
    """The running application of these settings. It takes over from the query's controller.

    clock: s, monotonic. Raises what `Controller` raises: ServiceError without a broker, WriterFenced once
    another controller has taken over.
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings, self.bounds = settings, bounds_of(settings)
        self._policy = ActionPolicy(bounds=self.bounds)
        self._controller = Controller(settings, policy=self._policy, clock=clock)
        self._observations = self._endless()

    def observe(self) -> Evaluation:
        """As `Application` says."""
        try:
            return next(self._observations)
        except BaseException:
            # An error has ended the generator, and the next call is to see the error again and not its end.
            self._observations = self._endless()
            raise

    def decide(self, evaluation: Evaluation, p: int, r: int) -> Judgement:
        """As `Application` says."""
        self._policy.target = (p, r)  # the controller asks its policy, which answers with this
        return self._controller.judge(evaluation)

    def close(self) -> None:
        """As `Application` says."""
        self._controller.tell_end()
        self._controller.close()

    def _endless(self) -> Iterator[Evaluation]:
        while True:
            yield from self._controller.observations(_TURN_SECONDS)


class ElasticLive(gymnasium.Env[BoxValues, Any]):
    """The running application of `settings`. The action is p, and with the split wiring p and r.

    With the fused wiring the action is that of `ElasticStage`, and r stays: nothing waits between the two
    parts, so the reducer's queue is not known. With the split wiring it is that of `ElasticChain`. The least
    and most p and r are those of `control`.

    settings: of the query. lmax_ms: the latency allowed for all parts together. None: four batch intervals
    for each part. omega_max, objective, horizon: as in `ElasticStage`. rho: share of the work that is
    parallel. With it the Box has the capacity of all units. longest_wait: s after which a step that has no
    outcome ends in an error. application: what to drive in place of the application that runs (a test's).
    clock: s, monotonic.

    ConfigError for values out of range, or where neither p nor r can change. `reset` and `step` raise
    ServiceError where the pipeline is silent, a plan is not realised, or no figures come; it says which part.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        lmax_ms: float | None = None,
        omega_max: float | None = None,
        rho: float = 0.9,
        objective: Form = "paper",
        horizon: int = 1000,
        longest_wait: float = 600.0,
        application: Application | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 0 < rho <= 1 or horizon < 1 or longest_wait <= 0 or (lmax_ms is not None and lmax_ms <= 0):
            raise ConfigError(
                "rho must be above 0 and at most 1, and horizon, longest_wait and lmax_ms above 0",
                hint=f"rho {rho}, horizon {horizon}, longest_wait {longest_wait}, lmax_ms {lmax_ms}",
            )
        bounds = bounds_of(settings)
        self.parts: tuple[Part, ...] = PARTS if settings.spark.wiring == "split" else PARTS[:1]
        sides = [bounds.side(part) for part in self.parts]
        if all(least == most for least, most in sides):
            raise ConfigError(
                f"neither p nor r of query {settings.query.name} can change, so a step has nothing to do",
                hint="set partitioner.max_workers above partitioner.workers before the query begins",
            )
        self.horizon = horizon
        self._settings, self._rho, self._clock, self._longest_wait = settings, rho, clock, longest_wait
        self._most = {part: most for part, (_, most) in zip(self.parts, sides, strict=True)}
        graph = OperatorGraph({part: Operator() for part in self.parts}, tuple(pairwise(self.parts)))
        interval_s = settings.spark.batch_interval / 1000
        budget = _BATCHES * interval_s * len(self.parts) if lmax_ms is None else lmax_ms / 1000
        shares = graph.shares()
        self.objectives = {
            part: Objective(
                latency_s=budget * shares[part],
                most_units=self._most[part],
                most_queue=omega_max,
                form=objective,
                step_s=interval_s,
            )
            for part in self.parts
        }
        self.observation_space = Box(0, 1, (FEATURES * len(self.parts),), np.float32)
        if len(sides) == 1:
            ((least, most),) = sides
            self.action_space = Discrete(most - least + 1, start=least)
        else:
            self.action_space = MultiDiscrete(
                [most - least + 1 for least, most in sides], start=[least for least, _ in sides]
            )
        # Last, because it fences the query's controller.
        self._application = application or Driven(settings, clock=clock)
        self._evaluation: Evaluation | None = None
        self._mu: dict[Part, float] = {}
        self._waiting: dict[Part, float] = {}
        self._step = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[BoxValues, dict[str, Any]]:
        """Begin an episode where the application is: wait until it has settled, and show it.

        Queues, state and plans stay as they are, and the input goes on. seed: only `np_random` depends on it.
        options: {"units": an action} asks for it first.
        """
        super().reset(seed=seed, options=options)
        self._step = 0
        evaluation, skipped = self._settled()
        if options is not None and "units" in options:
            self._decide(evaluation, options["units"])
            evaluation, skipped = self._settled()
        box, _ = self._outcome(evaluation)
        return box, self._info(evaluation, skipped, None)

    def step(self, action: Any) -> tuple[BoxValues, float, bool, bool, dict[str, Any]]:
        """Ask for these units, wait until they are in force,
        and for the first micro-batch that counts under them.

        Where the controller's rules forbid the change, what is in force stays. `info["in_force"]` is the (p,
        r) that the outcome is of, `info["decided"]` what became of the action, and `info["reason"]` says why.
        An episode is truncated after `horizon` steps and never terminates.
        """
        if self._evaluation is None:
            raise ConfigError("this environment has not been reset", hint="call reset() before step()")
        judgement = self._decide(self._evaluation, action)
        evaluation, skipped = self._settled()
        box, reward = self._outcome(evaluation)
        self._step += 1
        return box, reward, False, self._step >= self.horizon, self._info(evaluation, skipped, judgement)

    def close(self) -> None:
        """Leave the application as it is. The last plan stays in force."""
        self._application.close()

    def action(self, decision: Decision) -> Any:
        """The action that a policy's decision stands for."""
        return decision.p if len(self.parts) == 1 else np.array([decision.p, decision.r])

    def _decide(self, evaluation: Evaluation, action: Any) -> Judgement:
        units = [int(number) for number in np.atleast_1d(action)]
        if not self.action_space.contains(self._typed(units)):
            raise ConfigError(
                f"the action {units} is not in the action space {self.action_space}",
                hint="the least and most p and r are control.p_min, p_max, r_min and r_max",
            )
        now = evaluation.observation
        return self._application.decide(evaluation, units[0], units[1] if len(units) > 1 else now.r)

    def _typed(self, units: list[int]) -> Any:
        return units[0] if len(self.parts) == 1 and len(units) == 1 else np.array(units)

    def _settled(self) -> tuple[Evaluation, int]:
        """The next observation that counts, and how many before it did not.

        Those of a plan that is being realised, of a part that has just begun, and those that lack a figure do
        not count.
        """
        began, skipped = self._clock(), 0
        limit = patience(self._settings)
        while True:
            evaluation = self._application.observe()
            now, waited = evaluation.observation, self._clock() - began
            if now.stale and waited >= limit:
                raise ServiceError(
                    f"the pipeline of query {self._settings.query.name} is silent: {'; '.join(now.stale)}",
                    hint="`evenflow status` says which parts run: start those that do not, then call reset()",
                )
            if evaluation.overdue:
                raise ServiceError(
                    f"the newest plan is not realised: {'; '.join(evaluation.overdue)}",
                    hint=(
                        "see whether the cluster manager gives the executors"
                        " that the plan needs, then call reset()"
                    ),
                )
            why = [*now.stale, *now.starting, *(["a plan is being realised"] if now.settling else [])]
            why = why or self._lacking(now)
            if not why:
                self._evaluation = evaluation
                return evaluation, skipped
            if waited >= self._longest_wait:
                raise ServiceError(
                    f"no observation that counts for {waited:.0f} s: {'; '.join(why)}",
                    hint=(
                        "wait until the application works on tuples, then call reset(), or raise longest_wait"
                    ),
                )
            skipped += 1

    def _lacking(self, now: Observation) -> list[str]:
        """In words: the figures that a reward needs and that are not known. Notes the capacities that are."""
        gaps = []
        for part in self.parts:
            stage = now.stage(part)
            if is_known(stage.capacity) and stage.capacity > 0:
                self._mu[part] = stage.capacity / service_rate(now.in_force(part), mu=1.0, rho=self._rho)
            figures: Mapping[str, float | None] = {
                "arrivals": stage.arrivals,
                "queue": stage.queue,
                # Without tuples it cannot be measured, so the last one counts.
                "capacity": self._mu.get(part),
            }
            gaps += [
                f"the {name} of {part} is not known" for name, value in figures.items() if not is_known(value)
            ]
        return gaps

    def _outcome(self, evaluation: Evaluation) -> tuple[BoxValues, float]:
        """The Box and the reward of this observation. What waits now has waited when the next step begins."""
        now = evaluation.observation
        box: list[float] = []
        rewards: list[float] = []
        for part in self.parts:
            stage, units, mu = now.stage(part), now.in_force(part), self._mu[part]
            queue = stage.queue or 0.0
            outcome = Outcome(
                arrivals=stage.arrivals or 0.0,
                service=service_rate(units, mu=mu, rho=self._rho),
                waiting=self._waiting.get(part, queue),
                queue=queue,
                units=units,
            )
            most = service_rate(self._most[part], mu=mu, rho=self._rho)
            box += features(outcome, most=most, most_units=self._most[part])
            rewards.append(self.objectives[part].reward(outcome))
            self._waiting[part] = queue
        return np.array(box, np.float32), float(np.mean(rewards))

    def _info(self, evaluation: Evaluation, skipped: int, judgement: Judgement | None) -> dict[str, Any]:
        now = evaluation.observation
        return {
            "observation": now,
            "in_force": (now.p, now.r),
            "decided": None if judgement is None else (judgement.decision.p, judgement.decision.r),
            "reason": "" if judgement is None else judgement.decision.reason,
            "epoch": None if judgement is None or judgement.plan is None else judgement.plan.epoch,
            "skipped": skipped,
        }


if ID not in registry:
    register(ID, entry_point="controller.live:ElasticLive")
