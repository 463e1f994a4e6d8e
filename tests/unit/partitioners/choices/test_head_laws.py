"""Laws of d-choices, w-choices and rr-head: what "head" means, and how the three are related (002)."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.keys import candidate
from evenflow.metrics import worker_loads
from evenflow.partitioners import create, restore
from tests.examples import examples
from tests.unit.partitioners.costs import drawn, some_costs
from tests.unit.partitioners.streams import Stream, all_distinct, zipf

HEAD = ["d-choices", "w-choices", "rr-head"]
WINDOWED = {"window": "sliding", "window_ms": 200, "slide_ms": 100}
loads_of = st.sampled_from([{}, WINDOWED])
few = examples(30)
streams = st.builds(
    zipf, st.integers(1, 400), keys=st.integers(1, 60), z=st.floats(0, 2.5), seed=st.integers(0, 99)
)


def route(name: str, stream: Stream, *, workers: int, **options: object) -> np.ndarray:
    return create(name, workers=workers, **options).assign(*stream)


def head_tuples(
    stream: Stream, theta: float, warm_up: int = 0, half_ms: int = 2**62, costs: np.ndarray | None = None
) -> np.ndarray:
    """Whether each tuple is of a head key when it arrives, from exact counts that are halved every
    `half_ms`.
    """
    counts: Counter[int] = Counter()
    total, tuples, half, head = 0, 0, int(stream[1][0]) // half_ms, []
    costs = np.ones(len(stream[0]), np.int64) if costs is None else costs
    for key, time, cost in zip(*(column.tolist() for column in (*stream, costs)), strict=True):
        while half < time // half_ms and total:
            counts = Counter({known: count // 2 for known, count in counts.items()})
            total, tuples, half = total // 2, tuples // 2, half + 1
        half = max(half, time // half_ms)
        counts[key] += cost
        total += cost
        tuples += 1
        head.append(tuples > warm_up and counts[key] >= theta * total)
    return np.array(head, bool)


def two_of(key: int, workers: int) -> list[int]:
    return [int(candidate(np.array([key], np.uint64), i, workers, 7)[0]) for i in (1, 2)]


def naive(
    stream: Stream, costs: np.ndarray, n: int, head: np.ndarray, *, windowed: bool, in_turn: bool
) -> list[int]:
    """w-choices (rr-head with `in_turn`) in plain Python; the window is two slides of 100 ms."""
    keys, times = stream
    slides = np.maximum.accumulate(times // 100)
    out: list[int] = []
    turn = 0
    for row, key in enumerate(keys.tolist()):
        inside = [at for at in range(row) if not windowed or slides[at] > slides[row] - 2]
        loads = np.bincount([out[at] for at in inside], costs[inside], minlength=n)
        if not head[row]:
            out.append(min(two_of(key, n), key=lambda w: loads[w]))
        elif in_turn:
            out.append(turn % n)
            turn += 1
        else:
            out.append(int(loads.argmin()))
    return out


@few
@given(
    streams,
    st.integers(1, 20),
    st.sampled_from([0.0, 0.01, 0.05, 0.25, 0.5]),
    st.sampled_from([0, 50]),
    loads_of,
    some_costs,
)
def test_w_choices_and_rr_head_equal_algorithm_1_in_plain_python(
    stream: Stream, n: int, theta: float, warm_up: int, load: dict, some: list[int]
) -> None:
    costs = drawn(some, len(stream[0]))
    head = head_tuples(stream, theta, warm_up, costs=costs)
    for name in ("w-choices", "rr-head"):
        p = create(name, workers=n, theta=theta, counters=64, warm_up=warm_up, **load)
        out = p.assign(*stream, costs)
        expected = naive(stream, costs, n, head, windowed=bool(load), in_turn=name == "rr-head")
        assert out.tolist() == expected


@few
@given(
    streams,
    st.integers(1, 20),
    st.sampled_from([0.01, 0.05, 0.25]),
    st.sampled_from([2, 7, 100, 5000]),
    loads_of,
    some_costs,
    st.sampled_from([0, 20]),
)
def test_a_head_of_the_window_is_of_counts_that_are_halved_every_half_window(
    stream: Stream, n: int, theta: float, window_ms: int, load: dict, some: list[int], warm_up: int
) -> None:
    load = load or {"window_ms": window_ms, "slide_ms": 1}
    costs = drawn(some, len(stream[0]))
    head = head_tuples(stream, theta, warm_up, load["window_ms"] // 2, costs)
    for name in ("w-choices", "rr-head"):
        p = create(name, workers=n, theta=theta, counters=64, warm_up=warm_up, head="window", **load)
        half = len(costs) // 2
        out = p.assign(stream[0][:half], stream[1][:half], costs[:half]).tolist()
        p = restore(p.snapshot())
        out += p.assign(stream[0][half:], stream[1][half:], costs[half:]).tolist()
        windowed, in_turn = "window" in load, name == "rr-head"
        assert out == naive(stream, costs, n, head, windowed=windowed, in_turn=in_turn)


@pytest.mark.parametrize("name", HEAD)
def test_where_the_hot_key_changes_only_a_head_of_the_window_follows(name: str) -> None:
    """After a hundred windows of one hot key another one comes: two windows later it has half of the
    stream.
    """
    rng = np.random.default_rng(3)
    keys = np.where(rng.random(102_000) < 0.5, 1, rng.integers(10, 10_000, 102_000)).astype(np.uint64)
    keys[100_000:][keys[100_000:] == 1] = 2
    times = np.arange(len(keys))
    spread = {}
    for head in ("cumulative", "window"):
        p = create(name, workers=8, head=head, window="sliding", window_ms=1000, slide_ms=100)
        out = p.assign(keys, times)[101_000:]
        spread[head] = len(set(out[keys[101_000:] == 2].tolist()))
    assert spread["window"] >= 6
    assert spread["cumulative"] == 2


@few
@given(
    st.builds(zipf, st.integers(1, 600), keys=st.integers(1, 8), z=st.floats(0, 3), seed=st.integers(0, 99)),
    st.integers(1, 40),
    loads_of,
)
def test_d_choices_with_d_of_n_equals_w_choices(stream: Stream, n: int, load: dict) -> None:
    """Eight head keys that are the whole stream need every worker when hardly any imbalance is allowed."""
    p = create("d-choices", workers=n, theta=0.0, eps=1e-9, growth=0.0, **load)
    out = p.assign(*stream)
    assert p.observe().choices == n
    assert out.tolist() == route("w-choices", stream, workers=n, theta=0.0, **load).tolist()


@pytest.mark.parametrize("load", [{}, WINDOWED])
def test_d_choices_with_d_of_n_equals_w_choices_beside_a_tail(load: dict) -> None:
    """Six keys with 95 % of the stream: d = n at every tuple, and the tail goes the same ways, too."""
    rng = np.random.default_rng(5)
    keys, times = zipf(20_000, keys=6, z=0.3)
    rare = rng.random(len(keys)) < 0.05
    keys[rare] = rng.integers(1, 2**63, int(rare.sum()), dtype=np.uint64)
    d, w = (create(name, workers=10, theta=0.05, **load) for name in ("d-choices", "w-choices"))
    for start in range(0, len(keys), 100):
        block = keys[start : start + 100], times[start : start + 100]
        assert d.assign(*block).tolist() == w.assign(*block).tolist()
        assert d.observe().choices == 10
        assert d.observe().head_keys == w.observe().head_keys


@few
@given(streams, st.integers(1, 40), loads_of)
def test_without_a_head_all_three_are_pkg(stream: Stream, n: int, load: dict) -> None:
    expected = route("pkg", stream, workers=n, **load).tolist()
    for name in HEAD:
        assert route(name, stream, workers=n, theta=1.01, **load).tolist() == expected


@few
@given(streams, st.integers(1, 40), st.integers(1, 5))
def test_w_choices_of_heads_only_is_the_least_loaded_shuffle(stream: Stream, n: int, sources: int) -> None:
    total = np.zeros(n, np.int64)
    for source in range(sources):
        part = stream[0][source::sources], stream[1][source::sources]
        if len(part[0]):
            out = create("w-choices", workers=n, source=source, sources=sources, theta=0.0).assign(*part)
            assert out.tolist() == (np.arange(len(out)) % n).tolist()
            total += worker_loads(out, n)
    assert total.max() - total.mean() <= sources  # I * m


@pytest.mark.parametrize("name", HEAD)
@pytest.mark.parametrize("stream", [zipf(20_000, z=1.4), zipf(20_000, z=0.8), all_distinct(5000)])
def test_keys_never_in_the_head_stay_on_their_two_workers(name: str, stream: Stream) -> None:
    out = route(name, stream, workers=20, counters=5000)
    head = head_tuples(stream, 1 / 100)
    tail = set(stream[0].tolist()) - set(stream[0][head].tolist())
    assert len(tail) > 500
    pairs = np.stack([candidate(stream[0], i, 20, 7) for i in (1, 2)])
    never = np.isin(stream[0], np.array(sorted(tail), np.uint64))
    assert np.all((out == pairs).any(axis=0)[never])


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize(("z", "n"), [(1.1, 50), (1.4, 20), (0.9, 100)])
def test_a_key_is_only_on_its_first_d_candidates_for_the_greatest_d_so_far(
    z: float, n: int, distinct: bool
) -> None:
    """Nested: a key of the tail has its first two, and keeps them when it becomes frequent."""
    keys, times = zipf(6000, z=z)
    p = create("d-choices", workers=n, warm_up=1000, distinct=distinct)
    reach = ranked(np.unique(keys), n, distinct)
    most = 2
    for start in range(0, len(keys), 3):
        block = slice(start, start + 3)
        out = p.assign(keys[block], times[block]).tolist()
        most = max(
            most, p.observe().choices
        )  # d waits for a hundredth more of the stream: not twice in three
        for key, worker in zip(keys[block].tolist(), out, strict=True):
            assert worker in reach[key][:most]
    assert 2 < most < n


def ranked(keys: np.ndarray, n: int, distinct: bool) -> dict[int, list[int]]:
    """F_1, F_2, ... of each key; without repetitions where `distinct`."""
    rows = np.stack([candidate(keys, i, n, 7) for i in range(1, (8 * n if distinct else n) + 1)], axis=1)
    listed = dict(zip(keys.tolist(), rows.tolist(), strict=True))
    return {key: list(dict.fromkeys(row)) for key, row in listed.items()} if distinct else listed


@pytest.mark.parametrize("name", HEAD)
def test_the_head_is_never_larger_than_the_threshold_allows(name: str) -> None:
    p = create(name, workers=20, counters=2000)
    stream = zipf(20_000, z=1.1)
    keys, times = stream
    for end in range(1000, 20_001, 1000):
        p.assign(keys[end - 1000 : end], times[end - 1000 : end])
        counts = Counter(keys[:end].tolist())
        assert p.observe().head_keys == sum(count >= end / 100 for count in counts.values()) <= 100


@pytest.mark.parametrize(("source", "sources"), [(0, 1), (1, 3), (2, 3)])
def test_rr_head_sends_the_head_to_all_workers_in_turn(source: int, sources: int) -> None:
    stream = zipf(10_000, z=1.2)
    p = create("rr-head", workers=12, source=source, sources=sources, counters=2000)
    turns = p.assign(*stream)[head_tuples(stream, 1 / 60)]
    assert turns.tolist() == [(source * 12 // sources + i) % 12 for i in range(len(turns))]
    loads = worker_loads(turns, 12)
    assert loads.max() - loads.min() <= 1


@pytest.mark.parametrize("z", [1.1, 1.4, 2.0])
@pytest.mark.parametrize("n", [5, 20, 50])
def test_w_choices_leaves_no_more_than_rounding(n: int, z: float) -> None:
    """I * m <= s + 1 tuples, for one source."""
    loads = worker_loads(route("w-choices", zipf(100_000, keys=10_000, z=z), workers=n), n)
    assert loads.max() - loads.mean() <= 2


def test_knowledge_of_keys_survives_a_rescale_of_each() -> None:
    for name in HEAD:
        p = create(name, workers=50)
        p.assign(*zipf(50_000, z=1.4))
        before = p.observe().head_keys
        p.rescale(80)
        assert p.observe().head_keys >= before > 5
