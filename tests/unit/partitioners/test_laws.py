"""Laws of single algorithms: what the papers' definitions imply, and the golden table of 002."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.keys import candidate
from evenflow.metrics import fragmentation, imbalance, replication_factor, worker_loads
from evenflow.partitioners import create, names
from evenflow.partitioners.choices.d_choices import find_optimal_choices
from tests.examples import examples
from tests.unit.partitioners.costs import drawn, some_costs
from tests.unit.partitioners.streams import Stream, all_distinct, backwards, one_key, with_gaps, zipf

streams = st.builds(
    zipf, st.integers(1, 1500), keys=st.integers(1, 500), z=st.floats(0, 2.5), seed=st.integers(0, 99)
)
few = examples(25)


def route(name: str, stream: Stream, *, workers: int, seed: int = 7, **options: object) -> np.ndarray:
    return create(name, workers=workers, seed=seed, **options).assign_batch(*stream)


def zipf_head(n: int, z: float, keys: int = 10_000) -> np.ndarray:
    shares = np.arange(1, keys + 1) ** -z
    shares /= shares.sum()
    return shares[shares >= 1 / (5 * n)]


# windows

WINDOWED = [name for name in names() if "window" in create(name, workers=2).options.model_dump()]


@pytest.mark.parametrize("name", WINDOWED)
@few
@given(st.sampled_from([zipf, backwards, with_gaps]), st.integers(1, 5_000), st.integers(2, 20))
def test_a_tumbling_window_is_a_sliding_one_of_a_single_slide(
    name: str, made: Callable[[int], Stream], window_ms: int, workers: int
) -> None:
    stream = made(1_000)
    lengths = {"window_ms": window_ms, "slide_ms": window_ms}
    tumbling, sliding = (
        route(name, stream, workers=workers, window=window, **lengths) for window in ("tumbling", "sliding")
    )
    assert tumbling.tolist() == sliding.tolist()


# hashing and shuffle


@few
@given(streams, st.integers(1, 100), st.integers(0, 2**63))
def test_hashing_is_the_first_candidate_of_the_family(stream: Stream, workers: int, seed: int) -> None:
    out = route("hashing", stream, workers=workers, seed=seed)
    assert out.tolist() == candidate(stream[0], 1, workers, seed).tolist()


@few
@given(streams, st.integers(1, 100), st.randoms(use_true_random=False))
def test_the_worker_of_a_hashed_key_depends_on_nothing_but_the_key(
    stream: Stream, workers: int, random: object
) -> None:
    """Not on order, nor on which other keys there are, nor on time."""
    keys, times = stream
    out = route("hashing", stream, workers=workers)
    order = random.sample(range(len(keys)), k=(len(keys) + 1) // 2)  # type: ignore[attr-defined]
    assert route("hashing", (keys[order], times[order] * -3), workers=workers).tolist() == out[order].tolist()
    assert replication_factor(out, keys) == 1


def test_hashing_is_uniform_over_distinct_keys() -> None:
    loads = worker_loads(route("hashing", all_distinct(200_000), workers=64), 64)
    chi_square = ((loads - loads.mean()) ** 2).sum() / loads.mean()
    assert chi_square < 63 + 6 * math.sqrt(2 * 63)


@few
@given(streams, st.integers(1, 100), st.integers(1, 8))
def test_shuffle_takes_turns_from_each_sources_own_start(stream: Stream, workers: int, sources: int) -> None:
    for source in range(sources):
        out = create("shuffle", workers=workers, source=source, sources=sources).assign(*stream)
        start = source * workers // sources
        assert out.tolist() == [(start + i) % workers for i in range(len(out))]


@few
@given(
    st.lists(st.integers(0, 700), min_size=1, max_size=8),
    st.integers(1, 100),
    st.floats(0, 2.5),
    st.integers(0, 99),
)
def test_what_several_shuffles_send_is_level_to_a_tuple_per_source(
    lengths: list[int], workers: int, z: float, seed: int
) -> None:
    """|load - mean| < s, whatever the keys; and no key is on more workers than it has tuples."""
    total = np.zeros(workers, np.int64)
    routed = []
    for source, length in enumerate(lengths):
        part = zipf(length, keys=50, z=z, seed=seed + source)
        out = create("shuffle", workers=workers, source=source, sources=len(lengths)).assign(*part)
        loads = worker_loads(out, workers)
        assert loads.max() - loads.min() <= 1
        total += loads
        routed.append((part[0], out))
    assert np.abs(total - total.mean()).max() < len(lengths)
    keys, out = (np.concatenate(column) for column in zip(*routed, strict=True))
    distinct, holders = fragmentation(out, keys)
    assert (holders <= np.minimum(np.unique(keys, return_counts=True)[1], workers)).all()
    assert len(distinct) <= holders.sum() <= workers * len(distinct)


@few
@given(st.integers(1, 300), st.integers(1, 100))
def test_a_shuffled_key_is_on_as_many_workers_as_it_has_tuples_up_to_all(tuples: int, workers: int) -> None:
    out = route("shuffle", one_key(tuples), workers=workers)
    assert len(np.unique(out)) == min(tuples, workers)


# pkg


def naive_greedy(stream: Stream, costs: np.ndarray, workers: int, d: int, seed: int) -> list[int]:
    candidates = np.stack([candidate(stream[0], i, workers, seed) for i in range(1, d + 1)], axis=1)
    loads = [0] * workers
    out = []
    for row, cost in zip(candidates.tolist(), costs.tolist(), strict=True):
        best = min(row, key=lambda w: loads[w])  # the first one on a tie
        loads[best] += cost
        out.append(best)
    return out


@few
@given(streams, st.integers(1, 40), st.integers(1, 7), st.integers(0, 9), some_costs)
def test_pkg_takes_the_first_least_loaded_candidate(
    stream: Stream, workers: int, d: int, seed: int, some: list[int]
) -> None:
    costs = drawn(some, len(stream[0]))
    out = create("pkg", workers=workers, seed=seed, d=d).assign(*stream, costs)
    assert out.tolist() == naive_greedy(stream, costs, workers, d, seed)
    assert np.array_equal(
        route("pkg", stream, workers=workers, seed=seed, d=1), route_hash(stream, workers, seed)
    )


def route_hash(stream: Stream, workers: int, seed: int) -> np.ndarray:
    return route("hashing", stream, workers=workers, seed=seed)


@few
@given(streams, st.integers(1, 40))
def test_pk5_is_pkg_with_five_choices(stream: Stream, workers: int) -> None:
    assert np.array_equal(route("pk5", stream, workers=workers), route("pkg", stream, workers=workers, d=5))


@few
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(-2000, 4000)), min_size=1, max_size=200),
    st.sampled_from([(1000, 100), (1000, 1000), (300, 100), (100, 100)]),
    st.integers(1, 6),
    some_costs,
)
def test_windowed_pkg_equals_a_recount_of_the_window(
    rows: list[tuple[int, int]], size: tuple[int, int], workers: int, some: list[int]
) -> None:
    keys = np.array([key for key, _ in rows], np.uint64)
    times = np.array([time for _, time in rows], np.int64)
    costs = drawn(some, len(keys))
    window_ms, slide_ms = size
    p = create("pkg", workers=workers, window="sliding", window_ms=window_ms, slide_ms=slide_ms)
    out = p.assign(keys, times, costs)
    first, second = candidate(keys, 1, workers, 7), candidate(keys, 2, workers, 7)
    slides = np.maximum.accumulate(times // slide_ms)
    for row in range(len(keys)):
        inside = slides[:row] > slides[row] - window_ms // slide_ms
        loads = np.bincount(out[:row][inside], costs[:row][inside], minlength=workers)
        expected = second[row] if loads[second[row]] < loads[first[row]] else first[row]
        assert out[row] == expected


def test_a_single_key_alternates_between_its_two_workers() -> None:
    out = route("pkg", one_key(1001), workers=50)
    loads = np.bincount(out, minlength=50)
    assert sorted(loads.tolist())[-2:] == [500, 501]


def test_pkg_cannot_beat_the_bound_of_the_hottest_key() -> None:
    """I >= p1/2 - 1/n, and close to it when p1 > 2/n (unless F_1 = F_2 for that key)."""
    keys, times = zipf(200_000, z=1.5, keys=10_000)
    p1 = np.unique(keys, return_counts=True)[1].max() / len(keys)
    values = [imbalance(worker_loads(route("pkg", (keys, times), workers=50, seed=s), 50)) for s in range(10)]
    assert min(values) >= p1 / 2 - 1 / 50 - 1e-9
    assert np.median(values) - (p1 / 2 - 1 / 50) < 0.01


# d-choices

GOLDEN = {  # n: (d, |H|) for z = 0.5, 0.8, 1.1, 1.4, 1.7, 2.0
    5: [(2, 0), (2, 0), (2, 3), (5, 4), (5, 4), (5, 3)],
    10: [(2, 0), (2, 2), (2, 6), (8, 7), (10, 6), (10, 5)],
    20: [(2, 0), (2, 5), (4, 11), (10, 12), (15, 9), (20, 7)],
    50: [(2, 1), (2, 16), (9, 27), (22, 23), (36, 16), (49, 12)],
    100: [(2, 6), (4, 38), (18, 51), (43, 38), (69, 25), (95, 17)],
}


@pytest.mark.parametrize("n", GOLDEN)
def test_the_golden_table_of_d_is_met_exactly(n: int) -> None:
    heads = [zipf_head(n, z) for z in (0.5, 0.8, 1.1, 1.4, 1.7, 2.0)]
    assert [(find_optimal_choices(p, n, 1e-4), len(p)) for p in heads] == GOLDEN[n]


def two_prefixes(p: np.ndarray, n: int, eps: float) -> int:
    """The least d that satisfies the shortest and the longest prefix of the head, as if no other mattered."""
    d = max(2, math.ceil(p[0] * n)) if len(p) else 2
    while d < n and not satisfies(p, n, eps, d, prefixes={1, len(p)}):
        d += 1
    return d


def test_two_prefixes_alone_give_the_same_table_but_for_one_cell() -> None:
    """The paper calls h = 1 and h = |H| the tight ones "in practice"; with n = 20, z = 1.4 another is."""
    differ = {}
    for n, row in GOLDEN.items():
        for z, (d, _) in zip((0.5, 0.8, 1.1, 1.4, 1.7, 2.0), row, strict=True):
            result = two_prefixes(zipf_head(n, z), n, 1e-4)
            if result != d:
                differ[n, z] = result
    assert differ == {(20, 1.4): 9}


def satisfies(p: np.ndarray, n: int, eps: float, d: int, *, prefixes: set[int] | None = None) -> bool:
    """Inequality (3) of 002 for these prefixes of the head (default: all)."""
    total = min(1.0, p.sum())
    for h in sorted(prefixes or range(1, len(p) + 1)):
        prefix = min(1.0, p[:h].sum())
        b = n - n * ((n - 1) / n) ** (h * d)
        load = prefix + (b / n) ** d * (total - prefix) + (b / n) ** 2 * (1 - total)
        if load > b * (1 / n + eps) * (1 + 1e-12):
            return False
    return True


@few
@given(
    st.integers(1, 60), st.lists(st.floats(1e-4, 1), max_size=12), st.sampled_from([1e-6, 1e-4, 1e-2, 0.1])
)
def test_d_is_the_least_that_satisfies_every_prefix(n: int, weights: list[float], eps: float) -> None:
    p = np.sort(np.array(weights))[::-1]
    p = p / max(1.0, p.sum() * 1.001)
    d = find_optimal_choices(p, n, eps)
    start = min(n, max(2, math.ceil(p[0] * n))) if len(p) else min(2, n)
    assert start <= d <= n
    assert d == n or satisfies(p, n, eps, d)
    assert not any(satisfies(p, n, eps * (1 - 1e-9), below) for below in range(start, d))
    assert find_optimal_choices(p, n, eps * 2) <= d


@few
@given(streams, st.integers(1, 40), st.integers(0, 9), st.booleans())
def test_d_choices_without_head_is_pkg(stream: Stream, workers: int, seed: int, windowed: bool) -> None:
    load = {"window": "sliding", "window_ms": 500, "slide_ms": 100} if windowed else {}
    out = route("d-choices", stream, workers=workers, seed=seed, theta=1.5, **load)
    assert np.array_equal(out, route("pkg", stream, workers=workers, seed=seed, **load))


def naive_d_choices(
    stream: Stream,
    costs: np.ndarray,
    n: int,
    *,
    theta: float,
    counters: int,
    growth: float,
    distinct: bool,
    window: int | None,
) -> list[int]:
    """Algorithm 1 of 002 in plain Python, with exact counts (so `counters` must suffice for all keys)."""
    keys, times = stream
    assert len(np.unique(keys)) <= counters
    choices = np.stack([candidate(keys, i, n, 7) for i in range(1, 8 * n + 3)], axis=1)
    counts: dict[int, int] = {}
    slides = np.maximum.accumulate(times // 100)
    out: list[int] = []
    d, due, total = min(2, n), 0, 0
    for row, key in enumerate(keys.tolist()):
        counts[key] = counts.get(key, 0) + int(costs[row])
        total += int(costs[row])
        inside = [at for at in range(row) if window is None or slides[at] > slides[row] - window]
        loads = np.bincount([out[at] for at in inside], costs[inside], minlength=n)
        options = choices[row, :2].tolist()
        if counts[key] >= theta * total:
            if total >= due:
                head = sorted((c / total for c in counts.values() if c >= theta * total), reverse=True)
                d = find_optimal_choices(np.array(head), n, 1e-4)
                due = max(total + 1, math.ceil(total * (1 + growth)))
            if d >= n:
                options = list(range(n))
            elif distinct:
                options = list(dict.fromkeys(choices[row, : 8 * n].tolist()))[:d]
            else:
                options = choices[row, :d].tolist()
        out.append(min(options, key=lambda w: loads[w]))
    return out


@examples(40)
@given(
    st.builds(
        zipf, st.integers(1, 300), keys=st.integers(1, 60), z=st.floats(0, 2.5), seed=st.integers(0, 99)
    ),
    st.integers(1, 20),
    st.sampled_from([0.0, 0.01, 0.05, 0.25, 0.5]),
    st.sampled_from([0.0, 0.01, 0.5]),
    st.booleans(),
    st.booleans(),
    some_costs,
)
def test_d_choices_equals_algorithm_1_in_plain_python(
    stream: Stream, n: int, theta: float, growth: float, distinct: bool, windowed: bool, some: list[int]
) -> None:
    load = {"window": "sliding", "window_ms": 200, "slide_ms": 100} if windowed else {}
    shape = {"theta": theta, "counters": 64, "growth": growth, "distinct": distinct}
    costs = drawn(some, len(stream[0]))
    out = create("d-choices", workers=n, **shape, **load).assign(*stream, costs)
    assert out.tolist() == naive_d_choices(stream, costs, n, **shape, window=2 if windowed else None)


def test_when_every_key_may_go_anywhere_loads_differ_by_at_most_one() -> None:
    """theta = 0 makes every key head; a key with over half the stream makes d = n: W-Choices."""
    keys, times = zipf(30_000, z=2.5, keys=50)
    p = create("d-choices", workers=10, theta=0.0)
    loads = worker_loads(p.assign(keys, times), 10)
    assert p.observe().choices == 10
    assert loads.max() - loads.min() <= 1


@pytest.mark.parametrize("stream", [zipf(40_000, z=1.4), with_gaps(20_000), backwards(20_000)])
def test_tail_keys_stay_on_two_workers_and_head_keys_are_few(stream: Stream) -> None:
    p = create("d-choices", workers=20, warm_up=2000)
    out = p.assign(*stream)
    keys, counts = np.unique(stream[0], return_counts=True)
    rare = keys[counts < len(stream[0]) / 400]
    for key in rare[:200]:
        mine = stream[0] == key
        allowed = {int(candidate(np.array([key]), i, 20, 7)[0]) for i in (1, 2)}
        late = np.flatnonzero(mine)[np.flatnonzero(mine) >= 2000]
        if counts[keys == key][0] * 400 < 2000:
            assert set(out[late].tolist()) <= allowed
    assert p.observe().head_keys <= 5 * 20 * 20 / 15  # theta - 1/c = 15/(20*5n)


def test_d_choices_balances_far_better_than_pkg_at_the_price_of_few_replicas() -> None:
    stream = zipf(200_000, z=1.4, keys=10_000)
    medians = {}
    for name in ("hashing", "pkg", "d-choices"):
        outs = [route(name, stream, workers=20, seed=seed) for seed in range(10)]
        medians[name] = np.median([imbalance(worker_loads(out, 20)) for out in outs])
    assert medians["d-choices"] < medians["pkg"] / 20
    assert medians["pkg"] < medians["hashing"]
    assert replication_factor(route("d-choices", stream, workers=20), stream[0]) < 2.2


def test_d_from_estimates_is_within_one_of_the_golden_table() -> None:
    p = create("d-choices", workers=50)
    p.assign(*zipf(1_000_000, z=1.4, keys=10_000))
    assert abs(p.observe().choices - 22) <= 1


def test_knowledge_of_keys_survives_a_rescale() -> None:
    p = create("d-choices", workers=50)
    p.assign(*zipf(50_000, z=1.4))
    p.rescale(20)
    seen = p.observe()
    assert seen.head_keys is not None
    assert seen.head_keys > 5
    p.rescale(80)
    assert p.observe().head_keys >= seen.head_keys
