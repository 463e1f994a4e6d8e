"""Gymnasium environments: the parts of a pipeline as queues, with their parallelism as the action (003, V.A).

`evenflow/ElasticStage-v0` is the combiner alone. `evenflow/ElasticChain-v0` is the combiner and the reducer
behind it. `evenflow/ElasticGraph-v0` is a graph of any operators (`graph`). `import evenflow.simulation`
registers them. Each step draws the tuples that arrive and serves them (`queues.QueueModel`). What one part
puts out in a step arrives at the next part in the same step. The reward is that of 003, as the mean over the
parts.

Learners get the observation as a Box. `info["observation"]` holds the same facts as an `Observation`, as a
policy gets it from the live pipeline. So one policy object runs in both (`driving.drive`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, TypedDict, Unpack

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from evenflow.elasticity.observation import PARTS, Observation, Part, StageObservation
from evenflow.elasticity.policy import Bounds, Decision
from evenflow.elasticity.simulated.arrivals import Arrivals, Poisson
from evenflow.elasticity.simulated.migration import Migration, moved_by_rescale
from evenflow.elasticity.simulated.objective import Form, Objective, Outcome
from evenflow.elasticity.simulated.operators import Operator, OperatorGraph
from evenflow.elasticity.simulated.queues import QueueStep
from evenflow.errors import ConfigError

BoxValues = npt.NDArray[np.float32]
FEATURES = 4
"""Numbers in the Box for each part (`features`)."""
_LONGEST_QUEUE = math.log1p(1e9)
"""Logarithm of the queue (in tuples) that the Box shows as 1."""


class EnvironmentOptions(TypedDict, total=False):
    """Options that all environments take. `ElasticStage` explains each."""

    arrivals: Arrivals | None
    kmax: int
    lmax_ms: float
    omega_max: float | None
    step_s: float
    start: int | None
    keys: int
    horizon: int
    objective: Form
    state_bytes: float
    migration: Migration | None


def features(outcome: Outcome, *, most: float, most_units: int) -> list[float]:
    """Four numbers from 0 to 1 for one part after a step.

    They are the rate and the capacity, both over `most` (the capacity of `most_units`), then the logarithm of
    the queue over `_LONGEST_QUEUE`, and the units over `most_units`.
    """
    return [
        min(1.0, outcome.arrivals / most),
        min(1.0, outcome.service / most),
        min(1.0, math.log1p(outcome.queue) / _LONGEST_QUEUE),
        outcome.units / most_units,
    ]


class Elastic(gymnasium.Env[BoxValues, Any]):
    """What the environments have in common. Options: see `ElasticStage`.

    graph: its operators. shares: of the latency allowed, for each operator.
    """

    def __init__(
        self,
        graph: OperatorGraph,
        shares: Mapping[str, float],
        *,
        arrivals: Arrivals | None = None,
        kmax: int = 64,
        lmax_ms: float = 1000.0,
        omega_max: float | None = None,
        step_s: float = 10.0,
        start: int | None = None,
        keys: int = 1000,
        horizon: int = 1000,
        objective: Form = "paper",
        state_bytes: float = 0.0,
        migration: Migration | None = None,
    ) -> None:
        if not 0 <= state_bytes < math.inf:
            raise ConfigError(f"state_bytes must be 0 or more, not {state_bytes}")
        _check(kmax=kmax, lmax_ms=lmax_ms, step_s=step_s, keys=keys, horizon=horizon)
        if not 1 <= (start or 1) <= kmax:
            raise ConfigError(f"start must be from 1 to kmax ({kmax}), not {start}")
        self.graph = graph
        self.order = graph.order
        self.operators = tuple(graph.operators[name] for name in self.order)
        self._upstream = [
            [self.order.index(source) for source in graph.upstream(name)] for name in self.order
        ]
        self.arrivals: Arrivals = arrivals or Poisson()
        self.kmax, self.lmax_ms, self.step_s, self.horizon = kmax, lmax_ms, step_s, horizon
        self._start, self._keys = start or kmax, keys
        self._state_bytes, self._migration = state_bytes, migration or Migration()
        self.objectives = tuple(
            Objective(
                latency_s=lmax_ms / 1000 * shares[name],
                most_units=kmax,
                most_queue=omega_max,
                form=objective,
                step_s=step_s,
            )
            for name in self.order
        )
        self.observation_space = Box(0, 1, (FEATURES * len(self.order),), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[BoxValues, dict[str, Any]]:
        """Begin an episode: empty queues, and one step with `start` units, whose outcome is returned."""
        super().reset(seed=seed, options=options)
        self._step = 0
        self._units = [self._start] * len(self.order)
        self._queues = [0] * len(self.order)
        self._pauses = [0.0] * len(self.order)
        """Seconds of a pause that are left, for each operator."""
        box, _, _, _, info = self._played()
        return box, info

    def step(self, action: Any) -> tuple[BoxValues, float, bool, bool, dict[str, Any]]:
        """Play one step with these units. An episode is truncated after `horizon` steps and never
        terminates.
        """
        units = [int(number) for number in np.atleast_1d(action)]
        for at, (before, after) in enumerate(zip(self._units, units, strict=True)):
            moved = moved_by_rescale(self._state_bytes, before, after)
            self._pauses[at] += self._migration.pause_s(moved)
        self._units = units
        return self._played()

    def _played(self) -> tuple[BoxValues, float, bool, bool, dict[str, Any]]:
        waiting, pauses = list(self._queues), list(self._pauses)
        self._paused = [min(pause, self.step_s) / self.step_s for pause in pauses]
        # Drawn once, also for several sources: each of them gets this same load.
        outside = self.arrivals.rate(self._step, self.np_random)
        served: list[QueueStep] = []
        for at, operator in enumerate(self.operators):
            put_out = (
                served[source].departures * self.operators[source].selectivity
                for source in self._upstream[at]
            )
            # Every source gets the whole load.
            rate = sum(put_out) / self.step_s if self._upstream[at] else outside
            served.append(
                operator.model.step(
                    self.np_random,
                    arrivals=rate,
                    service=self._service(at),
                    queue=waiting[at],
                    length_s=self.step_s,
                    pause_s=pauses[at],
                )
            )
            self._queues[at] = served[-1].queue
            # A pause may last for several steps.
            self._pauses[at] = max(0.0, pauses[at] - self.step_s)
        self._step += 1
        # A pause is work that comes before all that waits.
        behind = [
            queue + pauses[at] * self._service(at) if pauses[at] else queue
            for at, queue in enumerate(waiting)
        ]
        reward = float(np.mean([self._reward(at, result, behind[at]) for at, result in enumerate(served)]))
        info = self._info(served, waiting)
        # `>`, because the step that `reset` plays is not one of the episode's.
        return self._box(served), reward, False, self._step > self.horizon, info

    def _service(self, at: int) -> float:
        return self.operators[at].service(self._units[at])

    def _reward(self, at: int, served: QueueStep, waiting: float) -> float:
        outcome = Outcome(
            arrivals=served.arrivals / self.step_s,
            service=self._service(at),
            waiting=waiting,
            queue=served.queue,
            units=self._units[at],
        )
        return self.objectives[at].reward(outcome)

    def _box(self, served: Sequence[QueueStep]) -> BoxValues:
        """Four numbers from 0 to 1 for each part (`features`)."""
        numbers: list[float] = []
        for at, result in enumerate(served):
            most = self.operators[at].service(self.kmax)
            outcome = Outcome(
                arrivals=result.arrivals / self.step_s,
                service=self._service(at),
                waiting=0,
                queue=result.queue,
                units=self._units[at],
            )
            numbers += features(outcome, most=most, most_units=self.kmax)
        return np.array(numbers, np.float32)

    def _info(self, served: Sequence[QueueStep], waiting: Sequence[int]) -> dict[str, Any]:
        """What `step` returns beside the Box."""
        raise NotImplementedError

    def _stage_observation(self, at: int, served: QueueStep, waiting: int) -> StageObservation:
        operator = self.operators[at]
        capacity = operator.capacity(self._units[at])
        return StageObservation(
            load=operator.overhead
            + self._paused[at]
            + (served.arrivals + waiting) / (capacity * self.step_s),
            arrivals=served.arrivals / self.step_s,
            capacity=capacity,
            queue=served.queue,
            longest=1.0,
        )


class _Parts(Elastic):
    """One or both parts of a pipeline, in a chain."""

    parts: ClassVar[tuple[Part, ...]]

    def __init__(self, operators: Sequence[Operator], **options: Unpack[EnvironmentOptions]) -> None:
        graph = OperatorGraph(dict(zip(self.parts, operators, strict=True)), tuple(pairwise(self.parts)))
        super().__init__(graph, graph.shares(), **options)

    @property
    def bounds(self) -> Bounds:
        """The bounds of p and r for a policy that runs in this environment."""
        most = [self.kmax if part in self.parts else 1 for part in PARTS]
        return Bounds(p_max=most[0], r_max=most[1])

    def action(self, decision: Decision) -> Any:
        """The action that a policy's decision stands for."""
        raise NotImplementedError

    def _info(self, served: Sequence[QueueStep], waiting: Sequence[int]) -> dict[str, Any]:
        return {"observation": self._observation(served, waiting)}

    def _observation(self, served: Sequence[QueueStep], waiting: Sequence[int]) -> Observation:
        stages = {
            part: self._stage_observation(at, served[at], waiting[at]) for at, part in enumerate(self.parts)
        }
        rate = served[0].arrivals / self.step_s
        delays = [result.queue / self._service(at) for at, result in enumerate(served)]
        latencies = [result.latency_s for result in served if result.latency_s is not None]
        units = dict(zip(self.parts, self._units, strict=True))
        return Observation(
            step=self._step,
            interval_ms=self.step_s * 1000,
            p=units["combine"],
            r=units.get("reduce", 1),
            wiring="split",
            load=max(stage.load or 0.0 for stage in stages.values()),
            rate=rate,
            # Expected distinct keys among so many tuples when all keys are equally frequent.
            keys=self._keys * -math.expm1(-served[0].arrivals / self._keys),
            lag=0.0,
            backlog_ms=1000 * sum(delays),
            latency_ms=1000 * sum(latencies) if latencies else None,
            stages=stages,
        )


