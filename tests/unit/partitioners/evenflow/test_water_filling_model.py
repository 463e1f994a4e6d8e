"""evenflow routes every tuple as its rule, written a second time in plain Python, does."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.numeric.arrays import Int64s, UInt64s
from evenflow.partitioners import create, restore
from tests.examples import examples
from tests.unit.partitioners.dalton.dalton_model import mix64
from tests.unit.partitioners.evenflow.water_filling_model import SlowEvenflow, route
from tests.unit.partitioners.streams import SPREAD, Stream, backwards, with_gaps

SEED = 7
SLIDE = 50
few = examples(150)


def compare(
    stream: Stream,
    workers: int,
    *,
    slides: int = 6,
    sources: int = 1,
    costs: Int64s | None = None,
    **options: Any,
) -> SlowEvenflow:
    keys, times = stream
    slow = SlowEvenflow(workers, seed=SEED, sources=sources, slides=slides, slide_ms=SLIDE, **options)
    windowed = {"window_ms": slides * SLIDE, "slide_ms": SLIDE}
    p = create("evenflow", workers=workers, seed=SEED, sources=sources, **windowed, **options)
    assert p.assign(keys, times, costs).tolist() == route(slow, keys, times, costs)
    split = sum(bool(counter.holders) for ways in slow.sets for counter in ways)
    assert p.observe().head_keys == split
    return slow


def skewed(
    tuples: int, *, z: float, keys: int, seed: int, phase: int = 10**9, sets: int = 10**9, busy: int = 1
) -> Stream:
    """Zipf keys, `busy` tuples per ms, now and then a pause of some slides.

    After every `phase` tuples the ranks belong to other keys: to the first ones again after `sets` phases.
    """
    rng = np.random.default_rng(seed)
    shares = np.arange(1, keys + 1) ** -z
    ranks = rng.choice(keys, tuples, p=shares / shares.sum())
    index = np.arange(tuples)
    hashes: UInt64s = ((ranks + 17 * (index // phase % sets)) % keys + 1).astype(np.uint64) * SPREAD
    pauses = np.where(rng.random(tuples) < 0.002, rng.integers(1, 4 * SLIDE, tuples), 0)
    times: Int64s = index // busy + pauses.cumsum()
    return hashes, times


def in_runs(tuples: int, *, length: int, keys: int, seed: int, busy: int = 4) -> Stream:
    """Random keys, each with up to `length` tuples in a row, and now and then a single one in between."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, length + 1, tuples)
    each = np.repeat(rng.integers(1, keys + 1, tuples), lengths)[:tuples]
    single = rng.random(tuples) < 0.02
    hashes: UInt64s = np.where(single, rng.integers(1, keys + 1, tuples), each).astype(np.uint64) * SPREAD
    pauses = np.where(rng.random(tuples) < 0.001, rng.integers(1, 9 * SLIDE, tuples), 0)
    times: Int64s = np.arange(tuples) // busy + pauses.cumsum()
    return hashes, times


streams = st.builds(
    skewed,
    st.integers(0, 3000),
    z=st.floats(0, 3),
    keys=st.integers(1, 300),
    seed=st.integers(0, 2**32),
    phase=st.integers(100, 3000),
    sets=st.integers(1, 4),
    busy=st.integers(1, 8),
)
runs = st.builds(
    in_runs,
    st.integers(0, 3000),
    length=st.integers(1, 40),
    keys=st.integers(1, 300),
    seed=st.integers(0, 2**32),
    busy=st.integers(1, 8),
)


@few
@given(
    streams | runs,
    st.integers(1, 24),
    st.sampled_from([0.0, 1e-3, 0.05, 1e12]),
    st.sampled_from([1, 2, 8, 40]),
    st.sampled_from([(1, 1), (1, 16), (16, 8), (16, 128), (1 << 17, 1 << 22)]),
    st.integers(1, 9),
)
def test_it_routes_as_a_plain_second_writing_of_the_rule(
    stream: Stream, workers: int, price: float, watch: int, cells: tuple[int, int], slides: int
) -> None:
    first, most = cells
    compare(stream, workers, price=price, watch=watch, cells=first, most_cells=most, slides=slides)


@few
@given(
    streams | runs,
    st.integers(1, 16),
    st.sampled_from(["auto", "hash", "remember"]),
    st.integers(1, 3),
    st.sampled_from(["sliding", "cumulative"]),
    st.lists(st.floats(0.2, 5), max_size=6).map(tuple),
    st.sampled_from([0.0, 0.01, 0.3]),
)
def test_with_every_kind_of_home_load_and_speed_too(
    stream: Stream,
    workers: int,
    tail: str,
    sources: int,
    window: str,
    weights: tuple[float, ...],
    level: float,
) -> None:
    options = {"tail": tail, "window": window, "weights": weights, "level": level}
    compare(stream, workers, sources=sources, price=1e-3, **options)


