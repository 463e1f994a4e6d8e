"""CG (consistent grouping): bounded-load hashing onto many small virtual workers, owned by the real ones.

Idea: alpha*n virtual workers of equal size. A tuple of key k probes F_1(k), F_2(k), ... (modulo their
number) and takes the first one that has room, i.e. whose load stays within (1 + eps) x average, rounded
up (PoRC). So a rare key stays where its first probe leads, a frequent one fills as many virtual workers
as its share needs, and every virtual worker carries about the same. Each is owned by a real worker, in
numbers that follow the capacities. Every `check` tuples at most one moves: from the most loaded worker
for its capacity, if that is above (1 + eps) x its share beyond rounding, to the least loaded one, if the
greater of the two loads per capacity falls by it. What counts as a worker's load there is that of the
virtual workers it owns now, so a move takes effect at once and none is repeated for loads of the past.

Parameters: `eps` slack of a virtual worker (0.01); `alpha` virtual workers for each worker (10:
measured, 50 copy keys a seventh more often at the same bound; more follow unequal capacities closer);
`capacities` relative capacity of worker 0, 1, ...; a list shorter than n is repeated (none: all equal;
the paper learns them from queues, which a partitioner does not see; measured capacities can be given
here); `check` tuples between two looks (none: ten for each virtual worker); `load` cumulative or
windowed. Where the paper is silent: after alpha*n probes the next virtual workers in line are tried, so
a place is always found; a rescale deals out the virtual workers of removed workers and hands surplus ones
to new workers, as few as the capacities demand, so that few keys move; it starts afresh when fewer than
alpha/2 for each worker would be left.

Cost per tuple: one probe for a rare key. A key with share p probes up to p*alpha*n full ones, but within
a step of the bound (every alpha*n/(1 + eps) tuples) these stay full, so a small cache remembers where the
last search ended: it saves time and never changes a result. State: 20 bytes for each virtual worker and
24 to 48 for the cache; windowed: slides x 8 more.
Paper: Nasir et al., "Load Balancing for Skewed Streams on Heterogeneous Clusters", arXiv 1705.09073.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenflow.arrays import Float64s, Int32s, Int64s, State, UInt64s
from evenflow.errors import ConfigError
from evenflow.kernels import inlined, kernel
from evenflow.keys import candidate_kernel, home_slot, member_kernel
from evenflow.partitioners.base import Partitioner
from evenflow.partitioners.load_options import LoadOptions
from evenflow.sketches.window_loads import WindowLoads, advance, note

_TOTAL, _ROOM, _STEP, _SINCE = 0, 1, 2, 3
_MAX_VIRTUAL = 1 << 24


@inlined
def _first_with_room(
    key: np.uint64, seed: np.uint64, start: Any, loads: Int64s, room: Any
) -> tuple[np.int64, np.int64]:
    """The first virtual worker from probe `start` on whose load is below `room`, and its probe."""
    size = np.uint64(loads.shape[0])
    probe = np.uint64(start)
    at = candidate_kernel(key, member_kernel(seed, probe), size)
    while loads[at] >= room:
        probe += np.uint64(1)
        if probe <= size:
            at = candidate_kernel(key, member_kernel(seed, probe), size)
        else:
            at = np.int64(at + 1 if at + 1 < loads.shape[0] else 0)
    return at, np.int64(probe)


@kernel
def _sums(owner: Int32s, loads: Int64s, owned: Int64s, sums: Int64s) -> None:
    owned[:] = 0
    sums[:] = 0
    for at in range(owner.shape[0]):
        owned[owner[at]] += 1
        sums[owner[at]] += loads[at]


@kernel
def _rebalance(
    owner: Int32s, loads: Int64s, owned: Int64s, sums: Int64s, shares: Float64s, total: Any, eps: float
) -> None:
    """Move one virtual worker from the most to the least loaded worker, if that one is overloaded."""
    _sums(owner, loads, owned, sums)
    high, low = 0, 0
    for worker in range(shares.shape[0]):
        if sums[worker] / shares[worker] > sums[high] / shares[high]:
            high = worker
        if sums[worker] / shares[worker] < sums[low] / shares[low]:
            low = worker
    if sums[high] <= (1.0 + eps) * shares[high] * total + owned[high]:
        return
    moved, heaviest = -1, np.int64(0)
    for at in range(owner.shape[0]):
        improves = (sums[low] + loads[at]) / shares[low] < sums[high] / shares[high]
        if owner[at] == high and loads[at] > heaviest and improves:
            moved, heaviest = at, loads[at]
    if moved >= 0:
        owner[moved] = low


def _deal(owner: Int32s, shares: Float64s) -> None:
    """Give away the virtual workers without owner (-1) and the surplus of owners, so that each worker owns
    in proportion to its share (largest remainders first); in turns, so that neighbours differ."""
    exact = shares * len(owner)
    due = np.floor(exact).astype(np.int64)
    due[np.argsort(due - exact, kind="stable")[: len(owner) - due.sum()]] += 1
    for worker, surplus in enumerate(np.bincount(owner[owner >= 0], minlength=len(shares)) - due):
        if surplus > 0:
            owner[np.flatnonzero(owner == worker)[-surplus:]] = -1
    missing = due - np.bincount(owner[owner >= 0], minlength=len(shares))
    turns = np.concatenate([(np.arange(count) + 0.5) / count for count in missing if count] or [np.empty(0)])
    workers = np.repeat(np.arange(len(shares)), missing)
    owner[owner < 0] = workers[np.argsort(turns, kind="stable")]


@kernel
def _route(
    keys: UInt64s,
    times: Int64s,
    out: Int32s,
    window: WindowLoads,
    owner: Int32s,
    owned: Int64s,
    sums: Int64s,
    shares: Float64s,
    meta: Int64s,
    cached: UInt64s,
    steps: Int64s,
    probes: Int64s,
    seed: np.uint64,
    windowed: bool,
    eps: float,
    check: int,
) -> None:
    loads = window.loads
    slack = (1.0 + eps) / loads.shape[0]
    mask = np.int64(cached.shape[0] - 1)
    for row in range(keys.shape[0]):
        key = keys[row]
        if windowed and advance(window, times[row]):
            meta[_TOTAL] = loads.sum()
            meta[_ROOM] = 0
        meta[_TOTAL] += 1
        room = np.int64(math.ceil(meta[_TOTAL] * slack))
        if room != meta[_ROOM]:
            meta[_ROOM] = room
            meta[_STEP] += 1
        slot = home_slot(key, mask)
        known = cached[slot] == key and steps[slot] == meta[_STEP]
        start = probes[slot] if known else 1
        at, probe = _first_with_room(key, seed, start, loads, room)
        if probe > 2 and probe <= loads.shape[0]:
            cached[slot], steps[slot], probes[slot] = key, meta[_STEP], probe
        loads[at] += 1
        if windowed:
            note(window, at)
        out[row] = owner[at]
        meta[_SINCE] += 1
        if meta[_SINCE] >= check:
            meta[_SINCE] = 0
            _rebalance(owner, loads, owned, sums, shares, meta[_TOTAL], eps)


class CGOptions(LoadOptions):
    """Options of cg; see the module's docstring."""

    eps: float = Field(
        0.01, ge=0, le=10, description="Load above the average that is tolerated, a share of it."
    )
    alpha: int = Field(10, ge=1, le=10_000, description="Virtual workers for each worker.")
    capacities: tuple[Annotated[float, Field(ge=1e-3, le=1e3)], ...] | None = Field(
        None,
        min_length=1,
        description="Relative capacity of each worker, repeated if too short; none = equal.",
    )
    check: int | None = Field(
        None, ge=1, description="Tuples between two looks at the workers; none = ten a virtual worker."
    )


