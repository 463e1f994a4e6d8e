"""Runs a registered policy in an environment: its decisions are played,
and the outcome of each step is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenflow.elasticity.policy import Policy
from evenflow.elasticity.simulated.environments import ElasticChain, ElasticStage
from evenflow.numeric.arrays import Float64s, Int64s


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What happened in each step. Arrays of shape (steps,)."""

    rewards: Float64s
    """Reward that the environment gave."""
    p: Int64s
    """Routed partitions in force in the step."""
    r: Int64s
    """Reduce buckets in force in the step."""
    latencies_ms: Float64s
    """95th percentile of the latency, NaN in a step without tuples."""
    waiting: Float64s
    """Tuples that wait before all parts when the step ends."""


def drive(policy: Policy, environment: ElasticStage | ElasticChain, *, steps: int, seed: int) -> Trajectory:
    """Play this many steps, even beyond the end of an episode. The same seed gives the same trajectory."""
    _, info = environment.reset(seed=seed)
    played = Trajectory(
        rewards=np.empty(steps),
        p=np.empty(steps, np.int64),
        r=np.empty(steps, np.int64),
        latencies_ms=np.empty(steps),
        waiting=np.empty(steps),
    )
    for step in range(steps):
        _, reward, _, _, info = environment.step(environment.action(policy.decide(info["observation"])))
        observation = info["observation"]
        played.rewards[step] = reward
        played.p[step], played.r[step] = observation.p, observation.r
        played.latencies_ms[step] = np.nan if observation.latency_ms is None else observation.latency_ms
        played.waiting[step] = sum(stage.queue or 0.0 for stage in observation.stages.values())
    return played
