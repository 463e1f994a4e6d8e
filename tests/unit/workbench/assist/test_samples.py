"""Which part of a topic is a sample; reading real topics is in tests/pipeline/commands/test_advise.py."""

from hypothesis import given
from hypothesis import strategies as st

from topics.state import TopicState
from workbench.assist.sample_check.sample import begin_of_newest, parts_of, stretch


def topic(lengths: list[int], first: int) -> TopicState:
    begin = dict.fromkeys(range(len(lengths)), first)
    end = {partition: first + length for partition, length in enumerate(lengths)}
    return TopicState("t", "id", len(lengths), begin, end, {})


@given(
    lengths=st.lists(st.integers(0, 10_000), min_size=1, max_size=9).filter(any),
    first_offset=st.integers(0, 5),
    tuples=st.integers(1, 50_000),
    oldest=st.booleans(),
)
def test_every_partition_gives_the_same_share_and_together_they_give_enough(
    lengths: list[int], first_offset: int, tuples: int, oldest: bool
) -> None:
    state = topic(lengths, first_offset)
    begin, end = stretch(state, tuples, first=oldest)
    taken = [end[partition] - begin[partition] for partition in state.begin]
    wanted = min(tuples, state.records)
    assert wanted <= sum(taken) < wanted + len(lengths) or sum(taken) == state.records
    for partition, (length, count) in enumerate(zip(lengths, taken, strict=True)):
        assert 0 <= count <= length
        assert abs(count - length * wanted / state.records) < 1
        fixed = (
            begin[partition] == state.begin[partition] if oldest else end[partition] == state.end[partition]
        )
        assert fixed


@given(
    lengths=st.lists(st.integers(0, 10_000), min_size=1, max_size=9).filter(any),
    first_offset=st.integers(0, 5),
    most=st.integers(1, 20_000),
)
def test_of_a_short_partition_enough_is_read_to_judge_it(
    lengths: list[int], first_offset: int, most: int
) -> None:
    state = topic(lengths, first_offset)
    taken = [state.end[part] - begin for part, begin in begin_of_newest(state, most).items()]
    assert all(min(length, 100) <= count <= length for length, count in zip(lengths, taken, strict=True))
    assert sum(taken) <= most + 101 * len(lengths)


@given(
    lengths=st.lists(st.integers(0, 10_000), min_size=1, max_size=9).filter(any),
    first_offset=st.integers(0, 5),
    most=st.integers(1, 20_000),
)
def test_a_sample_is_of_the_first_the_middle_and_the_newest_records_and_of_no_record_twice(
    lengths: list[int], first_offset: int, most: int
) -> None:
    state = topic(lengths, first_offset)
    (heads, middles, tails) = parts_of(state, most)
    newest = begin_of_newest(state, most)
    for part, length in enumerate(lengths):
        (begin, after), (low, high), (start, end) = (
            (begins[part], ends[part]) for begins, ends in (heads, middles, tails)
        )
        assert state.begin[part] == begin <= after <= low <= high <= start <= end == state.end[part]
        taken = (after - begin) + (high - low) + (end - start)
        if newest[part] == state.begin[part]:
            assert (after - begin, high - low, end - start) == (0, 0, length)
        else:
            assert end - newest[part] - 2 <= taken <= end - newest[part]
            assert after - begin == high - low == end - start
            assert abs((low - begin) - (end - high)) <= 1


def test_an_empty_topic_has_an_empty_sample() -> None:
    here = {0: 7, 1: 7}
    assert parts_of(topic([0, 0], 7), 200) == [(here, here)] * 3
