"""The replayed queues of figures 13 to 15 of 000: what is counted, what it costs, and which rate it
allows.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cores.stage_costs import COSTS, StageSize, costs
from evenflow.elasticity.simulated.queues import lindley
from evenflow.numeric.arrays import Int32s
from evenflow.simulation import KeyedStream
from papers.cells.run_plan import Stream
from papers.paper_000.convergence import courses
from papers.paper_000.replay import (
    WAYS,
    WINDOW_WAYS,
    Counts,
    RoutedReplay,
    counted,
    key_holders,
    rate_of,
    shortest_slide,
)
from papers.paper_000.several_partitioners import (
    COOPERATIVE,
    Run,
    announced_rate,
    counts,
    forwards,
    rate,
    run,
    tabled,
    whole_keys_imbalance,
)
from papers.unit_costs import Costs, unit_costs
from tests.examples import examples

COMBINERS, REDUCERS, KEYS, SLIDES, SPAN = 3, 2, 6, 5, 2
NOTHING = Costs(tuple=0, make=0, send=0, receive=0, hold=0, emit=0, hear=0)


def column(draw: st.DrawFn, length: int, most: int) -> Int32s:
    """So many numbers from 0 to `most` - 1."""
    return np.array(draw(st.lists(st.integers(0, most - 1), min_size=length, max_size=length)), np.int32)


@st.composite
def routings(draw: st.DrawFn) -> RoutedReplay:
    tuples = draw(st.integers(1, 60))
    panes = np.sort(column(draw, tuples, SLIDES)).astype(np.int64)
    panes[-1] = SLIDES - 1
    return RoutedReplay(
        workers=column(draw, tuples, COMBINERS),
        codes=column(draw, tuples, KEYS),
        panes=panes,
        sources=column(draw, tuples, 2),
        homes=column(draw, KEYS, COMBINERS),
        reducers=column(draw, KEYS, REDUCERS),
        combiners=COMBINERS,
        reducer_count=REDUCERS,
    )


def count(routing: RoutedReplay) -> Counts:
    return counted(routing, span=SPAN, first=0, ways=(*WAYS, *WINDOW_WAYS))


@given(routings())
def test_each_slide_says_how_many_combiners_hold_a_key_in_its_window(routing: RoutedReplay) -> None:
    slides = list(key_holders(routing, span=SPAN, first=0))
    assert [row for rows, _ in slides for row in range(rows.start, rows.stop)] == list(
        range(len(routing.codes))
    )
    for number, (_, holders) in enumerate(slides):
        inside = (routing.panes <= number) & (routing.panes > number - SPAN)
        for key in range(KEYS):
            assert holders[key] == len(set(routing.workers[inside & (routing.codes == key)].tolist()))


@given(routings())
def test_every_row_of_results_is_made_once_whatever_is_forwarded(routing: RoutedReplay) -> None:
    result = count(routing)
    in_window = [
        len(np.unique(routing.codes[(routing.panes <= last) & (routing.panes > last - SPAN)]))
        for last in range(SLIDES)
    ]
    for way in (*WAYS, *WINDOW_WAYS):
        share = result.shares[way]
        assert (share.finished.sum(axis=1) + share.rows.sum(axis=1) == in_window).all()
        assert (share.sent.sum(axis=1) == share.received.sum(axis=1)).all(), "what is sent is received"
    assert (result.distinct == in_window).all()
    assert result.tuples.sum() == len(routing.codes)


@given(routings())
def test_forwarding_never_makes_a_reducer_do_more(routing: RoutedReplay) -> None:
    result = count(routing)
    none, forwarded, announced = (result.work(way, unit_costs())[1] for way in WAYS)
    assert (forwarded <= none).all()
    # A key at home is handed on as one partial of the window, where its slide may have none.
    assert (result.shares["announced"].rows <= result.shares["none"].rows).all()
    assert announced.shape == none.shape


@given(routings())
def test_keys_that_go_home_are_finished_there_and_nobody_announces_them(routing: RoutedReplay) -> None:
    result = count(replace(routing, workers=routing.homes[routing.codes]))
    assert result.announcements.sum() == 0
    for way in ("forwarded", "announced"):
        assert result.shares[way].received.sum() == 0
        assert (result.shares[way].finished.sum(axis=1) == result.distinct).all()


@given(routings())
def test_in_the_papers_dataflow_a_reducer_gets_a_partial_result_for_each_holder_of_a_key(
    routing: RoutedReplay,
) -> None:
    """Equation 2. What is forwarded is taken from that, and combiners hold as much with both ways."""
    result = count(routing)
    every, forwarded = (result.shares[way] for way in WINDOW_WAYS)
    assert (every.received.sum(axis=1) == result.gamma).all()
    assert (every.rows.sum(axis=1) == result.distinct).all()
    assert (every.held_keys == forwarded.held_keys).all()
    assert (
        every.received.sum(axis=1) - forwarded.received.sum(axis=1) == forwarded.finished.sum(axis=1)
    ).all()


@given(routings(), st.integers(0, SLIDES - SPAN))
def test_a_part_of_a_stream_has_the_full_windows_that_lie_within_it(
    routing: RoutedReplay, first: int
) -> None:
    """A window of two slides, of which only the later one is counted."""
    ways = (*WAYS, *WINDOW_WAYS)
    last = first + SPAN
    if not ((routing.panes >= first) & (routing.panes < last)).any():
        return
    part = routing.part(first, last)
    assert part.panes.min() >= 0
    if part.panes[-1] < SPAN - 1:
        return  # its last slide has no tuples, so there is no row to count
    alone = counted(part, span=SPAN, first=SPAN - 1, ways=ways)
    whole = counted(routing, span=SPAN, first=0, ways=ways).between(last - 1, last)
    assert (alone.tuples == whole.tuples).all()
    assert alone.gamma.tolist() == whole.gamma.tolist()
    for way in ways:
        combiners, reducers = alone.work(way, unit_costs())
        assert combiners == pytest.approx(whole.work(way, unit_costs())[0])
        assert reducers == pytest.approx(whole.work(way, unit_costs())[1])


def test_a_window_by_hand() -> None:
    """Two slides, one window. Key 0 is whole at combiner 1, its home; key 1, of home 0, is on 0 and 2."""
    routing = RoutedReplay(
        workers=np.array([1, 0, 1, 2, 2], np.int32),
        codes=np.array([0, 1, 0, 1, 1], np.int32),
        panes=np.array([0, 0, 1, 1, 1]),
        sources=np.array([0, 1, 0, 0, 1], np.int32),
        homes=np.array([1, 0], np.int32),
        reducers=np.array([1, 1], np.int32),
        combiners=3,
        reducer_count=2,
    )
    result = counted(routing, span=2, first=1, ways=(*WAYS, *WINDOW_WAYS))
    assert result.tuples.tolist() == [[0, 1, 2]]
    assert result.partials.tolist() == [[0, 1, 1]]
    assert result.announcements.tolist() == [[2, 0, 0]], "both sources announce key 1 to combiner 0"
    assert result.load.tolist() == [[1, 2, 2]]
    assert result.imbalance == pytest.approx(2 / 5 - 1 / 3)
    assert result.ksr == 1.5
    assert result.shares["none"].received.tolist() == [[0, 2]], "the partial results of the last slide"
    assert result.shares["forwarded"].finished.tolist() == [[0, 1, 0]]
    assert result.shares["forwarded"].received.tolist() == [[0, 1]]
    assert result.shares["announced"].held_keys.tolist() == [[1, 1, 0]], "each key at its home"
    assert result.shares["announced"].received.tolist() == [[0, 2]], (
        "home's window of key 1, and the slide of combiner 2"
    )
    assert result.shares["announced"].rows.tolist() == [[0, 1]]
    assert result.shares["windows"].sent.tolist() == [[1, 1, 1]], "the windows of both keys, of all holders"
    assert result.shares["windows"].received.tolist() == [[0, 3]]
    assert result.shares["windows-forwarded"].finished.tolist() == [[0, 1, 0]]
    assert result.shares["windows-forwarded"].received.tolist() == [[0, 2]]
    costs = replace(NOTHING, hold=100, emit=10, receive=1)
    assert result.work("windows", costs)[1].tolist() == [[0, 23]], "its reducers hold nothing"
    assert result.work("none", costs)[1].tolist() == [[0, 222]]
    # Two slides pass for the work of one, and a slide has three tuples.
    assert rate_of(result, "windows", replace(NOTHING, emit=10)) == pytest.approx(1e3 * 3 / (20 / 2))


@given(
    st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=1, max_size=12),
    st.lists(st.lists(st.integers(0, 50), min_size=2, max_size=2), min_size=1, max_size=12),
)
def test_at_the_shortest_slide_lindleys_waits_stay_below_a_slide_and_below_it_they_do_not(
    some: list[list[int]], others: list[list[int]]
) -> None:
    work = [np.array(some, float), np.array(others, float)]
    length = shortest_slide(work)
    for parts in work:
        for services in parts.T:
            # The work that waits when one more slide begins.
            with_end = np.append(services, 0.0)
            waits = lindley(np.concatenate([[0.0], np.full(len(services), length)]), with_end)
            assert (waits <= length + 1e-6).all()
    if length > 0:
        shorter = 0.99 * length
        late = [
            lindley(np.concatenate([[0.0], np.full(len(services), shorter)]), np.append(services, 0.0)).max()
            for parts in work
            for services in parts.T
        ]
        assert max(late) > shorter


@given(routings(), st.integers(0, SLIDES - 1))
@examples(30)
def test_a_rate_is_that_of_the_slowest_and_tables_only_help_where_reducers_are_it(
    routing: RoutedReplay, at: int
) -> None:
    result = count(routing)
    only_reducers = replace(unit_costs(), tuple=0, make=0, send=0, hold=0, emit=0, receive=5)
    tables = np.zeros(SLIDES, np.bool_)
    without = rate(result, tables, only_reducers) if result.shares["none"].received.sum() else None
    tables[at] = True
    if without is not None and result.shares["forwarded"].received.sum():
        assert rate(result, tables, only_reducers) >= without - 1e-9
    assert rate(result, tables, replace(NOTHING, tuple=10.0)) == announced_rate(
        result, replace(NOTHING, tuple=10.0)
    )


def test_a_table_counts_in_the_slide_in_which_it_was_heard() -> None:
    assert tabled([0, 19, 40, 99], 4, 20).tolist() == [True, False, True, False]


def test_the_kept_costs_are_those_that_are_measured() -> None:
    assert set(vars(unit_costs())) == set(COSTS)
    assert all(cost > 0 for cost in vars(unit_costs()).values())
    assert unit_costs().mark != replace(unit_costs(), hear=1.0).mark


def test_the_costs_can_be_measured() -> None:
    assert set(costs(StageSize(keys=200, tuples=2_000, repetitions=1))) == set(COSTS)


def test_the_most_frequent_key_is_on_one_combiner_if_keys_are_hashed() -> None:
    stream, slide = Stream("uniform+zipf", 4_000, 50).opened(Path()), 400
    routed = run(stream, "hashing", seed=1, slide=slide, partitioners=2)
    imbalance, hottest = courses(stream, routed, slide)
    assert set(hottest.tolist()) == {1}
    assert imbalance[-1] == pytest.approx(count_of(stream, routed).imbalance, abs=0.02)


def test_keys_that_stay_whole_are_as_level_as_hashing_if_that_is_all_of_them() -> None:
    stream, slide = Stream("uniform", 4_000, 500).opened(Path()), 400
    routed = run(stream, "hashing", seed=1, slide=slide, partitioners=1)
    loads = np.bincount(routed.workers, minlength=64)
    assert whole_keys_imbalance(stream, workers=64, seed=1) == pytest.approx(loads.max() / 4_000 - 1 / 64)


def test_only_partitioners_that_hear_tables_forward() -> None:
    stream, slide = Stream("uniform+zipf", 4_000, 50).opened(Path()), 400
    heard = run(stream, COOPERATIVE, seed=1, slide=slide, partitioners=2, dsync=1)
    never = run(stream, COOPERATIVE, seed=1, slide=slide, partitioners=2)
    copies = run(stream, "dalton", seed=1, slide=slide, partitioners=2)
    assert forwards(COOPERATIVE, heard, first=1).all()
    assert not forwards(COOPERATIVE, never, first=1).any()
    assert not forwards("dalton", copies, first=1).any()
    assert forwards("hashing", copies, first=1).all()


def count_of(stream: KeyedStream, routed: Run) -> Counts:
    return counts(stream, routed, first=9)
