"""Laws of evenflow: which keys may be split, what splitting may cost, and what it must bring."""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.keys import candidate
from evenflow.metrics import fragmentation, key_codes, replication_factor, window_figures, worker_loads
from evenflow.partitioners import create, restore
from evenflow.partitioners.evenflow.shared_loads import BIAS_PARTS
from evenflow.partitioners.evenflow.water_filling import watch_factor
from evenflow.partitioners.snapshots import pack, unpack
from evenflow.simulation import KeyedStream, Scenario, entrant, generated
from evenflow.simulation.routing import route as routed
from tests.examples import examples
from tests.unit.partitioners.cases import keeps_every_key
from tests.unit.partitioners.evenflow.loads import hear_loads
from tests.unit.partitioners.streams import SPREAD, Stream, all_distinct, one_key, with_gaps, zipf

few = examples(25)
WINDOW = {"window_ms": 2000, "slide_ms": 100}


def route(stream: Stream, *, workers: int, **options: object) -> np.ndarray:
    return create("evenflow", workers=workers, **{**WINDOW, **options}).assign(*stream)


def windows(stream: Stream, out: np.ndarray, *, slides: int = 20, slide: int = 100) -> list[tuple]:
    """(keys, workers) of each window of whole slides."""
    panes = stream[1] // slide
    last = range(int(panes[0]) + slides - 1, int(panes[-1]) + 1)
    inside = [(panes > end - slides) & (panes <= end) for end in last]
    return [(stream[0][rows], out[rows]) for rows in inside if rows.any()]


def test_a_uniform_stream_is_never_split() -> None:
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 5000, 60_000).astype(np.uint64) * SPREAD
    stream = keys, np.arange(60_000)
    out = route(stream, workers=16)
    for held, workers in windows(stream, out)[::10]:
        assert replication_factor(workers, held) == 1.0


def test_on_a_uniform_stream_remembered_homes_balance_better_than_hashing() -> None:
    rng = np.random.default_rng(2)
    stream = rng.integers(0, 3000, 100_000).astype(np.uint64) * SPREAD, np.arange(100_000)
    spread = {}
    for name, out in (
        ("hashing", candidate(stream[0], 1, 16, 7)),
        ("evenflow", route(stream, workers=16, window_ms=20_000, slide_ms=1000)),
    ):
        loads = [worker_loads(w, 16) for _, w in windows(stream, out, slide=1000)]
        spread[name] = np.mean([load.max() / load.mean() - 1 for load in loads])
    assert spread["evenflow"] < spread["hashing"] / 2


@few
@given(
    st.builds(
        zipf, st.integers(1, 3000), keys=st.integers(1, 300), z=st.floats(0, 2.5), seed=st.integers(0, 99)
    ),
    st.integers(1, 30),
    st.integers(1, 1 << 10).map(lambda bits: 1 << (bits % 11)),
)
def test_without_price_limit_no_key_is_ever_on_two_workers_of_a_window(
    stream: Stream, n: int, cells: int
) -> None:
    out = route(stream, workers=n, price=1e12, cells=cells, window_ms=300)
    for held, workers in windows(stream, out, slides=3):
        assert replication_factor(workers, held) == 1.0


@few
@given(
    st.builds(
        zipf, st.integers(500, 4000), keys=st.integers(2, 400), z=st.floats(0, 2.5), seed=st.integers(0, 99)
    ),
    st.integers(2, 20),
    st.sampled_from([1, 3, 8]),
    st.sampled_from([(1, 8), (2, 6), (5, 4), (16, 4)]),
)
def test_a_key_below_the_threshold_all_along_is_never_split(
    stream: Stream, n: int, watch: int, fewest: tuple[int, int]
) -> None:
    """The summary never thinks a key hotter than it is: what it is sure of, came within 2 * memory tuples."""
    sources, least = fewest
    memory = 64 * watch * n
    out = route(stream, workers=n, watch=watch, price=0.0, window_ms=300, sources=sources)
    keys = np.unique(stream[0])
    for key in keys:
        at = np.flatnonzero(stream[0] == key)
        best = max((np.searchsorted(at, at + 2 * memory) - np.arange(len(at))).max(), 0)
        if best < least:  # never certain of the fewest occurrences
            for held, workers in windows(stream, out, slides=3):
                assert len(np.unique(workers[held == key])) <= 1


