"""CG (consistent grouping): bounded-load hashing onto many small virtual workers, owned by the real ones.

Idea: there are alpha*n virtual workers of equal size. A tuple of key k probes F_1(k), F_2(k), ... (modulo the
number of virtual workers) and takes the first virtual worker that has room. A virtual worker has room while
its load stays within (1 + eps) x average, rounded up (PoRC). So a rare key stays where its first probe leads,
a frequent key fills as many virtual workers as its share needs, and all virtual workers carry about the same.

With costs a load is the sum of what its tuples cost. A virtual worker has room for a tuple of any cost while
its load before the tuple is below the bound. So it may exceed the bound by less than one tuple costs, and a
place is found even for a tuple that costs more than the bound. `check` counts tuples.

Each virtual worker is owned by a real worker, in numbers that follow the capacities. Every `check` tuples at
most one virtual worker moves. It moves from the worker with the most load per capacity to the worker with the
least, on two conditions: the load of the first is above (1 + eps) x its share by more than rounding explains
(a cost of 1 for each virtual worker), and the greater of the two loads per capacity falls by the move. A
worker's load is here that of the virtual workers which it owns now. So a move takes effect at once, and no
move is repeated because of loads of the past.

Parameters: `eps` slack of a virtual worker (0.01). `alpha` virtual workers for each worker (10). With 50,
measured, keys are copied a seventh more often at the same bound. More virtual workers follow unequal
capacities more closely. `capacities` relative capacity of worker 0, 1, .... A list shorter than n is
repeated. None: all are equal. (The paper learns capacities from queues, which a partitioner does not see.
Measured capacities can be given here.) `check` tuples between two looks (none: ten for each virtual worker).
`window` of the loads: cumulative, sliding or tumbling.
Where the paper is silent: after alpha*n probes the next virtual workers in line are tried, so a place is
always found. A rescale deals out the virtual workers of removed workers, and hands surplus ones to new
workers. It moves as few as the capacities demand, so that few keys move. It starts afresh when fewer than
alpha/2 virtual workers for each worker would be left.

Cost per tuple: one probe for a rare key. A key with share p probes up to p*alpha*n full virtual workers.
These stay full until the bound rises, which happens whenever the load has grown by alpha*n/(1 + eps). So a
small cache remembers where the last search of a key ended. (It is of less use where a tuple costs so much
that it raises the bound.) It saves time and never changes a result. State: 20 bytes for each virtual worker,
and 24 to 48 for the cache. With a window slides x 8 more.
Paper: Nasir et al., "Load Balancing for Skewed Streams on Heterogeneous Clusters", arXiv 1705.09073.

Tuples pass over a virtual worker that is full, so `a` moves on:

    >>> create("cg", workers=4).assign(keys, times).tolist()
    [3, 1, 1, 0, 0, 1]
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from evenflow.errors import ConfigError
from evenflow.keys import candidate, candidate_kernel, first_slot, salt_kernel
from evenflow.numeric.arrays import Float64s, Int32s, Int64s, Rows, State, UInt64s, Whole, record
from evenflow.numeric.kernels import inlined, kernel
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation, Holder
from evenflow.partitioners.papers import HETEROGENEOUS
from evenflow.partitioners.window import Window
from evenflow.sketches.window_loads import WindowLoads, advance, moves, note

META = np.dtype([(name, np.int64) for name in ("total", "room", "step", "since")])
"""Costs of the tuples that count, the load that a virtual worker may have, how often that has changed, tuples
since the last check."""
_MAX_VIRTUAL = 1 << 24


class VirtualWorkers(NamedTuple):
    """The virtual workers: what kernels take as one argument."""

    window: WindowLoads
    """Loads of the virtual workers."""
    owner: Int32s
    """The worker that each virtual worker belongs to."""
    owned: Int64s
    """(n,): how many virtual workers each worker owns. Scratch space of `_rebalance`."""
    sums: Int64s
    """(n,): loads of the virtual workers that each worker owns, summed up. Scratch space of `_rebalance`."""
    shares: Float64s
    """(n,): capacity of each worker as a share of all."""
    meta: Rows
    """One of META."""


class Cache(NamedTuple):
    """The probe at which a key's search may begin. It never changes a result."""

    key: UInt64s
    """(slots,): the key whose search is remembered in each slot."""
    step: Int64s
    """(slots,): at which look at the workers the search was made. After the next look it does not count."""
    probe: Int64s
    """(slots,): number of the probe at which the search ended."""


