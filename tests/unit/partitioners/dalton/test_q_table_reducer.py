"""Laws of the reducer of cooperative Dalton: what is hot, how values merge, how long the interval gets."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.partitioners.dalton.messages import GlobalTable
from evenflow.partitioners.dalton.reducer import QTableReducer, dsync_bounds
from evenflow.partitioners.exchange import Message
from tests.examples import examples
from tests.unit.partitioners.dalton.cooperation import reducer
from tests.unit.partitioners.dalton.sync_rounds import bodies, reduced, rounds, told

few = examples(25)


# the table


@few
@given(rounds())
def test_the_hot_keys_are_those_with_their_share_of_the_summed_load(
    drawn: tuple[list[Message], int],
) -> None:
    messages, workers = drawn
    table = reduced(messages, workers)
    assert table.total == sum(message.total for message in bodies(messages))
    counts: Counter[int] = Counter()
    for message in bodies(messages):
        counts.update(dict(zip(message.keys.tolist(), message.frequencies.tolist(), strict=True)))
    hot = {key for key, f in counts.items() if f > 1 and f * workers >= table.total}
    assert set(table.keys.tolist()) == hot
    assert len(hot) <= workers


@few
@given(rounds())
def test_merged_values_are_the_weighted_mean_and_lie_in_the_convex_hull(
    drawn: tuple[list[Message], int],
) -> None:
    messages, workers = drawn
    table = reduced(messages, workers)
    for key, merged in zip(table.keys.tolist(), table.values, strict=True):
        rows, weights = [], []
        for message in bodies(messages):
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
    made = reducer(3)
    table = GlobalTable.from_bytes(made.merge([told(0, number=0, counts={5: 99})]))
    assert (table.total, len(table.keys)) == (100, 0)
    table = GlobalTable.from_bytes(made.merge([told(0, number=1, counts={5: 99})]))
    assert table.values.tolist() == [[-2.0, -2.0, -2.0]]


def test_values_of_other_widths_are_skipped() -> None:
    made = reducer(3)
    one = told(0, counts={5: 90}, rows={5: [-0.5, -1, -1]})
    two = told(1, counts={5: 90}, rows={5: [-1.0, -1, -1]})
    assert GlobalTable.from_bytes(made.merge([one, two])).values.tolist() == [[-0.75, -1.0, -1.0]]
    made.rescale(4)
    assert GlobalTable.from_bytes(made.merge([one])).values.tolist() == [[-2.0] * 4]


# the interval


def interval(made: QTableReducer, number: int, *late: int) -> int:
    """The interval after a round of one message for each of `late`, by default one that was in time."""
    messages = [told(j, number=number, late=one) for j, one in enumerate(late or (0,))]
    return GlobalTable.from_bytes(made.merge(messages)).dsync_ms


def test_the_interval_doubles_on_request_and_halves_when_the_reducer_is_idle() -> None:
    moments = iter([0, 1, 10, 11, 12, 16, 100, 110, 200, 203])
    made = reducer(3, adaptive=True, clock=lambda: next(moments))
    assert interval(made, 0) == 100  # nothing to compare with
    assert interval(made, 1) == 50  # idle 9, busy 1
    assert interval(made, 2) == 50  # idle 1, busy 4
    assert interval(made, 3, 50) == 100
    assert interval(made, 4) == 50


@few
@given(st.lists(st.sampled_from([0, 100]), min_size=1, max_size=8), st.integers(1, 4))
def test_one_lateness_doubles_the_interval_once_whoever_tells_it_and_however_often(
    late: list[int], times: int
) -> None:
    made = reducer(3, adaptive=True, clock=lambda: 0.0)
    intervals = [interval(made, number, *late) for number in range(times)]
    assert intervals == [200 if any(late) else 100] * times


def test_a_lateness_of_a_longer_interval_doubles_that_one() -> None:
    made = reducer(3, adaptive=True, clock=lambda: 0.0)
    assert interval(made, 0, 800, 100) == 1600


def test_the_interval_does_not_halve_in_a_round_that_tells_a_lateness() -> None:
    moments = iter([0, 1, 1000, 1001])
    made = reducer(3, adaptive=True, dsync_ms=400, clock=lambda: next(moments))
    assert [interval(made, 0), interval(made, 1, 100)] == [400, 400]


@few
@given(st.integers(0, 50), st.integers(0, 120))
@example(10, 11)
@example(10, 10)
@example(10, 19)
def test_the_interval_halves_as_soon_as_the_reducer_is_idle_for_longer_than_it_worked(
    busy: int, idle: int
) -> None:
    moments = np.cumsum([0, 1, idle, busy]).tolist()
    made = reducer(3, adaptive=True, clock=iter(moments).__next__)
    assert interval(made, 0) == 100
    assert interval(made, 1) == (50 if idle > busy else 100)


@few
@given(st.lists(st.booleans(), max_size=60), st.integers(1, 3000))
def test_the_interval_stays_within_its_bounds(wishes: list[bool], slide: int) -> None:
    low, high = dsync_bounds(slide)
    assert 1 <= low <= slide / 8 + 1
    made = reducer(3, dsync_ms=slide, bounds=(low, high), clock=iter(range(0, 10**9, 7)).__next__)
    for number, late in enumerate(wishes):
        assert low <= interval(made, number, made.dsync_ms if late else 0) <= high


def test_impossible_reducers_and_foreign_messages_are_refused() -> None:
    with pytest.raises(ConfigError, match="needs workers, not 0"):
        reducer(0)
    with pytest.raises(ConfigError, match="within 12 to 6400"):
        reducer(3, adaptive=True, dsync_ms=5)
    with pytest.raises(IncompatibleStateError, match="this is no SyncMessage"):
        reducer(3).check(Message(0, 0, b"something else"))
