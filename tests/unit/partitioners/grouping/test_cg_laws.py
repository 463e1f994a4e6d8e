"""Laws of consistent grouping: bounded virtual workers, owned by capacity, moved one at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.keys import candidate
from evenflow.metrics import worker_loads
from evenflow.numeric.arrays import record
from evenflow.partitioners import Partitioner, create
from evenflow.partitioners.grouping.cg import META, VirtualWorkers, _rebalance
from evenflow.partitioners.snapshots import unpack
from evenflow.sketches.window_loads import window_loads
from tests.examples import examples
from tests.unit.partitioners.costs import drawn, some_costs
from tests.unit.partitioners.streams import Stream, all_distinct, one_key, zipf

few = examples(40)
streams = st.builds(
    zipf, st.integers(1, 400), keys=st.integers(1, 60), z=st.floats(0, 2.5), seed=st.integers(0, 99)
)


def owners(p: Partitioner) -> np.ndarray:
    return unpack(p.snapshot())[1]["owner"]


def naive(
    stream: Stream,
    costs: np.ndarray,
    owner: list[int],
    capacities: list[float],
    *,
    eps: float,
    check: int,
    window: int | None,
) -> list[int]:
    """The rule in plain Python, every search from its first probe; the window is in slides of 100 ms."""
    keys, times = stream
    n, virtual = len(capacities), len(owner)
    share = np.array(capacities) / sum(capacities)
    probes = np.stack([candidate(keys, i, virtual, 7) for i in range(1, virtual + 1)], axis=1).tolist()
    slides = np.maximum.accumulate(times // 100)
    places: list[int] = []
    out: list[int] = []
    for row in range(len(keys)):
        inside = [at for at in range(row) if window is None or slides[at] > slides[row] - window]
        loads = np.bincount([places[at] for at in inside], costs[inside], minlength=virtual)
        total = int(loads.sum()) + int(costs[row])
        room = math.ceil(total * ((1 + eps) / virtual))
        order = probes[row] + [(probes[row][-1] + i) % virtual for i in range(virtual)]
        place = next(v for v in order if loads[v] < room)
        places.append(place)
        out.append(owner[place])
        loads[place] += costs[row]
        if (row + 1) % check == 0:
            sums = np.bincount(owner, loads, n)
            high, low = (sums / share).argmax(), (sums / share).argmin()
            mine = [v for v in range(virtual) if owner[v] == high]
            fits = [
                v for v in mine if loads[v] and (sums[low] + loads[v]) / share[low] < sums[high] / share[high]
            ]
            if fits and sums[high] > (1 + eps) * share[high] * total + len(mine):
                owner[max(fits, key=lambda v: loads[v])] = low
    return out


@few
@given(
    streams,
    st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=1, max_size=6),
    st.sampled_from([1, 3, 8]),
    st.sampled_from([0.0, 0.01, 0.3]),
    st.sampled_from([1, 7, 50]),
    st.booleans(),
    some_costs,
)
def test_cg_equals_the_rule_in_plain_python(
    stream: Stream,
    capacities: list[float],
    alpha: int,
    eps: float,
    check: int,
    windowed: bool,
    some: list[int],
) -> None:
    load = {"window": "sliding", "window_ms": 200, "slide_ms": 100} if windowed else {}
    n = len(capacities)
    p = create("cg", workers=n, alpha=alpha, eps=eps, check=check, capacities=capacities, **load)
    first = owners(p).tolist()
    costs = drawn(some, len(stream[0]))
    out = p.assign(*stream, costs)
    window = 2 if windowed else None
    assert out.tolist() == naive(stream, costs, first, capacities, eps=eps, check=check, window=window)
    assert owners(p).tolist() == first  # `naive` moved the virtual workers of this list, too


@pytest.mark.parametrize(
    "stream", [zipf(30_000, z=2.0), zipf(30_000, z=1.0), one_key(9000), all_distinct(9000)]
)
@pytest.mark.parametrize(("n", "eps"), [(7, 0.01), (64, 0.01), (20, 0.2)])
def test_no_worker_exceeds_its_bound_and_nothing_moves_between_equals(
    stream: Stream, n: int, eps: float
) -> None:
    p = create("cg", workers=n, eps=eps, check=100)
    before = owners(p)
    assert np.bincount(before, minlength=n).tolist() == [10] * n
    loads = np.zeros(n, np.int64)
    for start in range(0, len(stream[0]), 1500):
        loads += worker_loads(p.assign(stream[0][start : start + 1500], stream[1][start : start + 1500]), n)
        assert loads.max() <= (1 + eps) * loads.mean() + 10  # rounding: one tuple for each virtual worker
    assert np.array_equal(owners(p), before)


@few
@given(streams, st.integers(1, 8), some_costs, st.sampled_from([0.0, 0.01, 0.3]))
def test_a_virtual_worker_exceeds_its_bound_by_less_than_one_tuple_costs(
    stream: Stream, n: int, some: list[int], eps: float
) -> None:
    costs = drawn(some, len(stream[0]))
    p = create("cg", workers=n, eps=eps, alpha=3)
    p.assign(*stream, costs)
    loads = unpack(p.snapshot())[1]["loads"]
    assert loads.sum() == costs.sum()
    assert loads.max() < math.ceil(costs.sum() * ((1 + eps) / (3 * n))) + costs.max()


@pytest.mark.parametrize("z", [0.5, 1.5])
def test_load_follows_the_capacities(z: float) -> None:
    capacities = np.array([1.0, 2.0, 4.0, 1.0, 8.0])
    p = create("cg", workers=5, alpha=100, capacities=capacities.tolist())
    shares = worker_loads(p.assign(*zipf(100_000, z=z)), 5) / 100_000
    ideal = capacities / capacities.sum()
    assert np.abs(np.bincount(owners(p)) - 500 * ideal).max() < 1
    assert np.all(shares <= ideal * 1.01 + 1 / 500)
    assert np.all(shares >= ideal * 0.98 - 1 / 500)


def test_capacities_are_repeated_when_there_are_more_workers() -> None:
    p = create("cg", workers=5, capacities=(1, 3))
    assert np.bincount(owners(p)).tolist() == [6, 17, 5, 17, 5]  # 50 as 1:3:1:3:1


def ring_of(owner: np.ndarray, loads: np.ndarray, shares: np.ndarray) -> VirtualWorkers:
    """Virtual workers with these owners and loads."""
    window = window_loads(len(loads), window_ms=1, slide_ms=1)._replace(loads=loads)
    sums = [np.zeros(len(shares), np.int64) for _ in range(2)]
    return VirtualWorkers(window, owner, *sums, shares, record(META, total=int(loads.sum())))


@few
@given(
    st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.1]),
)
def test_one_virtual_worker_moves_from_an_overloaded_to_an_idle_worker(
    capacities: list[float], virtual: list[tuple[int, int]], eps: float
) -> None:
    """Whatever the start: one at a time, each lowers the greatest of two loads, until no worker is above."""
    n = len(capacities)
    shares = np.array(capacities) / sum(capacities)
    owner = np.array([worker % n for worker, _ in virtual], np.int32)
    loads = np.array([load for _, load in virtual])
    ring, total = ring_of(owner, loads, shares), loads.sum()
    for _ in range(1000):
        before, relative = owner.copy(), np.bincount(owner, loads, n) / shares
        _rebalance(ring, eps)
        changed = np.flatnonzero(before != owner)
        if not len(changed):
            break
        assert len(changed) == 1
        high, low = before[changed[0]], owner[changed[0]]
        assert relative[high] == relative.max() > (1 + eps) * total
        assert relative[low] == relative.min()
        later = np.bincount(owner, loads, n) / shares
        assert max(later[high], later[low]) < relative[high]
    else:
        raise AssertionError("it never ends")


def test_one_by_one_the_owners_come_to_follow_the_capacities() -> None:
    shares = np.array([1, 2, 4, 1]) / 8
    owner, loads = np.zeros(80, np.int32), np.full(80, 100)
    ring = ring_of(owner, loads, shares)
    for _ in range(70):
        _rebalance(ring, 0.01)
    assert np.bincount(owner).tolist() == [10, 20, 40, 10]


def test_a_rescale_moves_few_keys() -> None:
    """Ten workers to nine and to eleven: about a tenth of the keys move, not nearly all of them."""
    stream = all_distinct(3000)
    for workers in (9, 11):
        p = create("cg", workers=10, eps=10.0)
        before = p.assign(*stream)
        p.rescale(workers)
        after = p.assign(*stream)
        assert worker_loads(after, workers).min() > 0
        assert np.mean(before != after) < 0.2


def test_growing_beyond_the_virtual_workers_starts_afresh() -> None:
    p = create("cg", workers=2, alpha=10)
    p.rescale(5)
    assert np.array_equal(owners(p), owners(create("cg", workers=5, alpha=10)))
    p.rescale(4)
    assert np.bincount(owners(p)).tolist() == [13, 13, 12, 12]


@pytest.mark.parametrize("capacities", [[], [0.0], [-1.0], [1e9], "abc", [float("nan")]])
def test_impossible_capacities_are_refused(capacities: object) -> None:
    with pytest.raises(ConfigError, match="capacities"):
        create("cg", workers=4, capacities=capacities)


def test_too_many_virtual_workers_are_refused() -> None:
    with pytest.raises(ConfigError, match="virtual workers are more than"):
        create("cg", workers=100_000, alpha=1000)