def test_a_worker_whose_rare_keys_are_all_that_comes_is_relieved_with_few_replicas() -> None:
    rng = np.random.default_rng(4)
    keys = rng.integers(1, 6_000, 120_000).astype(np.uint64) * SPREAD
    times = np.arange(120_000)
    window = {"window_ms": 20_000, "slide_ms": 500}
    home = route((keys[:60_000], times[:60_000]), workers=8, **window)
    # From the middle on the keys of two workers come twice as often as the others.
    crowd, others = np.unique(keys[:60_000][home < 2]), np.unique(keys[:60_000][home >= 2])
    often = rng.random(60_000) < 0.4
    keys[60_000:] = np.where(often, rng.choice(crowd, 60_000), rng.choice(others, 60_000))
    result = {}
    for price in (5e-4, 1e9):
        out = route((keys, times), workers=8, price=price, **window)
        held, last = keys[-20_000:], out[-20_000:]
        loads = worker_loads(last, 8)
        result[price] = loads.max() / loads.mean() - 1, replication_factor(last, held)
    assert result[1e9][1] == 1.0
    assert result[1e9][0] > 0.25
    assert result[5e-4][0] < 0.15
    assert result[5e-4][1] < 1.1


def test_one_of_several_sources_sees_a_new_hot_key_in_half_as_many_tuples_of_its_own() -> None:
    """Sixteen sources: a sixteenth of each key comes to one, so waiting for eight would take 128 tuples of
    the key.
    """
    keys, times = zipf(6400, keys=50_000, z=0.0)
    keys[3200::4] = 1
    out = create("evenflow", workers=8, sources=16, price=0.0, **WINDOW).assign(keys, times)
    alone = create("evenflow", workers=8, tail="hash", price=0.0, **WINDOW).assign(keys, times)
    for result, tuples in ((out, 4), (alone, 8)):
        mine = result[keys == 1]
        assert len(np.unique(mine[: tuples - 1])) == 1
        assert len(np.unique(mine[: 8 * tuples])) > 1


@few
@given(
    st.builds(
        zipf, st.integers(1, 4000), keys=st.integers(1, 300), z=st.floats(0.5, 3), seed=st.integers(0, 99)
    ),
    st.integers(1, 20),
    st.sampled_from([1, 2, 8]),
    st.sampled_from([1, 2, 16]),
)
def test_replicas_held_never_exceed_twice_watch_times_n(
    stream: Stream, n: int, watch: int, sources: int
) -> None:
    """Of one of several sources: as often as `watch` counts there."""
    p = create("evenflow", workers=n, watch=watch, price=0.0, sources=sources, **WINDOW)
    for first in range(0, len(stream[0]), 100):
        p.assign(stream[0][first : first + 100], stream[1][first : first + 100])
        edges, split = p._rings.meta.tolist()
        assert 0 <= split <= edges <= 2 * math.ceil(watch * n * watch_factor(sources))
        assert split <= p.observe().head_keys
        sizes = p._rings.ring["size"]
        assert sizes.sum() == edges
        assert (sizes > 0).sum() == split
        assert sizes.max() <= n - 1 or n == 1


class Steady(NamedTuple):
    """A steady stream in windows of 20 slides of 1000 tuples, from the second full window on."""

    excess: np.ndarray
    """Tuples of the fullest worker above the mean, at the end of each slide."""
    replicas: np.ndarray
    """Gamma - |K|, at the end of each slide."""
    unsplit: float
    """Largest share of a mean load that a worker got of keys that were on one worker alone."""


