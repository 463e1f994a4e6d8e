"""Laws of dagreedy: its score is the largest over all workers, its hot keys are few, its holders known."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.keys import candidate
from evenflow.metrics import fragmentation, imbalance, worker_loads
from evenflow.numeric.arrays import LAST_TIME
from evenflow.partitioners import create, restore
from tests.examples import examples
from tests.unit.partitioners.costs import drawn, some_costs
from tests.unit.partitioners.streams import Stream, all_distinct, zipf

SLIDING = {"window": "sliding", "window_ms": 300, "slide_ms": 100}
TUMBLING = {"window": "tumbling", "window_ms": 300, "slide_ms": 100}
CUMULATIVE = {"window": "cumulative", "slide_ms": 100}


def route(stream: Stream, *, workers: int, **options: object) -> np.ndarray:
    return create("dagreedy", workers=workers, **options).assign(*stream)


def recount(
    stream: Stream,
    n: int,
    *,
    alpha: float,
    theta: float,
    options: dict,
    costs: np.ndarray | None = None,
) -> tuple[list[int], list[bool]]:
    """The rule in plain Python, every score computed; and which tuples had a hot key."""
    keys, times = stream
    costs = np.ones(len(keys), np.int64) if costs is None else costs
    homes = candidate(keys, 1, n, 7).tolist()
    slides = np.maximum.accumulate(times // 100)
    spans, length = slides, 3
    if options["window"] == "tumbling":
        spans, length = np.maximum.accumulate(times // 300), 1
    elif options["window"] == "cumulative":
        spans, length = np.zeros(len(keys), np.int64), 1
    out: list[int] = []
    was_hot: list[bool] = []
    until: dict[int, int] = {}
    counts, tuples, before, now = Counter[int](), Counter[int](), 0, None
    for row, key in enumerate(keys.tolist()):
        if now is not None and slides[row] > now:
            counts, tuples, before = Counter(), Counter(), counts.total()
        now = int(slides[row])
        counts[key] += int(costs[row])
        tuples[key] += 1
        if before and tuples[key] > 1 and counts[key] > theta * before:
            until[key] = now + 1
        hot = until.get(key, now - 1) >= now
        inside = [at for at in range(row) if spans[at] > spans[row] - length]
        loads = np.bincount([out[at] for at in inside], costs[inside], minlength=n)
        held = {out[at] for at in inside if keys[at] == key}
        best = homes[row]
        if hot:
            average = loads.sum() / n
            price = (1 - alpha) / average if average else 0.0
            scores = [(alpha if w in held else 0.0) - price * (loads[w] - average) for w in range(n)]
            if scores[best] < max(scores):
                best = scores.index(max(scores))
        out.append(int(best))
        was_hot.append(hot)
    return out, was_hot


streams = st.one_of(
    st.builds(
        lambda rows: (
            np.array([key for key, _ in rows], np.uint64),
            np.array([time for _, time in rows], np.int64),
        ),
        st.lists(
            st.tuples(st.integers(0, 8), st.integers(-900, 1500) | st.integers(LAST_TIME - 900, LAST_TIME)),
            min_size=1,
            max_size=150,
        ),
    ),
    st.builds(zipf, st.integers(1, 900), keys=st.integers(1, 60), z=st.floats(0, 2), seed=st.integers(0, 99)),
)


@pytest.mark.parametrize("options", [SLIDING, TUMBLING, CUMULATIVE], ids=lambda o: o["window"])
@examples(30)
@given(
    streams,
    st.integers(1, 9),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.sampled_from([0.0, 0.02, 0.1, 0.4]),
    some_costs,
)
def test_every_decision_is_the_largest_score_of_a_recount(
    options: dict, stream: Stream, n: int, alpha: float, theta: float, some: list[int]
) -> None:
    costs = drawn(some, len(stream[0]))
    out = create("dagreedy", workers=n, alpha=alpha, theta=theta, **options).assign(*stream, costs)
    assert out.tolist() == recount(stream, n, alpha=alpha, theta=theta, options=options, costs=costs)[0]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_a_key_is_on_one_worker_while_it_is_not_hot(alpha: float) -> None:
    stream = zipf(2000, keys=300, z=1.2)
    out = route(stream, workers=8, alpha=alpha, theta=0.05, **SLIDING)
    hot = np.array(recount(stream, 8, alpha=alpha, theta=0.05, options=SLIDING)[1])
    assert 0 < hot.mean() < 1
    assert np.array_equal(out[~hot], candidate(stream[0], 1, 8, 7)[~hot])


def test_by_affinity_alone_it_is_hashing() -> None:
    """A hot key stays where it was before it was hot, and a new one ties everywhere."""
    stream = zipf(5000)
    assert route(stream, workers=16, alpha=1.0, **SLIDING).tolist() == (
        candidate(stream[0], 1, 16, 7).tolist()
    )


def test_by_load_alone_hot_keys_go_to_the_least_loaded_worker() -> None:
    """Once each of four keys has come twice in a slide."""
    keys, times = zipf(4000, z=0.5, keys=4)
    out = route((keys, times), workers=10, alpha=0.0, theta=0.0, **CUMULATIVE)
    loads = worker_loads(out[:200], 10).copy()
    for worker in out[200:]:
        assert loads[worker] == loads.min()
        loads[worker] += 1
    assert loads.max() - loads.min() <= 1


@pytest.mark.parametrize("sources", [1, 2, 5, 10])
def test_however_many_sources_share_a_slide_it_splits_few_keys(sources: int) -> None:
    """With 100 tuples a slide and source, one tuple would exceed 1/(100n) of them."""
    keys, times = zipf(60_000, keys=5000)
    out = np.empty(len(keys), np.int32)
    for source in range(sources):
        p = create("dagreedy", workers=16, source=source, sources=sources, window="sliding", window_ms=6000)
        out[source::sources] = p.assign(keys[source::sources], times[source::sources])
    inside = times >= 54_000
    _, holders = fragmentation(out[inside], keys[inside])
    assert holders.mean() < 1.1


def test_without_hot_keys_it_is_hashing() -> None:
    stream = zipf(5000)
    assert route(stream, workers=16, theta=1.0, **SLIDING).tolist() == (
        candidate(stream[0], 1, 16, 7).tolist()
    )


def test_hot_keys_are_at_most_a_hundred_per_worker() -> None:
    p = create("dagreedy", workers=3, window_ms=60_000, slide_ms=10_000)
    for keys, times in (zipf(60_000, keys=20_000, z=0.8), all_distinct(60_000)):
        for at in range(0, 60_000, 1000):
            p.assign(keys[at : at + 1000], times[at : at + 1000])
            assert p.observe().head_keys is not None
            assert p.observe().head_keys <= 2 * 100 * 3


def test_a_hot_key_leaves_a_worker_of_twice_the_average_load() -> None:
    """With alpha = 1/2 affinity pays for at most one average load more than the least loaded worker."""
    keys, times = zipf(30_000, z=1.6, keys=1000)
    out = route((keys, times), workers=10, window_ms=10_000, slide_ms=1000)
    hashed = worker_loads(candidate(keys, 1, 10, 7), 10)
    loads = worker_loads(out, 10)
    assert imbalance(loads) < imbalance(hashed) / 3
    assert loads.max() < 2.2 * loads.mean() < hashed.max()


def test_what_is_known_of_hot_keys_survives_a_rescale() -> None:
    p = create("dagreedy", workers=10, theta=0.01)
    p.assign(*zipf(5000))
    hot = p.observe().head_keys
    assert hot
    p.rescale(20)
    assert p.observe().head_keys == hot


def test_after_the_last_time_of_all_a_restored_partitioner_routes_on_alike() -> None:
    keys, times = zipf(400, keys=40, z=1.5)
    times = np.where(times < 200, LAST_TIME, 10 * times)
    expected = route((keys, times), workers=13)
    p, result = create("dagreedy", workers=13), []
    for first in range(0, 400, 7):
        result.extend(p.assign(keys[first : first + 7], times[first : first + 7]).tolist())
        p = restore(p.snapshot())
    assert result == expected.tolist()


def test_bad_options_say_what_is_wrong() -> None:
    with pytest.raises(ConfigError, match=r"option 'alpha' of dagreedy: .*less than or equal to 1"):
        create("dagreedy", workers=4, alpha=2)
    with pytest.raises(ConfigError, match="must be a multiple of slide_ms"):
        create("dagreedy", workers=4, window_ms=1500)
