"""Prompt's batch partitioner: which data blocks the tuples of each key of one micro-batch go to.

This is greedy balanced bin packing with fragmentable items, over the keys in descending order of count. There
are N tuples, K keys and P data blocks. The cut-off N/K is the mean count, and a key above it is *large*.

1. Each large key puts a fragment of N/K tuples into the next data block, round robin. The rest is its
   residual.
2. The other keys are placed whole, one per data block and pass. Each pass runs through the data blocks in the
   opposite direction of the last.
3. Each residual, in the same order, joins its fragment if that data block has room for all of it. If not, it
   fills that data block, and what is left goes to the data block with the least room that holds all of it
   (`rest="tightest"`).

Decisions where the listing is silent. The room of a data block is ceil(N/P) less what it holds. (Steps 1 and
2 do not look at the room and may exceed it.) The cut-off is rounded down, which changes no key's side. It is
at least 1, and at most N/P: with fewer keys than data blocks, no key with more tuples than a data block stays
whole. If no data block holds what is left, it fills the emptiest data block, and the rest of it is placed in
the same way. This ends, because all data blocks together have room for what is left, and no data block grows
beyond ceil(N/P) in step 3. On a tie the lowest data block is taken.

In steps 1 and 2 the numbers of keys in two data blocks differ by at most one each. But step 3 gives many
small residuals to few data blocks, because it fills the tightest one first. With `rest="roomiest"` (ours)
what is left goes to the data block with the most room, and fills it at worst. So the data blocks fill
together, and fewer residuals find their own data block full. Zipf 1.0, 1e6 tuples, 1e5 keys, P = 16: the
fullest data block has 114 keys more than the mean instead of 2,698, and fragments / keys is 1.028 instead of
1.071, with equal loads.

Cost: O(K log P), and O(P^2) for "tightest". Nothing per tuple. With 100,000 keys a plan took 1.5 to 2.3 times
as long as numpy's sort of their counts for P = 16 to 256, and 3.3 to 7 times as long for 1024. State: none. A
plan takes 4 bytes per key, and 8 to 32 per large key.
Paper: Abdelhamid, PhD thesis 2021 (001), Algorithm 2 and section 2.4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from evenflow.numeric.arrays import Int32s, Int64s, Whole
from evenflow.numeric.kernels import inlined, kernel
from evenflow.sketches.least_loaded import raised, rebuild, tournament, winner


@dataclass(frozen=True, eq=False, kw_only=True)
class KeyPlacement:
    """Where the tuples of each key go. A key is a position in the list that was planned.

    The fragments of a split key stand in the order in which they were made. The key's first tuples go to its
    first fragment, the next ones to its second, and so on. Each fragment lies in another data block.
    """

    data_block: Int32s
    """(keys,): the data block of each key.
    For a split key -1 - s, where s is its number among the split keys.
    """
    fragment_from: Int64s
    """(split keys + 1,): fragments of split key s are those from entry s up to entry s + 1, exclusive."""
    fragment_data_block: Int32s
    """The data block of each fragment."""
    fragment_size: Int64s
    """Tuples of each fragment."""

    @property
    def split(self) -> int:
        """Keys that lie in more than one data block."""
        return len(self.fragment_from) - 1


@dataclass(frozen=True, eq=False, kw_only=True)
class DataBlockPlan(KeyPlacement):
    """What Prompt has planned, and which keys were large."""

    cut: int
    """The cut-off: keys with more tuples than this are large."""
    large: int
    """Keys above the cut-off."""


@kernel
def _place(counts: Int64s, cut: int, data_block: Int32s, large: Int64s, loads: Int64s) -> int:
    """Do steps 1 and 2 in one pass, which is possible because neither looks at the other.

    Writes the positions of large keys to `large`, and returns how many there are.
    """
    data_blocks = loads.shape[0]
    number, turn = 0, 0
    at, step = 0, 1
    for key in range(counts.shape[0]):
        count = counts[key]
        if count > cut:
            large[number] = key
            number += 1
            data_block[key] = turn
            loads[turn] += cut
            turn = turn + 1 if turn + 1 < data_blocks else 0
        else:
            data_block[key] = at
            loads[at] += count
            at += step
            # At an end the same data block is taken twice, as the last of one pass and the first of the next.
            if at == data_blocks or at < 0:
                step = -step
                at += step
    return number


@kernel
def _first_with(room: Int64s, tag: Whole) -> int:
    """The first position of the ascending array whose value is at least `tag`, or its length."""
    low, high = 0, room.shape[0]
    while low < high:
        middle = (low + high) // 2
        if room[middle] < tag:
            low = middle + 1
        else:
            high = middle
    return low


class _DataBlocks(NamedTuple):
    """How full the data blocks are. Only one of `room` and `tree` is kept. The other is empty."""

    loads: Int64s
    """(data blocks,): tuples in each data block."""
    capacity: int
    """Tuples that a data block has room for."""
    room: Int64s
    """For "tightest": room * data_blocks + data_block for every data block, ascending.
    Ties fall to the lowest.
    """
    tree: Int64s
    """For "roomiest": the tournament of `loads`."""


class _BatchKeys(NamedTuple):
    """The keys of a batch, and which of them are large."""

    counts: Int64s
    """(keys,): tuples of each key, descending."""
    cut: int
    """The cut-off: keys with more tuples than this are large."""
    data_block: Int32s
    """The data block of each key. For a split key -1 - s."""
    large: Int64s
    """Positions of the keys above the cut-off."""


class _Fragments(NamedTuple):
    """The fragments of the split keys."""

    begin: Int64s
    """(split keys + 1,): where the fragments of each split key begin, and where the last ones end."""
    data_block: Int32s
    """(fragments,): the data block of each fragment."""
    size: Int64s
    """(fragments,): tuples of each fragment."""


@kernel
def _fill(filled: _DataBlocks, into: Whole, amount: Whole) -> None:
    """Put `amount` tuples into the data block `into`."""
    loads, room, tree = filled.loads, filled.room, filled.tree
    data_blocks = loads.shape[0]
    if room.shape[0]:
        # The data block's entry becomes smaller, so it moves down to its place in the ascending order.
        at = _first_with(room, (filled.capacity - loads[into]) * data_blocks + into)
        tag = room[at] - amount * data_blocks
        while at > 0 and room[at - 1] > tag:
            room[at] = room[at - 1]
            at -= 1
        room[at] = tag
    loads[into] += amount
    if tree.shape[0]:
        raised(tree, loads, into)


@kernel
def _spread(keys: _BatchKeys, filled: _DataBlocks, fragments: _Fragments) -> int:
    """Do step 3. Returns the number of split keys."""
    split, at = 0, 0
    for i in range(keys.large.shape[0]):
        key = keys.large[i]
        into = np.int64(keys.data_block[key])
        rest = keys.counts[key] - keys.cut
        amount = min(rest, max(0, filled.capacity - filled.loads[into]))
        if amount > 0:
            _fill(filled, into, amount)
            rest -= amount
        # All of the residual has joined its fragment: the key is whole.
        if rest == 0:
            continue
        keys.data_block[key] = -1 - split
        fragments.data_block[at] = into
        fragments.size[at] = keys.cut + amount
        at += 1
        while rest > 0:
            into = _next_data_block(filled, rest)
            amount = min(rest, filled.capacity - filled.loads[into])
            _fill(filled, into, amount)
            rest -= amount
            fragments.data_block[at] = into
            fragments.size[at] = amount
            at += 1
        split += 1
        fragments.begin[split] = at
    return split


@inlined
def _next_data_block(filled: _DataBlocks, rest: Whole) -> np.int64:
    """The data block for `rest` tuples of a key, for which its own data block has no room."""
    room = filled.room
    data_blocks = filled.loads.shape[0]
    if room.shape[0] == 0:
        return winner(filled.tree)
    place = _first_with(room, rest * data_blocks)
    if place == data_blocks:  # no data block holds it all: take the emptiest, the lowest among equals
        place = _first_with(room, room[data_blocks - 1] // data_blocks * data_blocks)
    return room[place] % data_blocks


def plan_data_blocks(
    counts: Int64s, data_blocks: int, *, rest: Literal["tightest", "roomiest"] = "tightest"
) -> DataBlockPlan:
    """The plan for keys with these counts, which are at least 1 and in descending order.

    The order may be approximate: all large keys are found wherever they stand. The keys are placed in the
    order of the list. ValueError without a key or a data block, or for a count below 1.
    """
    tuples, keys = int(counts.sum()), len(counts)
    if not keys or int(counts.min()) < 1 or data_blocks < 1:
        raise ValueError("a plan needs a data block, and keys with at least one tuple each")
    cut = max(1, tuples // max(keys, data_blocks))
    data_block = np.empty(keys, np.int32)
    large = np.empty(keys, np.int64)
    loads = np.zeros(data_blocks, np.int64)
    large = large[: _place(counts, cut, data_block, large, loads)]
    capacity = -(-tuples // data_blocks)
    room, tree = np.empty(0, np.int64), np.empty(0, np.int64)
    if rest == "tightest":
        room = np.sort((capacity - loads) * data_blocks + np.arange(data_blocks))
    else:
        rebuild(tree := tournament(data_blocks), loads)
    # Each large key has a first fragment. Every other fragment either fills a data block for good or ends its
    # key.
    most = 2 * len(large) + data_blocks
    fragments = _Fragments(
        np.zeros(len(large) + 1, np.int64), np.empty(most, np.int32), np.empty(most, np.int64)
    )
    split = _spread(
        _BatchKeys(counts, cut, data_block, large), _DataBlocks(loads, capacity, room, tree), fragments
    )
    fragment_count = int(fragments.begin[split])
    return DataBlockPlan(
        data_block=data_block,
        fragment_from=fragments.begin[: split + 1],
        fragment_data_block=fragments.data_block[:fragment_count],
        fragment_size=fragments.size[:fragment_count],
        cut=cut,
        large=len(large),
    )


@kernel
def _dispatch(
    entry: Int32s, data_block: Int32s, following: Int64s, fragments: _Fragments, out: Int32s
) -> None:
    """Write the data block of each tuple to `out`.

    `following`: the fragment that each split key fills now. `fragments.size`: the tuples that each fragment
    still takes.
    """
    for row in range(entry.shape[0]):
        to = data_block[entry[row]]
        if to < 0:
            split = -1 - to
            at = following[split]
            to = fragments.data_block[at]
            fragments.size[at] -= 1
            if fragments.size[at] == 0:
                following[split] = at + 1
        out[row] = to


def dispatch(plan: KeyPlacement, *, order: Int64s, entry: Int32s, out: Int32s) -> None:
    """Write the data block of each tuple to `out`.
    In order of arrival, a key's first tuples go to its first fragment.

    `entry`: the number of each tuple's key. `order`: the number of each key of the planned list.
    """
    data_block = np.empty(len(order), np.int32)
    data_block[order] = plan.data_block
    left = _Fragments(plan.fragment_from, plan.fragment_data_block, plan.fragment_size.copy())
    _dispatch(entry, data_block, plan.fragment_from[:-1].copy(), left, out)
