"""A batch that cannot be fetched stops its partition, and an order goes past it. Without Kafka."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from evenflow.progress import PartitionState
from evenflow.settings import load_settings
from evenflow.text.strict_json import NotStrict
from evenflow.wire.markers import HEADER
from partitioner_service.begin.run_note import RunNote, parse_run_note
from partitioner_service.fetch.fetch_result import FetchResult
from partitioner_service.kafka.log_ends import LogEnds
from partitioner_service.kafka.slices import Slicer
from partitioner_service.kafka.unfetchable import UnfetchableBatches
from partitioner_service.plane.skips import behind
from partitioner_service.reports.health import Health
from tests.column_fetcher import as_columns
from tests.hostile import BYTES
from topics.query.skip_orders import MOST_SKIPPED, SkipAnswer, SkipOrder, answer_key, open_orders

CODES = ("_BAD_COMPRESSION", "_BAD_MSG", "_NOT_IMPLEMENTED", "MSG_SIZE_TOO_LARGE", "INVALID_MSG")


@dataclass
class Message:
    """What a consumer gives: a record, or an error about one."""

    at: int
    code: str | None = None
    where: int = 0
    named: bytes | None = None
    held: bytes | None = b"x"
    pairs: tuple[tuple[str, bytes], ...] = ()

    def error(self) -> KafkaError | None:
        return None if self.code is None else KafkaError(getattr(KafkaError, self.code), "as the test has it")

    def topic(self) -> str:
        return "in"

    def partition(self) -> int:
        return self.where

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return self.named

    def value(self) -> bytes | None:
        return self.held

    def timestamp(self) -> tuple[int, int]:
        return 1, 5

    def headers(self) -> list[tuple[str, bytes]]:
        return [*self.pairs]

    def __len__(self) -> int:
        return 1


def state(offset: int, **more: Any) -> PartitionState:
    return PartitionState(fingerprint="f", topic_id="t", offset=offset, **more)


@pytest.fixture(autouse=True, params=["messages", "columns"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the slicer gets is made of messages, or of columns as queues give them."""
    if request.param == "columns":
        monkeypatch.setattr(
            Reading, "made", staticmethod(lambda messages: as_columns(FetchResult.of_messages(messages)))
        )


class Reading:
    """A slicer with a clock that stands. made: makes of messages what it gets."""

    made = staticmethod(FetchResult.of_messages)

    def __init__(self) -> None:
        self.now = 0.0
        self.stuck = UnfetchableBatches("in", clock=lambda: self.now)
        ends = LogEnds(lambda partitions: {}, clock=lambda: self.now)
        self.slicer = Slicer(
            load_settings(query={"name": "q"}),
            needs_key=False,
            needs_timestamp=False,
            ends=ends,
            unfetchable=self.stuck,
        )

    def offsets(
        self, messages: list[Message], states: dict[int, PartitionState]
    ) -> list[tuple[int, int, int]]:
        """(partition, first, last) of the slices."""
        blocks = self.slicer.blocks(self.made(messages), states)  # type: ignore[arg-type]
        return [(piece.partition, piece.first, piece.last) for slices in blocks for piece in slices]


@pytest.mark.parametrize("code", CODES)
def test_nothing_behind_a_batch_that_cannot_be_fetched_is_read(
    code: str, caplog: pytest.LogCaptureFixture
) -> None:
    reading, states = Reading(), {0: state(3), 1: state(0)}
    messages = [Message(3), Message(4), Message(5, code), Message(9), Message(0, where=1)]
    assert reading.offsets(messages, states) == [(0, 3, 4), (1, 0, 0)]
    assert reading.offsets([Message(10), Message(1, where=1)], states) == [(1, 1, 1)]
    assert "in[0] cannot be read on at offset 5" in caplog.text
    (shown,) = reading.stuck.standing_still(states)
    assert (shown["partition"], shown["offset"], shown["what"]) == (0, 5, "unfetchable")


def test_a_batch_that_is_reported_by_its_first_offset_is_skipped_from_where_reading_stands() -> None:
    reading = Reading()
    reading.offsets([Message(10, "_BAD_COMPRESSION")], {0: state(14)})
    assert reading.stuck.at({0: state(14)})[0].offset == 14
    assert reading.stuck.at({}) == {}, "the partition is not ours any more"


def test_a_stuck_partition_is_fetched_again_after_a_while_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    reading, states = Reading(), {0: state(5)}
    reading.offsets([Message(5, "_BAD_COMPRESSION")], states)
    assert not reading.stuck.due()
    reading.now = 31.0
    assert reading.stuck.due() == {0}
    reading.stuck.again({0})
    reading.offsets([Message(5, "_BAD_COMPRESSION")], states)
    assert caplog.text.count("cannot be read on") == 1
    assert reading.stuck.standing_still(states)[0]["seconds"] == 31.0
    reading.stuck.again({0})
    assert reading.offsets([Message(5)], states) == [(0, 5, 5)]
    assert "in[0] is read again" in caplog.text
    assert reading.stuck.standing_still(states) == []


def test_health_is_red_at_once_because_no_waiting_heals_such_a_batch() -> None:
    reading, states = Reading(), {0: state(5)}
    reading.offsets([Message(5, "_BAD_MSG")], states)
    status = {
        "state": "running",
        "seconds_since_progress": 0.0,
        "standing_still": reading.stuck.standing_still(states),
    }
    page = Health().healthy(status, control_joined=True)
    assert page["healthy"] is False
    assert page["reason"].startswith("offset 5 of input partition 0 cannot be fetched: ")
    assert Health().alive(status, control_joined=True)["alive"], "a restart heals nothing"


