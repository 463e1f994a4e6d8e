"""PPO of Stable-Baselines3 (extra `rl`) as the learner's agent. It runs on one core."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from stable_baselines3 import PPO

from evenflow.partitioners.partly.network import NetworkLayers, TrainedPolicy
from evenflow.training.episodes import Episodes
from evenflow.training.vectors import GrowingPolicy, PartitionVector

_MINIBATCH = 4096
_LAYERS = ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net")
"""Of the actor, by the names of Stable-Baselines3."""


class Ppo:
    """Actor and critic with two hidden layers each, and their optimizer.

    width: units of a hidden layer. steps: actions of each episode in a rollout.
    """

    def __init__(self, episodes: Episodes, *, width: int, steps: int, seed: int) -> None:
        torch.set_num_threads(1)
        self._model = PPO(
            GrowingPolicy,
            PartitionVector(episodes),
            n_steps=steps,
            batch_size=min(_MINIBATCH, steps * episodes.number),
            n_epochs=4,
            gamma=1.0,
            gae_lambda=0.95,
            policy_kwargs={
                "net_arch": {"pi": [width] * 2, "vf": [width] * 2},
                "activation_fn": torch.nn.ReLU,
            },
            seed=seed,
            device="cpu",
        )

    def learn(self, actions: int, *, stage_actions: int, rate: float, entropy: float) -> None:
        """As `learner.ActorCritic` says."""
        self._model.policy.open_to(stage_actions)
        # A constant: a schedule of Stable-Baselines3 does not know how long the whole training is.
        self._model.lr_schedule = lambda _: rate
        self._model.ent_coef = entropy
        self._model.learn(actions, reset_num_timesteps=False)

    def policy(self, *, keys_each: int, data_blocks: int | None) -> TrainedPolicy:
        """The actor. An action that is closed has a bias that is never the greatest."""
        weights = self._model.policy.state_dict()
        arrays = []
        for name in _LAYERS:
            arrays.append(weights[f"{name}.weight"].numpy().T.astype(np.float32).copy())
            arrays.append(weights[f"{name}.bias"].numpy().astype(np.float32).copy())
        closed = self._model.policy.closed.numpy()
        arrays[-1] = (arrays[-1] + closed).astype(np.float32)
        return TrainedPolicy(layers=NetworkLayers(*arrays), keys_each=keys_each, data_blocks=data_blocks)

    def save(self, path: Path) -> None:
        """Write weights and the state of the optimizer. The file is replaced in one step."""
        policy, new = self._model.policy, path.with_name(f"{path.name}.new")
        torch.save({"policy": policy.state_dict(), "optimizer": policy.optimizer.state_dict()}, new)
        new.replace(path)

    def load(self, path: Path) -> None:
        """Go on from what `save` wrote. The file is read without pickle."""
        state = torch.load(path, weights_only=True)
        self._model.policy.load_state_dict(state["policy"])
        self._model.policy.optimizer.load_state_dict(state["optimizer"])
