"""Trains a policy of `partly` with PPO, on one core, from a seed.
Stopped training goes on from its last checkpoint.

PPO is that of Stable-Baselines3 (extra `rl`, `ppo`). It plays 256 episodes side by side (`episodes`). Actions
beyond the present stage have probability 0 (`partly.actions`). Stage 2 begins when 15 % of the training is
over, and stage 3 at 35 %, unless the space of decisions shall not grow (001, section 4.6, technique 2).
The learning rate falls linearly. With prices of tasks, the rewards of the last 40 % are the variance of task
times only (001, section 4.6, technique 3). The policy that is given back is, of those scored on held-out
batches (`held_out`), the best one of the last stage, or of this last part: there the best one has the least
excess.

A folder holds all of a training: `policy.evenflow` (the best so far), `checkpoint.pt` (weights and the state
of the optimizer, read without pickle) and `curve.json`. Each file is replaced in one step. A resumed training
draws other batches than one that was never stopped.
Paper: Abdelhamid, PhD thesis 2021 (001), sections 4.6 and 4.7.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from evenflow.errors import ConfigError
from evenflow.partitioners.partly.actions import actions_of
from evenflow.partitioners.partly.network import TrainedPolicy, load_policy
from evenflow.partitioners.partly.reward import Rewards
from evenflow.partitioners.partly.task_times import Prices
from evenflow.training.batches import BatchLaw
from evenflow.training.curve import Curve, Point
from evenflow.training.episodes import Episodes
from evenflow.training.held_out import held_out, prompt_costs, scale_of, score

POLICY, CHECKPOINT, CURVE = "policy.evenflow", "checkpoint.pt", "curve.json"
"""Files of a training's folder."""
EPISODES, STEPS = 256, 128
"""Episodes that are played side by side, and actions of each in a rollout."""
_ROLLOUT, _ROLLOUTS = EPISODES * STEPS, 8
"""Actions of a rollout, and rollouts from one point of the curve to the next."""
_LEARNING_RATE = 1e-3
_ENTROPY = 0.01
"""Weight of the entropy at the beginning. It falls as the learning rate does."""
_GROWTH = (0.15, 0.35)
"""Shares of the training at which stages 2 and 3 begin."""
_BY_TIMES = 0.6
"""Share of the training after which rewards are by task times, if there are prices."""
_HELD_OUT = 400
_CALIBRATION = (0, 1)
"""Behind the seed: draws the batches that say which range variances have."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """What to train. All fields but `steps` must be the same when a training goes on."""

    law: BatchLaw = field(default_factory=BatchLaw)
    """What batches to train on."""
    keys_each: int = 8
    """Keys of the head for each data block."""
    width: int = 32
    """Units of each hidden layer."""
    steps: int = 20_000_000
    """Actions to train on."""
    partial: bool = True
    """Partial rewards ("bootstrapping")."""
    grow: bool = True
    """Whether the space of decisions grows by stages. If not, all actions are there from the beginning."""
    task_times: Prices | None = None
    """What tasks take. None: all rewards are by the cost model."""
    seed: int = 7
    """Seed of the batches, the first weights and the actions."""

    def facts(self) -> dict[str, Any]:
        """The fields as plain JSON."""
        fields: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return fields


class ActorCritic(Protocol):
    """What learns: the actor, its critic and its optimizer. `ppo.Ppo` is one."""

    def learn(self, actions: int, *, stage_actions: int, rate: float, entropy: float) -> None:
        """Train on so many actions, whole rollouts, each below `stage_actions`.

        rate: learning rate. entropy: weight of the entropy.
        """
        ...

    def policy(self, *, keys_each: int, data_blocks: int | None) -> TrainedPolicy:
        """The network of this moment."""
        ...

    def save(self, path: Path) -> None:
        """Write weights and the state of the optimizer."""
        ...

    def load(self, path: Path) -> None:
        """Go on from what `save` wrote."""
        ...


LearnerFactory = Callable[[Episodes, Training, int], ActorCritic]
"""Makes what learns on these episodes. The last argument: actions that the training has had already."""


def ppo(episodes: Episodes, training: Training, done: int) -> ActorCritic:
    """PPO. ModuleNotFoundError without the extra `rl`."""
    from evenflow.training.ppo import Ppo

    return Ppo(episodes, width=training.width, steps=STEPS, seed=training.seed + done)


class Learner:
    """One training in a folder.
    ConfigError if the folder holds another one, or one although `resume` is False.

    make: what learns.
    """

    def __init__(self, training: Training, folder: Path, *, resume: bool, make: LearnerFactory = ppo) -> None:
        self._training, self._folder = training, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.curve = self._read_curve(resume)
        self._batches = held_out(training.law, _HELD_OUT)
        self._prompt, splits = prompt_costs(self._batches)
        self.prompt_cost, self.prompt_splits = float(np.mean(self._prompt)), float(np.mean(splits))
        done = self.curve.steps
        # `done` in the seed: a training that is resumed draws other batches than before.
        rng = np.random.default_rng([training.seed, done])
        self._episodes = Episodes(
            EPISODES, training.law, keys_each=training.keys_each, rewards=Rewards(training.partial), rng=rng
        )
        self._agent = make(self._episodes, training, done)
        if resume and self.curve.points:
            self._agent.load(folder / CHECKPOINT)

    def run(self, *, minutes: float, tell: Callable[[Point], None]) -> TrainedPolicy:
        """Train until all steps are done, or for so many minutes of CPU time.
        tell: called with each point of the curve.

        The best policy of the training, also if it is over already.
        """
        began, spent = time.process_time(), self.curve.points[-1].cpu_s if self.curve.points else 0.0
        training = self._training
        while self.curve.steps < training.steps and time.process_time() - began < 60 * minutes:
            done = self.curve.steps / training.steps
            stage = 1 + sum(done >= share or not training.grow for share in _GROWTH)
            by_times = training.task_times is not None and done >= _BY_TIMES
            if by_times and not self._episodes.rewards.by_times:
                self._episodes.rewards = self._by_times()
            # Whole rollouts, because the learner plays no part of one.
            actions = min(_ROLLOUTS, -(-(training.steps - self.curve.steps) // _ROLLOUT)) * _ROLLOUT
            self._agent.learn(
                actions,
                stage_actions=actions_of(stage),
                rate=_LEARNING_RATE * (1 - done),
                entropy=_ENTROPY * (1 - done),
            )
            policy = self.policy()
            point = Point(
                steps=self.curve.steps + actions,
                episodes=self.curve.episodes + self._episodes.take_ended(),
                cpu_s=round(spent + time.process_time() - began, 1),
                stage=stage,
                by_times=by_times,
                **asdict(score(policy, self._batches, self._prompt, training.task_times)),
            )
            self.curve.points.append(point)
            if self.curve.best is point:
                # The policy before the curve: a curve never names a policy that is not on disk.
                _replace(self._folder / POLICY, policy.to_bytes())
            self._agent.save(self._folder / CHECKPOINT)
            _replace(self._folder / CURVE, self.curve.to_bytes())
            tell(point)
        return load_policy(self._folder / POLICY)

    def policy(self) -> TrainedPolicy:
        """The network of this moment."""
        low, high = self._training.law.data_blocks
        return self._agent.policy(
            keys_each=self._training.keys_each, data_blocks=low if low == high else None
        )

    def _by_times(self) -> Rewards:
        """Rewards by task times alone, in the range that costs have on batches of the law."""
        training = self._training
        assert training.task_times is not None
        rng = np.random.default_rng([training.seed, *_CALIBRATION])
        batches = [training.law.draw(rng) for _ in range(_HELD_OUT)]
        return Rewards(
            partial=False,
            by_times=True,
            prices=training.task_times,
            scale=scale_of(batches, training.task_times),
        )

    def _read_curve(self, resume: bool) -> Curve:
        facts = self._training.facts()
        path = self._folder / CURVE
        if not path.exists():
            return Curve(training=facts, points=[])
        if not resume:
            raise ConfigError(
                f"{self._folder} holds a training already", hint="go on with --resume, or name another folder"
            )
        curve = Curve.read(path)
        if {**curve.training, "steps": 0} != {**facts, "steps": 0}:
            raise ConfigError(
                f"{self._folder} holds a training with other settings", hint="name another folder"
            )
        return replace(curve, training=facts)


def _replace(path: Path, content: bytes) -> None:
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(content)
    new.replace(path)