class VirtualRule(NamedTuple):
    """The settings of cg, for kernels."""

    seed: np.uint64
    """Seed of the probes' hash functions."""
    windowed: bool
    """Whether loads are those of the window, not of all tuples so far."""
    eps: float
    """Load above the average that is tolerated, as a share of the average."""
    check: int
    """Tuples between two looks at the workers."""


@inlined
def _first_with_room(
    key: np.uint64, seed: np.uint64, start: Whole, loads: Int64s, room: Whole
) -> tuple[np.int64, np.int64]:
    """The first virtual worker from probe `start` on whose load is below `room`, and the number of its
    probe.
    """
    size = np.uint64(loads.shape[0])
    probe = np.uint64(start)
    at = candidate_kernel(key, salt_kernel(seed, probe), size)
    while loads[at] >= room:
        probe += np.uint64(1)
        # After `size` hashed probes the virtual workers are tried in line. One of them has room, as the mean
        # is below.
        if probe <= size:
            at = candidate_kernel(key, salt_kernel(seed, probe), size)
        else:
            at = np.int64(at + 1 if at + 1 < loads.shape[0] else 0)
    return at, np.int64(probe)


@kernel
def _sums(virtual: VirtualWorkers) -> None:
    owner, loads, owned, sums = virtual.owner, virtual.window.loads, virtual.owned, virtual.sums
    owned[:] = 0
    sums[:] = 0
    for at in range(owner.shape[0]):
        owned[owner[at]] += 1
        sums[owner[at]] += loads[at]


@kernel
def _rebalance(virtual: VirtualWorkers, eps: float) -> None:
    """Move one virtual worker from the most to the least loaded worker, if the most loaded one is
    overloaded.
    """
    owner, loads, owned, sums, shares = (
        virtual.owner,
        virtual.window.loads,
        virtual.owned,
        virtual.sums,
        virtual.shares,
    )
    total = virtual.meta[()]["total"]
    _sums(virtual)
    high, low = 0, 0
    for worker in range(shares.shape[0]):
        if sums[worker] / shares[worker] > sums[high] / shares[high]:
            high = worker
        if sums[worker] / shares[worker] < sums[low] / shares[low]:
            low = worker
    # Each virtual worker may have a load of 1 more than its share, because the bound is rounded up.
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
    """Deal the virtual workers without owner (-1) and the surplus of owners to workers that own too few.

    Each worker then owns virtual workers in proportion to its share (largest remainders first). The workers
    are dealt to in turns, so that neighbouring virtual workers belong to different workers.
    """
    exact = shares * len(owner)
    due = np.floor(exact).astype(np.int64)
    # Largest remainders first: `due - exact` is minus the remainder.
    due[np.argsort(due - exact, kind="stable")[: len(owner) - due.sum()]] += 1
    for worker, surplus in enumerate(np.bincount(owner[owner >= 0], minlength=len(shares)) - due):
        if surplus > 0:
            owner[np.flatnonzero(owner == worker)[-surplus:]] = -1
    missing = due - np.bincount(owner[owner >= 0], minlength=len(shares))
    # Each worker's turns are spread evenly over 0..1. Sorting them all interleaves the workers.
    turns = np.concatenate([(np.arange(count) + 0.5) / count for count in missing if count] or [np.empty(0)])
    workers = np.repeat(np.arange(len(shares)), missing)
    owner[owner < 0] = workers[np.argsort(turns, kind="stable")]


@kernel
def _route(block: Block, virtual: VirtualWorkers, cache: Cache, rule: VirtualRule) -> None:
    keys, times, costs, out = block
    window, meta = virtual.window, virtual.meta[()]
    loads = window.loads
    slack = (1.0 + rule.eps) / loads.shape[0]
    mask = np.int64(cache.key.shape[0] - 1)
    for row in range(keys.shape[0]):
        key = keys[row]
        if rule.windowed and advance(window, times[row]):
            meta["total"] = loads.sum()
            # Loads have fallen, so full virtual workers may have room again. Room 0 makes a new step begin
            # below, and a cached probe is valid for one step only.
            meta["room"] = 0
        meta["total"] += costs[row]
        room = np.int64(math.ceil(meta["total"] * slack))
        if room != meta["room"]:
            meta["room"] = room
            meta["step"] += 1
        slot = first_slot(key, mask)
        known = cache.key[slot] == key and cache.step[slot] == meta["step"]
        start = cache.probe[slot] if known else 1
        at, probe = _first_with_room(key, rule.seed, start, loads, room)
        # A search of two probes costs less than the cache. A walk in line has no probe number, so it is not
        # cached.
        if probe > 2 and probe <= loads.shape[0]:
            cache.key[slot], cache.step[slot], cache.probe[slot] = key, meta["step"], probe
        loads[at] += costs[row]
        if rule.windowed:
            note(window, at, costs[row])
        out[row] = virtual.owner[at]
        meta["since"] += 1
        if meta["since"] >= rule.check:
            meta["since"] = 0
            _rebalance(virtual, rule.eps)


