"""D-Choices: two choices for most keys, and just as many as needed (d) for the frequent ones.

Idea: a SpaceSaving summary finds the head H = {k : est(k) >= theta*N}. A tail key chooses the less loaded of
F_1, F_2 as in PKG. A head key chooses the least loaded of F_1..F_d. The number d is the least for which, for
every h, the expected load of the workers that the h hottest keys can reach stays within b_h(1/n + eps). Here
b_h is the expected number of these workers (`find_optimal_choices`). When d reaches n, head keys take the
least loaded of all workers, which is W-Choices. Candidates nest, so a key that becomes frequent keeps its
first two workers.

Parameters: `theta` frequency from which a key is head (1/(5n)). `eps` tolerated imbalance (1e-4). `counters`
of the summary (4/theta = 20n: with fewer, the over-estimates of tail keys reach theta). `growth`: d is
computed again when N has grown by this share (0.01). With 0 that happens at every head tuple, as in the
paper, and the imbalance differs by less than 2 %. `distinct`: skip an F_i that repeats an earlier worker
(False, because the paper's analysis is with repetition). `warm_up` tuples before which no key is head (0, as
in the paper: every key is then head while N < 5n, which costs some replicas). `window` of the loads:
cumulative, sliding or tumbling. `head`: a key is head by all tuples so far, whatever the window of the loads
is (cumulative, as in the paper), or by recent tuples (window, see `head`). Whether a key is head is tested
after its present tuple was counted. Estimates are counts (upper bounds).

Costs: loads, N and est are sums of costs, so `growth` is a growth of the costs. `warm_up` counts tuples.
Shares and eps are shares of all costs.

Cost per tuple: O(1) for the summary without costs, 2 candidates for the tail, d for the head. With costs the
summary takes O(distinct counts that a tuple passes). When d = n, the least loaded worker is read in O(1) and
kept up to date in at most O(log n). State: 84 to 100 bytes x counters, 48 to 64 x n.
Paper: Nasir et al., "When Two Choices Are not Enough", ICDE 2016 (002), Algorithm 1 and section III.

From the third tuple on, a key with 60 % of the tuples is head and gets more than two workers:

    >>> create("d-choices", workers=4, theta=0.6, warm_up=2).assign(keys, times).tolist()
    [3, 1, 1, 0, 0, 2]
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenflow.keys import candidate_kernel, candidates, workers_of
from evenflow.numeric.arrays import Float64s, Int64s, Rows, State, record
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.base import Block
from evenflow.partitioners.choices.head import (
    Head,
    HeadOptions,
    HeadPartitioner,
    HeadRule,
    KeyCount,
    forget,
    is_older,
    offered_is_head,
    send_to_one_of_two,
)
from evenflow.partitioners.choices.pkg import holders_of, least_loaded
from evenflow.partitioners.explanation import Explanation
from evenflow.sketches.least_loaded import raised, rebuild, tournament, winner
from evenflow.sketches.space_saving import SpaceSavingSummary, count_of
from evenflow.sketches.window_loads import advance, note

SCHEDULE = np.dtype([(name, np.int64) for name in ("next", "d", "mark")])
"""N at which d is computed again, d, and the mark of the present tuple in `ChoiceInputs.marks`."""
_KEPT = ("next", "d")
"""What a snapshot has of the schedule. `mark` is left out, and so is `marks`: both start together at 0."""


class ChoiceInputs(NamedTuple):
    """By what the workers of frequent keys are found: what kernels take as one argument."""

    schedule: Rows
    """One of SCHEDULE."""
    tree: Int64s
    """The tournament of the loads. Kept only while d = n."""
    marks: Int64s
    """(n,): the mark of the tuple for which a worker was looked at last."""
    shares: Float64s
    """(counters,): scratch space for the shares of the head keys, descending."""


class ChoiceRule(NamedTuple):
    """The settings of d-choices, for kernels."""

    head: HeadRule
    """The settings of the summary of frequent keys."""
    distinct: bool
    """Whether a frequent key's d workers are all different."""
    eps: float
    """Imbalance that is tolerated, a share of the stream."""
    growth: float
    """d is computed again when the stream has grown by this share."""


