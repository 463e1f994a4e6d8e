"""Laws of Dalton (spec section 8): against a plain second writing, and what the paper's definitions imply."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.keys import candidate
from evenflow.metrics import fragmentation, window_imbalance
from evenflow.partitioners import create
from evenflow.partitioners.dalton.bandit import reward
from evenflow.partitioners.dalton.dalton import Dalton
from tests.examples import examples
from tests.unit.partitioners.cases import keeps_every_key
from tests.unit.partitioners.costs import drawn, some_costs
from tests.unit.partitioners.dalton.dalton_model import SlowDalton
from tests.unit.partitioners.streams import SPREAD, Stream, all_distinct, backwards, with_gaps, zipf


class Weights(NamedTuple):
    """All that a reward takes of a policy."""

    p1: float
    p2: float


few = examples(25)
small = st.builds(
    zipf, st.integers(1, 600), keys=st.integers(1, 60), z=st.floats(0, 2.5), seed=st.integers(0, 99)
)


def fast(workers: int, **options: object) -> Dalton:
    made = create("dalton", workers=workers, **{"window_ms": 1000, "slide_ms": 100, **options})
    assert isinstance(made, Dalton)
    return made


def compare(
    stream: Stream, workers: int, ours: dict, theirs: dict, costs: np.ndarray | None = None
) -> tuple[Dalton, SlowDalton]:
    """Both route alike; then loads, holders and values agree."""
    slow = SlowDalton(workers, **theirs)
    p = fast(workers, **ours)
    said = np.ones(len(stream[0]), np.int64) if costs is None else costs
    expected = [slow.assign(*row) for row in zip(*(c.tolist() for c in (*stream, said)), strict=True)]
    assert p.assign(*stream, costs).tolist() == expected
    if len(expected):
        assert p._loads.loads.tolist() == slow.loads()
        assert p._stats["inside"] == sum(slow.loads())
        oldest = slow.slide - slow.slides + 1
        ours_held, theirs_held = p._split.holders(oldest), slow.holders()
        for key, holders in theirs_held.items():
            if key in ours_held or holders != {slow.home(key)}:
                assert ours_held[key] == holders
        for key, holders in ours_held.items():
            assert holders == theirs_held.get(key, set())
        values = p._split.values()
        assert {k: v.tolist() for k, v in values.items()} == slow.q
        assert len(values) == p.observe().head_keys
        if slow.cap is not None:
            assert p._split.cap == slow.cap
    return p, slow


@few
@given(
    small, st.integers(1, 12), st.sampled_from([0.0, 0.1, 0.7]), st.sampled_from([None, 40, 250]), some_costs
)
def test_it_routes_as_a_plain_second_writing_of_the_rule(
    stream: Stream, workers: int, eps: float, stats_ms: int | None, some: list[int]
) -> None:
    options = {"eps": eps, "stats_ms": stats_ms}
    compare(stream, workers, options, options, drawn(some, len(stream[0])))


@few
@given(
    small,
    st.integers(1, 12),
    st.sampled_from([0.0, 0.004, 0.3, 1.0]),
    st.sampled_from([None, 70, 250, 3000]),
    some_costs,
)
def test_another_share_of_the_load_makes_other_keys_hot(
    stream: Stream, workers: int, theta: float, stats_ms: int | None, some: list[int]
) -> None:
    options = {"eps": 0.3, "theta": theta, "stats_ms": stats_ms}
    compare(stream, workers, options, options, drawn(some, len(stream[0])))


def test_a_theta_that_no_sketch_can_count_by_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"theta is at least 0\.000001, or 0 for every key"):
        create("dalton", workers=8, theta=1e-9)


@few
@given(small, st.integers(2, 12), st.sampled_from([None, 70, 250, 3000]))
def test_with_theta_zero_the_learned_policy_has_every_key_of_the_window(
    stream: Stream, workers: int, stats_ms: int | None
) -> None:
    """Also of keys that come once. So `holders`, which knows keys with a row only, is the whole of X."""
    keys, times = stream
    p, slow = fast(workers, theta=0, stats_ms=stats_ms), SlowDalton(workers, theta=0, stats_ms=stats_ms)
    for at in range(0, len(keys), 50):
        rows = slice(at, at + 50)
        p.assign(keys[rows], times[rows])
        for key, time in zip(keys[rows].tolist(), times[rows].tolist(), strict=True):
            slow.assign(key, time)
        held = {key: some for key, some in p._split.holders(slow.slide - 9).items() if some}
        assert held == slow.holders()
        assert p.observe().head_keys >= len(held)


@few
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 120)), max_size=200),
    st.integers(4, 12),
    st.integers(1, 9),
    st.sampled_from([None, 50]),
)
def test_hybrid_counts_take_the_sketch_after_a_window_with_many_keys_and_decide_as_exact_counts(
    tuples: list[tuple[int, int]], workers: int, sketch_from: int, stats_ms: int | None
) -> None:
    """So few keys that no two share all of their counters: the sketch then counts exactly, too."""
    keys = np.array([key for key, _ in tuples], np.uint64) * SPREAD
    times = np.cumsum([pause for _, pause in tuples], dtype=np.int64)
    options = {"eps": 0.3, "stats_ms": stats_ms}
    hybrid = {"heavy_hitters": "hybrid", "sketch_from": sketch_from}
    compare((keys, times), workers, {**options, **hybrid}, options)
    p, of_window = fast(workers, **options, **hybrid), dict[int, set[int]]()
    for row, (key, _) in enumerate(tuples):
        p.assign(keys[row : row + 1], times[row : row + 1])
        window = int(times[row]) // (stats_ms or 100)
        of_window.setdefault(window, set()).add(key)
        assert p._exact == (len(of_window.get(window - 1, ())) < sketch_from)


def test_hybrid_is_exact_below_its_border_and_the_sketch_above_it() -> None:
    stream = zipf(30_000, keys=5000, z=1.2)
    for border, same in ((1 << 40, "exact"), (1, "sketch")):
        hybrid = fast(20, heavy_hitters="hybrid", sketch_from=border, eps=0.5)
        assert (
            hybrid.assign(*stream).tolist() == fast(20, heavy_hitters=same, eps=0.5).assign(*stream).tolist()
        )


def test_hybrid_gives_the_memory_of_exact_counts_back_and_finds_its_way_back_to_them() -> None:
    p = fast(8, heavy_hitters="hybrid", sketch_from=2000)
    sizes = []
    for window, keys in enumerate((50_000, 50_000, 50_000, 100, 100)):
        p.assign(all_distinct(keys)[0], np.full(keys, window * 100))
        sizes.append((p._exact, p._counts.nbytes))
    assert [exact for exact, _ in sizes] == [True, False, False, False, True]
    assert all(size < 10_000 for _, size in sizes[1:])


@few
@given(small, st.integers(2, 12), st.integers(1, 3), st.sampled_from([0.2, 0.7, 1.0]))
def test_capped_exploration_too(stream: Stream, workers: int, cap: int, growth: float) -> None:
    ours = {"explore": "capped", "cap": cap, "cap_growth": growth, "eps": 0.4, "p1": 0.8, "p2": 0.2}
    compare(stream, workers, ours, {"cap": cap, "cap_growth": growth, "eps": 0.4, "p1": 0.8, "p2": 0.2})


@pytest.mark.parametrize("stream", [with_gaps(1500), backwards(1500), zipf(1500, keys=80, z=1.1)])
@pytest.mark.parametrize("stats_ms", [None, 130, 700])
def test_gaps_and_a_clock_going_backwards_change_no_counter(stream: Stream, stats_ms: int | None) -> None:
    for workers in (1, 8):
        ours = {"eps": 0.3, "stats_ms": stats_ms}
        p, _ = compare(stream, workers, ours, ours)
        assert p.observe().head_keys is not None


def test_keys_that_take_turns_in_being_hot_keep_exact_holders() -> None:
    times = np.arange(4000, dtype=np.int64)
    rng = np.random.default_rng(2)
    favourite = (times // 150) % 5
    keys = np.where(rng.random(4000) < 0.5, favourite, rng.integers(0, 300, 4000)).astype(np.uint64) * SPREAD
    ours = {"eps": 0.5, "stats_ms": 50}
    compare((keys, times), 6, ours, ours)


@pytest.mark.parametrize("counts", ["exact", "sketch"])
@pytest.mark.parametrize("explore", ["uniform", "capped"])
def test_a_stream_without_frequent_keys_is_hashed(counts: str, explore: str) -> None:
    rng = np.random.default_rng(4)
    keys = rng.integers(0, 20_000, 60_000).astype(np.uint64) * SPREAD
    for stream in ((keys, np.arange(60_000, dtype=np.int64)), all_distinct(20_000)):
        p = create("dalton", workers=16, heavy_hitters=counts, explore=explore)
        assert p.assign(*stream).tolist() == candidate(stream[0], 1, 16, 7).tolist()
        assert p.observe().head_keys == 0


@few
@given(small, st.integers(1, 30))
def test_without_exploration_no_key_ever_leaves_its_first_worker(stream: Stream, workers: int) -> None:
    out = fast(workers, eps=0.0).assign(*stream)
    assert out.tolist() == candidate(stream[0], 1, workers, 7).tolist()


@few
@given(st.integers(1, 50), st.lists(st.integers(0, 1000), min_size=1, max_size=50), st.floats(0, 1))
def test_a_reward_lies_between_minus_one_and_half_for_equal_weights(
    held: int, loads: list[int], p1: float
) -> None:
    n, total = len(loads), sum(loads) + 1
    held = min(held, n)
    for load in loads:
        got = reward(load + 1, max(total, load + 1), held, n, Weights(p1, 1 - p1))
        assert got >= -(p1 * (1 - 1 / n) + (1 - p1)) - 1e-12
        assert got < p1 - (1 - p1) / n + 1e-12


@few
@given(small, st.integers(1, 12))
def test_rewards_and_values_stay_within_the_bounds_of_the_paper(stream: Stream, workers: int) -> None:
    slow = SlowDalton(workers, eps=0.3)
    for key, time in zip(*stream, strict=True):
        slow.assign(int(key), int(time))
    assert all(-1 < r <= 0.5 - 0.5 / workers for r in slow.rewards)
    p = fast(workers, eps=0.3)
    p.assign(*stream)
    for row in p._split.values().values():
        assert row.min() >= -2
        assert row.max() < 0.5


@pytest.mark.parametrize("workers", [4, 16, 64])
@pytest.mark.parametrize("z", [0.8, 1.2, 2.0])
def test_hot_keys_are_at_most_twice_the_workers_while_the_load_is_steady(workers: int, z: float) -> None:
    keys, times = zipf(20_000, z=z)
    p = create("dalton", workers=workers)
    for at in range(0, 20_000, 250):
        p.assign(keys[at : at + 250], times[at : at + 250])
        assert p.observe().head_keys <= 2 * workers
        assert len(p._split) <= 2 * workers * 3


@few
@given(
    st.lists(st.tuples(st.integers(0, 80), st.floats(0, 2.5)), min_size=2, max_size=8),
    st.integers(1, 12),
    st.integers(0, 99),
)
def test_hot_keys_are_bounded_by_how_much_the_load_grows(
    windows: list[tuple[int, float]], workers: int, seed: int
) -> None:
    """A key is hot from L_prev/n tuples on, so n * L/L_prev keys become hot in a window; they stay for one
    more.
    """
    p = fast(workers, eps=0.3)
    before, allowed = 0, [0.0]
    for window, (tuples, z) in enumerate(windows):
        keys, _ = zipf(tuples, keys=30, z=z, seed=seed + window)
        p.assign(keys, window * 100 + np.arange(tuples) % 100)
        if not tuples:
            before = 0
            allowed.append(0.0)
            continue
        allowed.append(workers * tuples / before if before else 0.0)
        before = tuples
        assert p.observe().head_keys <= min(allowed[-1] + allowed[-2], 4 * workers)


def test_never_more_than_four_keys_a_worker_are_hot_even_when_the_load_explodes() -> None:
    keys = np.concatenate([np.arange(10), np.repeat(np.arange(5000), 2)]).astype(np.uint64) * SPREAD
    times = np.concatenate([np.arange(10) * 100, np.full(10_000, 1000)]).astype(np.int64)
    p = create("dalton", workers=8)
    p.assign(keys, times)
    assert p.observe().head_keys == 32


@pytest.mark.parametrize("counts", ["exact", "sketch"])
def test_a_key_is_forgotten_when_its_window_has_passed(counts: str) -> None:
    hot, times = np.full(3000, 5, np.uint64) * SPREAD, np.arange(3000, dtype=np.int64)
    p = fast(8, heavy_hitters=counts, eps=0.5)
    p.assign(hot, times)
    assert p.observe().head_keys == 1
    assert len(p._split.holders(20)[int(hot[0])]) == 8
    others = (np.arange(1100) % 3000 + 10).astype(np.uint64) * SPREAD
    p.assign(others, np.arange(3000, 4100, dtype=np.int64))
    assert p.observe().head_keys == 0
    assert len(p._split) == 0


def test_the_best_worker_is_always_the_argmax_of_the_row() -> None:
    p = fast(9, eps=0.6, gamma=0.5)
    keys, times = zipf(6000, keys=200, z=1.4)
    for at in range(0, 6000, 10):
        p.assign(keys[at : at + 10], times[at : at + 10])
        table = p._split.table
        for r in p._split.hot_rows():
            q, best, home = table.q[r], table.row[r]["best"], table.row[r]["home"]
            assert best == (home if q[home] == q.max() else q.argmax())
            assert np.delete(q, best).max() <= table.bound[r]


def test_splitting_beats_hashing_on_skew_and_the_cap_keeps_replicas_few() -> None:
    stream = zipf(60_000, keys=5000, z=1.4)
    panes = stream[1] // 100
    results = {}
    made = {
        "hashing": create("hashing", workers=16),
        "uniform": fast(16),
        "capped": fast(16, explore="capped"),
    }
    for name, p in made.items():
        out = p.assign(*stream)
        imbalance = window_imbalance(out, panes, 16, panes_per_window=10)[1][100:].mean()
        results[name] = imbalance, fragmentation(out[-1000:], stream[0][-1000:])[1].max()
    assert results["uniform"][0] < results["hashing"][0] / 2
    assert results["capped"][0] < results["hashing"][0] / 2
    assert results["capped"][1] <= 6 < results["uniform"][1]


def test_the_sketch_decides_as_exact_counts_do_on_a_skewed_stream() -> None:
    stream = zipf(60_000, keys=20_000, z=1.0)
    exact, sketched = (create("dalton", workers=32, heavy_hitters=c) for c in ("exact", "sketch"))
    same = exact.assign(*stream) == sketched.assign(*stream)
    assert same.mean() > 0.9
    assert not keeps_every_key(sketched)
    assert keeps_every_key(exact)


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 16, 20, 64, 100, 1000])
def test_the_sketch_errs_by_a_quarter_of_the_threshold_at_most(workers: int) -> None:
    """And of the present number of workers, after a rescale."""
    p = fast(workers, heavy_hitters="sketch")
    assert p._sketch.error <= 1 / (4 * workers)
    for other in (3 * workers, workers // 2 + 1):
        p.rescale(other)
        assert p._sketch.error <= 1 / (4 * other)


@pytest.mark.parametrize("workers", [16, 20, 64])
def test_the_sketch_takes_no_key_for_hot_that_is_an_eighth_below_the_threshold(workers: int) -> None:
    """Half the workers have such a key; the rest of the stream is of keys that come once."""
    tuples = 1000 * workers
    keys = np.arange(tuples).astype(np.uint64)
    near = np.random.default_rng(3).permutation(tuples)[: workers // 2 * 875]
    keys[near] = np.arange(len(near)) % (workers // 2)
    stream = np.concatenate([keys, keys]) * SPREAD, np.repeat(np.array([0, 100]), tuples)
    for counts in ("exact", "sketch"):
        p = fast(workers, heavy_hitters=counts, eps=1.0)
        assert p.assign(*stream).tolist() == candidate(stream[0], 1, workers, 7).tolist()
        assert p.observe().head_keys == 0


@pytest.mark.parametrize("counts", ["exact", "sketch"])
def test_equal_seeds_replay_and_every_source_explores_by_itself(counts: str) -> None:
    stream = zipf(20_000, z=1.5)
    runs = [
        create("dalton", workers=20, seed=seed, source=source, sources=2, heavy_hitters=counts).assign(
            *stream
        )
        for seed, source in ((1, 0), (1, 0), (1, 1), (2, 0))
    ]
    assert runs[0].tolist() == runs[1].tolist()
    assert runs[0].tolist() != runs[2].tolist()
    assert runs[0].tolist() != runs[3].tolist()


def test_counts_survive_a_rescale_and_holders_do_not() -> None:
    p = create("dalton", workers=10)
    keys, times = zipf(3000, z=1.5)
    p.assign(keys[:2900], times[:2900])
    p.rescale(6)
    assert p.observe().head_keys == 0
    assert len(p._split) == 0
    p.assign(keys[2900:], times[2900:])
    assert p.observe().head_keys > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p1": 0.7}, "p1 \\(0.7\\) and p2 \\(0.5\\) must sum to 1"),
        ({"cap": 9}, "cap \\(9\\) must not be above cap_max"),
        ({"window_ms": 1500}, "multiple of slide_ms"),
        ({"explore": "greedy"}, "option 'explore' of dalton"),
        ({"epsilon": 0.1}, "did you mean 'eps'"),
        ({"gamma": 0}, "greater than 0"),
    ],
)
def test_bad_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create("dalton", workers=4, **options)
