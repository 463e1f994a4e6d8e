"""PartLy's planner: the policy places a batch's most frequent keys, and a rule places the others (`rest`).

Cost: O(P) and a network for each of the n keys of the head, and what the rest costs. Nothing per tuple.
State: none but the policy.
Paper: Abdelhamid, PhD thesis 2021 (001), sections 4.5 to 4.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import Int32s, Int64s
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.partly.actions import MOST_SHARES
from evenflow.partitioners.partly.cost import cost_of
from evenflow.partitioners.partly.episode import FACTS, HEAD, MOST_HEAD, Episode, act, begin, observe
from evenflow.partitioners.partly.network import NetworkLayers, TrainedPolicy, Workspace, best_action
from evenflow.partitioners.partly.rest import Passes, place_rest
from evenflow.partitioners.partly.task_times import Fragments, Prices, Variances, variances_of
from evenflow.partitioners.prompt.data_blocks import KeyPlacement
from evenflow.sketches.least_loaded import tournament


@dataclass(frozen=True, eq=False, kw_only=True)
class PartLyPlan(KeyPlacement):
    """A placement, and what it makes of the data blocks."""

    sizes: Int64s
    """(data blocks,): tuples."""
    cardinalities: Int64s
    """(data blocks,): keys."""
    head: int
    """Keys that the policy placed."""


class _PlacementColumns(NamedTuple):
    """The fields of a KeyPlacement while they are written."""

    data_block: Int32s
    """(keys,): the data block of a whole key, -1 - s for the split key s."""
    begin: Int64s
    """(split keys + 1,): where the fragments of each split key begin."""
    fragment_data_block: Int32s
    """(fragments,): the data block of each fragment."""
    fragment_size: Int64s
    """(fragments,): tuples of each fragment."""


@kernel
def _place_head(episode: Episode, layers: NetworkLayers, room: Workspace, written: _PlacementColumns) -> int:
    """Place the head as the policy decides. Returns the number of split keys."""
    split, at = 0, 0
    for key in range(episode.facts[HEAD]):
        observe(episode, room.observation)
        fragments = act(episode, best_action(layers, room))
        if fragments == 1:
            written.data_block[key] = episode.chosen[0]
            continue
        written.data_block[key] = -1 - split
        for piece in range(fragments):
            written.fragment_data_block[at] = episode.chosen[piece]
            written.fragment_size[at] = episode.pieces[piece]
            at += 1
        split += 1
        written.begin[split] = at
    return split


def plan_batch(counts: Int64s, data_blocks: int, policy: TrainedPolicy) -> PartLyPlan:
    """The plan for keys with these counts, which are at least 1 and in descending order.

    ConfigError if the policy is for another number of data blocks. ValueError without a key or a data block,
    or for counts that are below 1 or not in descending order.
    """
    policy.check_serves(data_blocks)
    keys = len(counts)
    if not keys or counts[-1] < 1 or data_blocks < 1 or (counts[1:] > counts[:-1]).any():
        raise ValueError("a plan needs a data block, and descending counts of at least 1")
    most_head = min(keys, policy.keys_each * data_blocks, MOST_HEAD)
    # A key has its shares once for each mean data block that it begins. All keys begin at most head + P of
    # them.
    most = MOST_SHARES * (most_head + data_blocks)
    written = _PlacementColumns(
        np.empty(keys, np.int32),
        np.zeros(most_head + 1, np.int64),
        np.empty(most, np.int32),
        np.empty(most, np.int64),
    )
    episode, passes = new_episode(counts, data_blocks)
    begin(episode, policy.keys_each)
    split = _place_head(episode, policy.layers, policy.room(), written)
    place_rest(episode, passes, written.data_block)
    fragments = int(written.begin[split])
    return PartLyPlan(
        data_block=written.data_block,
        fragment_from=written.begin[: split + 1],
        fragment_data_block=written.fragment_data_block[:fragments],
        fragment_size=written.fragment_size[:fragments],
        sizes=episode.sizes,
        cardinalities=episode.cardinalities,
        head=most_head,
    )


def plan_cost(counts: Int64s, plan: KeyPlacement, data_blocks: int) -> float:
    """The cost (`cost`) of any placement of keys with these counts."""
    sizes, cardinalities = _filled(counts, plan, data_blocks)
    excess = int(cardinalities.sum()) / len(counts) - 1
    return cost_of(sizes, cardinalities, int(counts.sum()), len(counts), excess)


def plan_variances(counts: Int64s, plan: KeyPlacement, data_blocks: int, prices: Prices) -> Variances:
    """The variances of task times (`task_times`) of any placement of keys with these counts."""
    sizes, cardinalities = _filled(counts, plan, data_blocks)
    # Two pieces of a key never lie in one data block.
    pieces = np.diff(plan.fragment_from)
    squares = len(counts) - len(pieces) + int((pieces * pieces).sum())
    fragments = Fragments(len(counts), int(cardinalities.sum()), squares)
    return variances_of(sizes, cardinalities, fragments, prices)


def _filled(counts: Int64s, plan: KeyPlacement, data_blocks: int) -> tuple[Int64s, Int64s]:
    """Tuples and keys of each data block."""
    whole = plan.data_block >= 0
    at = np.concatenate([plan.data_block[whole], plan.fragment_data_block])
    sizes = np.zeros(data_blocks, np.int64)
    np.add.at(sizes, at, np.concatenate([counts[whole], plan.fragment_size]))
    return sizes, np.bincount(at, minlength=data_blocks)


def new_episode(counts: Int64s, data_blocks: int) -> tuple[Episode, Passes]:
    """An episode over these counts, which `begin` has yet to set up, and what `place_rest` works in."""
    sizes, cardinalities, chosen, pieces, order = (np.zeros(data_blocks, np.int64) for _ in range(5))
    episode = Episode(
        counts=counts,
        sizes=sizes,
        cardinalities=cardinalities,
        facts=np.zeros(FACTS, np.int64),
        chosen=chosen,
        pieces=pieces,
        scores=np.zeros(data_blocks, np.float64),
    )
    return episode, Passes(order, tournament(data_blocks))
