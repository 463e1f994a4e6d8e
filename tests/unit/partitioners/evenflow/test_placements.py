"""Homes of cells against a dictionary that forgets nothing too early."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.numeric.kernels import kernel
from evenflow.partitioners.evenflow.placements import (
    Placements,
    bound,
    cells_of,
    crowded,
    grown,
    move_to,
    placements,
    put,
    release,
    without_workers_from,
    worker_of,
)
from tests.examples import examples


@kernel
def step(places: Placements, slide: int, at: int, worker: int) -> int:
    """The cell's worker; `worker` where it is free."""
    move_to(places, slide)
    home = worker_of(places, at)
    if home < 0:
        home = worker
    put(places, at, home)
    return home


moves = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 1, 1, 2, 5, 40, 5000]), st.integers(0, 15), st.integers(0, 99)),
    max_size=120,
)


@examples(80)
@given(moves, st.sampled_from([1, 3, 10, 1024]))
def test_a_home_lasts_as_long_as_the_cell_is_in_the_window(moves: list, slides: int) -> None:
    places = placements(16, slides)
    slide, last, homes = -100, {}, {}
    for passed, at, worker in moves:
        slide += passed
        free = at not in last or slide - last[at] >= slides
        homes[at] = worker if free else homes[at]
        last[at] = slide
        assert step(places, slide, at, worker) == homes[at]
        living = sum(slide - seen < slides for seen in last.values())
        assert living <= places.meta["live"] == np.count_nonzero(places.cell) <= 16


@examples(40)
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


def test_stamps_coming_round_bring_no_dead_cell_back() -> None:
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


def test_cells_of_workers_that_are_gone_are_free() -> None:
    places = placements(8, 10)
    for at in range(8):
        step(places, 0, at, at)
    without_workers_from(5, places)
    assert places.meta["live"] == 5
    assert [step(places, 0, at, 1) for at in range(8)] == [0, 1, 2, 3, 4, 1, 1, 1]


def test_release_frees_the_same_share_of_each_workers_live_cells() -> None:
    places = placements(1 << 10, 4)
    move_to(places, 0)
    for at in range(400):
        put(places, at, 7)  # expired by slide 5
    move_to(places, 5)
    for at in range(300, 900):
        put(places, at, at % 3)
    twin = Placements(places.cell.copy(), places.meta.copy())
    other = Placements(places.cell.copy(), places.meta.copy())
    release(0.25, np.uint64(5), places)
    release(0.25, np.uint64(5), twin)
    release(0.25, np.uint64(6), other)
    assert cells_of(9, places).tolist() == [150, 150, 150, 0, 0, 0, 0, 0, 0]
    assert places.meta["live"] == 450
    assert places.cell.tolist() == twin.cell.tolist()
    assert places.cell.tolist() != other.cell.tolist()


def test_the_expired_are_all_swept_within_a_window_of_16_slides_or_more() -> None:
    for slides in (1, 10, 64, 200, 1000):
        places = placements(1 << 10, slides)
        for at in range(1 << 10):
            step(places, 0, at, 1)
        for slide in range(1, slides + max(16, slides) + 1):
            move_to(places, slide)
        assert places.meta["live"] == 0


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=60), st.integers(0, 3))
def test_every_key_keeps_its_worker_when_cells_grow(keys: list[int], doublings: int) -> None:
    places = placements(8, 100, most=8 << doublings)
    homes = {key % 8: step(places, 0, key % 8, key % 7) for key in keys}
    more = grown(places)
    size = len(more.cell)
    assert size == 8 * min(4, 1 << doublings)
    assert [step(more, 1, key % size, 99) for key in keys] == [homes[key % 8] for key in keys]
    assert more.meta["live"] == np.count_nonzero(more.cell) == len(homes) * size // 8


def test_cells_grow_when_half_are_in_use_and_again_only_when_copies_have_been_swept() -> None:
    places = placements(16, 10, most=256)
    for at in range(9):
        assert not crowded(places)
        step(places, 0, at, at)
    assert crowded(places)
    places = grown(places)
    sizes = [len(places.cell)]
    for slide in range(1, 400):
        for at in range(50):
            step(places, slide, at, 1)
        if crowded(places):
            assert slide >= 26
            places = grown(places)
            sizes.append(len(places.cell))
    assert sizes == [64, 256]


def test_cells_without_a_window_or_a_limit_above_them_never_grow() -> None:
    for places in (placements(8, 0, most=1024), placements(8, 10), placements(8, 10, most=4)):
        for at in range(8):
            step(places, 0, at, at)
        assert not crowded(places)


def test_no_stream_outgrows_the_bound() -> None:
    assert bound(0, 1 << 10, 60, 1 << 20) == 4 << 10
    assert bound(10**9, 1 << 10, 60, 1 << 20) == 4 << 20
    assert bound(10**9, 1 << 10, 0, 1 << 20) == 4 << 10
    for keys in (3, 40, 200):
        places = placements(16, 60, most=1 << 20)
        for slide in range(300):
            window = slide // 60 * keys
            for key in range(window, window + keys):
                step(places, slide, key * 2654435761 % 2**32 & (len(places.cell) - 1), 1)
            if crowded(places):
                places = grown(places)
        assert places.cell.nbytes <= bound(2 * keys, 16, 60, 1 << 20)


def test_gaps_between_short_windows_leave_nothing_behind_that_looks_like_a_crowd() -> None:
    """Windows of one slide, each with 300 cells of 1024, far apart: what a gap makes old is swept."""
    places = placements(1 << 10, 1, most=1 << 20)
    for slide in range(0, 3000, 100):
        for at in range(300):
            step(places, slide, at, 1)
        assert places.meta["live"] == 300
        assert not crowded(places)