def priced(keys: UInt64s, *, law: str, from_row: int, seed: int) -> Int64s:
    """What tuples cost: by key, at random, now and then very much, all the same, more and more. 1 before
    `from_row`.
    """
    rng, tuples = np.random.default_rng(seed), len(keys)
    costs: Int64s = {
        "key": lambda: 1 + (keys >> np.uint64(17)).astype(np.int64) % 50 ** (1 + seed % 3),
        "random": lambda: rng.integers(1, 10, tuples),
        "giant": lambda: np.where(rng.random(tuples) < 0.01, 1_000_000, rng.integers(1, 3, tuples)),
        "same": lambda: np.full(tuples, 1 + seed % 5_000),
        "growth": lambda: 1 + np.arange(tuples) * (1 + seed % 100),
    }[law]().astype(np.int64)
    costs[:from_row] = 1
    return costs


@few
@given(
    streams | runs,
    st.integers(1, 16),
    st.sampled_from(["auto", "hash", "remember"]),
    st.integers(1, 3),
    st.sampled_from(["sliding", "cumulative"]),
    st.sampled_from([(), (2.0, 1.0, 0.5)]),
    st.sampled_from(["key", "random", "giant", "same", "growth"]),
    st.integers(0, 1_500),
)
def test_tuples_that_cost_differently_are_routed_as_the_rule_says(
    stream: Stream,
    workers: int,
    tail: str,
    sources: int,
    window: str,
    weights: tuple[float, ...],
    law: str,
    from_row: int,
) -> None:
    options = {"tail": tail, "window": window, "weights": weights, "level": 1e-3 * (from_row % 2)}
    costs = priced(stream[0], law=law, from_row=from_row, seed=from_row + workers)
    compare(stream, workers, sources=sources, price=1e-3, watch=2, costs=costs, **options)


@few
@given(
    streams,
    st.integers(1, 16),
    st.sampled_from(["sliding", "cumulative"]),
    st.lists(st.sampled_from(["even", "slow", "random"]), min_size=1, max_size=3),
    st.sampled_from(["none", "random", "giant"]),
    st.sampled_from(["remember", "hash"]),
    st.sampled_from([1e-3, 1e9]),
)
def test_workers_whose_speeds_are_measured_get_what_the_rule_says(
    stream: Stream, workers: int, window: str, changes: list[str], law: str, tail: str, price: float
) -> None:
    keys, times = stream
    costs = np.ones(len(keys), np.int64) if law == "none" else priced(keys, law=law, from_row=99, seed=1)
    rng = np.random.default_rng(workers)
    options: dict[str, Any] = {"price": price, "watch": 2, "window": window, "tail": tail}
    slow = SlowEvenflow(workers, seed=SEED, slides=6, slide_ms=SLIDE, **options)
    p = create("evenflow", workers=workers, seed=SEED, window_ms=6 * SLIDE, slide_ms=SLIDE, **options)
    cuts = np.linspace(0, len(keys), len(changes) + 2).astype(int)
    for (first, after), change in zip(pairwise(cuts), ["", *changes], strict=True):
        if change:
            speeds = {
                "even": lambda: np.full(workers, 3.0),
                "slow": lambda: np.where(np.arange(workers) % 3 == 0, 0.05, 1.0),
                "random": lambda: rng.uniform(0.5, 2, workers),
            }[change]()
            slow.set_speeds(speeds)
            p.set_speeds(speeds)
            p = restore(p.snapshot())
        part = slice(first, after)
        routed = p.assign(keys[part], times[part], costs[part]).tolist()
        assert routed == route(slow, keys[part], times[part], costs[part])


@pytest.mark.family
@pytest.mark.parametrize("stream", [with_gaps(1500), backwards(1500)], ids=["gaps", "backwards"])
@pytest.mark.parametrize("workers", [2, 13])
def test_in_disorder_and_across_gaps_too(stream: Stream, workers: int) -> None:
    for price in (0.0, 0.01):
        compare(stream, workers, price=price)
        compare(
            stream, workers, price=price, costs=priced(stream[0], law="random", from_row=700, seed=workers)
        )


@pytest.mark.family
@pytest.mark.parametrize("price", [0.0, 0.003])
@pytest.mark.parametrize("slides", [3, 5, 12])
def test_a_key_with_more_holders_than_are_looked_at_goes_round_as_the_rule_says(
    price: float, slides: int
) -> None:
    for seed in range(8):
        stream = skewed(9000, z=2.5, keys=400, seed=seed, phase=1800, sets=3, busy=12)
        assert compare(stream, 40, price=price, slides=slides).most > 16


@pytest.mark.family
@pytest.mark.parametrize("watch", [1, 3])
@pytest.mark.parametrize("sets", [2, 100])
def test_keys_that_cool_are_released_as_the_rule_says(watch: int, sets: int) -> None:
    """Hot keys change several times within what the summary remembers, and rare ones crowd its sets."""
    for seed in range(6):
        stream = skewed(9000, z=1.4, keys=3000, seed=seed, phase=700, sets=sets, busy=10)
        compare(stream, 6, price=0.0, watch=watch, slides=20)


