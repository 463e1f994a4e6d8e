"""Laws of evenflow when tuples do not come in order of event time: what still holds, and how far.

Its clock is the greatest time so far and never runs backwards, and a tuple counts in the slide that the clock
shows (`test_a_late_tuple_counts_as_if_it_came_at_the_greatest_time_so_far`). By that clock everything is as in
order; a tuple D ms late counts at most ceil(D / slide) slides after its own.
"""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.keys import candidate
from evenflow.metrics import key_codes, window_figures, worker_loads
from evenflow.partitioners import create, restore
from tests.unit.partitioners.streams import SPREAD, Stream, zipf

few = settings(max_examples=40, deadline=None)
SLIDE, SLIDES = 100, 4
WINDOW = {"window_ms": SLIDE * SLIDES, "slide_ms": SLIDE}


def late(tuples: int, keys: int, z: float, seed: int, disorder: int, pause: int) -> tuple[Stream, int]:
    """One tuple per ms, each up to `disorder` ms behind the greatest time so far; pauses empty the buckets."""
    hashes, times = zipf(tuples, keys=keys, z=z, seed=seed)
    rng = np.random.default_rng(seed)
    clock = times + times // 170 * pause - 5000
    return (hashes, clock - rng.integers(0, disorder + 1, tuples)), disorder


disordered = st.builds(
    late,
    st.integers(1, 2500),
    keys=st.integers(1, 300),
    z=st.floats(0, 2.5),
    seed=st.integers(0, 99),
    disorder=st.sampled_from([0, 1, 30, 100, 101, 250, 399, 400, 3000]),
    pause=st.sampled_from([0, 150, 350, 399, 400, 2000]),
)


