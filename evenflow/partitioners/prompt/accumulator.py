"""Prompt's accumulator: buffers a micro-batch while it arrives and lists its keys by frequency at its end.

Idea: HTable knows every key's exact count and its tuples in order of arrival. So that no sorting is left for
the end of the batch, CountTree keeps the keys in order of an *approximate* count. Each key may renew its
count at most `budget` times per batch: after `f_step` more of its tuples, or when `t_step` has passed. Both
steps adapt: f_step to the key's share of the batch so far, t_step to what is left of budget and time.

    new key:                  count 1;  f_step = N_est / (K_avg * budget);  t_step = (end - now) / budget
    freq - count >= f_step:   renew;    f_step = N_est / budget * freq / N
    now - last >= t_step:     renew;    t_step = (end - now) / (renewals left)

N is the number of tuples so far. N_est and K_avg are the mean tuples and keys of the past batches, in which
newer batches weigh more. Decisions where the listing is silent or cannot run: a step is reached by `>=`, not
only by `==`. Every renewal sets `last`. When the budget is spent, no renewal follows. f_step is at least 1
and t_step at least 1 ms. `budget` in f_step is the whole budget, not what is left. In the first batch N_est
and K_avg are the tuples and the keys so far. The clock never runs backwards.

`order`: "exact" (default) keeps no tree and sorts the keys by count at the end. numpy does that in well under
a millisecond for 100,000 keys. "quasi" is the paper's. Equal counts are in the order of the keys. The counts
in the list are exact with either.

Cost per tuple: O(1) with "exact". "quasi" adds O(log K) at most budget + 1 times per key. (1e6 tuples of Zipf
1.0 over 1e5 keys take 6 ms with "exact", the 0.6 ms of the sort included, and 80 to 100 ms with "quasi".)
State: room for the keys of the largest batch or up to twice as many, and for at least 1,024 keys: 24 to 64
bytes per key (quasi 48 to 96 more). A batch also takes 4 bytes per tuple while it lasts.
Paper: Abdelhamid, PhD thesis 2021 (001), Algorithm 1 and section 2.4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from evenflow.keys import first_slot
from evenflow.numeric.arrays import NEVER, Int32s, Int64s, Rows, UInt64s, Whole, record, records
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.base import Block
from evenflow.partitioners.costs import ones
from evenflow.partitioners.prompt.count_tree import (
    CountTree,
    add_entry,
    count_tree,
    raise_entry,
    read_entries,
    widened,
)

Array = TypeVar("Array", bound=npt.NDArray[Any])
_FIRST_ROOM = 1024
META = np.dtype([(name, np.int64) for name in ("keys", "tuples", "now")])
"""Of the batch so far: keys, tuples, the greatest time in ms."""
_NOTHING = record(META, now=NEVER)
STEPS = np.dtype([("f_step", np.float64), ("t_step", np.float64)])
"""The steps of a key: in tuples, and in ms."""
PAST = np.dtype([("n_est", np.float64), ("k_avg", np.float64)])
"""Mean tuples and keys of the past batches, in which newer batches weigh more. 0 while there is no past."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BufferedBatch:
    """A micro-batch that has ended: its keys by frequency, and the key of each tuple."""

    keys: UInt64s
    """The list: distinct keys, the most frequent first. With order="quasi" nearly so."""
    counts: Int64s
    """Exact count of each key of the list."""
    entry: Int32s
    """(tuples,): number of each tuple's key, in order of arrival. Keys are numbered by their first
    arrival.
    """
    order: Int64s
    """The same number for each key of the list."""

    @property
    def position(self) -> Int32s:
        """The place in the list of each tuple's key, shape (tuples,)."""
        rank = np.empty(len(self.order), np.int32)
        rank[self.order] = np.arange(len(self.order), dtype=np.int32)
        return rank[self.entry]


class _Pace(NamedTuple):
    """When each key's count in the tree is renewed next."""

    last: Int64s
    """Time of the last renewal, ms."""
    left: Int32s
    """Renewals left."""
    step: Rows
    """(keys,) of STEPS."""


