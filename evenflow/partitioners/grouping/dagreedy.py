"""DAGreedy: hashing for most keys. A hot key goes where affinity and load together are best.

Idea: a key that is not hot goes to F_1(k). A hot key goes to the worker i, among all n workers, with the
largest score

    alpha [i in X(k)] - (1 - alpha)(L_i - avg)/avg

X(k) are the workers that hold the key in the window, L_i the tuples of worker i in the window, and avg the
mean of L_i before this tuple. So with alpha = 1/2 a key leaves a worker whose load exceeds that of the least
loaded worker by more than the average load. On a tie F_1(k) wins if it is among the best, else the lowest
number. While all loads are 0, the load term is 0. With costs, loads and counts of keys are sums of costs.

A key is hot once its tuples in the present slide exceed `theta` x the tuples of the slide before, and are two
at least. It stays hot until the end of the next slide. The score need not be computed for every worker: the
best worker is the least loaded holder, the least loaded worker of all, or F_1(k).

Parameters: `alpha` weight of affinity (0.5). 1: a hot key stays where it is. 0: it takes the least loaded
worker. `theta` share from which a key is hot (1/(100n), 1/n is Dalton's). `window`, `window_ms`, `slide_ms`.
Cost per tuple: O(1) amortised for counts and holders, at most O(log n) to keep the least loaded worker, and
O(|X(k)|) for a hot key unless alpha = 0. State: exact holders and exact counts of keys. It grows with the
distinct keys, and with the holders of hot keys.
Paper: 000 compares with this scheme. The rule is that of its published code with four differences. Holders
are forgotten when they leave the window. A slide ends before the first tuple of the next one is counted. One
tuple makes no key hot (where several sources share a slide, it would make every key hot). Ties are broken as
said above.

`a` is hot in the second slide, and its last tuple goes to an idle worker:

    >>> create(
    ...     "dagreedy", workers=4, theta=0.1, alpha=0.0, window_ms=6, slide_ms=3
    ... ).assign(keys, times).tolist()
    [3, 3, 1, 3, 0, 2]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from pydantic import Field

from evenflow.keys import candidate_kernel, candidates, salts, workers_of
from evenflow.numeric.arrays import NEVER, Int64s, State
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation, Holder
from evenflow.partitioners.grouping.hot_keys import HotKeys, HotTable, count, crowded, roll
from evenflow.partitioners.papers import DALTON, DISTRIBUTION_AWARE
from evenflow.partitioners.window import SlidingWindow
from evenflow.sketches import window_holders
from evenflow.sketches.least_loaded import raised, rebuild, tournament, winner
from evenflow.sketches.window_holders import (
    HolderPool,
    first_holder,
    next_holder,
    room,
    touch,
    worker_of,
)
from evenflow.sketches.window_holders import advance as advance_holders
from evenflow.sketches.window_loads import WindowLoads, add, due, moves
from evenflow.sketches.window_loads import advance as advance_loads

_FULL_HOLDERS, _FULL_COUNTS = 1, 2


class Greedy(NamedTuple):
    """All that dagreedy knows: what kernels take as one argument."""

    window: WindowLoads
    """The loads of the workers in the window."""
    tree: Int64s
    """The tournament of these loads."""
    pool: HolderPool
    """The holders of each key, X(k)."""
    counts: HotTable
    """What the tuples of each key cost in the slide, and which keys are hot."""
    stop: Int64s
    """(1,): what has to grow when the kernel stops: `_FULL_HOLDERS` or `_FULL_COUNTS`."""


class GreedyRule(NamedTuple):
    """The settings of dagreedy, for kernels."""

    salt: np.uint64
    """The salt of F_1."""
    alpha: float
    """Weight of staying with a holder. The load has the weight 1 - alpha."""
    theta: float
    """Share of a slide's tuples above which a key is hot."""


@kernel
def _best(key: np.uint64, home: np.int64, greedy: Greedy, alpha: float, average: float) -> np.int64:
    """The worker with the largest score."""
    loads, pool = greedy.window.loads, greedy.pool
    price = (1.0 - alpha) / average if average > 0 else 0.0
    # A worker that does not hold the key scores by load alone, so the least loaded of all stands for all of
    # these.
    best = winner(greedy.tree)
    best_score = -price * (loads[best] - average)
    home_score = -price * (loads[home] - average)
    # With alpha 0 affinity counts for nothing, so the holders need not be visited.
    holder = first_holder(pool, key) if alpha > 0 else np.int64(-1)
    while holder >= 0:
        worker = worker_of(pool, holder)
        score = alpha - price * (loads[worker] - average)
        if score > best_score or (score == best_score and worker < best):
            best, best_score = worker, score
        if worker == home:
            home_score = score
        holder = next_holder(pool, holder)
    return home if home_score >= best_score else best


