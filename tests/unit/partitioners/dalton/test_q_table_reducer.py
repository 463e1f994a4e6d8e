"""Laws of the reducer of cooperative Dalton: what is hot, how values merge, how long the interval gets."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.partitioners.dalton.messages import SyncMessage
from evenflow.partitioners.dalton.reducer import QTableReducer, dsync_bounds
from tests.unit.partitioners.dalton.cooperation import reducer
from tests.unit.partitioners.dalton.sync_rounds import reduced, rounds, told

few = settings(max_examples=25, deadline=None)


# the table


@few
@given(rounds())
def test_the_hot_keys_are_those_with_their_share_of_the_summed_load(
    drawn: tuple[list[SyncMessage], int],
) -> None:
    messages, workers = drawn
    table = reduced(messages, workers)
    assert table.total == sum(message.total for message in messages)
    counts: Counter[int] = Counter()
    for message in messages:
        counts.update(dict(zip(message.keys.tolist(), message.frequencies.tolist(), strict=True)))
    hot = {key for key, f in counts.items() if f > 1 and f * workers >= table.total}
    assert set(table.keys.tolist()) == hot
    assert len(hot) <= workers


@few
@given(rounds())
def test_merged_values_are_the_weighted_mean_and_lie_in_the_convex_hull(
    drawn: tuple[list[SyncMessage], int],
) -> None:
    messages, workers = drawn
    table = reduced(messages, workers)
    for key, merged in zip(table.keys.tolist(), table.values, strict=True):
        rows, weights = [], []
        for message in messages:
            if key in message.row_keys.tolist():
                rows.append(message.values[message.row_keys.tolist().index(key)])
                seen = dict(zip(message.keys.tolist(), message.frequencies.tolist(), strict=True))
                weights.append(seen.get(key, 0))
        if not rows:
            assert (merged == -2).all()
            continue
        assert (merged >= np.min(rows, axis=0)).all()
        assert (merged <= np.max(rows, axis=0)).all()
        shares = np.array(weights) / sum(weights) if sum(weights) else np.full(len(rows), 1 / len(rows))
        np.testing.assert_allclose(merged, shares @ np.array(rows), atol=1e-12)


@few
@given(rounds(), st.randoms(use_true_random=False))
def test_the_table_does_not_depend_on_the_order_of_messages_nor_on_repeats(
    drawn: tuple[list[SyncMessage], int], random: object
) -> None:
    messages, workers = drawn
    expected = reduced(messages, workers)
    shuffled = messages.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    made = reducer(len(messages), workers)
    for message in shuffled[:-1]:
        assert made.receive(message) is None
        assert made.receive(message) is None
    table = made.receive(shuffled[-1])
    assert table is not None
    assert table.to_bytes() == expected.to_bytes()


def test_a_single_partitioners_values_come_back_unchanged() -> None:
    row = [-0.1, -1 / 3, -2.0]
    table = reduced([told(0, counts={5: 49}, rows={5: row})], 3)
    assert table.values.tolist() == [row]


def test_a_partitioner_without_the_row_does_not_pull_the_mean_down() -> None:
    table = reduced([told(0, counts={5: 60}, rows={5: [-0.5, -2, -1]}), told(1, counts={5: 90})], 3)
    assert table.values.tolist() == [[-0.5, -2.0, -1.0]]


def test_equal_weights_where_the_owners_of_a_row_did_not_see_the_key() -> None:
    messages = [
        told(0, rows={5: [-1.0, 0, 0]}),
        told(1, rows={5: [-2.0, 0, 0]}),
        told(2, total=10, counts={5: 99}),
    ]
    assert reduced(messages, 3).values.tolist() == [[-1.5, 0.0, 0.0]]


def test_a_key_that_is_frequent_in_one_partitioner_only_is_not_hot() -> None:
    messages = [told(0, counts={5: 40}, rows={5: [-0.5, -2, -2]}), told(1), told(2), told(3)]
    assert len(reduced(messages, 3).keys) == 0


def test_the_first_round_learns_the_load_and_creates_no_rows() -> None:
    made = reducer(1, 3)
    table = made.receive(told(0, number=0, counts={5: 99}))
    assert table is not None
    assert (table.total, len(table.keys)) == (100, 0)
    table = made.receive(told(0, number=1, counts={5: 99}))
    assert table is not None
    assert table.values.tolist() == [[-2.0, -2.0, -2.0]]


def test_a_message_of_an_earlier_round_is_answered_with_the_latest_table() -> None:
    made = reducer(2, 3)
    made.receive(told(0, number=0))
    table = made.receive(told(1, number=0))
    assert made.receive(told(0, number=0)) is table
    assert made.receive(told(1, number=1)) is None
    assert made.receive(told(0, number=1)) is not table


def test_a_restarted_reducer_goes_on_with_the_round_of_its_partitioners() -> None:
    made = reducer(2, 3)
    made.receive(told(0, number=3))
    assert made.receive(told(0, number=7)) is None
    table = made.receive(told(1, number=7))
    assert table is not None
    assert table.round == 7


def test_fewer_partitioners_may_complete_a_round_and_values_of_other_widths_are_skipped() -> None:
    made = reducer(3, 3)
    made.receive(told(0, counts={5: 90}, rows={5: [-0.5, -1, -1]}))
    made.receive(told(1, counts={5: 90}, rows={5: [-1.0, -1, -1]}))
    table = made.rescale(members=2, workers=3)
    assert table is not None
    assert table.values.tolist() == [[-0.75, -1.0, -1.0]]
    made.rescale(members=1, workers=4)
    table = made.receive(told(0, number=2, counts={5: 90}, rows={5: [-0.5, -1, -1]}))
    assert table is not None
    assert table.values.tolist() == [[-2.0] * 4]


# the interval


def interval(made: QTableReducer, number: int, *, late: bool = False) -> int:
    table = made.receive(told(0, number=number, late=late))
    assert table is not None
    return table.dsync_ms


def test_the_interval_doubles_on_request_and_halves_when_the_reducer_is_idle() -> None:
    moments = iter([0, 1, 10, 11, 12, 16, 100, 110, 200, 203])
    made = reducer(1, 3, adaptive=True, clock=lambda: next(moments))
    assert interval(made, 0) == 100  # nothing to compare with
    assert interval(made, 1) == 50  # idle 9, busy 1
    assert interval(made, 2) == 50  # idle 1, busy 4
    assert interval(made, 3, late=True) == 100
    assert interval(made, 4) == 50


@few
@given(st.integers(0, 50), st.integers(0, 120))
@example(10, 11)
@example(10, 10)
@example(10, 19)
def test_the_interval_halves_as_soon_as_the_reducer_is_idle_for_longer_than_it_worked(
    busy: int, idle: int
) -> None:
    moments = np.cumsum([0, 1, idle, busy]).tolist()
    made = reducer(1, 3, adaptive=True, clock=iter(moments).__next__)
    assert interval(made, 0) == 100
    assert interval(made, 1) == (50 if idle > busy else 100)


@few
@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=2), st.lists(st.integers(0, 9), min_size=2, max_size=2)
)
def test_work_and_idleness_are_those_of_all_messages_of_the_round(busy: list[int], idle: list[int]) -> None:
    moments = np.cumsum([0, 0, 0, 0, idle[0], busy[0], idle[1], busy[1]]).tolist()
    made = reducer(2, 3, adaptive=True, clock=iter(moments).__next__)
    for number in (0, 1):
        assert made.receive(told(0, number=number)) is None
        table = made.receive(told(1, number=number))
    assert table is not None
    assert table.dsync_ms == (50 if sum(idle) > sum(busy) else 100)


@few
@given(st.lists(st.booleans(), max_size=60), st.integers(1, 3000))
def test_the_interval_stays_within_its_bounds(wishes: list[bool], slide: int) -> None:
    low, high = dsync_bounds(slide)
    assert 1 <= low <= slide / 8 + 1
    made = reducer(1, 3, adaptive=True, dsync_ms=slide, bounds=(low, high))
    made._clock = iter(range(0, 10**9, 7)).__next__
    for number, late in enumerate(wishes):
        assert low <= interval(made, number, late=late) <= high


def test_impossible_reducers_and_foreign_messages_are_refused() -> None:
    with pytest.raises(ConfigError, match="needs partitioners and workers"):
        reducer(0, 3)
    with pytest.raises(ConfigError, match="within 12 to 6400"):
        reducer(1, 3, dsync_ms=5)
    with pytest.raises(ConfigError, match="message of partitioner 4, but there are 2"):
        reducer(2, 3).receive(told(4))
