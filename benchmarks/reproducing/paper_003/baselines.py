"""PPO, A2C and DQN of Stable-Baselines3 with its default hyperparameters (003 takes those of RLlib, and A3C)."""

from __future__ import annotations

import importlib.util
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.wrappers import TransformAction

from evenflow.elasticity.driving import Trajectory
from evenflow.elasticity.environments import ElasticStage


def is_installed() -> bool:
    """Whether the extra `rl` is."""
    return importlib.util.find_spec("stable_baselines3") is not None


def learned(name: str, environment: ElasticStage, *, steps: int, seed: int) -> Trajectory:
    """What the learner played in its first steps."""
    import stable_baselines3
    import torch

    torch.set_num_threads(1)
    played = _Kept(environment)
    # Its policies want actions from 0.
    actions = TransformAction(played, lambda action: action + 1, Discrete(environment.kmax))
    learner = getattr(stable_baselines3, name.upper())("MlpPolicy", actions, seed=seed, device="cpu")
    learner.learn(steps)
    rewards, p, latencies = np.array(played.rows[:steps]).T
    return Trajectory(rewards, p.astype(np.int64), np.ones(steps, np.int64), latencies)


class _Kept(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps what every step gave."""

    def __init__(self, environment: ElasticStage) -> None:
        super().__init__(environment)
        self.rows: list[tuple[float, int, float]] = []

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        found = self.env.step(action)
        seen = found[4]["observation"]
        latency = np.nan if seen.latency_ms is None else seen.latency_ms
        self.rows.append((float(found[1]), seen.p, latency))
        return found