@kernel
def _route(block: Block, greedy: Greedy, rule: GreedyRule, row: int) -> int:
    """Route from row `row` on. Returns the row for which something has to grow, or the number of rows.

    `stop` then says what has to grow.
    """
    keys, times, costs, out = block
    window, tree, pool, counts = greedy.window, greedy.tree, greedy.pool, greedy.counts
    loads = window.loads
    n = loads.shape[0]
    workers = np.uint64(n)
    rebuild(tree, loads)
    total = np.int64(0)
    for worker in range(n):
        total += loads[worker]
    while row < keys.shape[0]:
        key = keys[row]
        if due(pool.clock, times[row]):
            advance_loads(window, times[row])
            advance_holders(pool, times[row])
            rebuild(tree, loads)
            total = np.int64(0)
            for worker in range(n):
                total += loads[worker]
        if due(counts.clock, times[row]):
            roll(counts, times[row])
        # One tuple may need two rows: one for the pair, and one for a key that is new.
        if room(pool) < 2:
            greedy.stop[0] = _FULL_HOLDERS
            return row
        if crowded(counts):
            greedy.stop[0] = _FULL_COUNTS
            return row
        best = candidate_kernel(key, rule.salt, workers)
        if count(counts, rule.theta, key, costs[row]):
            best = _best(key, best, greedy, rule.alpha, total / n)
        touch(pool, key, best)
        add(window, best, costs[row])
        raised(tree, loads, best)
        total += costs[row]
        out[row] = best
        row += 1
    return row


class DagreedyOptions(SlidingWindow):
    """Options of dagreedy."""

    slide_ms: int = Field(
        1_000, ge=1, description="Slide, ms, in which frequencies are counted. window_ms is a multiple of it."
    )
    alpha: float = Field(
        0.5, ge=0, le=1, description="Weight of staying with a holder. The load has the weight 1 - alpha."
    )
    theta: float | None = Field(
        None, ge=0, le=1, description="Share of a slide's tuples above which a key is hot. None = 1/(100n)."
    )


_VARIABLE: dict[str, tuple[str, ...]] = {
    **{f"held_{name}": sizes for name, sizes in window_holders.VARIABLE.items()},
    "count_entries": ("counted", ""),
}


class Dagreedy(Partitioner):
    """Rare keys are hashed. A hot key goes to the worker with the best mix of affinity and load."""

    options_type = DagreedyOptions
    papers = (DISTRIBUTION_AWARE, DALTON)
    hashed_homes = True
    takes_costs = True
    options: DagreedyOptions
    variable_state = _VARIABLE

    def _start(self) -> None:
        options, n = self.options, self.workers
        self._salt = salts(self.seed, 1)[0]
        self._theta = 1 / (100 * n) if options.theta is None else options.theta
        self._loads = options.new_loads(n)
        self._tree = tournament(n)
        self._holders = options.new_holders(n)
        self._counts = HotKeys(window_ms=options.slide_ms)
        self._stop = np.zeros(1, np.int64)

    def _rescale(self) -> None:
        counts = self._counts
        self._start()
        self._counts = counts

    def _assign(self, block: Block) -> None:
        row = 0
        rule = GreedyRule(self._salt, self.options.alpha, self._theta)
        while (row := int(_route(block, self._greedy(), rule, row))) < len(block.keys):
            if self._stop[0] == _FULL_HOLDERS:
                self._holders.grow()
            else:
                self._counts.make_room()
        self._holders.trim()

    def _greedy(self) -> Greedy:
        return Greedy(self._loads, self._tree, self._holders.pool, self._counts.table, self._stop)

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        (home,) = workers_of(int(key), candidates(self.seed, 1, self.workers))
        hot, share = self._counts.after_next(int(key), self._theta, now)
        slide_ms, loads = self.options.lengths["slide_ms"], self._loads.loads
        holders = tuple(
            Holder(
                worker=worker, load=float(loads[worker]), last=None if slide == NEVER else slide * slide_ms
            )
            for worker, slide in self._holders.held_at(int(key), now).items()
        )
        if not hot:
            rule = "not hot: its hash names the worker"
            return Explanation(rule=rule, workers=(home,), home=home, holders=holders, share=share)
        least = int(np.argmin(loads))
        greedy = dict.fromkeys((home, least, *(holder.worker for holder in holders)))
        return Explanation(
            rule=(
                "hot: the best score of affinity and load, among its holders,"
                " its home and the least loaded worker"
            ),
            # When slides end, loads fall, and another worker may be the least loaded.
            workers=None if moves(self._loads.clock, now) else tuple(greedy),
            home=home,
            holders=holders,
            share=share,
        )

    def _state(self) -> State:
        return {
            **{f"load_{name}": array for name, array in self._loads._asdict().items()},
            **{f"held_{name}": array for name, array in self._holders.snapshot().items()},
            **{f"count_{name}": array for name, array in self._counts.snapshot().items()},
        }

    def _load_state(self, state: State) -> None:
        parts = {
            prefix: {name.removeprefix(prefix): state[name] for name in state if name.startswith(prefix)}
            for prefix in ("load_", "held_", "count_")
        }
        self._loads = WindowLoads(**parts["load_"])
        self._holders.load(parts["held_"])
        self._counts.load(parts["count_"])

    def _choices(self) -> int:
        return self.workers

    def _head_keys(self) -> int:
        return self._counts.hot

    def _state_bytes(self) -> int:
        return self._fixed_bytes() + self._holders.nbytes + self._counts.nbytes

    def _state_bound(self, keys: int) -> int:
        """As `state_bound`, for the worst stream: every key of the window is held by all workers.

        After a slide of one tuple every key can be hot, and n tuples of a hot key can bring it to all
        workers. Two slides in a row may lie in two windows, so they have up to twice the keys of one window.
        """
        return self._fixed_bytes() + self._holders.bound(keys, self.workers) + self._counts.bound(2 * keys)

    def _fixed_bytes(self) -> int:
        return sum(array.nbytes for array in (*self._loads, self._tree))
