"""A registered policy in an environment: what it decides is played, what comes of it is kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenflow.arrays import Float64s, Int64s
from evenflow.elasticity.environments import ElasticChain, ElasticStage
from evenflow.elasticity.policy import Policy


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A column for each figure, an entry for each step. latencies_ms: 95th percentile, NaN where no tuple came."""

    rewards: Float64s
    p: Int64s
    r: Int64s
    latencies_ms: Float64s


def drive(policy: Policy, environment: ElasticStage | ElasticChain, *, steps: int, seed: int) -> Trajectory:
    """`steps` steps, however long an episode is. The same seed gives the same trajectory."""
    _, info = environment.reset(seed=seed)
    rows = np.empty((steps, 4))
    for step in range(steps):
        _, reward, _, _, info = environment.step(environment.action(policy.decide(info["observation"])))
        seen = info["observation"]
        rows[step] = reward, seen.p, seen.r, np.nan if seen.latency_ms is None else seen.latency_ms
    rewards, p, r, latencies = rows.T
    return Trajectory(rewards, p.astype(np.int64), r.astype(np.int64), latencies)
