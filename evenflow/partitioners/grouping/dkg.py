"""DKG (dynamic key grouping): each key has a row of consecutive workers that grows and shrinks with load.

Idea: a key starts with 2 workers, F_1(k) and the next one. Every tuple goes to the least loaded of its key's
workers (the first of them on a tie). Only a frequent key, one of the most frequent tenth of the monitored
keys, may change its workers. Shares of the load are in percent, and ideal = 100/n. The key gains the next
consecutive worker when even its least loaded worker has a share above ideal + sqrt(ideal) and the next worker
has less load. The key loses its last worker when at least two of its workers have a share below ideal -
sqrt(ideal). A key changes at most once in each check interval, and not before it has been monitored for that
long. Nothing changes during the warm-up.

Parameters: `frequent` share of the monitored keys that may change (0.1). `check_ms` check interval (60 s).
`warm_up_ms` from the first tuple on (60 s). `counters` monitored keys (20n). `window` of the loads:
cumulative, sliding or tumbling.
Differences from the published code: shares are real numbers. Whole percents are blind for n > 100 (where
ideal - sqrt(ideal) < 0, so that no key ever loses a worker again). A SpaceSaving summary replaces counters
that are promoted through generations, so memory is bounded. A key never has fewer than the 2 workers of the
start. A key that drops out of the summary starts again with 2 workers.

Cost per tuple: O(1) for the summary and O(workers of the key). State: 96 to 112 bytes x counters, 2n loads.
Paper: Dalabasmaz and Can, "Dynamic Key Grouping", 2020, as far as its rule is public. This is not the DKG of
Rivetti, Querzoni, Anceaume, Busnel and Sericola (DEBS 2015), which keeps keys whole: that one is
`dkg-rivetti`.

`a` may be on two workers, and gains a third worker in the end:

    >>> create("dkg", workers=4, warm_up_ms=0, check_ms=1, frequent=1.0).assign(keys, times).tolist()
    [3, 0, 1, 3, 0, 1]
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from pydantic import Field

from evenflow.keys import candidate_kernel, candidates, salts, workers_of
from evenflow.numeric.arrays import NEVER, Int32s, Int64s, Rows, State, UInt64s, Whole, record
from evenflow.numeric.kernels import inlined, kernel
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation, Holder
from evenflow.partitioners.papers import DYNAMIC_KEY_GROUPING
from evenflow.partitioners.window import Window
from evenflow.sketches.space_saving import MAX_CAPACITY, SpaceSaving, SpaceSavingSummary, offer
from evenflow.sketches.window_loads import WindowLoads, add, advance, loads_from

META = np.dtype([(name, np.int64) for name in ("total", "now", "begin")])
"""`total`: tuples that count. `now`: the latest time, ms. `begin`: the time of the first tuple, ms."""


class Neighbours(NamedTuple):
    """How many neighbouring workers each key of a summary has: what kernels take as one argument."""

    summary: SpaceSavingSummary
    """SpaceSaving counts of the frequent keys."""
    window: WindowLoads
    """The loads of the workers."""
    owner: UInt64s
    """(counters,): the key that `width` and `changed` belong to.
    Another key may have taken over the counter since.
    """
    width: Int32s
    """(counters,): how many workers the key has. 0: the counter has had no key yet."""
    changed: Int64s
    """(counters,): time of the last change of the width, ms."""
    meta: Rows
    """One of META."""


class NeighbourRule(NamedTuple):
    """The settings of dkg, for kernels."""

    salt: np.uint64
    """The salt of F_1."""
    windowed: bool
    """Whether loads are those of the window, not of all tuples so far."""
    frequent: float
    """Share of the monitored keys that may change their workers."""
    check_ms: int
    """A key's width changes at most once in this event time, ms."""
    warm_up_ms: int
    """Event time from the first tuple on in which no key's width changes, ms."""


@inlined
def _change(first: Whole, width: int, loads: Int64s, total: int, least: int) -> int:
    """By how much a key's row of `width` workers from `first` on changes: +1, -1 or 0.

    `least` is the load of the least loaded worker of the row, `total` that of all workers.
    """
    n = loads.shape[0]
    # Ideal is in percent, as in the paper: the allowed deviation is the root of a percentage, not of a share.
    ideal = 100.0 / n
    high, low = (ideal + math.sqrt(ideal)) / 100 * total, (ideal - math.sqrt(ideal)) / 100 * total
    change = 0
    if width < n and least > high and loads[(first + width) % n] < least:
        change = 1
    elif width > 2 and least < low:
        below = 0
        for step in range(width):
            if loads[(first + step) % n] < low:
                below += 1
        if below >= 2:
            change = -1
    return change


@inlined
def _lightest(first: Whole, width: int, loads: Int64s) -> np.int64:
    """The least loaded of the `width` workers first, first + 1, ... (modulo n).
    The earliest of them on a tie.
    """
    n = loads.shape[0]
    best = at = np.int64(first)
    for _ in range(width - 1):
        at = np.int64(at + 1 if at + 1 < n else 0)
        best = at if loads[at] < loads[best] else best
    return best