@cache
def steady(n: int, z: float, seed: int) -> Steady:
    keys, times = zipf(120_000, keys=5000, z=z, seed=seed)
    out = route((keys, times), workers=n, seed=seed, window_ms=20_000, slide_ms=1000)
    codes, _ = key_codes(keys)
    result = window_figures(out, codes, times // 1000, n, panes_per_window=20)[39:]
    shares = []
    for end in range(40_000, 120_001, 20_000):
        inside = slice(end - 20_000, end)
        distinct, holders = fragmentation(out[inside], codes[inside])
        whole = np.isin(codes[inside], distinct[holders == 1])
        shares.append(worker_loads(out[inside][whole], n).max() / (20_000 / n))
    return Steady(result.imbalance * 20_000, result.gamma - result.distinct, max(shares))


@pytest.mark.parametrize("n", [5, 16, 64])
@pytest.mark.parametrize("z", [1.0, 1.5])
def test_on_a_steady_stream_with_hot_keys_the_fullest_worker_is_a_few_tuples_above_the_mean(
    n: int, z: float
) -> None:
    """Over all slides of five streams. n - 1 replicas are the fewest that can connect all workers."""
    seen = [steady(n, z, seed) for seed in range(5)]
    excess = np.concatenate([each.excess for each in seen])
    assert excess.mean() <= 5.5
    assert np.quantile(excess, 0.99) <= 13
    assert np.mean([each.replicas for each in seen]) <= 3 * n


@pytest.mark.parametrize("n", [5, 16, 64])
@pytest.mark.parametrize("z", [0.9, 1.0, 1.5])
def test_the_mean_imbalance_of_a_steady_stream_is_within_the_bound_of_the_docs(n: int, z: float) -> None:
    """H_n r / (2 (1 - r)) + 3 tuples + what the price of the hottest key's replicas tolerates, for each
    stream.
    """
    shares = np.arange(1, 5001) ** -z
    tolerated = 5e-4 * 20_000 / n * np.sqrt(0.01 * shares.sum())
    for seed in range(5):
        excess, _, r = steady(n, z, seed)
        assert r < 1
        bound = (1 / np.arange(1, n + 1)).sum() * r / (2 * (1 - r)) + 3 + tolerated
        assert excess.mean() <= bound


def test_one_hot_key_is_spread_over_all_workers_and_levelled() -> None:
    out = route(one_key(20_000), workers=10)
    loads = worker_loads(out[4000:], 10)
    assert loads.max() - loads.min() < 0.02 * loads.mean()


def test_a_dearer_replica_means_fewer_replicas() -> None:
    stream = zipf(60_000, keys=3000, z=1.3)
    gamma = []
    for price in (0.0, 0.03, 0.3, 1e12):
        seen = windows(stream, route(stream, workers=16, price=price))
        gamma.append(np.mean([fragmentation(workers, keys)[1].sum() for keys, workers in seen]))
    assert gamma[0] > gamma[1] > gamma[2] > gamma[3]


def test_what_is_level_enough_is_not_levelled_any_further() -> None:
    stream = zipf(60_000, z=1.3)
    result = {}
    for level in (0.0, 2e-3, 1e-2):
        out = route(stream, workers=16, level=level, window_ms=20_000, slide_ms=500)
        figures = window_figures(out, key_codes(stream[0])[0], stream[1] // 500, 16, panes_per_window=40)
        result[level] = float(figures.imbalance[40:].mean()), float(figures.ksr[40:].mean())
    assert result[0.0][0] < 1e-3
    assert 5e-4 < result[2e-3][0] < 3.5e-3
    assert 5e-3 < result[1e-2][0] < 1.5e-2
    assert result[0.0][1] > result[2e-3][1] > result[1e-2][1]


@pytest.mark.parametrize("length", [50, 200])
def test_a_passing_run_is_not_split_where_whole_keys_are_level_enough(length: int) -> None:
    stream = generated(f"runs:length={length}", tuples=200_000, keys=50_000, seed=3)
    out = {}
    for name in ("evenflow", "d-choices"):
        windowed = {"window": "sliding", "window_ms": 60_000, "slide_ms": 2_000}
        p = create(name, workers=16, **windowed)
        workers = p.assign(stream.keys, stream.times)
        figures = window_figures(workers, stream.codes, stream.times // 2_000, 16, panes_per_window=30)
        out[name] = float(figures.imbalance[30:].mean()), float(figures.ksr[30:].mean())
    assert out["evenflow"][1] < 1.1
    assert out["evenflow"][0] < out["d-choices"][0]


def _figures(name: str, stream: KeyedStream, *, sources: int) -> tuple[float, float]:
    """Imbalance and KSR of all full windows of 60,000 tuples, with 16 workers and sources that take turns."""
    scenario = Scenario(workers=16, sources=sources, window_ms=60_000, slide_ms=2_000)
    workers = routed(stream, entrant(name), scenario).workers
    figures = window_figures(workers, stream.codes, stream.times // 2_000, 16, panes_per_window=30)
    return float(figures.imbalance[29:].mean()), float(figures.ksr[29:].mean())


@pytest.mark.parametrize("length", [50, 200, 1_000])
def test_the_first_runs_of_a_stream_are_not_taken_for_keys_that_last(length: int) -> None:
    """A run is less than a quarter of a worker's share of the window (3,750 tuples)."""
    stream = generated(f"runs:length={length}", tuples=150_000, keys=50_000, seed=4)
    level, ksr = _figures("evenflow", stream, sources=1)
    assert ksr < 1.2
    assert level < _figures("d-choices:head=window", stream, sources=1)[0]


def test_several_sources_that_see_the_same_runs_give_them_to_the_same_workers() -> None:
    stream = generated("runs:length=200", tuples=150_000, keys=50_000, seed=5)
    level, ksr = _figures("evenflow", stream, sources=5)
    rival, more = _figures("d-choices:head=window", stream, sources=5)
    assert level < rival
    assert ksr < more


def test_a_run_that_one_of_several_sources_has_whole_is_not_split() -> None:
    """Each source sees 12,000 tuples in a window: a run is a seventh of a worker's share there."""
    stream = generated("runs:length=100", tuples=150_000, keys=50_000, seed=6)
    out, dealt = np.empty(len(stream), np.int32), stream.keys % np.uint64(5)
    for source in range(5):
        p = create("evenflow", workers=16, source=source, sources=5, window_ms=60_000, slide_ms=2_000)
        mine = dealt == source
        out[mine] = p.assign(stream.keys[mine], stream.times[mine])
    figures = window_figures(out, stream.codes, stream.times // 2_000, 16, panes_per_window=30)
    assert figures.ksr[29:].mean() < 1.3


def test_a_key_with_most_of_the_stream_is_no_run() -> None:
    """It comes in rows of ten, but the slide has had it before."""
    rng = np.random.default_rng(7)
    keys = np.where(rng.random(60_000) < 0.9, 0, rng.integers(1, 5_000, 60_000)).astype(np.uint64) * SPREAD
    for sources in (1, 5):
        p = create("evenflow", workers=16, sources=sources, **WINDOW)
        out = p.assign(keys, np.arange(60_000))
        loads = worker_loads(out[:2_000], 16)
        assert loads.max() < 1.3 * loads.mean(), "it is split from the beginning"


def test_a_key_that_cools_is_released_and_goes_home() -> None:
    hot = one_key(5000)
    even = all_distinct(60_000)
    some = np.where(np.arange(60_000) % 400 == 0, hot[0][0], even[0] + np.uint64(1))
    p = create("evenflow", workers=8, **WINDOW)
    p.assign(*hot)
    assert p.observe().head_keys == 1
    out = p.assign(some, even[1] + 5000)
    assert p.observe().head_keys == 0
    late = out[50_000:][some[50_000:] == hot[0][0]]
    assert len(np.unique(late)) == 1


def test_holders_not_needed_any_more_are_released() -> None:
    """Half the stream is one key, then a fortieth: still watched, but it needs fewer workers."""
    rng = np.random.default_rng(4)
    keys = rng.integers(1, 2000, 60_000).astype(np.uint64) * SPREAD
    share = np.where(np.arange(60_000) < 20_000, 0.5, 1 / 40)
    keys[rng.random(60_000) < share] = 0
    stream = keys, np.arange(60_000)
    out = route(stream, workers=16)
    held = [len(np.unique(w[k == 0])) for k, w in windows(stream, out)]
    assert max(held[:100]) >= 8
    assert held[-1] < max(held[:100])


def test_faster_workers_get_more() -> None:
    weights = (1.0, 2.0, 4.0, 1.0)
    stream = zipf(100_000, keys=2000, z=1.1)
    out = route(stream, workers=4, weights=weights)
    share = worker_loads(out[50_000:], 4) / 50_000
    assert np.allclose(share, np.array(weights) / 8, atol=0.005)
    same = route(stream, workers=4, weights=(3.0, 3.0, 3.0, 3.0))
    assert same.tolist() == route(stream, workers=4).tolist()


def test_several_sources_agree_on_the_home_of_every_rare_key() -> None:
    stream = all_distinct(5000)
    outs = [create("evenflow", workers=9, source=s, sources=3, **WINDOW).assign(*stream) for s in range(3)]
    for out in outs:
        assert out.tolist() == candidate(stream[0], 1, 9, 7).tolist()


def test_each_source_levels_its_own_share() -> None:
    stream = zipf(90_000, keys=2000, z=1.3)
    total = np.zeros(12, np.int64)
    for source in range(3):
        p = create("evenflow", workers=12, source=source, sources=3, **WINDOW)
        out = p.assign(stream[0][source::3], stream[1][source::3])
        assert len(out) == 30_000
        total += p.window_tuples()
    assert total.sum() <= 2000
    assert total.max() - total.mean() < 0.15 * total.mean()


def test_a_source_with_hot_keys_makes_up_for_one_without_when_it_hears_it() -> None:
    rng = np.random.default_rng(5)
    even = rng.integers(0, 3000, 60_000).astype(np.uint64) * SPREAD
    hot = zipf(60_000, keys=300, z=1.5)[0]
    times = np.arange(60_000)
    worst = {}
    for hears in (False, True):
        parts = [create("evenflow", workers=8, source=s, sources=2, **WINDOW) for s in range(2)]
        over = []
        for first in range(0, 60_000, 100):
            rows = slice(first, first + 100)
            for part, keys in zip(parts, (even, hot), strict=True):
                part.assign(keys[rows], times[rows])
            loads = [part.window_tuples() for part in parts]
            together = loads[0] + loads[1]
            over.append(together.max() / together.mean() - 1)
            if hears:
                for part, own in zip(parts, loads, strict=True):
                    hear_loads(part, together - own)
        worst[hears] = np.mean(over[100:])
    assert worst[True] < worst[False] / 3


@few
@given(
    st.integers(1, 9).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 3000), min_size=n, max_size=n), min_size=1, max_size=3)
    ),
    st.integers(1, 5),
    st.sampled_from([(), (1.0, 2.5, 0.3)]),
)
def test_each_source_is_off_level_by_its_share_of_the_imbalance_of_all(
    heard: list[list[int]], sources: int, weights: tuple[float, ...]
) -> None:
    """Whatever was heard before, and besides the bias. Shares are whole, and come to the imbalance, to a
    unit each.
    """
    n = len(heard[0])
    parts = [
        create("evenflow", workers=n, source=j, sources=sources, weights=weights, cells=64, **WINDOW)
        for j in range(sources)
    ]
    for part in parts:
        part.assign(*zipf(1500))
    mine = parts[0].window_tuples()

    def off_level(tuples: np.ndarray) -> np.ndarray:
        """Load above what all tuples would be, evenly shared by speed."""
        return tuples * parts[0]._step - tuples.sum() * parts[0]._unit / n

    for others in map(np.array, heard):
        for part in parts:
            hear_loads(part, others)
            assert part.window_tuples().tolist() == mine.tolist()
        biases = [part._bias / BIAS_PARTS for part in parts]
        level = mine.sum() * parts[0]._unit / n
        result = [part._window.loads - level - bias for part, bias in zip(parts, biases, strict=True)]
        whole = off_level(mine + others)
        for share in result:
            assert np.abs(share - whole / sources).max() <= 2
        assert np.abs(np.sum(result, axis=0) - whole).max() <= 1 + sources


def test_what_was_heard_travels_in_the_snapshot() -> None:
    stream = zipf(4000)
    p = create("evenflow", workers=5, source=0, sources=2, **WINDOW)
    alone = create("evenflow", workers=5, source=0, sources=2, **WINDOW)
    for each in (p, alone):
        each.assign(*stream)
    hear_loads(p, np.array([900, 0, 0, 0, 0]))
    assert p.window_tuples().tolist() == alone.window_tuples().tolist()
    assert p._window.loads.tolist() != alone._window.loads.tolist()
    q = restore(p.snapshot())
    later = stream[0], stream[1] + 4000
    assert p.assign(*later).tolist() == q.assign(*later).tolist()


def test_state_is_bounded_whatever_comes() -> None:
    p = create("evenflow", workers=16, **WINDOW)
    before = p.observe().state_bytes
    p.assign(*all_distinct(300_000))
    p.assign(*zipf(50_000, z=0.8, keys=50_000))
    assert p.observe().state_bytes == before
    assert not keeps_every_key(p)


def test_homes_survive_a_rescale_but_for_the_share_of_added_and_those_of_removed_workers() -> None:
    stream = all_distinct(2000)
    p = create("evenflow", workers=8, window_ms=60_000, slide_ms=1000)
    before = p.assign(*stream)
    p.rescale(8)
    same = p.assign(stream[0], stream[1] + 2000)
    assert same.tolist() == before.tolist()
    p.rescale(12)
    grown = p.assign(stream[0], stream[1] + 4000)
    moved = grown != before
    assert abs(moved.mean() - 1 / 3) < 0.03
    assert (grown[moved] >= 8).mean() > 0.9
    p.rescale(5)
    after = p.assign(stream[0], stream[1] + 6000)
    assert np.all((after == grown) | (grown >= 5))


def uniform(tuples: int, *, keys: int = 2000, seed: int = 1) -> Stream:
    rng = np.random.default_rng(seed)
    return rng.integers(0, keys, tuples).astype(np.uint64) * SPREAD, np.arange(tuples)


GROWTHS = {"uniform": uniform(60_000), "zipf 0.8": zipf(60_000, keys=5000, z=0.8)}


@pytest.mark.parametrize("path", [(12,), (9, 10, 11, 12), (12, 8, 12)])
@pytest.mark.parametrize("kind", ["sliding", "cumulative"])
@pytest.mark.parametrize("name", GROWTHS)
def test_a_window_after_growing_is_about_as_level_as_with_a_fresh_partitioner(
    name: str, kind: str, path: tuple[int, ...]
) -> None:
    """No key is ever silent here. Chance moves the largest of n loads of mean m by sqrt(2 m ln n)."""
    keys, times = GROWTHS[name]
    window = {"window_ms": 10_000, "slide_ms": 500, "window": kind}
    p = create("evenflow", workers=8, **window)
    p.assign(keys[:20_000], times[:20_000])
    for at, workers in enumerate(path):  # a slide apart
        rows = slice(20_000 + 500 * at, 20_000 + 500 * (at + 1))
        p.rescale(workers)
        p = restore(p.snapshot())
        p.assign(keys[rows], times[rows])
    begin = 20_000 + 500 * len(path)
    grown = p.assign(keys[begin:], times[begin:])
    fresh = create("evenflow", workers=12, **window).assign(keys, times)[begin:]
    mean = 10_000 / 12
    for first in (0, 10_000, 20_000):
        rows = slice(first, first + 10_000)
        most, usual = (worker_loads(out[rows], 12).max() - mean for out in (grown, fresh))
        assert most <= 2 * usual + np.sqrt(2 * mean * np.log(12))


def test_added_workers_get_homes_by_their_speed() -> None:
    weights = (1.0, 1.0, 1.0, 1.0, 3.0, 1.0)
    keys, times = uniform(60_000)
    p = create("evenflow", workers=4, weights=weights, window_ms=10_000, slide_ms=500)
    p.assign(keys[:20_000], times[:20_000])
    p.rescale(6)
    share = worker_loads(p.assign(keys[20_000:], times[20_000:])[10_000:], 6) / 30_000
    assert np.allclose(share, np.array(weights) / 8, atol=0.012)


def test_a_growth_moves_a_key_at_most_once() -> None:
    keys, times = uniform(60_000, keys=400)  # 25 tuples of each in a window: none is silent
    p = create("evenflow", workers=8, price=1e12, window_ms=10_000, slide_ms=500)
    before = p.assign(keys[:20_000], times[:20_000])
    p.rescale(12)
    after = p.assign(keys[20_000:], times[20_000:])
    assert replication_factor(before, keys[:20_000]) == 1.0
    assert replication_factor(after, keys[20_000:]) == 1.0


def test_after_a_gap_nothing_of_the_old_window_counts() -> None:
    stream = with_gaps(4000)
    p = create("evenflow", workers=6, **WINDOW)
    p.assign(*stream)
    assert p.window_tuples().sum() == 500


def test_after_a_shift_the_window_is_level_again_within_a_few_slides() -> None:
    """From even keys to Zipf 1.5: within six slides for half of the streams, within ten for all."""
    took = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        even = rng.integers(0, 5000, 50_000).astype(np.uint64) * SPREAD
        skewed = zipf(50_000, keys=5000, z=1.5, seed=seed)[0]
        stream = np.concatenate([even, skewed]), np.arange(100_000)
        out = route(stream, workers=16, window_ms=20_000, slide_ms=1000)
        over = np.array(
            [worker_loads(w, 16).max() - len(w) / 16 for _, w in windows(stream, out, slide=1000)]
        )
        settled = over[-10:].mean()
        assert over[20:30].mean() > 4 * settled  # while uniform
        took.append(np.flatnonzero(over[30:50] >= 4 * settled + 4)[-1] + 1)  # the 31st is the first after it
    assert np.median(took) <= 6
    assert max(took) <= 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"price": -1.0}, "option 'price' of evenflow: .*greater than or equal to 0"),
        ({"watch": 0}, "option 'watch' of evenflow"),
        ({"cells": 1000}, "must be a power of two"),
        ({"weights": (1.0, 0.0)}, "every weight must be between 0.001 and 1000"),
        ({"tail": "guess"}, "option 'tail' of evenflow"),
        ({"window_ms": 1500, "slide_ms": 1000}, "must be a multiple of slide_ms"),
    ],
)
def test_bad_options_say_what_is_wrong(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create("evenflow", workers=4, **options)


def test_a_snapshot_without_homes_has_a_fixed_number_of_cells() -> None:
    header, state = unpack(create("evenflow", workers=8, sources=3, **WINDOW).snapshot())
    del header["shapes"]
    with pytest.raises(IncompatibleStateError, match="1 cells, not 16384"):
        restore(pack(header, state | {"places.cell": np.zeros(1, np.uint32)}))


def test_a_few_tuples_in_a_window_move_no_key() -> None:
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 1_000, 3_000).astype(np.uint64) * SPREAD
    for gap in (20, 200, 700):
        times = np.arange(3_000) * gap
        out = route((keys, times), workers=64)
        for held, workers in windows((keys, times), out)[::50]:
            assert replication_factor(workers, held) == 1.0
