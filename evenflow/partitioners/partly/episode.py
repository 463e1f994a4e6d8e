"""One batch as an episode (001, sections 4.5 and 4.6): its keys get data blocks one by one,
the most frequent first.

The planner, the Gymnasium environment and the training run these same kernels.

The policy decides about the *head* only: the most frequent keys, so many for each data block. All other keys
are the *rest*, which a rule places at the end (`rest`). The rest adds nearly the same to each data block. So
the yardstick of the episode is the head: N and K below are its tuples and keys.

The state of the paper is the vector of counts and the matrix M of keys to data blocks. Rewards depend on M
only through two sums for each data block: its tuples and its keys. So these are kept in place of M, and they
are still the whole state (the Markov property holds). What the policy observes of them has a fixed length,
whatever the number of keys and data blocks is. So one network serves any batch. An observation has FEATURES
numbers from 0 to 2, all of them shares:

* the key: its count as a share of a mean data block, and in how many data blocks it must lie at least;
* the sorted counts behind it, 1, 2, 4, ... places further, zero where the batch has ended (zero padding);
* what is left of the head, and how large the rest is: keys, tuples;
* the data blocks: the least, the greatest and the spread of their tuples and of their keys, and how many have
  room;
* for each choice of `actions`: tuples and keys of the data block that would be taken first, with the whole
  key in it.

Only +, -, *, / and square roots, in a fixed order: an observation is the same on every machine.

A partial reward (001, section 4.6, technique 1) says whether an action leaves each data block that it touches
within ceil(N/P) tuples and ceil(K/P) keys.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.numeric.arrays import Float64s, Int64s, Whole
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.partly.actions import (
    CHOICES,
    LEAST_BOTH,
    LEAST_KEYS,
    LEAST_TUPLES,
    SHARES,
    SHARES_OF,
)

Float32s = npt.NDArray[np.float32]
MOST_HEAD = 4096
"""Most keys of a head. It bounds the time of a plan over very many data blocks."""
FEATURES = 34
"""Numbers in an observation."""
_AHEAD = 6
"""So many of the counts behind the key are observed, at doubling distances."""
AT, LEFT, HEAD, TUPLES, ALL_TUPLES, FRAGMENTS, SQUARES = range(7)
"""Places in `Episode.facts`: the next key, tuples left of the head, keys and tuples of the head, tuples of
the batch, fragments so far, and the sum of the squares of each key's fragments."""
FACTS = 7


class Episode(NamedTuple):
    """A batch that is being planned, and room to work in. `begin` sets it up."""

    counts: Int64s
    """(keys,): tuples of each key of the batch, descending."""
    sizes: Int64s
    """(data blocks,): tuples so far."""
    cardinalities: Int64s
    """(data blocks,): keys so far. A key counts in each data block that has a fragment of it."""
    facts: Int64s
    """(FACTS,): what the names from AT to SQUARES say."""
    chosen: Int64s
    """(data blocks,): room to choose in.
    After `act` the first places name the data blocks of the key's pieces.
    """
    pieces: Int64s
    """(data blocks,): after `act`, tuples of the key's piece in each data block of `chosen`."""
    scores: Float64s
    """(data blocks,): room to choose in."""


@kernel
def begin(episode: Episode, keys_each: Whole) -> None:
    """Set up an episode whose `counts` are filled in. keys_each: keys of the head for each data block."""
    counts, facts = episode.counts, episode.facts
    episode.sizes[:] = 0
    episode.cardinalities[:] = 0
    head = min(np.int64(counts.shape[0]), min(np.int64(MOST_HEAD), keys_each * episode.sizes.shape[0]))
    tuples, all_tuples = np.int64(0), np.int64(0)
    for key in range(counts.shape[0]):
        tuples += counts[key] if key < head else 0
        all_tuples += counts[key]
    facts[AT] = 0
    facts[LEFT] = tuples
    facts[HEAD] = head
    facts[TUPLES] = tuples
    facts[ALL_TUPLES] = all_tuples
    facts[FRAGMENTS] = 0
    facts[SQUARES] = 0


@kernel
def _pieces_at_least(episode: Episode, count: Whole) -> np.int64:
    """In how many data blocks of mean size a key of this count must lie at least."""
    data_blocks = episode.sizes.shape[0]
    # In floats, because count * data blocks may exceed 64 bits. The quotient is at most the number of data
    # blocks.
    needed = np.int64(np.ceil(np.float64(count) * data_blocks / episode.facts[TUPLES] - 1e-9))
    return min(max(np.int64(1), needed), np.int64(data_blocks))


