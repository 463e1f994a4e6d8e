"""Laws of evenflow when tuples do not come in order of event time: what still holds, and how far.

Its clock is the greatest time so far and never runs backwards, and a tuple counts in the slide that the clock
shows (the law of every partitioner "a late tuple counts as if it came at the greatest time so far"). A
silence of more than a window is believed when 64 more tuples have come from beyond it than from before it.
They count in the new window then, and until then in the old one. When the clock comes within a window of one
of them, it goes on to its time. By that clock everything is as in order. A tuple D ms late counts at most
ceil(D / slide) slides after its own.
"""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.keys import candidate
from evenflow.metrics import key_codes, window_figures, worker_loads
from evenflow.partitioners import create, restore
from evenflow.partitioners.evenflow.state import DOUBTS
from evenflow.simulation.channel import Channel, Exchange
from tests.examples import examples
from tests.unit.partitioners.streams import SPREAD, Stream, zipf

few = examples(40)
SLIDE, SLIDES = 100, 4
WINDOW = {"window_ms": SLIDE * SLIDES, "slide_ms": SLIDE}


def late(tuples: int, keys: int, z: float, seed: int, disorder: int, pause: int) -> tuple[Stream, int]:
    """One tuple per ms, each up to `disorder` ms behind the greatest time so far; pauses empty the cells."""
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
    """The slide in which each tuple counts, in the end."""
    counted: list[int] = []
    doubted: list[tuple[int, int]] = []
    for row, time in enumerate(times.tolist()):
        slide = time // SLIDE
        now = counted[-1] if counted else slide
        beyond = slide - now > SLIDES
        if beyond and len(doubted) < DOUBTS - 1:
            doubted.append((row, time))
            counted.append(now)
            continue
        if slide > now:
            time = max([time, *(then for _, then in doubted if then // SLIDE - slide <= SLIDES)])
            slide = time // SLIDE
        for earlier, _ in doubted if beyond else ():
            counted[earlier] = slide
        doubted = [] if beyond else [doubt for doubt in doubted if doubt[1] > time or slide <= now][:-1]
        counted.append(max(now, slide))
    return np.array(counted)


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
@example(
    late(51, keys=2, z=1.0, seed=99, disorder=3000, pause=0), 2, 1
)  # more cells while tuples are in doubt
@example(late(185, keys=300, z=1.0, seed=59, disorder=3000, pause=400), 14, 1 << 12)  # a free cell in doubt
@given(disordered, st.integers(1, 20), st.sampled_from([1, 64, 1 << 12]))
def test_an_unsplit_key_is_on_one_worker_of_every_window_by_the_clock(
    drawn: tuple[Stream, int], n: int, cells: int
) -> None:
    (keys, times), _ = drawn
    out = create("evenflow", workers=n, price=1e12, cells=cells, **WINDOW).assign(keys, times)
    assert most_workers(keys, out, clock_slides(times), SLIDES) == 1


@few
@example(late(512, keys=2, z=0.0, seed=0, disorder=100, pause=399), 2, 1)
@given(disordered, st.integers(1, 20), st.sampled_from([1, 64, 1 << 12]))
def test_by_event_time_it_is_on_one_worker_of_a_window_shorter_by_the_disorder(
    drawn: tuple[Stream, int], n: int, cells: int
) -> None:
    """And on k workers only within slides - 1 + ceil(D / slide) >= (k - 1) * slides: at most two of a window
    while the disorder is within a window."""
    (keys, times), disorder = drawn
    p = create("evenflow", workers=n, price=1e12, cells=cells, max_disorder_ms=disorder, **WINDOW)
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
    rare = np.isin(keys, distinct[counts < 4])  # one of four sources believes four occurrences
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

    Means over the windows of twelve steady streams. Replicas hardly grow.
    """
    n, slides = 12, 20
    over, replicas = [], []
    for seed in range(12):
        keys, times = zipf(60_000, keys=3000, z=1.2, seed=seed)
        times = times - np.random.default_rng(seed).integers(0, disorder + 1, len(times))
        out = create("evenflow", workers=n, window_ms=10_000, slide_ms=500).assign(keys, times)
        panes = times // 500
        order = np.argsort(panes, kind="stable")
        codes, panes = key_codes(keys)[0][order], panes[order]
        result = window_figures(out[order], codes, panes, n, panes_per_window=slides)
        steady = result[slice(*np.searchsorted(result.ends, (2 * slides, 60_000 // 500 - 7)))]
        over.append(steady.imbalance * 10_000)
        replicas.append(steady.gamma - steady.distinct)
    assert np.mean(over) <= 4 + 1.5 * np.sqrt(disorder / n)
    assert np.mean(replicas) <= 2.5 * n


HOUR = 3_600_000


@few
@given(
    st.floats(0.5, 2),
    st.integers(0, 99),
    st.lists(st.integers(1, 2499).filter(lambda row: row % SLIDE), min_size=1, max_size=40),
    st.integers(SLIDE * (SLIDES + 1), HOUR),
    st.sampled_from([1, 5]),
)
def test_tuples_with_a_clock_that_is_ahead_change_nothing(
    z: float, seed: int, rows: list[int], ahead: int, sources: int
) -> None:
    """By more than a window, and fewer than 64 more than tuples with a right clock: all go where they went.

    Unless one is the first of its slide, which begins with the next tuple then.
    """
    keys, times = zipf(2500, keys=300, z=z, seed=seed)
    wrong = times.copy()
    wrong[rows] += ahead
    kind = {"workers": 12, "price": 0.0, "sources": sources, **WINDOW}
    right = create("evenflow", **kind).assign(keys, times)
    assert create("evenflow", **kind).assign(keys, wrong).tolist() == right.tolist()


def test_a_silence_is_believed_when_64_more_tuples_lie_beyond_it_than_before_it() -> None:
    keys, times = zipf(3000, keys=300, z=1.0)
    p = create("evenflow", workers=12, **WINDOW)
    p.assign(keys[:2000], times[:2000])
    assert p.window_tuples().sum() == SLIDE * SLIDES
    p.assign(keys[2000:2063], times[2000:2063] + HOUR)
    assert p.window_tuples().sum() == SLIDE * SLIDES + 63
    p.assign(keys[2063:2064], times[2063:2064])
    p.assign(keys[2064:2065], times[2064:2065] + HOUR)
    assert p.window_tuples().sum() == SLIDE * (SLIDES - 1) + 65, "the tuple before the silence denies it"
    p.assign(keys[2065:2066], times[2065:2066] + HOUR)
    assert p.window_tuples().sum() == 64, "a window of what lies beyond"


@pytest.mark.parametrize("sources", [1, 2, 5, 16])
@pytest.mark.parametrize("exchange", [False, True])
def test_no_holder_of_a_key_that_was_silent_for_a_window_survives_it_by_more_than_a_slide(
    sources: int, exchange: bool
) -> None:
    """Whatever the number of sources: the hot keys are replaced every three slides, and nobody asks for
    the old ones.
    """
    rng = np.random.default_rng(3)
    tuples, n = 40_000, 8
    times = np.arange(tuples) // 10
    hot = rng.integers(0, 6, tuples) + 10 * (times // (3 * SLIDE))
    keys = np.where(rng.random(tuples) < 0.6, hot, 100_000 + rng.integers(0, 500, tuples))
    hashes = (keys + 1).astype(np.uint64) * SPREAD
    parts = [
        create("evenflow", workers=n, source=j, sources=sources, price=0.0, watch=4, **WINDOW)
        for j in range(sources)
    ]
    told = Exchange(parts, Channel(), patience_ms=SLIDE)
    last = {}
    bought = 0
    for begin in range(0, tuples, 10 * SLIDE):
        if exchange:
            told.catch_up(int(times[begin]))
        for j, part in enumerate(parts):
            mine = slice(begin + j, begin + 10 * SLIDE, sources)
            last |= dict.fromkeys(hashes[mine].tolist(), int(times[begin]) // SLIDE)
            part.assign(hashes[mine], times[mine])
        for part in parts:
            split = np.flatnonzero(part._rings.ring["size"])
            bought += len(split)
            for key in part._summary.key[split].tolist():
                assert last[key] > int(times[begin]) // SLIDE - SLIDES
    assert bought > 20 * sources