def clock_slides(times: np.ndarray) -> np.ndarray:
    """The slide in which each tuple counts."""
    return np.maximum.accumulate(times // SLIDE)


def most_workers(keys: np.ndarray, out: np.ndarray, slides: np.ndarray, length: int) -> int:
    """On how many workers the most split key is within any `length` slides in a row."""
    placed: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for key, worker, slide in sorted(set(zip(keys.tolist(), out.tolist(), slides.tolist(), strict=True))):
        placed[key].append((slide, worker))
    most = 0
    for of_key in placed.values():
        for first, _ in of_key:
            inside = {worker for slide, worker in of_key if first <= slide < first + length}
            most = max(most, len(inside))
    return most


@few
@given(disordered, st.integers(1, 20), st.sampled_from([1, 64, 1 << 12]))
def test_an_unsplit_key_is_on_one_worker_of_every_window_by_the_clock(
    drawn: tuple[Stream, int], n: int, buckets: int
) -> None:
    (keys, times), _ = drawn
    out = create("evenflow", workers=n, price=1e12, buckets=buckets, **WINDOW).assign(keys, times)
    assert most_workers(keys, out, clock_slides(times), SLIDES) == 1


@few
@given(disordered, st.integers(1, 20), st.sampled_from([1, 64, 1 << 12]))
def test_by_event_time_it_is_on_one_worker_of_a_window_shorter_by_the_disorder(
    drawn: tuple[Stream, int], n: int, buckets: int
) -> None:
    """And on k workers only within slides - 1 + ceil(D / slide) >= (k - 1) * slides: at most two of a window
    while the disorder is within a window."""
    (keys, times), disorder = drawn
    p = create("evenflow", workers=n, price=1e12, buckets=buckets, max_disorder_ms=disorder, **WINDOW)
    out = p.assign(keys, times)
    behind = -(-disorder // SLIDE)
    if behind < SLIDES:
        assert most_workers(keys, out, times // SLIDE, SLIDES - behind) == 1
    assert most_workers(keys, out, times // SLIDE, SLIDES) <= 1 + (SLIDES - 1 + behind) // SLIDES


def test_a_tuple_that_is_a_window_late_finds_its_key_moved() -> None:
    """So the law is no stronger: both tuples of the key are of slide 3, the second came in slide 7."""
    p = create("evenflow", workers=2, price=1e12, **WINDOW)
    one, others = np.array([1], np.uint64) * SPREAD, np.arange(2, 40, dtype=np.uint64) * SPREAD
    home = p.assign(one, np.array([399]))[0]
    beside = p.assign(others, np.full(len(others), 7 * SLIDE)) == home
    p.assign(np.repeat(others[beside], 20), np.full(20 * int(beside.sum()), 7 * SLIDE))
    assert p.assign(one, np.array([399])).tolist() == [1 - home]


@few
@given(disordered, st.integers(2, 12), st.sampled_from([1, 8]))
def test_a_key_too_rare_to_be_watched_is_never_split_however_late_its_tuples(
    drawn: tuple[Stream, int], n: int, watch: int
) -> None:
    """Fewer than 8 tuples in all are never enough; any price."""
    (keys, times), _ = drawn
    out = create("evenflow", workers=n, price=0.0, watch=watch, **WINDOW).assign(keys, times)
    distinct, counts = np.unique(keys, return_counts=True)
    rare = np.isin(keys, distinct[counts < 8])
    if rare.any():
        assert most_workers(keys[rare], out[rare], clock_slides(times)[rare], SLIDES) == 1


@few
@given(disordered, st.integers(2, 12), st.integers(1, 3))
def test_rare_keys_of_several_sources_are_at_their_first_candidate_at_any_time(
    drawn: tuple[Stream, int], n: int, source: int
) -> None:
    (keys, times), _ = drawn
    out = create("evenflow", workers=n, source=source, sources=4, price=0.0, **WINDOW).assign(keys, times)
    distinct, counts = np.unique(keys, return_counts=True)
    rare = np.isin(keys, distinct[counts < 8])
    assert out[rare].tolist() == candidate(keys[rare], 1, n, 7).tolist()


@pytest.mark.parametrize("weights", [(), (1.0, 2.5, 0.3)])
@few
@given(drawn=disordered, n=st.integers(1, 12), price=st.sampled_from([0.0, 5e-4, 1e12]), cut=st.floats(0, 1))
def test_no_tuple_is_lost_from_the_loads_and_replicas_stay_within_their_pool(
    weights: tuple[float, ...], drawn: tuple[Stream, int], n: int, price: float, cut: float
) -> None:
    (keys, times), _ = drawn
    p = create("evenflow", workers=n, price=price, watch=2, weights=weights, **WINDOW)
    at = int(cut * len(keys))
    first = p.assign(keys[:at], times[:at])
    p = restore(p.snapshot())
    out = np.concatenate([first, p.assign(keys[at:], times[at:])])
    slides = clock_slides(times)
    inside = slides > slides[-1] - SLIDES
    assert p.window_tuples().tolist() == worker_loads(out[inside], n).tolist()
    assert p.observe().loads.tolist() == worker_loads(out, n).tolist()
    edges, split = p._rings.meta.tolist()
    assert 0 <= split <= edges <= 2 * n


@pytest.mark.parametrize("disorder", [0, 100, 1000, 3000])
def test_windows_of_event_time_are_off_level_by_about_the_root_of_the_disorder(disorder: int) -> None:
    """D tuples at each end of the window come in another slide than their own, as chance deals them out.

    Means over the windows of three steady streams. Replicas hardly grow.
    """
    n, slides = 12, 20
    over, replicas = [], []
    for seed in range(3):
        keys, times = zipf(60_000, keys=3000, z=1.2, seed=seed)
        times = times - np.random.default_rng(seed).integers(0, disorder + 1, len(times))
        out = create("evenflow", workers=n, window_ms=10_000, slide_ms=500).assign(keys, times)
        panes = times // 500
        order = np.argsort(panes, kind="stable")
        codes, panes = key_codes(keys)[0][order], panes[order]
        found = window_figures(out[order], codes, panes, n, panes_per_window=slides)
        steady = found[slice(*np.searchsorted(found.ends, (2 * slides, 60_000 // 500 - 7)))]
        over.append(steady.imbalance * 10_000)
        replicas.append(steady.gamma - steady.distinct)
    assert np.mean(over) <= 4 + 1.5 * np.sqrt(disorder / n)
    assert np.mean(replicas) <= 2.5 * n