def _pace(capacity: int) -> _Pace:
    return _Pace(np.zeros(capacity, np.int64), np.zeros(capacity, np.int32), records(capacity, STEPS))


class _QuasiOrder(NamedTuple):
    """What order="quasi" keeps besides the counts."""

    tree: CountTree
    """The keys by their counts."""
    pace: _Pace
    """When each key's place in the tree is renewed."""


class _HTable(NamedTuple):
    """Every key of the batch with its exact count. An entry is a row number, by first arrival."""

    key: UInt64s
    """(entries,): the key of each entry."""
    freq: Int64s
    """(entries,): tuples of the key so far."""
    table: Int32s
    """Entry of each place of the hash table, or -1."""
    meta: Rows
    """One of META."""


class _Budget(NamedTuple):
    """What the steps of Algorithm 1 adapt to."""

    renewals: int
    """Renewals of each key in a batch: the whole budget."""
    end: float
    """End of the batch interval, ms."""
    past: Rows
    """One of PAST."""


def _htable(room: int) -> _HTable:
    """An empty table with room for so many keys. It has no places of the hash table yet."""
    meta = record(META, now=NEVER)
    return _HTable(np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(0, np.int32), meta)


@kernel
def _rehash(h_table: _HTable) -> None:
    table = h_table.table
    mask = np.int64(table.shape[0] - 1)
    for entry in range(h_table.meta[()]["keys"]):
        slot = first_slot(h_table.key[entry], mask)
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = entry


@kernel
def _find(h_table: _HTable, target: np.uint64) -> np.int64:
    """The slot of the key, or the free slot where the key belongs."""
    key, table = h_table.key, h_table.table
    mask = np.int64(table.shape[0] - 1)
    slot = first_slot(target, mask)
    while table[slot] >= 0 and key[table[slot]] != target:
        slot = (slot + 1) & mask
    return slot


@kernel
def _count(keys: UInt64s, begin: int, h_table: _HTable, out: Int32s) -> int:
    """Count from row `begin` on. Returns the row whose new key finds no room, or the number of rows."""
    meta = h_table.meta[()]
    for row in range(begin, keys.shape[0]):
        slot = _find(h_table, keys[row])
        entry = np.int64(h_table.table[slot])
        if entry < 0:
            entry = np.int64(meta["keys"])
            # Nothing of this row is counted yet: the caller makes room and comes back with it.
            if entry == h_table.key.shape[0]:
                return row
            meta["keys"] = entry + 1
            h_table.table[slot] = entry
            h_table.key[entry] = keys[row]
            h_table.freq[entry] = 0
        h_table.freq[entry] += 1
        out[row] = entry
    return keys.shape[0]


@kernel
def _count_and_place(block: Block, begin: int, h_table: _HTable, order: _QuasiOrder, budget: _Budget) -> int:
    """As `_count`, with the renewals of Algorithm 1."""
    meta, tree, pace = h_table.meta[()], order.tree, order.pace
    for row in range(begin, block.keys.shape[0]):
        slot = _find(h_table, block.keys[row])
        entry = np.int64(h_table.table[slot])
        # Before anything of this row is counted: the caller makes room and comes back with it.
        if entry < 0 and meta["keys"] == h_table.key.shape[0]:
            return row
        meta["tuples"] += 1
        meta["now"] = max(meta["now"], block.times[row])
        if entry < 0:
            entry = np.int64(meta["keys"])
            meta["keys"] = entry + 1
            h_table.table[slot] = entry
            h_table.key[entry] = block.keys[row]
            h_table.freq[entry] = 1
            add_entry(tree, h_table.key, entry, np.int64(1))
            _begin(entry, h_table, pace, budget)
        else:
            h_table.freq[entry] += 1
            if pace.left[entry] > 0 and _renews(entry, h_table, order, budget):
                pace.last[entry] = meta["now"]
                raise_entry(tree, h_table.key, entry, h_table.freq[entry])
        block.out[row] = entry
    return block.keys.shape[0]


