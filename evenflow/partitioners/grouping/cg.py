"""CG (consistent grouping): bounded-load hashing onto many small virtual workers, owned by the real ones.

Idea: alpha*n virtual workers of equal size. A tuple of key k probes F_1(k), F_2(k), ... (modulo their
number) and takes the first one that has room, i.e. whose load stays within (1 + eps) x average, rounded
up (PoRC). So a rare key stays where its first probe leads, a frequent one fills as many virtual workers
as its share needs, and every virtual worker carries about the same. Each is owned by a real worker, in
numbers that follow the capacities. Every `check` tuples at most one moves: from the most loaded worker
for its capacity, if that is above (1 + eps) x its share beyond rounding, to the least loaded one, if the
greater of the two loads per capacity falls by it. What counts as a worker's load there is that of the
virtual workers it owns now, so a move takes effect at once and none is repeated for loads of the past.

Parameters: `eps` slack of a virtual worker (0.01). `alpha` virtual workers for each worker (10:
measured, 50 copy keys a seventh more often at the same bound, more follow unequal capacities closer).
`capacities` relative capacity of worker 0, 1, .... A list shorter than n is repeated (none: all equal,
the paper learns them from queues, which a partitioner does not see, measured capacities can be given
here). `check` tuples between two looks (none: ten for each virtual worker). `load` cumulative or
windowed. Where the paper is silent: after alpha*n probes the next virtual workers in line are tried, so
a place is always found. A rescale deals out the virtual workers of removed workers and hands surplus ones
to new workers, as few as the capacities demand, so that few keys move. It starts afresh when fewer than
alpha/2 for each worker would be left.

Cost per tuple: one probe for a rare key. A key with share p probes up to p*alpha*n full ones, but within
a step of the bound (every alpha*n/(1 + eps) tuples) these stay full, so a small cache remembers where the
last search ended: it saves time and never changes a result. State: 20 bytes for each virtual worker and
24 to 48 for the cache. windowed: slides x 8 more.
Paper: Nasir et al., "Load Balancing for Skewed Streams on Heterogeneous Clusters", arXiv 1705.09073.

A virtual worker that is full is passed over, so `a` moves on:

    >>> create("cg", workers=4).assign(keys, times).tolist()
    [3, 1, 1, 0, 0, 1]
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from evenflow.arrays import Float64s, Int32s, Int64s, Rows, State, UInt64s, Whole, record
from evenflow.errors import ConfigError
from evenflow.kernels import inlined, kernel
from evenflow.keys import candidate_kernel, first_slot, salt_kernel
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.window import Window
from evenflow.sketches.window_loads import WindowLoads, advance, note

META = np.dtype([(name, np.int64) for name in ("total", "room", "step", "since")])
"""Tuples that count, tuples that a virtual worker may hold, how often that has changed, tuples since the last check."""
_MAX_VIRTUAL = 1 << 24


class Ring(NamedTuple):
    """The virtual workers: what kernels take as one argument."""

    window: WindowLoads
    """Of virtual workers."""
    owner: Int32s
    """The worker that each virtual one belongs to."""
    owned: Int64s
    """(n,): virtual workers of each. Room for a sum."""
    sums: Int64s
    """(n,): tuples of each. Room for a sum."""
    shares: Float64s
    meta: Rows
    """One of META."""


class Cache(NamedTuple):
    """The probe at which a key's search may begin. It never changes a result."""

    key: UInt64s
    step: Int64s
    probe: Int64s


class RingRule(NamedTuple):
    """How kernels go about it."""

    seed: np.uint64
    windowed: bool
    eps: float
    check: int


@inlined
def _first_with_room(
    key: np.uint64, seed: np.uint64, start: Whole, loads: Int64s, room: Whole
) -> tuple[np.int64, np.int64]:
    """The first virtual worker from probe `start` on whose load is below `room`, and its probe."""
    size = np.uint64(loads.shape[0])
    probe = np.uint64(start)
    at = candidate_kernel(key, salt_kernel(seed, probe), size)
    while loads[at] >= room:
        probe += np.uint64(1)
        # So many hashed probes at most. From there the ring is walked, and one of all has room.
        if probe <= size:
            at = candidate_kernel(key, salt_kernel(seed, probe), size)
        else:
            at = np.int64(at + 1 if at + 1 < loads.shape[0] else 0)
    return at, np.int64(probe)


@kernel
def _sums(ring: Ring) -> None:
    owner, loads, owned, sums = ring.owner, ring.window.loads, ring.owned, ring.sums
    owned[:] = 0
    sums[:] = 0
    for at in range(owner.shape[0]):
        owned[owner[at]] += 1
        sums[owner[at]] += loads[at]


