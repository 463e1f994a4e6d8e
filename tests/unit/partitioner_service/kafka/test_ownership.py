"""Who owns a partition, and which half may die, without a broker.

Rule "a transaction never spans a rebalance", rule "after an abort position and state go back together", and
rule "either half ends the process".
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError, KafkaException, TopicPartition

from evenflow.errors import ConfigError, ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import Query, Settings
from monitoring.instruments.partitioner import PartitionerInstruments
from monitoring.live.feed import Feed
from partitioner_service import app
from partitioner_service.block import Slice
from partitioner_service.fetch.fetch_result import FetchResult
from partitioner_service.fetch.fetchers import Messages
from partitioner_service.kafka import slices, source
from partitioner_service.kafka.committed_state import TopicIds, data_plane_group
from partitioner_service.kafka.sink import CommitAborted
from partitioner_service.kafka.source import Source
from partitioner_service.plane.aborts import Aborts
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.web.listening import listening
from tests.column_fetcher import Columns

SETTINGS = Settings(query={"name": "q"}, input={"partitions": 2})


def state(offset: int, **fields: Any) -> PartitionState:
    return PartitionState(fingerprint=SETTINGS.fingerprint, topic_id="t", offset=offset, **fields)


class Record:
    """A record of the input topic at this offset of partition 0."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def error(self) -> None:
        return None

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"{}"

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, 1_700_000_000_000

    def __len__(self) -> int:
        return len(self.value())


class EndOfPartition(Record):
    """What librdkafka says, once, when partition 0 has been read up to this offset."""

    def error(self) -> KafkaError:  # type: ignore[override]
        return KafkaError(KafkaError._PARTITION_EOF)


class Consumer:
    """Remembers its assignment; `during` runs inside the next `consume`, as callbacks of a rebalance do."""

    def __init__(self) -> None:
        self.assigned: list[tuple[int, int]] = []
        self.asleep: set[int] = set()
        self.sought: list[tuple[int, int]] = []
        self.refusal: KafkaException | None = None
        self.records: list[Record] = []
        self.during: Any = None
        self.callbacks: dict[str, Any] = {}
        self.end = 1_000
        """Where the newest fetch has seen each log end."""

    def get_watermark_offsets(self, partition: TopicPartition, *, cached: bool) -> tuple[int, int]:
        return 0, self.end

    def subscribe(self, topics: list[str], **callbacks: Any) -> None:
        self.callbacks = callbacks

    def consume(self, most: int, timeout: float) -> list[Record]:
        if self.during is not None:
            self.during()
        return self.records

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = [(entry.partition, entry.offset) for entry in partitions]

    def unassign(self) -> None:
        self.assigned = []

    def seek(self, partition: TopicPartition) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.sought.append((partition.partition, partition.offset))

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.asleep |= {entry.partition for entry in partitions}

    def resume(self, partitions: list[TopicPartition]) -> None:
        self.asleep -= {entry.partition for entry in partitions}


