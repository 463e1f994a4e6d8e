"""Prompt's batch partitioner: which blocks the tuples of each key of one micro-batch go to.

Balanced bin packing with fragmentable items, greedily, over the keys in descending order of count
(N tuples, K keys, P blocks; the cut-off N/K is the mean count; a key above it is *large*):

1. each large key puts a fragment of N/K tuples into the next block, round robin; the rest is its residual;
2. the other keys, whole, one per block and pass; every pass runs through the blocks the other way round;
3. each residual, in the same order: it joins its fragment if that block has room for all of it; if not,
   it fills that block, and what is left goes to the block with the least room that holds all of it
   (`rest="tightest"`).

Decisions where the listing is silent. Room is ceil(N/P) less what a block holds (steps 1 and 2 do not
look at it and may exceed it). The cut-off is rounded down, which changes no key's side; it is at most
N/P and at least 1: with fewer keys than blocks, no key of more tuples than a block stays whole. If no block holds
what is left, it fills the emptiest and the question is asked again: the room of all blocks together is at
least what is left, so this ends, and no block grows beyond ceil(N/P) in step 3. Ties: the lowest block.

Each block gets its keys of step 1 within one of the others', and so in step 2; but step 3 gives many small
residuals to few blocks, the price of filling the tightest one first. With `rest="roomiest"` (ours) what is
left goes to the block with the most room, which it at worst fills: blocks then fill together, so fewer
residuals find their own block full. Zipf 1.0, 1e6 tuples, 1e5 keys, P = 16: the fullest block has 114 keys
more than the mean instead of 2,698, and fragments / keys is 1.028 instead of 1.071, with equal loads.

Cost: O(K log P + P^2) at worst, nothing per tuple. State: none; a plan takes 4 bytes per key and 20 per
large key.
Paper: Abdelhamid, PhD thesis 2021 (001), Algorithm 2 and section 2.4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evenflow.kernels import kernel
from evenflow.partitioners.base import Int32s, Int64s

_SPLIT, _FRAGMENTS = 0, 1


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockPlan:
    """Where the tuples of each key go; keys are positions in the list that was planned.

    Fragments of a split key stand in the order in which they were made: its first tuples go to the first
    one, and so on. They lie in different blocks.
    """

    block: Int32s
    """Block of each key; of a split key, -1 - s, where s is its number among the split keys."""
    fragment_from: Int64s
    """Shape (split keys + 1,): where the fragments of a split key begin, and end."""
    fragment_block: Int32s
    fragment_size: Int64s
    """Tuples of each fragment."""
    cut: int
    """The cut-off: keys with more tuples than this are large."""
    large: int
    """Keys above the cut-off."""

    @property
    def split(self) -> int:
        """Keys that lie in more than one block."""
        return len(self.fragment_from) - 1

    @property
    def split_ratio(self) -> float:
        """KSR: fragments / keys; 1 when no key is split."""
        return 1.0 + (len(self.fragment_block) - self.split) / len(self.block)


@kernel
def _place(counts: Int64s, cut: int, block: Int32s, large: Int64s, loads: Int64s) -> int:
    """Steps 1 and 2; the positions of large keys are written to `large`. Gives their number."""
    blocks = loads.shape[0]
    found, turn = 0, 0
    for key in range(counts.shape[0]):
        if counts[key] > cut:
            large[found] = key
            found += 1
            block[key] = turn
            loads[turn] += cut
            turn = turn + 1 if turn + 1 < blocks else 0
    turn, step = 0, 1
    for key in range(counts.shape[0]):
        if counts[key] <= cut:
            block[key] = turn
            loads[turn] += counts[key]
            turn += step
            if turn == blocks or turn < 0:
                step = -step
                turn += step
    return found


@kernel
def _first_with(room: Int64s, tag: Any) -> int:
    """First position of the ascending array whose value is at least `tag`."""
    low, high = 0, room.shape[0]
    while low < high:
        middle = (low + high) // 2
        if room[middle] < tag:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _take(room: Int64s, at: Any, amount: Any) -> None:
    """The block at this position of `room` loses so much room and moves to its new place."""
    tag = room[at] - amount * room.shape[0]
    while at > 0 and room[at - 1] > tag:
        room[at] = room[at - 1]
        at -= 1
    room[at] = tag


@kernel
def _spread(
    counts: Int64s,
    cut: int,
    block: Int32s,
    large: Int64s,
    free: Int64s,
    room: Int64s,
    fragment_from: Int64s,
    fragment_block: Int32s,
    fragment_size: Int64s,
    sizes: Int64s,
    tightest: bool,
) -> None:
    """Step 3. `free` is the room of each block; `room` holds room * blocks + block, ascending."""
    blocks = room.shape[0]
    split, at = 0, 0
    for i in range(large.shape[0]):
        key = large[i]
        home = np.int64(block[key])
        rest = counts[key] - cut
        taken = min(rest, max(0, free[home]))
        if taken > 0:
            _take(room, _first_with(room, free[home] * blocks + home), taken)
            free[home] -= taken
            rest -= taken
        if rest == 0:
            continue
        block[key] = -1 - split
        fragment_block[at] = home
        fragment_size[at] = cut + taken
        at += 1
        while rest > 0:
            place = _first_with(room, rest * blocks) if tightest else blocks
            if place == blocks:  # the roomiest; the lowest among equals
                place = _first_with(room, room[blocks - 1] // blocks * blocks)
            into = room[place] % blocks
            taken = min(rest, free[into])
            _take(room, place, taken)
            free[into] -= taken
            rest -= taken
            fragment_block[at] = into
            fragment_size[at] = taken
            at += 1
        split += 1
        fragment_from[split] = at
    sizes[_SPLIT] = split
    sizes[_FRAGMENTS] = at


def plan_blocks(
    counts: Int64s, blocks: int, *, rest: Literal["tightest", "roomiest"] = "tightest"
) -> BlockPlan:
    """The plan for keys with these counts, each at least 1, in descending order (or nearly: all large
    keys are found wherever they stand, and the order of the list is the order of work)."""
    tuples, keys = int(counts.sum()), len(counts)
    if not keys or int(counts.min()) < 1 or blocks < 1:
        raise ValueError("a plan needs a block, and keys with at least one tuple each")
    cut = max(1, tuples // max(keys, blocks))
    block = np.empty(keys, np.int32)
    large = np.empty(keys, np.int64)
    loads = np.zeros(blocks, np.int64)
    large = large[: _place(counts, cut, block, large, loads)]
    free = -(-tuples // blocks) - loads
    room = np.sort(free * blocks + np.arange(blocks))
    most = 2 * len(large) + blocks  # a fragment either fills a block for good or ends its key
    fragment_from = np.zeros(len(large) + 1, np.int64)
    fragment_block, fragment_size = np.empty(most, np.int32), np.empty(most, np.int64)
    sizes = np.zeros(2, np.int64)
    _spread(
        counts,
        cut,
        block,
        large,
        free,
        room,
        fragment_from,
        fragment_block,
        fragment_size,
        sizes,
        rest == "tightest",
    )
    split, fragments = int(sizes[_SPLIT]), int(sizes[_FRAGMENTS])
    return BlockPlan(
        block=block,
        fragment_from=fragment_from[: split + 1],
        fragment_block=fragment_block[:fragments],
        fragment_size=fragment_size[:fragments],
        cut=cut,
        large=len(large),
    )


@kernel
def _dispatch(
    entry: Int32s,
    block: Int32s,
    next_fragment: Int64s,
    fragment_block: Int32s,
    left: Int64s,
    out: Int32s,
) -> None:
    for row in range(entry.shape[0]):
        to = block[entry[row]]
        if to < 0:
            split = -1 - to
            at = next_fragment[split]
            to = fragment_block[at]
            left[at] -= 1
            if left[at] == 0:
                next_fragment[split] = at + 1
        out[row] = to


def dispatch(plan: BlockPlan, *, order: Int64s, entry: Int32s, out: Int32s) -> None:
    """Write the block of each tuple, in order of arrival: a key's first tuples go to its first fragment.

    `entry` is the number of each tuple's key, `order` that of each key of the planned list.
    """
    block = np.empty(len(order), np.int32)
    block[order] = plan.block
    next_fragment, left = plan.fragment_from[:-1].copy(), plan.fragment_size.copy()
    _dispatch(entry, block, next_fragment, plan.fragment_block, left, out)