class ElasticStage(_Parts):
    """One operator. The action is its parallelism, from 1 to kmax.

    arrivals: `arrivals.Poisson`, `Pareto` or `Trace`. lmax_ms: the latency allowed. omega_max: tuples that
    may wait. None means as many as arrive within lmax_ms. step_s: seconds in a step. start: units in the
    first step. None means kmax. keys: how many distinct keys there are, all equally frequent. horizon: steps
    in an episode. objective: the form of the reward (`objective`). state_bytes: bytes of state of each part,
    spread evenly over its units. migration: what it costs to move them at a change of the units: nothing is
    served meanwhile. By default there is no state.

    The defaults are those of 003, except for rho, omega_max and start, which 003 does not give. ConfigError
    for a value out of range.
    """

    parts = ("combine",)

    def __init__(self, *, operator: Operator | None = None, **options: Unpack[EnvironmentOptions]) -> None:
        super().__init__([operator or Operator()], **options)
        self.action_space = Discrete(self.kmax, start=1)

    def action(self, decision: Decision) -> int:
        """The p of the decision."""
        return decision.p


class ElasticChain(_Parts):
    """Two operators in a chain, the combiner and the reducer. The action is the parallelism of each.

    The options are those of `ElasticStage`, but `operators` is a pair. Each part gets half of lmax_ms.
    """

    parts = PARTS

    def __init__(
        self, *, operators: tuple[Operator, Operator] | None = None, **options: Unpack[EnvironmentOptions]
    ) -> None:
        super().__init__(operators or (Operator(), Operator()), **options)
        self.action_space = MultiDiscrete([self.kmax, self.kmax], start=[1, 1])

    def action(self, decision: Decision) -> npt.NDArray[np.int64]:
        """p and r of the decision."""
        return np.array([decision.p, decision.r])


def _check(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ConfigError(f"{name} must be more than 0, not {value}")
