"""PPO, A2C and DQN of Stable-Baselines3 with its default hyperparameters. 003 uses RLlib, and A3C in place
of A2C.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.wrappers import TransformAction

from evenflow.elasticity.simulated.driving import Trajectory
from evenflow.elasticity.simulated.environments import ElasticStage


def is_installed() -> bool:
    """Whether the extra `rl` is installed."""
    return importlib.util.find_spec("stable_baselines3") is not None


def learned(name: str, environment: ElasticStage, *, steps: int, seed: int) -> Trajectory:
    """What the learner played in its first `steps` steps, while it learned."""
    # Imported here, because the extra `rl` is optional.
    import stable_baselines3
    import torch

    # Several cells run side by side, each in a process of its own.
    torch.set_num_threads(1)
    played = _Recorder(environment)
    # Policies of Stable-Baselines3 want actions from 0 on. The environment counts instances from 1 on.
    actions = TransformAction(played, lambda action: action + 1, Discrete(environment.kmax))
    learner = getattr(stable_baselines3, name.upper())("MlpPolicy", actions, seed=seed, device="cpu")
    # A learner collects whole rollouts. It stops within one, so that it does not learn from steps that nobody
    # counts.
    learner.learn(steps, callback=lambda _locals, _globals: len(played.rows) < steps)
    rewards, p, latencies, waiting = np.array(played.rows[:steps]).T
    return Trajectory(rewards, p.astype(np.int64), np.ones(steps, np.int64), latencies, waiting)


class _Recorder(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps reward, instances, latency (ms) and waiting tuples of every step."""

    def __init__(self, environment: ElasticStage) -> None:
        super().__init__(environment)
        self.rows: list[tuple[float, int, float, float]] = []

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        outcome = self.env.step(action)
        observation = outcome[4]["observation"]
        latency = np.nan if observation.latency_ms is None else observation.latency_ms
        self.rows.append((float(outcome[1]), observation.p, latency, observation.stage("combine").queue))
        return outcome
