"""Laws of Gedik's partitioning functions: a ring, and places of frequent keys as the rule in plain Python
chooses them.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import IncompatibleStateError
from evenflow.partitioners import create, restore
from evenflow.partitioners.migration.ring import ring_of, workers_on
from evenflow.partitioners.snapshots import pack, unpack
from evenflow.sketches.space_saving import SpaceSaving
from tests.examples import examples
from tests.unit.partitioners.streams import Stream, all_distinct, zipf

few = examples(60)
streams = st.builds(
    zipf, st.integers(1, 600), keys=st.integers(1, 40), z=st.floats(0, 2.5), seed=st.integers(0, 99)
)
CONSTRUCTIONS = ("scan", "redist", "readj")


class Placement:
    """The places of frequent keys in plain Python. keys: the most frequent first."""

    def __init__(
        self,
        n: int,
        weight: dict[int, int],
        former: dict[int, int],
        moved: int,
        everything: int,
        prices: tuple,
    ) -> None:
        self.n, self.weight, self.former, self.prices = n, weight, former, prices
        self.moved, self.everything, self.place = moved, everything, {}

    def cost(self, place: dict[int, int]) -> float:
        loads = self.loads(place)
        moved = self.moved + sum(
            self.weight[key] for key, worker in place.items() if worker != self.former[key]
        )
        balance, migration = self.prices
        gap = max(loads) - min(loads)
        return gap * self.n / (balance * sum(loads)) + migration * (moved * self.n / self.everything)

    def loads(self, place: dict[int, int]) -> list[int]:
        return [sum(self.weight[key] for key in place if place[key] == worker) for worker in range(self.n)]

    def scan(self) -> None:
        for key in self.weight:
            self.place[key] = min(
                range(self.n), key=lambda worker, key=key: self.cost({**self.place, key: worker})
            )

    def redist(self) -> None:
        while len(self.place) < len(self.weight):
            pairs = [
                (key, worker) for key in self.weight if key not in self.place for worker in range(self.n)
            ]
            key, worker = min(
                pairs, key=lambda pair: self.cost({**self.place, pair[0]: pair[1]}) / self.weight[pair[0]]
            )
            self.place[key] = worker

    def readj(self, most: int) -> None:
        self.place = dict(self.former)
        times, keys = dict.fromkeys(self.weight, 0), list(self.weight)
        while True:
            loads, now = self.loads(self.place), self.cost(self.place) if keys else 0.0
            best, gain = None, 0.0
            free = [key for key in keys if times[key] < most]
            for key in free:
                changes = [{key: worker} for worker in range(self.n) if worker != self.place[key]]
                changes += [
                    {key: self.place[other], other: self.place[key]}
                    for other in free
                    if self.weight[other] < self.weight[key] and self.place[other] != self.place[key]
                ]
                for change in changes:
                    after = {**self.place, **change}
                    spread = self.loads(after)
                    size = self.weight[key] - sum(self.weight[other] for other in change if other != key)
                    result = (now - self.cost(after)) / size
                    if max(spread) - min(spread) < max(loads) - min(loads) and result > gain:
                        best, gain = change, result
            if best is None:
                break
            self.place.update(best)
            for key in best:
                times[key] += 1


def naive(
    stream: Stream, n: int, *, construction: str, share: float, prices: tuple, most: int, plan_ms: int
) -> list[int]:
    """The rule in plain Python."""
    distinct = np.unique(stream[0])
    ring = dict(zip(distinct.tolist(), workers_on(ring_of(n, 20, 7), distinct).tolist(), strict=True))
    places: dict[int, int] = {}
    before: dict[int, int] = {}
    out: list[int] = []
    clock = stream[1] // plan_ms
    for now in np.unique(clock):
        rows = stream[0][clock == now]
        out += [places.get(key, ring[key]) for key in rows.tolist()]
        summary = SpaceSaving(math.ceil(2 / share))
        summary.offer(rows)
        sure = {int(k): int(c - e) for k, c, e in zip(*summary.counters(), strict=True)}
        frequent = [key for key, count in sure.items() if count >= share * len(rows)]
        weight = {key: sure[key] for key in sorted(frequent, key=lambda key: (-sure[key], key))}
        former = {key: places.get(key, ring[key]) for key in weight}
        gone = {key: count for key, count in before.items() if key not in weight}
        moved = sum(count for key, count in gone.items() if places[key] != ring[key])
        made = Placement(n, weight, former, moved, sum(gone.values()) + sum(weight.values()), prices)
        if construction == "readj":
            made.readj(most)
        else:
            getattr(made, construction)()
        places, before = made.place, weight
    return out


@few
@given(
    streams,
    st.integers(1, 7),
    st.sampled_from(CONSTRUCTIONS),
    st.sampled_from([0.01, 0.05, 0.3]),
    st.sampled_from([(0.2, 1.0), (0.05, 0.0), (1.0, 0.3)]),
    st.sampled_from([1, 5]),
    st.sampled_from([30, 150]),
)
def test_gedik_equals_the_rule_in_plain_python(
    stream: Stream, n: int, construction: str, share: float, prices: tuple, most: int, plan_ms: int
) -> None:
    p = create(
        "gedik",
        workers=n,
        construction=construction,
        share=share,
        balance=prices[0],
        migration=prices[1],
        readjustments=most,
        replicas=20,
        plan_ms=plan_ms,
    )
    shape = {"construction": construction, "share": share, "prices": prices, "most": most, "plan_ms": plan_ms}
    assert p.assign(*stream).tolist() == naive(stream, n, **shape)


@pytest.mark.parametrize("n", [1, 3, 50])
def test_the_ring_names_the_worker_of_the_next_point(n: int) -> None:
    ring = ring_of(n, 30, 7)
    keys, _ = all_distinct(2_000)
    hashed = np.array([_mixed(int(key) ^ int(ring.salt)) for key in keys], np.uint64)
    at = np.searchsorted(ring.points, hashed) % len(ring.points)
    assert workers_on(ring, keys).tolist() == ring.workers[at].tolist()
    assert np.bincount(ring.workers, minlength=n).tolist() == [30] * n


def _mixed(x: int) -> int:
    """The finaliser of splitmix64."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
    return x ^ (x >> 31)