def drifting(tuples: int, workers: int, seed: int, silence: int = 0) -> Stream:
    """Even keys, and in the second half only those whose home is one of the first two workers, or the
    newest ones.
    """
    rng = np.random.default_rng(seed)
    keys = rng.integers(1, 400, tuples).astype(np.uint64) * SPREAD
    times = np.arange(tuples, dtype=np.int64) // 6
    half = tuples // 2
    windowed = {"window_ms": 6 * SLIDE, "slide_ms": SLIDE}
    p = create("evenflow", workers=workers, seed=SEED, price=1e-4, watch=1, **windowed)
    out = p.assign(keys[:half], times[:half])
    crowd = np.unique(keys[:half][out < 2])
    keys[half:] = rng.choice(crowd, tuples - half)
    times[-tuples // 6 :] += silence
    return keys, times


@pytest.mark.family
@pytest.mark.parametrize("weights", [(), (2.0, 1.0, 0.5)])
@pytest.mark.parametrize("silence", [0, 5 * SLIDE, 40 * SLIDE])
@pytest.mark.parametrize("workers", [5, 9])
def test_keys_move_away_from_a_worker_that_nothing_else_relieves_as_the_rule_says(
    workers: int, silence: int, weights: tuple[float, ...]
) -> None:
    moved = 0
    for seed in range(3):
        stream = drifting(12_000, workers, seed, silence)
        moved += compare(stream, workers, price=1e-4, watch=1, weights=weights).moved
    assert moved > 0


def test_with_several_sources_that_remember_homes_keys_move_too() -> None:
    stream = drifting(12_000, 5, 1)
    assert compare(stream, 5, price=1e-4, watch=1, sources=2, tail="remember").moved > 0


@pytest.mark.family
@pytest.mark.parametrize("weights", [(), (2.0, 1.0, 0.5)])
@pytest.mark.parametrize("length", [5, 9, 30])
@pytest.mark.parametrize("keys", [60, 2_000])
def test_a_run_that_begins_on_a_worker_above_the_mean_moves_as_the_rule_says(
    keys: int, length: int, weights: tuple[float, ...]
) -> None:
    stream = in_runs(9_000, length=length, keys=keys, seed=length)
    costs = priced(stream[0], law="random", from_row=5_000, seed=length)
    for weighed in (None, costs):
        assert compare(stream, 5, watch=2, weights=weights, costs=weighed).runs_moved > 0


@pytest.mark.parametrize("weights", [(), (2.0, 1.0, 0.5)])
@pytest.mark.parametrize("level", [0.0, 0.01])
def test_a_long_run_goes_to_a_shared_candidate_where_homes_are_hashed(
    weights: tuple[float, ...], level: float
) -> None:
    stream = in_runs(9_000, length=30, keys=2_000, seed=1)
    costs = priced(stream[0], law="random", from_row=5_000, seed=1)
    for weighed in (None, costs):
        moved = compare(stream, 5, watch=2, sources=3, weights=weights, level=level, costs=weighed)
        assert moved.runs_moved > 0


@pytest.mark.parametrize(
    "stream",
    [drifting(12_000, 5, 2), in_runs(9_000, length=9, keys=500, seed=2)],
    ids=["one by one", "in runs"],
)
@pytest.mark.parametrize("sources", [1, 3])
def test_where_keys_move_away_the_cut_of_the_stream_and_a_restart_change_nothing(
    sources: int, stream: Stream
) -> None:
    keys, times = stream
    windowed = {"window_ms": 6 * SLIDE, "slide_ms": SLIDE, "price": 1e-4, "watch": 1}
    whole = create("evenflow", workers=5, seed=SEED, sources=sources, **windowed).assign(keys, times)
    p, parts = create("evenflow", workers=5, seed=SEED, sources=sources, **windowed), []
    for first in range(0, len(keys), 777):
        parts.append(p.assign(keys[first : first + 777], times[first : first + 777]))
        p = restore(p.snapshot())
    assert np.concatenate(parts).tolist() == whole.tolist()


def test_a_key_that_takes_over_the_counter_of_a_split_one_does_not_inherit_its_holders() -> None:
    """Nine keys of one set of eight: the ninth takes over the counter of the split one, the least."""
    slow = SlowEvenflow(2, seed=SEED, watch=100, price=0.0)
    salt, sets = slow.salt, len(slow.sets)
    crowd = [key for key in range(1, 40 * sets) if mix64(key ^ salt) % sets == 0][:9]
    order = np.repeat(np.array(crowd, np.uint64), [20, *[25] * 7, 30])
    keys = np.concatenate([order, order[-30:]])
    slow = compare((keys, np.arange(len(keys)) // 10), 2, watch=100, price=0.0)
    assert crowd[0] not in [counter.key for counter in slow.sets[0]]