@kernel
def _score(episode: Episode, choice: Whole, at: Whole, piece: Whole) -> float:
    """Data blocks are taken in ascending order of this number. piece: tuples of the largest piece."""
    data_blocks = episode.sizes.shape[0]
    tuples = np.float64(episode.facts[TUPLES])
    size, keys = np.float64(episode.sizes[at]), np.float64(episode.cardinalities[at])
    if choice == LEAST_TUPLES:
        return size
    if choice == LEAST_KEYS:
        return keys + size / (tuples + 1.0)
    if choice == LEAST_BOTH:
        return size * data_blocks / tuples + keys * data_blocks / episode.facts[HEAD]
    # TIGHTEST: what does not fit comes behind all that fits.
    return tuples - size if (size + piece) * data_blocks <= tuples else 2.0 * tuples + size


@kernel
def observe(episode: Episode, out: Float32s) -> None:
    """Write the observation to `out`, shape (FEATURES,). Zeros once the head has been placed."""
    counts, sizes, cardinalities, facts = episode.counts, episode.sizes, episode.cardinalities, episode.facts
    keys, data_blocks, at = facts[HEAD], sizes.shape[0], facts[AT]
    out[:] = 0
    if at >= keys:
        return
    count = counts[at]
    size, cardinality = facts[TUPLES] / data_blocks, keys / data_blocks
    share = count / size
    out[0] = min(1.0, share)
    out[1] = share / (1.0 + share)
    out[2] = min(8.0, share) / 8.0
    out[3] = _pieces_at_least(episode, count) / data_blocks
    for step in range(_AHEAD):
        ahead = at + (1 << step)
        out[4 + step] = min(1.0, counts[ahead] / size) if ahead < counts.shape[0] else 0.0
    out[10] = counts[keys - 1] / count
    out[11] = (keys - at) / keys
    out[12] = facts[LEFT] / facts[TUPLES]
    out[13] = 1.0 / np.sqrt(np.float64(data_blocks))
    out[14] = cardinality / (cardinality + 8.0)
    out[15] = count / (count + 8.0)
    least, most, squares = sizes[0], sizes[0], 0.0
    narrowest, widest, key_squares = cardinalities[0], cardinalities[0], 0.0
    holding, free = 0, 0
    mean, key_mean = (facts[TUPLES] - facts[LEFT]) / data_blocks, facts[FRAGMENTS] / data_blocks
    for place in range(data_blocks):
        least, most = min(least, sizes[place]), max(most, sizes[place])
        narrowest, widest = min(narrowest, cardinalities[place]), max(widest, cardinalities[place])
        squares += (sizes[place] - mean) ** 2
        key_squares += (cardinalities[place] - key_mean) ** 2
        holding += sizes[place] + count <= size
        free += cardinalities[place] + 1 <= cardinality
    out[16] = min(2.0, most / size)
    out[17] = min(2.0, least / size)
    out[18] = min(2.0, np.sqrt(squares / data_blocks) / size)
    out[19] = min(2.0, widest / cardinality)
    out[20] = min(2.0, narrowest / cardinality)
    out[21] = min(2.0, np.sqrt(key_squares / data_blocks) / cardinality)
    for choice in range(CHOICES):
        first = _first(episode, choice, count)
        out[22 + 2 * choice] = min(2.0, (sizes[first] + count) / size)
        out[23 + 2 * choice] = min(2.0, (cardinalities[first] + 1) / cardinality)
    out[30] = holding / data_blocks
    out[31] = free / data_blocks
    out[32] = 1.0 - keys / counts.shape[0]
    out[33] = 1.0 - facts[TUPLES] / facts[ALL_TUPLES]


@kernel
def _first(episode: Episode, choice: Whole, piece: Whole) -> np.int64:
    """The first data block in the order of this choice. The lowest one wins a tie."""
    first = np.int64(0)
    best = _score(episode, choice, 0, piece)
    for place in range(1, episode.sizes.shape[0]):
        score = _score(episode, choice, place, piece)
        if score < best:
            first, best = np.int64(place), score
    return first