def test_few_keys_move_on_the_ring_when_a_worker_comes() -> None:
    keys, _ = all_distinct(20_000)
    before, after = workers_on(ring_of(10, 100, 7), keys), workers_on(ring_of(11, 100, 7), keys)
    moved = before != after
    assert np.all(after[moved] == 10)
    assert 0.04 < moved.mean() < 0.16


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_frequent_keys_get_level_and_a_high_price_keeps_them_where_they_are(construction: str) -> None:
    rng = np.random.default_rng(5)
    keys, times = rng.integers(1, 25, 30_000).astype(np.uint64), np.arange(30_000)
    tried = {}
    for migration in (0.1, 1e6):
        p = create("gedik", workers=4, construction=construction, migration=migration, plan_ms=5_000)
        out = p.assign(keys, times)
        tried[migration] = out
    last = np.bincount(tried[0.1][-10_000:], minlength=4)
    assert last.max() < 1.1 * 2_500
    assert tried[1e6].tolist() == workers_on(ring_of(4, 100, 7), keys).tolist()


def test_a_rescale_keeps_frequent_keys_whose_worker_is_still_there() -> None:
    keys, times = zipf(30_000)
    p = create("gedik", workers=12)
    p.assign(keys, times)
    before = unpack(p.snapshot())[1]
    p.rescale(8)
    after = unpack(p.snapshot())[1]
    there = before["targets"] < 8
    assert after["entries"].tolist() == before["entries"][there].tolist()
    assert after["keys"].tolist()


def test_a_snapshot_whose_entry_names_no_worker_is_refused() -> None:
    p = create("gedik", workers=4, plan_ms=500)
    p.assign(*zipf(3_000))
    header, state = unpack(p.snapshot())
    header.pop("shapes")
    state["targets"][0] = -1
    with pytest.raises(IncompatibleStateError, match="does not exist"):
        restore(pack(header, state))
