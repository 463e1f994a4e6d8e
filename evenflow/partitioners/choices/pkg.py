"""PKG (partial key grouping, "the power of both choices"): the less loaded of d fixed candidates.

Idea: key k may go to F_1(k)..F_d(k) only. Each tuple takes the candidate with the least load so far (the
first candidate on a tie). So a key is on at most d workers. While no key has more than d/n of the stream, the
imbalance nearly vanishes. With a hotter key it is at least p1/d - 1/n, where p1 is the share of the hottest
key. With costs a load is the sum of what its tuples cost. Two candidates of a key are equal, F_i(k) = F_j(k),
with probability 1/n. Such candidates are kept, as the analysis assumes.

Parameters: `d` choices (2, `pk5` is d = 5). `window` cumulative (002), sliding (000) or tumbling (004).
A worker's load is what this instance sent to it. Each of several sources balances its own share.
Cost per tuple: O(d). State: 8 (slides + 1) bytes per worker. Cumulative loads take as much as one slide.
Paper: Nasir et al., ICDE 2015, as used in 002 (PKG) and 004 (PK-2, PK-5).

`a` has two workers, and each tuple takes the less loaded one:

    >>> create("pkg", workers=4).assign(keys, times).tolist()
    [3, 1, 1, 3, 0, 3]
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from pydantic import Field

from evenflow.keys import Candidates, candidate_kernel, candidates, workers_of
from evenflow.numeric.arrays import Float64s, Int64s, State
from evenflow.numeric.kernels import inlined, kernel
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation, Holder
from evenflow.partitioners.papers import BOTH_CHOICES
from evenflow.partitioners.window import Window
from evenflow.sketches.window_loads import WindowLoads, add, advance

_SIGN = np.int64(63)


@inlined
def sent_to_one_of_two(key: np.uint64, cost: np.int64, among: Candidates, loads: Int64s) -> np.int64:
    """Send a tuple of this cost to the less loaded of F_1 and F_2. Returns the worker.

    The choice is arithmetic on the sign of the difference. A conditional expression would become a branch,
    and a processor cannot predict which of two balanced loads is less. The new load is made from the load
    that was read already. Measured, a whole tuple of pkg takes 6 ns instead of 15.
    """
    first = candidate_kernel(key, among.family[0], among.workers)
    second = candidate_kernel(key, among.family[1], among.workers)
    gap = loads[second] - loads[first]
    less = gap >> _SIGN  # all bits set, or none
    best = first ^ ((first ^ second) & less)
    loads[best] = loads[first] + (gap & less) + cost
    return best


@kernel
def _route_two(block: Block, among: Candidates, loads: Int64s) -> None:
    for row in range(block.keys.shape[0]):
        block.out[row] = sent_to_one_of_two(block.keys[row], block.costs[row], among, loads)


@kernel
def _route_many(block: Block, among: Candidates, loads: Int64s) -> None:
    d = among.family.shape[0]
    for row in range(block.keys.shape[0]):
        best = least_loaded(block.keys[row], among, d, loads)
        loads[best] += block.costs[row]
        block.out[row] = best


@kernel
def _route_windowed(block: Block, among: Candidates, window: WindowLoads) -> None:
    d = among.family.shape[0]
    for row in range(block.keys.shape[0]):
        advance(window, block.times[row])
        best = least_loaded(block.keys[row], among, d, window.loads)
        add(window, best, block.costs[row])
        block.out[row] = best


@kernel
def least_loaded(key: np.uint64, among: Candidates, d: int, loads: Int64s) -> np.int64:
    """The least loaded of F_1(key)..F_d(key). The first of them on a tie."""
    family = among.family
    best = candidate_kernel(key, family[0], among.workers)
    least = loads[best]
    for i in range(1, d):
        other = candidate_kernel(key, family[i], among.workers)
        load = loads[other]
        best = other if load < least else best  # selects, not branches: the outcome cannot be predicted
        least = min(least, load)
    return best


def holders_of(workers: Iterable[int], loads: Int64s | Float64s) -> tuple[Holder, ...]:
    """These workers with their loads, each once."""
    return tuple(Holder(worker=worker, load=float(loads[worker])) for worker in dict.fromkeys(workers))


class PkgOptions(Window):
    """Options of pkg and pk5."""

    d: int = Field(2, ge=1, le=1024, description="Candidates of each key.")


class Pkg(Partitioner):
    """Each key has d candidates. Every tuple takes the less loaded one."""

    options_type = PkgOptions
    papers = (BOTH_CHOICES,)
    takes_costs = True
    options: PkgOptions

    def _start(self) -> None:
        self._among = candidates(self.seed, self.options.d, self.workers)
        self._loads = self.options.new_loads(self.workers)

    def _assign(self, block: Block) -> None:
        if self.options.windowed:
            _route_windowed(block, self._among, self._loads)
        elif self.options.d == 2:
            _route_two(block, self._among, self._loads.loads)
        else:
            _route_many(block, self._among, self._loads.loads)

    def _state(self) -> State:
        return dict(self._loads._asdict())

    def _load_state(self, state: State) -> None:
        self._loads = WindowLoads(**state)

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        among = workers_of(int(key), self._among)
        return Explanation(
            rule=f"the less loaded of its {self.options.d} candidates",
            workers=tuple(dict.fromkeys(among)),
            home=among[0],
            holders=holders_of(among, self._loads.loads),
        )

    def _choices(self) -> int:
        return min(self.options.d, self.workers)