_VARIABLE: dict[str, tuple[str, ...]] = {
    "owner": ("virtual",),
    "loads": ("virtual",),
    "ring": ("", "virtual"),
}


class ConsistentGrouping(Partitioner):
    """Keys fill virtual workers of bounded load, which real workers own according to their capacity."""

    options_type = CGOptions
    options: CGOptions
    variable_state = _VARIABLE

    def _start(self) -> None:
        virtual = self.options.alpha * self.workers
        if virtual > _MAX_VIRTUAL:
            raise ConfigError(
                f"cg: {self.options.alpha} x {self.workers} virtual workers are more than {_MAX_VIRTUAL}",
                hint="lower the option alpha",
            )
        self._lay(np.full(virtual, -1, np.int32))

    def _rescale(self) -> None:
        owner = self._owner
        if 2 * len(owner) < self.options.alpha * self.workers or len(owner) < self.workers:
            self._start()
        else:
            owner[owner >= self.workers] = -1
            self._lay(owner)

    def _lay(self, owner: Int32s) -> None:
        """State for virtual workers with these owners; -1 is still to be dealt."""
        n, options = self.workers, self.options
        capacities = np.resize(np.array(options.capacities or (1.0,)), n)
        self._shares = capacities / capacities.sum()
        self._owned, self._sums = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._owner = owner
        _deal(owner, self._shares)
        self._loads = options.new_loads(len(owner))
        self._meta = np.zeros(4, np.int64)
        self._forget()

    def _forget(self) -> None:
        """An empty cache: it never changes a result, so it is not part of the state."""
        places = 1 << (len(self._owner) - 1).bit_length()
        self._cached = np.zeros(places, np.uint64)
        self._steps = np.full(places, -1, np.int64)
        self._probes = np.zeros(places, np.int64)

    def _assign(self, keys: UInt64s, times: Int64s, out: Int32s) -> None:
        options = self.options
        _route(
            keys,
            times,
            out,
            self._loads,
            self._owner,
            self._owned,
            self._sums,
            self._shares,
            self._meta,
            self._cached,
            self._steps,
            self._probes,
            np.uint64(self.seed % 2**64),
            options.windowed,
            options.eps,
            10 * len(self._owner) if options.check is None else options.check,
        )

    def _state(self) -> State:
        return {**self._loads._asdict(), "owner": self._owner, "meta": self._meta}

    def _load_state(self, state: State) -> None:
        self._owner, self._meta = state.pop("owner"), state.pop("meta")
        if len(self._owner) < self.workers:
            raise ValueError(f"{len(self._owner)} virtual workers for {self.workers} workers")
        self._loads = WindowLoads(**state)
        self._forget()

    def _choices(self) -> int:
        return self.workers

    def _state_bytes(self) -> int:
        arrays: tuple[npt.NDArray[Any], ...] = (
            self._owner,
            self._shares,
            self._cached,
            self._steps,
            self._probes,
        )
        return sum(array.nbytes for array in (*self._loads, *arrays))