@kernel
def _route(block: Block, state: Neighbours, rule: NeighbourRule) -> None:
    keys, times, out = block.keys, block.times, block.out
    summary, window, owner, width, changed = (
        state.summary,
        state.window,
        state.owner,
        state.width,
        state.changed,
    )
    loads, meta = window.loads, state.meta[()]
    n, capacity = loads.shape[0], summary.order.shape[0]
    for row in range(keys.shape[0]):
        key = keys[row]
        if rule.windowed and advance(window, times[row]):
            meta["total"] = loads.sum()
        now = max(meta["now"], times[row])
        meta["now"] = now
        if meta["begin"] == NEVER:
            meta["begin"] = now
        at = offer(summary, key, 1)
        if width[at] == 0 or owner[at] != key:  # new in the summary
            owner[at] = key
            width[at] = min(2, n)
            changed[at] = now
        first = candidate_kernel(key, rule.salt, np.uint64(n))
        best = _lightest(first, width[at], loads)
        if (
            # Positions ascend by count, so the most frequent keys stand last.
            capacity - summary.entry[at]["position"] <= math.ceil(rule.frequent * summary.meta[()]["size"])
            and now - changed[at] >= rule.check_ms
            and now - meta["begin"] >= rule.warm_up_ms
        ):
            change = _change(first, width[at], loads, int(meta["total"]), loads[best])
            if change != 0:
                width[at] += change
                changed[at] = now
                best = _lightest(first, width[at], loads)
        add(window, best, 1)
        meta["total"] += 1
        out[row] = best


class DKGOptions(Window):
    """Options of dkg. See the module's docstring."""

    frequent: float = Field(
        0.1, ge=0, le=1, description="Share of the monitored keys that may change their workers."
    )
    check_ms: int = Field(
        60_000, ge=1, le=1 << 40, description="A key changes at most once in this many ms of event time."
    )
    warm_up_ms: int = Field(
        60_000, ge=0, le=1 << 40, description="No key changes in this many ms from the first tuple on."
    )
    counters: int | None = Field(
        None, ge=1, le=1 << 24, description="Keys whose frequency is kept. None = 20n."
    )


_VARIABLE: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("keys", "counts", "errors", "owner", "width", "changed"), ("counters",)
)


class DynamicKeyGrouping(Partitioner):
    """Keys start with two neighbouring workers. Frequent keys gain and lose neighbours with the load."""

    options_type = DKGOptions
    papers = (DYNAMIC_KEY_GROUPING,)
    options: DKGOptions
    variable_state = _VARIABLE

    def _start(self) -> None:
        self._shape()
        self._counts = SpaceSaving(self._capacity)

    def _rescale(self) -> None:
        self._shape()
        self._counts = self._counts.resized(self._capacity)

    def _shape(self) -> None:
        """Everything but the summary, for the present number of workers. Every key has two workers again."""
        self._capacity = self.options.counters or min(20 * self.workers, MAX_CAPACITY)
        self._loads = self.options.new_loads(self.workers)
        self._owner = np.zeros(self._capacity, np.uint64)
        self._width = np.zeros(self._capacity, np.int32)
        self._changed = np.zeros(self._capacity, np.int64)
        self._meta = record(META, now=NEVER, begin=NEVER)
        self._salt = salts(self.seed, 1)[0]

    def _assign(self, block: Block) -> None:
        options = self.options
        state = Neighbours(
            self._counts.summary, self._loads, self._owner, self._width, self._changed, self._meta
        )
        rule = NeighbourRule(
            self._salt, options.windowed, options.frequent, options.check_ms, options.warm_up_ms
        )
        _route(block, state, rule)

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        n, options, counts, meta = self.workers, self.options, self._counts, self._meta
        first, at = workers_of(int(key), candidates(self.seed, 1, n))[0], counts.entry_of(int(key))
        monitored = at is not None and self._owner[at] == key and self._width[at] > 0
        width = int(self._width[at]) if monitored else min(2, n)
        latest = max(int(meta["now"]), NEVER if now is None else now)
        # A key that the summary does not monitor has changed "now", and a check takes one ms at least.
        may_change = (
            monitored
            and latest - int(self._changed[at]) >= options.check_ms
            and latest - int(meta["begin"]) >= options.warm_up_ms
        )
        row = [(first + step) % n for step in range(min(n, width + may_change))]
        change = " The row may change with its next tuple" if may_change else ""
        return Explanation(
            rule=f"the least loaded of its {width} neighbouring workers.{change}",
            workers=tuple(row),
            home=first,
            holders=tuple(
                Holder(worker=worker, load=float(self._loads.loads[worker])) for worker in row[:width]
            ),
            share=counts.estimate(int(key)) / counts.total if monitored and counts.total else None,
        )

    def _state(self) -> State:
        keys, counts, errors = self._counts.counters()
        inside = self._counts.summary.order[self._capacity - len(keys) :]  # entries in the order of `keys`
        return {
            **self._loads._asdict(),
            "meta": self._meta,
            "heavy": np.array([self._counts.total, self._counts.least], np.int64),
            "keys": keys,
            "counts": counts,
            "errors": errors,
            "owner": self._owner[inside],
            "width": self._width[inside],
            "changed": self._changed[inside],
        }

    def _load_state(self, state: State) -> None:
        self._loads = loads_from(state)
        self._meta = state["meta"]
        total, least = (int(value) for value in state["heavy"])
        self._counts = SpaceSaving.from_counters(
            self._capacity, state["keys"], state["counts"], state["errors"], total=total, least=least
        )
        for mine, name in ((self._owner, "owner"), (self._width, "width"), (self._changed, "changed")):
            mine[: len(state[name])] = state[name]

    def _choices(self) -> int:
        return max(int(self._width.max()), min(2, self.workers))

    def _head_keys(self) -> int:
        return math.ceil(self.options.frequent * len(self._counts))

    def _state_bytes(self) -> int:
        arrays = (*self._counts.summary, *self._loads, self._owner, self._width, self._changed)
        return sum(array.nbytes for array in arrays)
