"""`state_bound` holds for every name of the registry, whatever the stream, and says no more than it must."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.partitioners import Partitioner, create, restore
from tests.examples import examples
from tests.unit.partitioners.cases import CASES, HLL, SLIDING, each, keeps_every_key, over, run
from tests.unit.partitioners.dalton.cooperation import Cooperation, member, reducer
from tests.unit.partitioners.streams import STREAMS, Stream, all_distinct, zipf

BURST = 700
each_that_forgets = over([case for case in CASES if case[1].get("window") != "cumulative"])
SPLITS_EVERY_KEY = [
    ("dagreedy", {"alpha": 0.0, **SLIDING}),
    ("dagreedy", {"alpha": 0.0, "window": "cumulative", "slide_ms": 100}),
]
CHANGES_HOT_KEYS = [
    ("dalton", {"eps": 1.0, "heavy_hitters": "sketch"}),
    ("dalton", {"eps": 1.0, "heavy_hitters": "exact"}),
    ("dalton", {"eps": 1.0, "heavy_hitters": "exact", "stats_ms": 70}),
    ("dalton", {"eps": 1.0, "heavy_hitters": "hybrid", "sketch_from": 10}),
    ("dalton-cooperative", {"eps": 1.0, "dsync_ms": 12}),
]


def at_once(keys: int, *, again: int = 0) -> Stream:
    """Distinct keys in one slide, so in any window; then the first one `again` and again."""
    distinct, _ = all_distinct(keys)
    return np.concatenate([distinct, np.repeat(distinct[:1], again)]), np.zeros(keys + again, np.int64)


def bursts(count: int, keys: int) -> list[Stream]:
    """Different keys each time, the pauses between longer than any window."""
    distinct, times = all_distinct(count * keys)
    return [
        (distinct[first : first + keys], times[:keys] + first * 1_000_000)
        for first in range(0, count * keys, keys)
    ]


def held(p: Partitioner) -> int:
    return p.observe().state_bytes


@pytest.mark.family
@each
@pytest.mark.parametrize("stream", STREAMS)
def test_state_stays_within_its_bound_along_a_stream_and_two_rescales(
    name: str, options: dict, stream: str
) -> None:
    keys, times = STREAMS[stream]
    p = create(name, workers=7, **options)
    edges = np.linspace(0, len(keys), 10).astype(int).tolist()
    for part, workers in enumerate((7, 7, 7, 19, 19, 19, 3, 3, 3)):
        p.rescale(workers)
        rows = slice(edges[part], edges[part + 1])
        run(p, (keys[rows], times[rows]))
        seen = len(np.unique(keys[: rows.stop]))
        assert held(p) <= p.state_bound(seen)
        assert held(restore(p.snapshot())) <= p.state_bound(seen)


@each
@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=4),
    again=st.integers(0, 2),
    workers=st.integers(1, 40),
)
@examples(15)
def test_the_bound_holds_where_arrays_are_just_full(
    name: str, options: dict, sizes: list[int], again: int, workers: int
) -> None:
    p = create(name, workers=workers, **options)
    total = 0
    for size in sizes:
        total += size
        run(p, at_once(total, again=again))
        assert held(p) <= p.state_bound(total)


@each_that_forgets
def test_a_window_is_all_that_counts(name: str, options: dict) -> None:
    p = create(name, workers=5, **options)
    for burst in bursts(12, BURST):
        p.assign_batch(*burst)
        assert held(p) <= p.state_bound(BURST)


@each
def test_the_bound_is_known_before_the_first_tuple(name: str, options: dict) -> None:
    p = create(name, workers=9, **options)
    before = p.state_bound(3000)
    for stream in (zipf(4000), at_once(3000), zipf(3000, z=0.3, seed=2)):
        run(p, stream)
    assert p.state_bound(3000) == before


@each
def test_the_bound_never_falls_with_the_keys_and_says_which_rules_keep_every_key(
    name: str, options: dict
) -> None:
    p = create(name, workers=8, **options)
    bounds = [p.state_bound(keys) for keys in (0, 1, 2, 31, 32, 33, 1000, 1 << 20, 1 << 50, 1 << 51)]
    assert bounds == sorted(bounds)
    assert keeps_every_key(p) == (bounds[-1] > bounds[-2])
    exact = options.get("cardinality", "exact") == "exact" and options.get("heavy_hitters") != "sketch"
    known = (
        "cm",
        "am",
        "cam",
        "lm",
        "dagreedy",
        "dalton",
        "dalton-batch",
        "dalton-cooperative",
        "prompt",
        "partly",
    )
    assert keeps_every_key(p) == (exact and name in known)


def filled_by_distinct_keys(name: str, options: dict) -> bool:
    """Not where frequent keys fill the state, or those of many windows do: see the tests behind the next
    one.
    """
    of_many_windows = name == "evenflow" and options.get("window") == "tumbling"
    return name != "dagreedy" and options.get("heavy_hitters") != "sketch" and not of_many_windows


@pytest.mark.family
@over([case for case in CASES if filled_by_distinct_keys(*case)])
@pytest.mark.parametrize("keys", [3000, 20_000])
def test_distinct_keys_alone_come_near_the_bound(name: str, options: dict, keys: int) -> None:
    p = create(name, workers=4, **options)
    p.assign_batch(*at_once(keys, again=1))
    assert p.state_bound(keys) <= 8 * held(p)


def test_other_keys_in_each_window_come_near_the_bound_of_evenflow_with_a_window_of_one_slide() -> None:
    """Sweeping takes as long as many such windows, and the cells of their keys are in use until then."""
    p, keys = create("evenflow", workers=4, window="tumbling", window_ms=700), 20_000
    fresh = all_distinct(30 * keys)[0].reshape(30, keys)
    for window in range(30):
        p.assign_batch(fresh[window], np.full(keys, window * 700))
    assert held(p) <= p.state_bound(keys) <= 8 * held(p)


@over(SPLITS_EVERY_KEY)
@pytest.mark.parametrize("workers", [1, 4, 16])
def test_all_keys_on_all_workers_come_near_the_bound_of_dagreedy(
    name: str, options: dict, workers: int
) -> None:
    keys, _ = all_distinct(1000)
    p = create(name, workers=workers, **options)
    p.assign(keys[:1], np.array([0]))
    p.assign(np.repeat(keys, workers), np.full(1000 * workers, 150))
    assert held(p) <= p.state_bound(1000) <= 4 * held(p)


@over(CHANGES_HOT_KEYS)
def test_hot_keys_that_change_all_the_time_come_near_the_bound_of_dalton(name: str, options: dict) -> None:
    """Every other statistics window is small, so that 2 tuples make a key of the next one hot: 4n of them."""
    n, window_ms, slide_ms = 8, 1000, 100
    p = create(name, workers=n, window_ms=window_ms, slide_ms=slide_ms, **options)
    length = options.get("stats_ms") or options.get("dsync_ms") or slide_ms
    windows = 2 * (window_ms // length)
    fresh = all_distinct(4 * n * windows)[0].reshape(windows, 4 * n)
    for window in range(windows):
        keys = np.repeat(fresh[window, : 4 * n if window % 2 else 1], 2)
        p.assign(keys, np.full(len(keys), window * length))
    assert held(p) <= p.state_bound(fresh.size) <= 4 * held(p)


@pytest.mark.parametrize(
    ("name", "options"), [("dalton", {}), ("dalton", {"stats_ms": 100}), ("dalton-cooperative", {})]
)
def test_twice_as_many_keys_as_a_window_has_can_be_hot_at_once(name: str, options: dict) -> None:
    n = 8
    p = create(name, workers=n, window_ms=100, slide_ms=100, **options)
    keys = all_distinct(1 + 4 * n)[0]
    for window, frequent in enumerate((keys[:1].repeat(2), keys[1:17].repeat(2), keys[17:].repeat(4))):
        p.assign(frequent, np.full(len(frequent), 100 * window))
    p.assign(keys[-1:], np.array([200]))  # finds no room for another row
    assert p.observe().head_keys == 4 * n
    assert held(p) <= p.state_bound(2 * n)


def test_room_for_the_hot_keys_of_three_batches_is_within_the_bound() -> None:
    n = 8
    p = create("dalton-batch", workers=n)
    for batch in all_distinct(6 * n)[0].reshape(6, n):
        p.assign_batch(batch.repeat(2), np.zeros(2 * n, np.int64))
        assert held(p) <= p.state_bound(n)
    assert p.observe().head_keys == 2 * n
    assert held(p) == p.state_bound(n)


@pytest.mark.parametrize("delay", [0, 30, 250])
def test_tables_of_the_others_stay_within_the_bound_too(delay: int) -> None:
    """Each partitioner sees every third tuple, and learns of keys that it has never seen."""
    n, stream = 6, zipf(6000, keys=600, z=0.6)
    members = [member(source, 3, n, dsync_ms=100) for source in range(3)]
    together = Cooperation(members, reducer(n, adaptive=True), delay=lambda time: delay)
    for rows in (slice(0, 2000), slice(2000, 4000), slice(4000, 6000)):
        together.run((stream[0][rows], stream[1][rows]))
        seen = len(np.unique(stream[0][: rows.stop]))
        assert together.received
        for p in members:
            assert held(p) <= p.state_bound(seen)


@pytest.mark.parametrize("order", ["exact", "quasi"])
@given(sizes=st.lists(st.integers(1, 6000), min_size=1, max_size=12))
@examples(25)
def test_batches_of_very_different_sizes_stay_within_the_bound_of_prompt(
    order: str, sizes: list[int]
) -> None:
    p = create("prompt", workers=4, order=order, smoothing=1.0)
    for batch, size in enumerate(sizes):
        p.assign_batch(*at_once(size))
        assert held(p) <= p.state_bound(max(sizes[: batch + 1]))


@pytest.mark.family
@pytest.mark.more
@over([(name, options) for name, options in CASES if options in ({}, HLL, {"order": "quasi"})])
def test_a_million_distinct_keys_stay_within_the_bound_and_come_near_it(name: str, options: dict) -> None:
    keys, (stream, _) = 1_000_000, all_distinct(1_000_000)
    p = create(name, workers=16, **options)
    p.assign_batch(stream, np.zeros(keys, np.int64))
    room = {
        "dagreedy": 17 / 2,  # rows of a key and its holders: it is on one worker here, not on 16
        "evenflow": 4,  # cells grow with the slides, fourfold: here there is but one
    }
    assert held(p) <= p.state_bound(keys) <= 8 * room.get(name, 1) * held(p)


@pytest.mark.parametrize("keys", [-1, 1.5, True, "9", 2**63])
def test_an_impossible_number_of_keys_is_refused(keys: object) -> None:
    with pytest.raises(ConfigError, match="keys must be"):
        create("cam", workers=4).state_bound(keys)  # type: ignore[arg-type]


def test_windows_with_gaps_between_them_stay_within_the_bound_of_evenflow() -> None:
    for window_ms in (1000, 3000):
        p = create("evenflow", workers=4, window_ms=window_ms, slide_ms=1000, cells=64)
        keys = np.arange(300, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        for gap in range(30):
            p.assign(keys, np.full(300, gap * 100_000, np.int64))
            assert held(p) <= p.state_bound(300)