@kernel
def _rebalance(ring: Ring, eps: float) -> None:
    """Move one virtual worker from the most to the least loaded worker, if that one is overloaded."""
    owner, loads, owned, sums, shares = ring.owner, ring.window.loads, ring.owned, ring.sums, ring.shares
    total = ring.meta[()]["total"]
    _sums(ring)
    high, low = 0, 0
    for worker in range(shares.shape[0]):
        if sums[worker] / shares[worker] > sums[high] / shares[high]:
            high = worker
        if sums[worker] / shares[worker] < sums[low] / shares[low]:
            low = worker
    # Each virtual worker may hold one tuple more than its share, as loads are rounded up.
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
    in proportion to its share (largest remainders first). In turns, so that neighbours differ."""
    exact = shares * len(owner)
    due = np.floor(exact).astype(np.int64)
    # Largest remainders first: `due - exact` is minus the remainder.
    due[np.argsort(due - exact, kind="stable")[: len(owner) - due.sum()]] += 1
    for worker, surplus in enumerate(np.bincount(owner[owner >= 0], minlength=len(shares)) - due):
        if surplus > 0:
            owner[np.flatnonzero(owner == worker)[-surplus:]] = -1
    missing = due - np.bincount(owner[owner >= 0], minlength=len(shares))
    turns = np.concatenate([(np.arange(count) + 0.5) / count for count in missing if count] or [np.empty(0)])
    workers = np.repeat(np.arange(len(shares)), missing)
    owner[owner < 0] = workers[np.argsort(turns, kind="stable")]


@kernel
def _route(block: Block, ring: Ring, cache: Cache, rule: RingRule) -> None:
    keys, times, out = block
    window, meta = ring.window, ring.meta[()]
    loads = window.loads
    slack = (1.0 + rule.eps) / loads.shape[0]
    mask = np.int64(cache.key.shape[0] - 1)
    for row in range(keys.shape[0]):
        key = keys[row]
        if rule.windowed and advance(window, times[row]):
            meta["total"] = loads.sum()
            # Loads have fallen, so what was full may have room. A new step begins below: the cache is of one step only.
            meta["room"] = 0
        meta["total"] += 1
        room = np.int64(math.ceil(meta["total"] * slack))
        if room != meta["room"]:
            meta["room"] = room
            meta["step"] += 1
        slot = first_slot(key, mask)
        known = cache.key[slot] == key and cache.step[slot] == meta["step"]
        start = cache.probe[slot] if known else 1
        at, probe = _first_with_room(key, rule.seed, start, loads, room)
        # A search of two probes costs less than the cache. A walk along the ring is not kept: it has no probe.
        if probe > 2 and probe <= loads.shape[0]:
            cache.key[slot], cache.step[slot], cache.probe[slot] = key, meta["step"], probe
        loads[at] += 1
        if rule.windowed:
            note(window, at)
        out[row] = ring.owner[at]
        meta["since"] += 1
        if meta["since"] >= rule.check:
            meta["since"] = 0
            _rebalance(ring, rule.eps)


class CGOptions(Window):
    """Options of cg. See the module's docstring."""

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
        owner = self._ring.owner
        if 2 * len(owner) < self.options.alpha * self.workers or len(owner) < self.workers:
            self._start()
        else:
            owner[owner >= self.workers] = -1
            self._lay(owner)

    def _lay(self, owner: Int32s) -> None:
        """State for virtual workers with these owners. -1 is still to be dealt."""
        n, options = self.workers, self.options
        capacities = np.resize(np.array(options.capacities or (1.0,)), n)
        shares = capacities / capacities.sum()
        _deal(owner, shares)
        loads, sums = options.new_loads(len(owner)), np.zeros(n, np.int64)
        self._ring = Ring(loads, owner, np.zeros(n, np.int64), sums, shares, record(META))
        self._forget()

    def _forget(self) -> None:
        """An empty cache: it never changes a result, so it is not part of the state."""
        places = 1 << (len(self._ring.owner) - 1).bit_length()
        self._cache = Cache(
            np.zeros(places, np.uint64), np.full(places, -1, np.int64), np.zeros(places, np.int64)
        )

    def _assign(self, keys: UInt64s, times: Int64s, out: Int32s) -> None:
        options = self.options
        check = 10 * len(self._ring.owner) if options.check is None else options.check
        rule = RingRule(np.uint64(self.seed % 2**64), options.windowed, options.eps, check)
        _route(Block(keys, times, out), self._ring, self._cache, rule)

    def _state(self) -> State:
        ring = self._ring
        return {**ring.window._asdict(), "owner": ring.owner, "meta": ring.meta}

    def _load_state(self, state: State) -> None:
        owner, meta = state.pop("owner"), state.pop("meta")
        if len(owner) < self.workers:
            raise ValueError(f"{len(owner)} virtual workers for {self.workers} workers")
        self._ring = self._ring._replace(window=WindowLoads(**state), owner=owner, meta=meta)
        self._forget()

    def _choices(self) -> int:
        return self.workers

    def _state_bytes(self) -> int:
        ring = self._ring
        return sum(array.nbytes for array in (*ring.window, ring.owner, ring.shares, *self._cache))