@kernel
def _optimal_choices(p: Float64s, heads: int, n: int, eps: float) -> int:
    if heads == 0:
        return min(2, n)
    # Estimates are upper bounds, so their sums may exceed 1 and are capped.
    head_share = 0.0
    for h in range(heads):
        head_share += p[h]
    head_share = min(1.0, head_share)
    tail_share = 1.0 - head_share
    d = max(2, math.ceil(p[0] * n))
    while d < n:
        enough = True
        prefix = 0.0
        for h in range(1, heads + 1):
            prefix = min(1.0, prefix + p[h - 1])
            b = n - n * ((n - 1) / n) ** (h * d)
            reach = b / n
            load = prefix + reach**d * (head_share - prefix) + reach**2 * tail_share
            if load > b * (1.0 / n + eps):
                enough = False
                break
        if enough:
            break
        d += 1
    return min(d, n)


def find_optimal_choices(p_sorted: Float64s, n: int, eps: float = 1e-4) -> int:
    """Least d (2 <= d <= n) that satisfies inequality (3) of 002 for every prefix of the head.

    `p_sorted`: the frequencies of the head keys as shares of the stream, descending, shape (head keys,). The
    search starts at max(2, ceil(p1*n)). The result n stands for "any worker". With b_h = n - n((n-1)/n)^(h*d)
    and P_h the share of the h hottest keys: P_h + (b_h/n)^d (P_H - P_h) + (b_h/n)^2 (1 - P_H) <= b_h (1/n +
    eps).
    """
    p = np.ascontiguousarray(p_sorted, np.float64)
    return int(_optimal_choices(p, len(p), n, eps))


@kernel
def _head_shares(summary: SpaceSavingSummary, threshold: float, shares: Float64s) -> int:
    """Write est/N of the keys whose estimate reaches the threshold, descending. Returns how many there
    are.
    """
    order, meta = summary.order, summary.meta[()]
    size = 0
    while size < meta["size"]:
        count = count_of(summary, order[order.shape[0] - 1 - size])
        if count < threshold:
            break
        shares[size] = count / meta["total"]
        size += 1
    return size


@kernel
def _least_loaded_distinct(key: np.uint64, head: Head, d: int, choosing: ChoiceInputs) -> np.int64:
    """As `least_loaded`, but over the first d different workers among F_1, F_2, ... of the family."""
    family, workers = head.among.family, head.among.workers
    loads, marks, schedule = head.window.loads, choosing.marks, choosing.schedule[()]
    # A new mark for each tuple makes all earlier marks old, so `marks` never has to be cleared.
    schedule["mark"] += 1
    best, distinct = np.int64(-1), 0
    for i in range(family.shape[0]):
        other = candidate_kernel(key, family[i], workers)
        if marks[other] != schedule["mark"]:
            marks[other] = schedule["mark"]
            distinct += 1
            if best < 0 or loads[other] < loads[best]:
                best = other
            if distinct == d:
                break
    return best


@kernel
def _route(block: Block, head: Head, choosing: ChoiceInputs, rule: ChoiceRule) -> None:
    keys, times, costs, out = block
    window, loads = head.window, head.window.loads
    schedule, tree = choosing.schedule[()], choosing.tree
    n = loads.shape[0]
    d = int(schedule["d"])
    if d >= n:
        rebuild(tree, loads)
    for row in range(keys.shape[0]):
        key = keys[row]
        if is_older(head, times[row]):
            forget(head, times[row])
            # N was halved, so the N at which d is due means nothing any more.
            schedule["next"] = 0
        if rule.head.windowed and advance(window, times[row]) and d >= n:
            rebuild(tree, loads)
        if not offered_is_head(head, key, costs[row], rule.head):
            best = send_to_one_of_two(head, key, costs[row])
        else:
            total = np.int64(head.summary.meta[()]["total"])
            if total >= schedule["next"]:
                before = d
                heads = _head_shares(head.summary, rule.head.theta * total, choosing.shares)
                d = _optimal_choices(choosing.shares, heads, n, rule.eps)
                schedule["d"] = d
                schedule["next"] = max(total + 1, np.int64(math.ceil(total * (1.0 + rule.growth))))
                if d >= n and before < n:
                    rebuild(tree, loads)
            if d >= n:
                best = winner(tree)
            elif rule.distinct:
                best = _least_loaded_distinct(key, head, d, choosing)
            else:
                best = least_loaded(key, head.among, d, loads)
            loads[best] += costs[row]
        if rule.head.windowed:
            note(window, best, costs[row])
        if d >= n:
            raised(tree, loads, best)
        out[row] = best


