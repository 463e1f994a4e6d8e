"""The rewards of an episode (001, sections 4.5.1 and 4.6), by the cost model or by the times of tasks.

* Partial rewards (technique 1, "bootstrapping"): 1/K for an action that keeps the data blocks that it touches
  within ceil(N/P) tuples and ceil(K/P) keys. All together they are at most 1.
* The final reward, when the rest has been placed too: FINAL times the negative cost of the batch (`cost`).
  BSI and BCI count as shares of the head's mean data block, because the rest, which the policy does not
  decide about, would hide what the policy has done. Fragments count per key of the batch. A cost above 1
  counts as 1.
* With `by_times` the cost of the final reward is the variance of the batch's task times (`task_times`),
  rescaled into the range of costs (technique 3). All tuples and keys of the batch count.

The paper takes a running average of final rewards over episodes against noise. PPO's critic, which learns the
mean reward of each state, does this here.
"""

from __future__ import annotations

from typing import NamedTuple

from evenflow.numeric.arrays import Int32s, Whole
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.partly.cost import cost_of
from evenflow.partitioners.partly.episode import (
    AT,
    FRAGMENTS,
    HEAD,
    SQUARES,
    TUPLES,
    Episode,
    act,
    within_bounds,
)
from evenflow.partitioners.partly.rest import Passes, place_rest
from evenflow.partitioners.partly.task_times import (
    UNPRICED,
    UNSCALED,
    Fragments,
    Prices,
    Scale,
    excess_of,
    rescaled,
    variances_of,
)

FINAL = 10.0
"""The final reward of a batch of cost 1 is minus this."""


class Rewards(NamedTuple):
    """Which rewards there are."""

    partial: bool = True
    """Whether an action has a reward of its own."""
    by_times: bool = False
    """Whether the final reward is the variance of task times. The cost model if not."""
    prices: Prices = UNPRICED
    """What tasks cost in time. Counts with `by_times` only."""
    scale: Scale = UNSCALED
    """Turns the excess of the variances into a cost. Counts with `by_times` only."""


@kernel
def _final_cost(episode: Episode, rewards: Rewards, keys: Whole) -> float:
    facts = episode.facts
    excess = facts[FRAGMENTS] - facts[HEAD]
    if rewards.by_times:
        # Keys of the rest are whole: each has one fragment.
        plan = Fragments(keys, keys + excess, keys - facts[HEAD] + facts[SQUARES])
        variances = variances_of(episode.sizes, episode.cardinalities, plan, rewards.prices)
        return rescaled(rewards.scale, excess_of(variances))
    return cost_of(episode.sizes, episode.cardinalities, facts[TUPLES], facts[HEAD], excess / keys)


@kernel
def play(episode: Episode, passes: Passes, data_block: Int32s, action: Whole, rewards: Rewards) -> float:
    """Place the next key of the head, and after the last one the rest. Returns the reward.

    data_block: room for the rest, shape (keys,). The episode is over when `facts[AT]` has reached
    `facts[HEAD]`.
    """
    facts = episode.facts
    fragments = act(episode, action)
    reward = 1.0 / facts[HEAD] if rewards.partial and within_bounds(episode, fragments) else 0.0
    if facts[AT] == facts[HEAD]:
        place_rest(episode, passes, data_block)
        reward -= FINAL * min(1.0, _final_cost(episode, rewards, data_block.shape[0]))
    return reward
