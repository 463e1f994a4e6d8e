"""What the sources of evenflow tell and hear, round by round."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import IncompatibleStateError
from evenflow.partitioners import create, restore
from evenflow.partitioners.evenflow.shared_loads import (
    BIAS_PARTS,
    Loads,
    LoadsMerger,
    from_bytes,
    learned,
    table_bytes,
    table_loads,
    to_bytes,
)
from evenflow.partitioners.exchange import Message, Table
from tests.unit.partitioners.evenflow.loads import hear_loads
from tests.unit.partitioners.streams import zipf

WINDOW = {"window_ms": 2000, "slide_ms": 100}


def test_after_three_slides_without_a_table_a_source_levels_alone_again() -> None:
    p = create("evenflow", workers=5, source=0, sources=2, **WINDOW)
    p.assign(*zipf(1000))
    before = p._window.loads.copy()
    p.tell(1000)
    hear_loads(p, np.array([900, 0, 0, 0, 0]), 1000)
    heard = []
    for slide in range(11, 16):
        told = p.tell(slide * 100)
        assert told is not None
        heard.append(bool(p._others.any()))
    assert heard == [True, True, True, False, False]
    assert p._window.loads.tolist() == before.tolist()


def test_a_message_says_what_is_true_and_is_told_three_times() -> None:
    p = create("evenflow", workers=5, source=0, sources=2, **WINDOW)
    bodies = []
    for slide in range(7):
        p.assign(zipf(100)[0], np.full(100, slide * 100))
        told = p.tell(slide * 100 + 99)
        assert told is not None
        bodies.append(int(from_bytes(told.body).sum()))
    assert bodies == [100, 100, 100, 400, 400, 400, 700]


def test_a_source_whose_message_a_table_lacks_takes_the_whole_table_for_the_others() -> None:
    """And shares the imbalance with those who are in the table."""
    parts = [create("evenflow", workers=4, source=j, sources=5, **WINDOW) for j in (1, 2)]
    for part in parts:
        part.assign(*zipf(1000))
        part.tell(1000)
    own, more = parts[0].window_tuples(1000), np.array([100, 0, 0, 0])
    table = Table(0, (0, 1, 4), to_bytes(own + more))
    for part, others, place in ((parts[0], more, (1, 3)), (parts[1], own + more, (2, 4))):
        by_hand = restore(part.snapshot())
        by_hand._level(own, others, place)  # type: ignore[attr-defined]
        assert part.hear(table, 1000)
        assert part._others.tolist() == by_hand._others.tolist()  # type: ignore[attr-defined]


def test_a_table_of_other_workers_ends_the_round_and_nothing_else_is_known_of_the_others() -> None:
    p = create("evenflow", workers=5, source=0, sources=2, **WINDOW)
    p.assign(*zipf(1000))
    hear_loads(p, np.array([900, 0, 0, 0, 0]), 1000)
    assert p.hear(Table(1, (0, 1), to_bytes(np.arange(4))), 1000)
    assert not p._others.any()
    assert not p.hear(Table(1, (0, 1), to_bytes(np.arange(5))), 1000)


def test_a_table_of_more_tuples_than_there_can_be_is_refused() -> None:
    p = create("evenflow", workers=2, source=0, sources=2, weights=(1.0, 1000.0), **WINDOW)
    with pytest.raises(IncompatibleStateError, match="more tuples than there can be"):
        p.hear(Table(0, (0, 1), to_bytes(np.array([2**50, 0]))), 0)
    with pytest.raises(IncompatibleStateError, match="more tuples than there can be"):
        p.hear(Table(0, (0, 1), to_bytes(np.array([2**62, 2**62]))), 0)


@pytest.mark.parametrize("later", [0, 50, 700, 1900])
@pytest.mark.parametrize("weights", [(), (1.0, 2.5, 0.3)])
def test_what_all_take_on_comes_to_the_bias_however_late_the_table_is(
    later: int, weights: tuple[float, ...]
) -> None:
    """What one source sent meanwhile, to level its own share, is not levelled by the others once more.

    So besides what they have learned, they take on nothing together.
    """
    parts = [create("evenflow", workers=6, source=j, sources=3, weights=weights, **WINDOW) for j in range(3)]
    for j, part in enumerate(parts):
        part.assign(*zipf(1000, z=1.3, keys=200, seed=j))
    told = [part.tell(1000) for part in parts]
    table = Table(0, (0, 1, 2), LoadsMerger(6).merge([one for one in told if one is not None]))
    for j, part in enumerate(parts):
        keys, times = zipf(later, z=1.3, keys=200, seed=9 + j)
        part.assign(keys, times + 1000)
        assert part.hear(table, 1000 + later)
        assert part._others.any()  # type: ignore[attr-defined]
    together = np.sum([part._others for part in parts], axis=0)  # type: ignore[attr-defined]
    biases = np.sum([part._bias for part in parts], axis=0) / BIAS_PARTS  # type: ignore[attr-defined]
    assert np.abs(together - biases).max() <= len(parts)


@given(
    st.lists(st.lists(st.floats(-1e6, 1e6), min_size=7, max_size=7), max_size=80),
    st.sampled_from([1, 1024]),
)
def test_a_bias_is_bounded_and_leaves_room_for_all_tuples(tables: list[list[float]], unit: int) -> None:
    """Whatever the tables say. Biases that did not come to nothing would make each source seem too full or
    too empty.
    """
    bias = np.zeros(7, np.int64)
    for overload in tables:
        bias = learned(bias, np.array(overload), unit)
        assert np.abs(bias).max() <= 2 * 3 * unit * BIAS_PARTS
        assert abs(bias.sum()) <= 4


@pytest.mark.parametrize("unit", [1, 1024])
def test_a_worker_that_is_above_the_mean_in_every_table_is_kept_emptier_until_it_is_not(unit: int) -> None:
    above, bias = np.array([2.0, 0.5, -1.0, -1.5]) * unit, np.zeros(4, np.int64)
    for _ in range(400):
        bias = learned(bias, above - bias / BIAS_PARTS, unit)
    assert np.allclose(bias / BIAS_PARTS, above, atol=0.1 * unit)


def test_a_change_of_the_stream_teaches_no_more_than_chance_may() -> None:
    none = np.zeros(4, np.int64)
    shock, chance = (learned(none, np.array([over, 0.0, 0.0, 0.0]), 1) for over in (1e9, 3.0))
    assert shock.tolist() == chance.tolist()


def test_a_source_that_is_gone_counts_with_what_is_left_of_its_window() -> None:
    """A killed source has sent tuples that stay in the window, and nobody else tells them."""
    merger = LoadsMerger(2, slides=4)
    first, second = (Message(source, 7, to_bytes(np.array([8, 4 * source]))) for source in (0, 1))
    merger.merge([first, second])
    tables = [table_loads(merger.merge([first._replace(round=7 + since)])) for since in range(1, 6)]
    assert [table.reported.tolist() for table in tables] == [[8, 0]] * 5
    assert [table.remembered.tolist() for table in tables] == [[6, 3], [4, 2], [2, 1], [0, 0], [0, 0]]
    merger.rescale(3)
    assert table_loads(merger.merge([second._replace(round=13)])).remembered.tolist() == [0, 0, 0]


def test_a_merger_that_follows_another_one_counts_what_was_told_to_it() -> None:
    """The instance that made the tables is killed, and its own loads are in the window like all others."""
    merger, told = (
        LoadsMerger(2, slides=4),
        [Message(source, 7, to_bytes(np.array([8, 4]))) for source in (0, 1)],
    )
    for message in told:
        merger.remember(message)
    table = table_loads(merger.merge([told[1]._replace(round=8)]))
    assert (table.reported.tolist(), table.remembered.tolist()) == ([8, 4], [6, 3])


def test_a_source_whose_message_was_lost_does_not_take_its_own_loads_for_those_of_others() -> None:
    parts = [create("evenflow", workers=4, source=j, sources=3, **WINDOW) for j in (0, 1)]
    for part in parts:
        part.assign(*zipf(1000))
        part.tell(1000)
    own, more, gone = parts[0].window_tuples(1000), np.array([100, 0, 0, 0]), np.array([0, 50, 0, 0])
    table = Table(0, (0, 2), table_bytes(Loads(own + more, gone)))
    for part, others, place in ((parts[0], more + gone, (0, 2)), (parts[1], own + more, (1, 3))):
        by_hand = restore(part.snapshot())
        by_hand._level(own, others, place)  # type: ignore[attr-defined]
        assert part.hear(table, 1000)
        assert part._others.tolist() == by_hand._others.tolist()  # type: ignore[attr-defined]


@given(st.lists(st.tuples(st.integers(0, 2**52), st.integers(0, 2**52)), min_size=1, max_size=9))
def test_the_loads_of_a_table_are_read_as_they_were_written(pairs: list[tuple[int, int]]) -> None:
    loads = Loads(*np.array(pairs, np.int64).T)
    read = table_loads(table_bytes(loads))
    assert (read.reported.tolist(), read.remembered.tolist()) == (
        loads.reported.tolist(),
        loads.remembered.tolist(),
    )


def test_a_source_that_takes_over_another_ones_state_tells_none_of_its_tuples() -> None:
    """The other one tells them itself, and counted twice they would make windows uneven."""
    parts = [create("evenflow", workers=8, source=j, sources=2, **WINDOW) for j in (0, 1)]
    parts[0].assign(*zipf(4000, z=1.0))
    assert parts[0].window_tuples(3999).sum() > 0
    taken = restore(parts[0].snapshot(), like=parts[1], any_source=True)
    told = taken.tell(4000)
    assert told is not None
    assert from_bytes(told.body).tolist() == [0] * 8
    cold = zipf(4000, z=1.0)[0][-200:].tolist()
    homes = [part.explain(key, 4000).home for part in (parts[0], taken) for key in cold]
    same = np.mean(np.array(homes[:200]) == np.array(homes[200:]))
    assert same > 0.9, "what is known of keys is kept"


@pytest.mark.parametrize("sources", [1, 2])
def test_a_source_goes_on_with_the_tuples_of_the_one_with_its_number(sources: int) -> None:
    """An instance with another name has taken the place of the first one, and nobody else tells its
    tuples.
    """
    before, after = (create("evenflow", workers=8, source=0, sources=sources, **WINDOW) for _ in range(2))
    before.assign(*zipf(4000))
    taken = restore(before.snapshot(), like=after, any_source=True)
    assert taken.window_tuples().tolist() == before.window_tuples().tolist()  # type: ignore[attr-defined]