class CGOptions(Window):
    """Options of cg. See the module's docstring."""

    eps: float = Field(
        0.01, ge=0, le=10, description="Load above the average that is tolerated, as a share of the average."
    )
    alpha: int = Field(10, ge=1, le=10_000, description="Virtual workers for each worker.")
    capacities: tuple[Annotated[float, Field(ge=1e-3, le=1e3)], ...] | None = Field(
        None,
        min_length=1,
        description="Relative capacity of each worker. A list that is too short is repeated. None = equal.",
    )
    check: int | None = Field(
        None, ge=1, description="Tuples between two looks at the workers. None = ten per virtual worker."
    )


_VARIABLE: dict[str, tuple[str, ...]] = {
    "owner": ("virtual",),
    "loads": ("virtual",),
    "ring": ("", "virtual"),
}


class ConsistentGrouping(Partitioner):
    """Keys fill virtual workers of bounded load, which real workers own according to their capacity."""

    options_type = CGOptions
    papers = (HETEROGENEOUS,)
    takes_costs = True
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
        owner = self._virtual.owner
        if 2 * len(owner) < self.options.alpha * self.workers or len(owner) < self.workers:
            self._start()
        else:
            owner[owner >= self.workers] = -1
            self._lay(owner)

    def _lay(self, owner: Int32s) -> None:
        """Begin with virtual workers of these owners. A virtual worker of owner -1 is dealt to a worker."""
        n, options = self.workers, self.options
        capacities = np.resize(np.array(options.capacities or (1.0,)), n)
        shares = capacities / capacities.sum()
        _deal(owner, shares)
        loads, sums = options.new_loads(len(owner)), np.zeros(n, np.int64)
        self._virtual = VirtualWorkers(loads, owner, np.zeros(n, np.int64), sums, shares, record(META))
        self._forget()

    def _forget(self) -> None:
        """Empty the cache. It never changes a result, so it is not part of a snapshot."""
        places = 1 << (len(self._virtual.owner) - 1).bit_length()
        self._cache = Cache(
            np.zeros(places, np.uint64), np.full(places, -1, np.int64), np.zeros(places, np.int64)
        )

    def _assign(self, block: Block) -> None:
        options = self.options
        check = 10 * len(self._virtual.owner) if options.check is None else options.check
        rule = VirtualRule(np.uint64(self.seed % 2**64), options.windowed, options.eps, check)
        _route(block, self._virtual, self._cache, rule)

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        virtual = self._virtual
        loads, options = virtual.window.loads, self.options
        size, sure = len(loads), not moves(virtual.window.clock, now)
        room = math.ceil((int(virtual.meta["total"]) + 1) * ((1.0 + options.eps) / size))
        tried = [self._probe(key, 1)]
        while loads[tried[-1]] >= room:
            probe = len(tried) + 1
            tried.append(self._probe(key, probe) if probe <= size else (tried[-1] + 1) % size)
        owners, probes = virtual.owner[tried].tolist(), len(tried) - 1
        full = (
            f"its first {probes} virtual workers are full, the next has room"
            if probes
            else "its first has room"
        )
        return Explanation(
            rule=f"the owner of the first of its virtual workers with room: {full}",
            # When slides end, loads fall, and a virtual worker that is full now may have room.
            workers=(owners[-1],) if sure else None,
            home=owners[0],
            holders=tuple(Holder(worker=owner) for owner in dict.fromkeys(owners)),
        )

    def _probe(self, key: np.uint64, number: int) -> int:
        """The virtual worker of this hashed probe. They count from 1."""
        return int(candidate(np.array([key]), number, len(self._virtual.owner), self.seed)[0])

    def _state(self) -> State:
        virtual = self._virtual
        return {**virtual.window._asdict(), "owner": virtual.owner, "meta": virtual.meta}

    def _load_state(self, state: State) -> None:
        owner, meta = state.pop("owner"), state.pop("meta")
        if len(owner) < self.workers:
            raise ValueError(f"{len(owner)} virtual workers for {self.workers} workers")
        self._virtual = self._virtual._replace(window=WindowLoads(**state), owner=owner, meta=meta)
        self._forget()

    def _choices(self) -> int:
        return self.workers

    def _state_bytes(self) -> int:
        virtual = self._virtual
        return sum(array.nbytes for array in (*virtual.window, virtual.owner, virtual.shares, *self._cache))
