"""The rest of a batch: the keys that PartLy's policy does not decide about. A rule of Prompt's places them.

They stay whole, as the small keys of Prompt do (step 2 of `prompt.data_blocks`): pass after pass, each data
block gets one key. Prompt runs through the data blocks there and back. Here those with the fewest keys come
first, and of those the ones with the fewest tuples. So the passes also level what the policy has left uneven.

Cost: O(K) for K keys, and O(P log P) for each pass over P data blocks in which the counts differ.
"""

from __future__ import annotations

from typing import NamedTuple

from evenflow.numeric.arrays import Int32s, Int64s, Whole
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.partly.episode import ALL_TUPLES, HEAD, Episode
from evenflow.sketches.least_loaded import raised, rebuild, winner


class Passes(NamedTuple):
    """The data blocks by the order of a pass."""

    order: Int64s
    """(data blocks,): (keys above the fewest) * unit + tuples,
    where unit is more than the tuples of the batch.
    """
    tree: Int64s
    """The tournament of `order`."""


@kernel
def _arrange(episode: Episode, passes: Passes, unit: Whole) -> int:
    """Write `order` anew. Returns how many keys it takes until all data blocks hold equally many."""
    cardinalities = episode.cardinalities
    fewest, most, missing = cardinalities[0], cardinalities[0], 0
    for place in range(cardinalities.shape[0]):
        fewest, most = min(fewest, cardinalities[place]), max(most, cardinalities[place])
    for place in range(cardinalities.shape[0]):
        missing += most - cardinalities[place]
        passes.order[place] = (cardinalities[place] - fewest) * unit + episode.sizes[place]
    rebuild(passes.tree, passes.order)
    return missing


@kernel
def _place(episode: Episode, passes: Passes, unit: Whole, keys: tuple[int, int], data_block: Int32s) -> None:
    """Put each key from the first to the last (exclusive) into the data block that is first
    in the order then.
    """
    for key in range(keys[0], keys[1]):
        count, place = episode.counts[key], winner(passes.tree)
        data_block[key] = place
        episode.sizes[place] += count
        episode.cardinalities[place] += 1
        passes.order[place] += unit + count
        raised(passes.tree, passes.order, place)


@kernel
def place_rest(episode: Episode, passes: Passes, data_block: Int32s) -> None:
    """Place all keys behind the head, and write the data block of each to its place
    in `data_block`, shape (keys,).
    """
    counts, data_blocks = episode.counts, episode.sizes.shape[0]
    keys, key = counts.shape[0], episode.facts[HEAD]
    if key >= keys:
        return
    unit = episode.facts[ALL_TUPLES] + 1
    level = min(keys, key + _arrange(episode, passes, unit))
    _place(episode, passes, unit, (key, level), data_block)
    for begin in range(level, keys, data_blocks):
        end = min(keys, begin + data_blocks)
        # Equal counts in a whole pass: it does not matter which data block gets which key.
        if end - begin == data_blocks and counts[begin] == counts[end - 1]:
            for place in range(data_blocks):
                data_block[begin + place] = place
                episode.sizes[place] += counts[begin]
                episode.cardinalities[place] += 1
        else:
            _arrange(episode, passes, unit)
            _place(episode, passes, unit, (begin, end), data_block)