class DChoicesOptions(HeadOptions):
    """Options of d-choices. See the module's docstring."""

    eps: float = Field(1e-4, gt=0, le=1, description="Tolerated imbalance, a share of the stream.")
    growth: float = Field(
        0.01,
        ge=0,
        le=10,
        description="d is computed again when the stream has grown by this share (0 = always).",
    )
    distinct: bool = Field(False, description="Frequent keys get d different workers, without repetition.")


class DChoices(HeadPartitioner):
    """Two choices for most keys, as many as needed for the frequent ones."""

    options_type = DChoicesOptions
    options: DChoicesOptions

    def _shape(self) -> None:
        super()._shape()
        n = self.workers
        self._choosing = ChoiceInputs(
            schedule=record(SCHEDULE, d=min(2, n)),
            tree=tournament(n),
            marks=np.zeros(n, np.int64),
            shares=np.zeros(self._capacity),
        )
        # With `distinct`, more functions than workers: some repeat a worker, and d different ones have to be
        # found.
        self._among = candidates(self.seed, max(2, 8 * n if self.options.distinct else n), n)

    def _assign(self, block: Block) -> None:
        options = self.options
        rule = ChoiceRule(self._rule(), options.distinct, options.eps, options.growth)
        _route(block, self._head(), self._choosing, rule)

    def _state(self) -> State:
        schedule = self._choosing.schedule
        values = np.array([schedule[name] for name in _KEPT], np.int64)
        return {**super()._state(), "schedule": values}

    def _load_state(self, state: State) -> None:
        super()._load_state(state)
        for name, value in zip(_KEPT, state["schedule"], strict=True):
            self._choosing.schedule[name] = value

    def _explain_head(self, key: np.uint64, now: int | None, counted: KeyCount) -> Explanation:
        schedule = self._choosing.schedule
        d = int(schedule["d"])
        if counted.halvings or counted.total >= int(schedule["next"]):
            d = find_optimal_choices(self._shares_after(key, counted), self.workers, self.options.eps)
        if d >= self.workers:
            return self._explain_any(key, now, counted)
        among = workers_of(int(key), self._among)
        chosen = list(dict.fromkeys(among))[:d] if self.options.distinct else among[:d]
        return Explanation(
            rule=f"frequent: the least loaded of its {d} candidates, as many as the frequent keys need now",
            workers=tuple(dict.fromkeys(chosen)),
            home=among[0],
            holders=holders_of(chosen, self._loads.loads),
            share=counted.count / counted.total,
        )

    def _shares_after(self, key: np.uint64, counted: KeyCount) -> Float64s:
        """The shares of the head keys, descending, once the next tuple of this key has been counted."""
        keys, counts, _ = self._heavy.counters()
        counts = counts >> counted.halvings
        if key in keys:
            counts[keys == key] = counted.count
        elif len(keys) < self._heavy.capacity:
            counts = np.append(counts, counted.count)
        else:
            counts[0] = counted.count  # they ascend, so the first is the least, and the key takes it over
        head = counts[counts >= self._theta * counted.total]
        return -np.sort(-head) / counted.total

    def _choices(self) -> int:
        return int(self._choosing.schedule["d"])

    def _more(self) -> tuple[npt.NDArray[Any], ...]:
        choosing = self._choosing
        return choosing.tree, choosing.marks, choosing.shares