def order(partition: int = 0, offset: int = 5, through: int = 7) -> SkipOrder:
    return SkipOrder(partition=partition, offset=offset, through=through, because="why", who="me", at=1)


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 10**6))
def test_what_is_skipped_counts_as_read_and_rejected(routed: int, rejected: int, count: int) -> None:
    before = state(50, read=routed + rejected, routed=routed, rejected=rejected)
    after = behind(before, order(offset=50, through=50 + count))
    assert after.offset == 51 + count
    assert after.read - before.read == after.rejected - before.rejected == count + 1
    assert after.read == after.routed + after.rejected + after.filtered
    assert PartitionState.decode(after.encode(), offset=after.offset) == after


def test_orders_and_answers_come_back_as_they_were_written() -> None:
    assert SkipOrder.decode(order().encode()) == order()
    assert SkipAnswer.decode(SkipAnswer(True, "done").encode()) == SkipAnswer(True, "done")


@pytest.mark.parametrize("through", [4, 5 + MOST_SKIPPED])
def test_an_order_that_skips_nothing_or_too_much_is_none(through: int) -> None:
    with pytest.raises(NotStrict, match="offsets are to be skipped"):
        SkipOrder.decode(order(through=through).encode())


def test_an_order_is_open_until_it_is_answered_and_what_is_no_order_is_passed_over() -> None:
    def written(one: SkipOrder) -> Message:
        return Message(0, named=one.key, held=one.encode())

    first, second = order(), order(partition=1)
    answered = Message(0, named=answer_key(first), held=SkipAnswer(False, "no").encode())
    foreign = [
        Message(0, named=key, held=b"{}") for key in (None, b"0", b"query/identity", b"skip/x/1", b"skip/0/9")
    ]
    elsewhere = Message(0, named=b"skip/3/3", held=first.encode())
    records: list[Any] = [*foreign, written(first), written(second), elsewhere]
    assert open_orders(records) == [first, second]
    assert open_orders([*records, answered]) == [second]
    assert open_orders([*records, answered, written(first)]) == [second, first], "it was given once more"


@given(st.sampled_from(BYTES) | st.binary(max_size=200))
def test_orders_answers_and_notes_take_any_bytes(data: bytes) -> None:
    for decode in (SkipOrder.decode, SkipAnswer.decode, parse_run_note):
        try:
            decode(data)
        except NotStrict:
            continue
    assert open_orders([Message(0, named=b"skip/0/5", held=data)]) == []


class Notes:
    """The newest note of each key in place of a topic."""

    def __init__(self) -> None:
        self.notes: dict[bytes, bytes] = {}

    def note(self, key: bytes, value: bytes) -> None:
        self.notes[key] = value

    def last(self, kafka: object, topic: str, key: bytes) -> Message | None:
        return Message(0, held=self.notes[key]) if key in self.notes else None

    def run(self) -> RunNote:
        return RunNote(load_settings(query={"name": "q"}), self)  # type: ignore[arg-type]


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    made = Notes()
    monkeypatch.setattr("partitioner_service.begin.run_note.read_last", made.last)
    return made


def test_a_run_that_was_killed_is_named_by_the_next_one_with_the_partitions_that_stand(
    notes: Notes, caplog: pytest.LogCaptureFixture
) -> None:
    def run() -> RunNote:
        caplog.clear()
        return notes.run()

    assert run().begins({0: 50, 1: 7}) == set()
    assert not caplog.text
    assert run().begins({0: 50, 1: 9}) == {0}
    assert "the last run of instance 0 did not end in order" in caplog.text
    assert "nothing was committed of [0] at offset 50;" in caplog.text
    third = run()
    assert third.begins({0: 50, 1: 9}) == {0, 1}
    assert "the last 2 runs of instance 0 did not end in order" in caplog.text
    third.ends({})
    assert run().begins({0: 50, 1: 9}) == set()
    assert not caplog.text, "the last run ended in order"


def test_a_partition_on_which_two_runs_in_a_row_ended_is_a_repeated_one(notes: Notes) -> None:
    repeated = []
    for offsets in ({0: 50, 1: 7}, {0: 50, 1: 7}, {0: 50, 1: 9}, {0: 60, 1: 9}, {0: 60, 1: 9}):
        run = notes.run()
        run.begins(offsets)
        repeated.append(run.repeated)
    assert repeated == [set(), set(), {0}, {1}, {0, 1}]
    run.ends({})
    after = notes.run()
    after.begins({0: 60, 1: 9})
    assert after.repeated == set()


@pytest.mark.parametrize("killed", [False, True])
def test_a_partition_with_a_bomb_is_looked_through_again_however_the_run_ends_and_wherever_it_stands(
    notes: Notes, killed: bool
) -> None:
    run = notes.run()
    assert run.begins({0: 50, 1: 9}) == set()
    run.looked({1: 90})
    if not killed:
        run.ends({1: 90})
    after = notes.run()
    assert after.begins({0: 60, 1: 12}) == {1}
    killed_in_its_look = notes.run()
    assert killed_in_its_look.begins({0: 61, 1: 12}) == {1}
    killed_in_its_look.ends({})
    assert notes.run().begins({0: 61, 1: 12}) == set()


def test_damaged_markers_are_one_line_without_what_a_producer_wrote(caplog: pytest.LogCaptureFixture) -> None:
    wrong = ((HEADER, b"a secret of somebody"),)
    messages = [Message(at, held=None, pairs=wrong) for at in range(5, 1_005)]
    with caplog.at_level(logging.WARNING):
        assert Reading().offsets(messages, {0: state(5)}) == [(0, 5, 1_004)]
    (line,) = caplog.messages
    assert "1000 markers of the end of a stream cannot be read" in line
    assert "offset 5" in line
    assert "secret" not in line