@pytest.fixture(params=[Messages, Columns], ids=["messages", "columns"])
def consumer(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Consumer:
    fake = Consumer()
    monkeypatch.setattr(source, "opened", lambda settings, client, **more: (client({}), request.param(fake)))
    monkeypatch.setattr(source.clients, "consumer", lambda *words, **more: fake)
    monkeypatch.setattr(source, "log_ends", lambda *words, **more: {})
    return fake


def reading(settle: Any, *, settings: Settings = SETTINGS, **more: Any) -> Source:
    made = Source(
        settings,
        topic_ids=TopicIds("t", "r", "j"),
        needs_key=False,
        needs_timestamp=False,
        stopping=lambda: False,
        **more,
    )
    made.subscribe(settle)
    return made


@pytest.mark.parametrize(("callback", "may_commit"), [("on_revoke", True), ("on_lost", False)])
def test_the_open_transaction_is_settled_while_the_partitions_are_still_ours(
    consumer: Consumer, callback: str, may_commit: bool
) -> None:
    settled: list[tuple[bool, list[int]]] = []
    reader = reading(lambda commit: settled.append((commit, list(reader.states))))
    reader.rewind({0: state(5), 1: state(7)})
    consumer.callbacks[callback](consumer, [TopicPartition("q.input", 0)])
    assert settled == [(may_commit, [0, 1])]
    assert (reader.states, reader.committed, consumer.assigned) == ({}, {}, [])


def bounds(blocks: list[list[Slice]]) -> list[list[tuple[int, int]]]:
    """First and last offset of each slice of each block."""
    return [[(piece.first, piece.last) for piece in slices] for slices in blocks]


def test_what_is_too_much_for_one_block_becomes_several(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "MOST_BYTES", 2 * len(Record(0)))
    reader = reading(lambda commit: None)
    reader.rewind({0: state(5)})
    consumer.records = [Record(5), Record(7), Record(8), EndOfPartition(9)]
    assert bounds(reader.read(10, 0)) == [[(5, 7)], [(8, 8)]]
    assert reader.ends.seconds_at_end(0) is not None


def astray(*offsets: int) -> FetchResult:
    """A fetch with records that came by the consumer's own queue."""
    records: Any = [Record(offset) for offset in offsets]
    return replace(FetchResult.of_messages([]), astray=records)


def test_records_that_came_another_way_are_fetched_again_from_where_reading_stands(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = reading(lambda commit: None)
    reader.rewind({0: state(5), 1: state(7)})
    before = reader.rewinds
    monkeypatch.setattr(reader._fetcher, "fetch", lambda most, timeout: astray(5, 6))
    assert reader.read(10, 0) == []
    assert (reader.rewinds, consumer.assigned) == (before + 1, [(0, 5), (1, 7)])


def test_a_record_that_came_after_those_behind_it_stops_the_service(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = reading(lambda commit: None)
    reader.rewind({0: state(5)})
    monkeypatch.setattr(reader._fetcher, "fetch", lambda most, timeout: astray(4))
    with pytest.raises(ServiceError, match=r"offset 4 of q.input\[0\] came after those behind it"):
        reader.read(10, 0)


class NoBroker:
    """In place of a reader of batches, which here has nobody to ask."""

    def __init__(self, *_: Any) -> None: ...

    def fetch(self, *_: Any, **__: Any) -> None:
        raise ServiceError("nobody answers")

    def close(self) -> None: ...


class OutOfRange(Record):
    """What librdkafka says where a broker does not have the offset that it was led to."""

    def error(self) -> KafkaError:  # type: ignore[override]
        return KafkaError(KafkaError._AUTO_OFFSET_RESET)


@pytest.mark.parametrize(
    "records",
    [[Record(6), Record(5)], [Record(5), Record(1_004), OutOfRange(1_005)]],
    ids=["out of order", "behind the end"],
)
def test_a_partition_whose_records_have_forged_offsets_is_read_batch_by_batch(
    consumer: Consumer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    records: list[Record],
) -> None:
    """A producer writes the offsets within a batch, and a broker may not look at them."""
    monkeypatch.setattr("partitioner_service.kafka.detour.RawReader", NoBroker)
    reader = reading(lambda commit: None)
    reader.rewind({0: state(5), 1: state(7)})
    consumer.records = records
    assert reader.read(10, 0) == [], "none of these records is handed over"
    consumer.records = []
    assert reader.read(10, 0) == []
    assert consumer.assigned == [(1, 7)]
    assert "from behind the end of its log, where offset 5 was to come next; it is read batch" in caplog.text
    reader._detour.close()


def test_a_block_that_was_read_across_a_rebalance_is_thrown_away_and_read_again(consumer: Consumer) -> None:
    reader = reading(lambda commit: None)
    reader.rewind({0: state(5)})
    consumer.records = [Record(5), Record(6)]
    assert bounds(reader.read(10, 0)) == [[(5, 6)]]

    def rebalance() -> None:
        consumer.callbacks["on_revoke"](consumer, [])
        reader.rebalances += 1
        reader.rewind({0: state(3)})  # what the next assignment says

    consumer.during = rebalance
    assert reader.read(10, 0) == []
    assert consumer.assigned == [(0, 3)]


def test_a_partition_is_judged_by_the_max_jump_of_its_new_owner_from_the_first_record_that_it_reads(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger=source.__name__)
    committed = {0: state(5), 1: state(7, max_jumps=((3, 60_000),))}
    monkeypatch.setattr(source, "load_states", lambda *words: dict(committed))
    monkeypatch.setattr(Source, "look", lambda self: {})
    query = Query(name="q", max_jump="1m").with_first_limits({"max_jump": None})
    reader = reading(lambda commit: None, settings=SETTINGS.model_copy(update={"query": query}))
    consumer.callbacks["on_assign"](consumer, [TopicPartition("q.input", 0), TopicPartition("q.input", 1)])
    assert [reader.states[p].max_jumps for p in (0, 1)] == [((5, 60_000),), ((3, 60_000),)]
    assert reader.committed == reader.states, "an aborted transaction does not bring the old value back"
    assert "input partition 0: judged by query.max_jump 1m from here on (before: off)" in caplog.text
    assert committed[0] == state(5), "what is committed changes with the next offsets alone"


def test_a_partition_keeps_its_larger_out_of_orderness_and_a_smaller_one_grows(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger=source.__name__)
    committed = {
        0: state(5, first_time=9_000, max_time=9_000, steady_from=9_000, read=1, routed=1),
        1: state(7, disorders=((3, 60_000),)),
    }
    monkeypatch.setattr(source, "load_states", lambda *words: dict(committed))
    monkeypatch.setattr(Source, "look", lambda self: {})
    query = Query(name="q", out_of_orderness="2s").with_first_limits({"out_of_orderness": 0})
    reader = reading(lambda commit: None, settings=SETTINGS.model_copy(update={"query": query}))
    consumer.callbacks["on_assign"](consumer, [TopicPartition("q.input", 0), TopicPartition("q.input", 1)])
    assert [reader.states[p].disorders for p in (0, 1)] == [((5, 2_000),), ((3, 60_000),)]
    assert reader.states[0].mark(query) == committed[0].mark(query) == 9_000
    assert "input partition 0: judged by query.out_of_orderness 2s from here on (before: 0ms)" in caplog.text
    assert "input partition 1: still judged by query.out_of_orderness 1m, although" in caplog.text


def test_records_of_partitions_that_are_not_owned_never_enter_a_block(consumer: Consumer) -> None:
    reader = reading(lambda commit: None)
    reader.rewind({1: state(0)})
    consumer.records = [Record(0)]
    assert reader.read(10, 0) == []


def test_after_an_abort_position_and_state_go_back_together(consumer: Consumer) -> None:
    before = state(5, max_time=10, run=(1, 90, 90), read=5, routed=5)
    reader = reading(lambda commit: None)
    reader.note_committed({0: before})
    reader.rewind({0: state(9, max_time=99, read=9, routed=8, rejected=1)})
    Aborts(reader).note(CommitAborted("x"))
    assert (reader.states, consumer.assigned) == ({0: before}, [(0, 5)])


@pytest.mark.parametrize("way", ["abort", "on_revoke", "on_lost"])
def test_a_paused_partition_is_resumed_before_it_is_assigned_again(consumer: Consumer, way: str) -> None:
    # librdkafka keeps a partition paused through `assign`: forgotten, it would never be read again
    reader = reading(lambda commit: None)
    reader.rewind({0: state(5), 1: state(7)})
    reader.hold([1])
    assert consumer.asleep == {1}
    if way == "abort":
        reader.rewind({0: state(0), 1: state(0)})
    else:
        consumer.callbacks[way](consumer, [])
    assert (consumer.asleep, reader.paused) == (set(), set())


@pytest.mark.parametrize(
    ("messages", "at_end"),
    [
        ([Record(5), Record(6), EndOfPartition(7)], True),
        ([EndOfPartition(5), Record(5), Record(6)], False),
        ([EndOfPartition(5)], True),
        ([Record(5)], False),
    ],
)
def test_the_end_of_a_partition_counts_unless_records_came_after_it(
    consumer: Consumer, messages: list[Record], at_end: bool
) -> None:
    now = [0.0]
    reader = reading(lambda commit: None, clock=lambda: now[-1])
    reader.rewind({0: state(5)})
    consumer.records = messages
    reader.read(10, 0)
    now.append(30.0)
    assert reader.ends.since(0) == (30.0 if at_end else 0.0)


class Bomb(Record):
    """What librdkafka says of a batch of partition 0 that does not decompress."""

    def error(self) -> KafkaError:  # type: ignore[override]
        return KafkaError(KafkaError._BAD_COMPRESSION)


def stuck_beside_an_end(consumer: Consumer, now: list[float]) -> Source:
    """Partition 0 is stuck at offset 5 and partition 1 is at the end of its log. Half a minute has passed."""
    reader = reading(lambda commit: None, clock=lambda: now[-1])
    reader.rewind({0: state(5), 1: state(7)})
    consumer.assigned = []
    reader.ends.reached(1, 7)
    consumer.records = [Bomb(5)]
    reader.read(10, 0)
    assert (consumer.asleep, consumer.sought) == ({0}, [])
    now.append(31.0)
    consumer.records = []
    return reader


def test_only_the_partition_that_is_stuck_is_fetched_again(consumer: Consumer) -> None:
    now = [0.0]
    reader = stuck_beside_an_end(consumer, now)
    reader.read(10, 0)
    assert (consumer.sought, consumer.assigned, consumer.asleep) == ([(0, 5)], [], set())
    assert reader.ends.since(1) == 31.0, "it can fall asleep"
    reader.hold([0, 1])
    assert consumer.asleep == {1}, "no record has come yet, so its position could be lost"
    consumer.records = [Bomb(5)]
    reader.read(10, 0)
    assert consumer.asleep == {0, 1}
    now.append(62.0)
    consumer.records = [Record(5)]
    assert bounds(reader.read(10, 0)) == [[(5, 5)]]
    assert consumer.sought == [(0, 5), (0, 5)]
    reader.hold([0])
    assert consumer.asleep == {0}


def test_a_partition_that_cannot_be_sought_is_assigned_again(consumer: Consumer) -> None:
    reader = stuck_beside_an_end(consumer, [0.0])
    consumer.refusal = KafkaException(KafkaError(KafkaError._STATE))
    reader.read(10, 0)
    assert (consumer.assigned, consumer.asleep) == ([(0, 5), (1, 7)], set())
    assert reader.unfetchable.due() == set()


class Plane:
    """A data plane that runs until it is told to stop, or fails at once."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.told = threading.Event()

    def run(self) -> None:
        if self.error is not None:
            raise self.error
        assert self.told.wait(30)

    def stop(self) -> None:
        self.told.set()


class Control:
    """Of Faust's app only what `_serve` touches."""

    def finalize(self) -> None:
        pass

    async def stop(self) -> None:
        pass


@pytest.mark.parametrize("half", ["control", "data"])
def test_either_half_dying_ends_the_process_with_its_error(
    monkeypatch: pytest.MonkeyPatch, half: str, tmp_path: Path
) -> None:
    async def control(_: Any, leave: asyncio.Event) -> None:
        if half == "control":
            raise RuntimeError("control died")
        await asyncio.sleep(30)

    plane = Plane(RuntimeError("data died") if half == "data" else None)
    closed: list[Feed] = []
    monkeypatch.setattr(Feed, "close", lambda feed: closed.append(feed))
    monkeypatch.setattr(app, "build_app", lambda *given, **more: Control())
    monkeypatch.setattr(app, "_control", control)
    with pytest.raises(RuntimeError, match=f"{half} died"), closing(listening(SETTINGS)) as web:
        asyncio.run(
            asyncio.wait_for(app._serve(SETTINGS, plane, tmp_path, PartitionerInstruments(SETTINGS), web), 20)
        )  # type: ignore[arg-type]
    assert plane.told.is_set()
    assert len(closed) == 1, "what the live page follows ends, too"


def build(settings: Settings, folder: Path) -> Any:
    """The Faust app with these settings."""
    with closing(listening(settings)) as web:
        return app.build_app(
            settings, DataPlane(settings), folder, PartitionerInstruments(settings), Feed(settings), web=web
        )


def test_the_two_halves_have_groups_of_their_own_and_a_crash_holds_readers_back_for_ten_seconds(
    tmp_path: Path,
) -> None:
    built = build(SETTINGS, tmp_path)
    assert built.conf.id != data_plane_group(SETTINGS)
    assert SETTINGS.partitioner.transaction_timeout == 10_000


def test_extras_reach_faust_and_those_it_does_not_know_are_refused(tmp_path: Path) -> None:
    def with_extras(**extras: float) -> Settings:
        return Settings(query={"name": "q"}, input={"partitions": 2}, kafka={"extras": {"faust": extras}})

    fine = with_extras(broker_request_timeout=123.0, broker_session_timeout=20.0)
    built = build(fine, tmp_path)
    assert (built.conf.broker_request_timeout, built.conf.broker_session_timeout) == (123.0, 20.0)
    wrong = with_extras(broker_requests=1.0)
    with pytest.raises(ConfigError, match="broker_requests, which Faust does not know"):
        build(wrong, tmp_path)
