"""An offset that a producer has written, and that the log does not have, is never handed on. No log looks as
if it had lost records because of it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import DataLossError
from evenflow.settings import load_settings
from partitioner_service.fetch.fetch_result import FetchResult
from partitioner_service.fetch.fetchers import Messages
from partitioner_service.kafka.committed_state import check_there
from partitioner_service.kafka.fetching import FetchControl
from partitioner_service.kafka.log_ends import LogEnds
from partitioner_service.kafka.slices import Slicer
from partitioner_service.kafka.unfetchable import UnfetchableBatches
from tests.column_fetcher import as_columns
from tests.unit.partitioner_service.kafka.test_unfetchable import Message, state

GONE = ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE")


class Watermarks:
    """Of a consumer only what it has heard of the ends of logs. ends: by partition."""

    def __init__(self, **ends: int) -> None:
        self.ends = {int(name[1:]): end for name, end in ends.items()}
        self.questions = 0

    def get_watermark_offsets(self, place: TopicPartition, *, cached: bool) -> tuple[int, int]:
        assert cached, "the data plane waits for no broker"
        self.questions += 1
        return 0, self.ends[place.partition]


def control(consumer: Watermarks) -> FetchControl:
    return FetchControl(consumer, Messages(consumer), "in", lambda partitions: {})  # type: ignore[arg-type]


class Fetched:
    """What the slicer gets. made: makes it of messages."""

    made = staticmethod(FetchResult.of_messages)


@pytest.fixture(autouse=True, params=["messages", "columns"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the slicer gets is made of messages, or of columns as queues give them."""
    if request.param == "columns":
        monkeypatch.setattr(
            Fetched, "made", staticmethod(lambda messages: as_columns(FetchResult.of_messages(messages)))
        )


def slicer(fetching: FetchControl) -> Slicer:
    return Slicer(
        load_settings(query={"name": "q"}),
        needs_key=False,
        needs_timestamp=False,
        ends=LogEnds(lambda partitions: {}),
        unfetchable=UnfetchableBatches("in"),
        fetching=fetching,
    )


def offsets(made: Slicer, messages: list[Any], **states: int) -> list[tuple[int, int, int]]:
    """(partition, first, last) of the slices."""
    begins = {int(name[1:]): state(offset) for name, offset in states.items()}
    blocks = made.blocks(Fetched.made(messages), begins)
    return [(piece.partition, piece.first, piece.last) for slices in blocks for piece in slices]


@pytest.mark.parametrize("code", [*GONE, None])
@pytest.mark.parametrize("end", [6, -1, -1_001], ids=["known", "refused", "unknown"])
def test_a_record_from_behind_the_end_of_the_log_is_not_handed_on_and_nothing_counts_as_lost(
    code: str | None, end: int
) -> None:
    """Where a broker refuses a fetch behind the end, librdkafka forgets the end that it had heard of."""
    made = slicer(control(Watermarks(p0=end, p1=9)))
    refused = [] if code is None else [Message(11, code)]
    messages = [Message(5), Message(10), Message(8, where=1), *refused]
    assert offsets(made, messages, p0=5, p1=8) == [(1, 8, 8)]
    assert made.disordered == {0}


@pytest.mark.parametrize("code", GONE)
def test_records_that_retention_has_deleted_are_lost_as_before(code: str) -> None:
    made = slicer(control(Watermarks(p0=100, p1=9)))
    with pytest.raises(DataLossError, match=r"input\[0\] that come next are gone"):
        offsets(made, [Message(5), Message(8, where=1), Message(6, code)], p0=5, p1=8)


def test_what_librdkafka_said_before_a_detour_began_is_no_loss_but_what_the_detour_says_is_one() -> None:
    fetching = control(Watermarks(p1=9))
    fetching.absent = frozenset({0})
    made = slicer(fetching)
    assert offsets(made, [Message(11, "_AUTO_OFFSET_RESET"), Message(8, where=1)], p0=5, p1=8) == [(1, 8, 8)]
    with pytest.raises(DataLossError):
        offsets(made, [Message(5, "OFFSET_OUT_OF_RANGE")], p0=5)


@given(
    st.lists(st.integers(0, 20) | st.sampled_from([1 << 30, (1 << 62) + 5]), min_size=1, unique=True).map(
        sorted
    ),
    st.integers(-1, 22),
    st.integers(0, 22),
)
def test_no_slice_reaches_the_end_of_its_log(places: list[int], end: int, begin: int) -> None:
    made = slicer(control(Watermarks(p0=end)))
    slices = offsets(made, [Message(at) for at in places], p0=begin)
    assert all(last < end for _, _, last in slices)
    assert (made.disordered == {0}) == (places[-1] >= end)
    expected = [at for at in places if at >= begin]
    if places[-1] < end and expected:
        assert slices == [(0, expected[0], expected[-1])]


def test_librdkafka_is_asked_for_an_end_only_where_the_last_answer_does_not_do() -> None:
    consumer = Watermarks(p0=100)
    fetching = control(consumer)
    assert [fetching.beyond(0, at) for at in (5, 98, 99)] == [False] * 3
    assert consumer.questions == 1
    assert fetching.beyond(0, 100)
    consumer.ends[0] = 200
    assert not fetching.beyond(0, 100)
    fetching.forget_ends()
    consumer.ends[0] = 50
    assert fetching.beyond(0, 60)


def test_where_the_newest_fetch_was_refused_the_brokers_say_where_the_log_ends() -> None:
    consumer, questions = Watermarks(p0=100), []

    def ask(partitions: Collection[int]) -> dict[int, int]:
        questions.append(set(partitions))
        return {0: 120}

    fetching = FetchControl(consumer, Messages(consumer), "in", ask)  # type: ignore[arg-type]
    assert not fetching.beyond(0, 99)
    consumer.ends[0] = -1  # as librdkafka has it once a leader has moved
    assert not fetching.beyond(0, 119)
    assert fetching.beyond(0, 120)
    assert questions == [{0}, {0}]


def test_what_librdkafka_does_not_fetch_needs_no_end() -> None:
    fetching = control(Watermarks())
    fetching.absent = frozenset({0})
    assert not fetching.beyond(0, 1 << 40)


def test_a_committed_offset_that_no_log_has_is_named_as_what_it_is() -> None:
    check_there(5, 5, 9, "in[0]")
    check_there(9, 5, 9, "in[0]")
    with pytest.raises(
        DataLossError, match=r"in\[0\] ends at offset 9, but the next to read, .* is 14"
    ) as beyond:
        check_there(14, 5, 9, "in[0]")
    assert "lies behind the end of the log" in str(beyond.value)
    assert "retention deleted" not in str(beyond.value)
    with pytest.raises(DataLossError, match=r"in\[0\] begins at offset 5, .* is 4\n.* retention deleted"):
        check_there(4, 5, 9, "in[0]")