@kernel
def _begin(entry: Whole, h_table: _HTable, pace: _Pace, budget: _Budget) -> None:
    """Set the steps of a new key."""
    meta, past, step = h_table.meta[()], budget.past[()], pace.step[entry]
    pace.last[entry] = meta["now"]
    pace.left[entry] = budget.renewals
    mean = past["n_est"] / past["k_avg"] if past["k_avg"] > 0 else meta["tuples"] / meta["keys"]
    step["f_step"] = max(1.0, mean / budget.renewals)
    step["t_step"] = max(1.0, (budget.end - meta["now"]) / budget.renewals)


@kernel
def _renews(entry: Whole, h_table: _HTable, order: _QuasiOrder, budget: _Budget) -> bool:
    """Whether the key has reached a step. If so, a renewal is used up and the next step is set."""
    meta, past, pace = h_table.meta[()], budget.past[()], order.pace
    step = pace.step[entry]
    if h_table.freq[entry] - order.tree.counts[entry] >= step["f_step"]:
        tuples = past["n_est"] if past["k_avg"] > 0 else np.float64(meta["tuples"])
        pace.left[entry] -= 1
        step["f_step"] = max(1.0, tuples / budget.renewals * h_table.freq[entry] / meta["tuples"])
        return True
    if np.float64(meta["now"]) - pace.last[entry] >= step["t_step"]:
        pace.left[entry] -= 1
        if pace.left[entry] > 0:
            step["t_step"] = max(1.0, (budget.end - meta["now"]) / pace.left[entry])
        return True
    return False


def descending(keys: UInt64s, counts: Int64s) -> Int64s:
    """Positions by descending count, and by ascending key among equal counts. Counts are at least 1.

    One sort of 64-bit words does most of it. A word holds the count, the key's first bits and the position.
    Keys that these first bits do not tell apart are then sorted in full.
    """
    position_bits = max(1, (len(counts) - 1).bit_length())
    most = int(counts.max(initial=1))
    key_bits = 64 - position_bits - most.bit_length()
    if key_bits < 1:
        return np.lexsort((keys, -counts))
    # From the top: the count, subtracted from the largest so that large counts come first, then key bits,
    # then position.
    words = np.uint64(most) - counts.astype(np.uint64)
    words <<= np.uint64(key_bits)
    words |= keys >> np.uint64(64 - key_bits)
    words <<= np.uint64(position_bits)
    words |= np.arange(len(counts), dtype=np.uint64)
    words.sort()
    order = (words & np.uint64((1 << position_bits) - 1)).astype(np.int64)
    words >>= np.uint64(position_bits)
    # Without the position: equal words are keys of equal count and equal first bits.
    alike = words[1:] == words[:-1]
    if alike.any():
        either = np.zeros(len(order), np.bool_)
        either[1:] = alike
        either[:-1] |= alike
        tied = np.flatnonzero(either)
        inside = order[tied]
        order[tied] = inside[np.lexsort((keys[inside], words[tied]))]
    return order


