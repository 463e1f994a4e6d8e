"""What Stable-Baselines3 needs to train on `Episodes`.
The only module that imports it when it is imported itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv

from evenflow.partitioners.partly.actions import ACTIONS
from evenflow.partitioners.partly.episode import FEATURES
from evenflow.training.episodes import Episodes

CLOSED = -1e9
"""Added to the number of an action that the present stage does not have: its probability is then 0."""


class GrowingPolicy(ActorCriticPolicy):  # type: ignore[misc]  # the package may not be installed
    """Actor and critic whose actions can be closed at first. All are open in the beginning."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.register_buffer("closed", torch.zeros(ACTIONS), persistent=False)

    def open_to(self, actions: int) -> None:
        """Open the actions below this number, and close the others."""
        self.closed[:actions] = 0
        self.closed[actions:] = CLOSED

    def _get_action_dist_from_latent(self, latent_pi: torch.Tensor) -> Any:
        return self.action_dist.proba_distribution(action_logits=self.action_net(latent_pi) + self.closed)


class PartitionVector(VecEnv):  # type: ignore[misc]  # the package may not be installed
    """The episodes as a vector of environments."""

    def __init__(self, episodes: Episodes) -> None:
        super().__init__(episodes.number, Box(0, 2, (FEATURES,), np.float32), Discrete(ACTIONS))
        self._episodes = episodes
        self._actions = np.zeros(episodes.number, np.int64)
        self._infos: list[dict[str, Any]] = [{} for _ in range(episodes.number)]

    def reset(self) -> Any:
        """Begin every episode."""
        return self._episodes.reset()

    def step_async(self, actions: Any) -> None:
        """Take the actions of the step that `step_wait` plays."""
        self._actions = actions.astype(np.int64)

    def step_wait(self) -> Any:
        """Play the step."""
        stepped = self._episodes.step(self._actions)
        return stepped.observations, stepped.rewards, stepped.ended, self._infos

    def close(self) -> None:
        """Nothing is open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The same for every environment."""
        return [getattr(self, attr_name, None)] * len(self._among(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Environments have no attributes of their own."""
        raise AttributeError(attr_name)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Environments have no methods of their own."""
        raise AttributeError(method_name)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """None is."""
        return [False] * len(self._among(indices))

    def _among(self, indices: Any) -> Sequence[int]:
        return range(self.num_envs) if indices is None else np.atleast_1d(indices).tolist()
