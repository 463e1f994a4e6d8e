"""Homes of buckets against a dictionary that forgets nothing too early."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.kernels import kernel
from evenflow.sketches.placements import (
    LIVE,
    Placements,
    buckets_of,
    move_to,
    placements,
    put,
    release,
    without_workers_from,
    worker_of,
)


@kernel
def step(places: Placements, slide: int, at: int, worker: int) -> int:
    """The bucket's worker; `worker` where it is free."""
    cell, meta = places
    move_to(cell, meta, slide)
    home = worker_of(cell, meta, at)
    if home < 0:
        home = worker
    put(cell, meta, at, home)
    return home


moves = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 1, 1, 2, 5, 40, 5000]), st.integers(0, 15), st.integers(0, 99)),
    max_size=120,
)


@settings(max_examples=80, deadline=None)
@given(moves, st.sampled_from([1, 3, 10, 1024]))
def test_a_home_lasts_as_long_as_the_bucket_is_in_the_window(moves: list, slides: int) -> None:
    places = placements(16, slides)
    slide, last, homes = -100, {}, {}
    for passed, at, worker in moves:
        slide += passed
        free = at not in last or slide - last[at] >= slides
        homes[at] = worker if free else homes[at]
        last[at] = slide
        assert step(places, slide, at, worker) == homes[at]
        living = sum(slide - seen < slides for seen in last.values())
        assert living <= places.meta[LIVE] == np.count_nonzero(places.cell) <= 16


@settings(max_examples=40, deadline=None)
@given(moves, st.sampled_from([1025, 5000, 100_000]))
def test_of_a_window_of_very_many_slides_no_home_is_forgotten_early(moves: list, slides: int) -> None:
    places = placements(16, slides)
    slide, last, homes = 0, {}, {}
    for passed, at, worker in moves:
        slide += passed
        home = step(places, slide, at, worker)
        if at in last and slide - last[at] < slides:
            assert home == homes[at]
        last[at], homes[at] = slide, home


def test_stamps_coming_round_bring_no_dead_bucket_back() -> None:
    places = placements(64, 10)
    for at in range(64):
        step(places, 0, at, 1)
    for slide in range(1, 20_000):
        step(places, slide, slide % 4, 2)
    assert all(step(places, 20_000, at, 3) == 3 for at in range(10, 64))


def test_without_a_window_homes_last_for_ever() -> None:
    places = placements(8, 0)
    assert step(places, 0, 5, 3) == 3
    assert step(places, 0, 5, 4) == 3


def test_buckets_of_workers_that_are_gone_are_free() -> None:
    places = placements(8, 10)
    for at in range(8):
        step(places, 0, at, at)
    without_workers_from(5, places)
    assert places.meta[LIVE] == 5
    assert [step(places, 0, at, 1) for at in range(8)] == [0, 1, 2, 3, 4, 1, 1, 1]


def test_release_frees_the_same_share_of_each_workers_live_buckets() -> None:
    places = placements(1 << 10, 4)
    move_to(*places, 0)
    for at in range(400):
        put(*places, at, 7)  # expired by slide 5
    move_to(*places, 5)
    for at in range(300, 900):
        put(*places, at, at % 3)
    twin = Placements(places.cell.copy(), places.meta.copy())
    other = Placements(places.cell.copy(), places.meta.copy())
    release(0.25, np.uint64(5), places)
    release(0.25, np.uint64(5), twin)
    release(0.25, np.uint64(6), other)
    assert buckets_of(9, places).tolist() == [150, 150, 150, 0, 0, 0, 0, 0, 0]
    assert places.meta[LIVE] == 450
    assert places.cell.tolist() == twin.cell.tolist()
    assert places.cell.tolist() != other.cell.tolist()