class Accumulator:
    """Algorithm 1: `add` the tuples of a batch as they come, then `finish` the batch.
    The next batch may follow.
    """

    def __init__(
        self, *, order: Literal["exact", "quasi"] = "exact", budget: int = 8, smoothing: float = 0.3
    ) -> None:
        """`budget`: renewals per key and batch. `smoothing`: weight of the newest batch in N_est and
        K_avg.
        """
        self.past = records((), PAST)
        """One of PAST: the only thing that outlives a batch."""
        self._quasi = order == "quasi"
        self._budget = budget
        self._smoothing = smoothing
        self._known, self._tree, self._pace = _htable(0), count_tree(0), _pace(0)
        self._reset()

    def add(self, keys: UInt64s, times: Int64s, *, end_ms: int) -> None:
        """Take tuples of the present batch, in order of arrival. `end_ms`: when the batch interval ends.

        ValueError if keys and times differ in number.
        """
        if len(keys) != len(times):
            raise ValueError(f"{len(keys)} keys but {len(times)} times: one of each per tuple is needed")
        entry = np.empty(len(keys), np.int32)
        self._entries.append(entry)
        block, row = Block(keys, times, ones(len(keys)), entry), 0
        while (row := self._add(block, row, end_ms)) < len(keys):
            self._widen(2 * len(self._known.key))

    def finish(self) -> BufferedBatch:
        """The batch as it stands. Afterwards the accumulator is empty and has learnt N_est and K_avg."""
        entry = self._entries[0] if len(self._entries) == 1 else np.concatenate([_NO_ENTRY, *self._entries])
        size = int(self._known.meta["keys"])
        if self._quasi:
            order = np.empty(size, np.int64)
            read_entries(self._tree, order)
        else:
            order = descending(self._known.key[:size], self._known.freq[:size])
        batch = BufferedBatch(
            keys=self._known.key[order],
            counts=self._known.freq[order],
            entry=entry,
            order=order,
        )
        # In this order: the room for the next batch follows from what was learnt.
        self._learn(len(entry), size)
        self._reset()
        return batch

    def drop(self) -> None:
        """Forget the tuples of the present batch. Nothing is learnt from them."""
        self._reset()

    @property
    def nbytes(self) -> int:
        """Memory held now, room for the next batch included."""
        h_table = self._known
        arrays: list[npt.NDArray[Any]] = [
            h_table.key,
            h_table.freq,
            h_table.table,
            *self._tree,
            *self._pace,
            *self._entries,
        ]
        return sum(array.nbytes for array in arrays)

    def bound(self, keys: int) -> int:
        """The most that `nbytes` can be between batches, while no batch has more than `keys` keys.

        There is room for at most 2 x keys, and for at least 1,024: the room doubles for one key too many, and
        after a far larger batch it is made for twice the mean. A key takes 16 bytes (quasi 64). The hash
        table has at most 2 x 2^ceil(log2 room) places of 4 bytes. The root of the tree comes on top.
        """
        room = max(_FIRST_ROOM, 2 * keys)
        h_table = self._known
        per_key = h_table.key, h_table.freq, self._tree.counts, self._tree.link, *self._pace
        key_bytes = sum(array.nbytes for array in per_key) // len(h_table.key)
        return room * key_bytes + _places(room) * h_table.table.itemsize + self._tree.root.nbytes

    def _add(self, block: Block, row: int, end_ms: int) -> int:
        if not self._quasi:
            return _count(block.keys, row, self._known, block.out)
        budget = _Budget(self._budget, float(end_ms), self.past)
        return _count_and_place(block, row, self._known, _QuasiOrder(self._tree, self._pace), budget)

    def _learn(self, tuples: int, keys: int) -> None:
        if keys:
            # As floats of Python: arithmetic on fields of a record, which are arrays of shape (), costs a
            # batch 1 % more.
            n_est, k_avg = self.past.item()
            # The first batch is the whole past.
            weight = self._smoothing if k_avg else 1.0
            self.past[()] = n_est + weight * (tuples - n_est), k_avg + weight * (keys - k_avg)

    def _reset(self) -> None:
        """Begin an empty batch. Most of the room is given back if it is far larger than a usual batch
        needs.
        """
        self._entries: list[Int32s] = []
        room, usual = len(self._known.key), max(_FIRST_ROOM, 2 * int(self.past["k_avg"]))
        self._known.meta[()] = _NOTHING
        self._tree.root[0] = -1
        if room > 8 * usual or not room:
            self._known, self._tree, self._pace = _htable(0), count_tree(0), _pace(0)
            self._widen(usual)
        else:
            self._known.table[:] = -1

    def _widen(self, room: int) -> None:
        h_table, table = self._known, np.full(_places(room), -1, np.int32)
        self._known = h_table._replace(
            key=_enlarged(h_table.key, room), freq=_enlarged(h_table.freq, room), table=table
        )
        _rehash(self._known)
        if self._quasi:
            self._tree = widened(self._tree, room)
            pace = self._pace
            self._pace = _Pace(
                last=_enlarged(pace.last, room),
                left=_enlarged(pace.left, room),
                step=_enlarged(pace.step, room),
            )


_NO_ENTRY = np.empty(0, np.int32)


def _places(room: int) -> int:
    """Places of the hash table for so many keys: at least twice as many."""
    return 2 << (room - 1).bit_length()


def _enlarged(array: Array, room: int) -> Array:
    wide = np.empty((room, *array.shape[1:]), array.dtype)
    wide[: len(array)] = array
    return cast(Array, wide)