@kernel
def _after(scores: Float64s, block: Whole, other: Whole) -> bool:
    """Whether data block `block` comes after `other` in the order of the scores. The lower number is first
    on a tie.
    """
    return bool(scores[block] > scores[other] or (scores[block] == scores[other] and block > other))


@kernel
def _sink(chosen: Int64s, scores: Float64s, at: Whole, length: Whole) -> None:
    """Restore the heap below this place. The data block that comes last in the order is on top."""
    while True:
        child = 2 * at + 1
        if child >= length:
            return
        if child + 1 < length and _after(scores, chosen[child + 1], chosen[child]):
            child += 1
        if not _after(scores, chosen[child], chosen[at]):
            return
        chosen[at], chosen[child] = chosen[child], chosen[at]
        at = child


@kernel
def _choose(episode: Episode, choice: Whole, piece: Whole, number: Whole) -> None:
    """Write the first `number` data blocks in the order of this choice to `chosen`. O(P log number)."""
    chosen, scores = episode.chosen, episode.scores
    if number == 1:
        chosen[0] = _first(episode, choice, piece)
        return
    for place in range(scores.shape[0]):
        scores[place] = _score(episode, choice, place, piece)
    for place in range(number):
        chosen[place] = place
    # A heap of the first blocks: the one on top comes last in the order, and gives way to a better one.
    for place in range(number // 2 - 1, -1, -1):
        _sink(chosen, scores, place, number)
    for place in range(number, scores.shape[0]):
        if _after(scores, chosen[0], place):
            chosen[0] = place
            _sink(chosen, scores, 0, number)
    # Heapsort in place: the top goes to the end of what is left.
    for last in range(number - 1, 0, -1):
        chosen[0], chosen[last] = chosen[last], chosen[0]
        _sink(chosen, scores, 0, last)


@kernel
def _cut(episode: Episode, cut: Whole, count: Whole) -> int:
    """Write the sizes of the key's pieces, descending, to `pieces`. Returns their number. None is empty."""
    pieces = episode.pieces
    data_blocks = pieces.shape[0]
    again = _pieces_at_least(episode, count)
    total = again * SHARES_OF[cut]
    # Where there are not enough data blocks or tuples for so many pieces, all pieces are equal.
    if total > min(data_blocks, count) or SHARES[cut, 0] == SHARES[cut, SHARES_OF[cut] - 1]:
        total = min(total, min(np.int64(data_blocks), count))
        for piece in range(total):
            pieces[piece] = count // total + (1 if piece < count % total else 0)
        return total
    number, left = 0, count
    for share in range(SHARES_OF[cut]):
        part = np.int64(count * SHARES[cut, share]) // again
        for _ in range(again):
            pieces[number] = part
            left -= part
            number += 1
    # What rounding has left over goes to the first pieces, so that they stay in descending order.
    for piece in range(number):
        more = left // number + (1 if piece < left % number else 0)
        pieces[piece] += more
    while pieces[number - 1] == 0:
        number -= 1
    return number


@kernel
def act(episode: Episode, action: Whole) -> int:
    """Place the next key as the action says. Returns the number of its pieces.

    `chosen` and `pieces` say where they are. There must be a next key, and the action must be below ACTIONS.
    """
    facts = episode.facts
    count = episode.counts[facts[AT]]
    fragments = _cut(episode, action // CHOICES, count)
    _choose(episode, action % CHOICES, episode.pieces[0], fragments)
    for piece in range(fragments):
        episode.sizes[episode.chosen[piece]] += episode.pieces[piece]
        episode.cardinalities[episode.chosen[piece]] += 1
    facts[AT] += 1
    facts[LEFT] -= count
    facts[FRAGMENTS] += fragments
    facts[SQUARES] += fragments * fragments
    return fragments


@kernel
def within_bounds(episode: Episode, fragments: Whole) -> bool:
    """Whether the data blocks of the key's `fragments` pieces hold at most ceil(N/P) tuples
    and ceil(K/P) keys.
    """
    data_blocks = episode.sizes.shape[0]
    most = -(-episode.facts[TUPLES] // data_blocks)
    most_keys = -(-episode.facts[HEAD] // data_blocks)
    for piece in range(fragments):
        place = episode.chosen[piece]
        if episode.sizes[place] > most or episode.cardinalities[place] > most_keys:
            return False
    return True
