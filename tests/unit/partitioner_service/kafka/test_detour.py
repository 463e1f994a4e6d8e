"""Each record before a bomb is read once, then the bomb is reported. librdkafka gets the partition when it
is past.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import load_settings
from partitioner_service.fetch.fetch_result import FetchResult
from partitioner_service.kafka.detour import Detour
from tests.unit.topics.test_bombs import built, signed
from topics.batches.bombs import Bomb, Suspect
from topics.batches.raw_batches import RawBatch, RawFetch, batches_of

BOMB = Bomb(14, 93, "gzip", 90_000, 134_217_728)


class Log:
    """A partition's batches in place of a broker. begin, end: of the log. down: what fetching raises."""

    def __init__(self, batches: Sequence[bytes]) -> None:
        self.batches = [batch for data in batches for batch in batches_of(data)]
        self.down: Exception | None = None
        self.together = 1
        self.begin, self.end, self.stable, self.closed = 0, 1_000, 1_000, threading.Event()

    def __call__(self, *_: object) -> Self:
        return self

    def close(self) -> None:
        self.closed.set()

    def fetch(self, partition: int, offset: int, *, most: int) -> RawFetch | None:
        if self.down is not None:
            raise self.down
        if offset < self.begin:
            return None
        result: list[RawBatch] = [batch for batch in self.batches if batch.last >= offset][: self.together]
        return RawFetch(result, (), self.end, self.stable)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Four records in two batches before a bomb, and one behind it."""
    bomb = built(1, [bytes(5_000_000)] * 40, first=14)
    made = Log([built(1, [b"a" * 90, b"b" * 90], first=10), built(0, [b"c", b"d"], first=12), bomb])
    monkeypatch.setattr("partitioner_service.kafka.detour.RawReader", made)
    return made


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def detour(clock: Any = None) -> Detour:
    made = Detour(load_settings().kafka, "topic", clock=clock or Clock(), moment=30.0)
    made.bombs = {3: BOMB}
    return made


def states(**offsets: int) -> dict[int, PartitionState]:
    return {
        int(name[1:]): PartitionState(offset=offset, fingerprint="f", topic_id="t")
        for name, offset in offsets.items()
    }


def offsets(fetched: FetchResult | None) -> list[int]:
    assert fetched is not None
    return fetched.offsets.tolist()


def report(fetched: FetchResult | None) -> tuple[int, KafkaError]:
    """Offset and error of the one event of a fetch."""
    assert fetched is not None
    ((_, event),) = fetched.events
    error = event.error()
    assert error is not None
    return event.offset(), error


def test_the_records_before_a_bomb_come_batch_by_batch_and_then_its_report_once(log: Log) -> None:
    made = detour()
    assert made.leads(states(p3=10, p4=0)) == {3}
    first = made.fetch(())
    assert offsets(first) == [10, 11]
    assert first is not None
    assert [(r.value(), r.key(), r.headers(), r.timestamp()) for r in first.records] == [
        (b"a" * 90, None, None, (TIMESTAMP_CREATE_TIME, 1_000)),
        (b"b" * 90, None, None, (TIMESTAMP_CREATE_TIME, 1_001)),
    ]
    assert offsets(made.fetch(())) == [12, 13]
    report = made.fetch(())
    assert report is not None
    ((arrival, event),) = report.events
    error = event.error()
    assert error is not None
    assert (arrival, event.partition(), event.offset(), error.code()) == (
        0,
        3,
        14,
        KafkaError._BAD_COMPRESSION,
    )
    assert "Decompression bomb (gzip)" in error.str()
    assert made.fetch(()) is None


@pytest.mark.parametrize("control", [False, True], ids=["a record", "the end of a transaction"])
def test_suspects_come_batch_by_batch_up_to_the_end_of_the_log_and_nothing_is_reported(
    log: Log, control: bool
) -> None:
    if control:
        log.batches[2:] = batches_of(
            signed(bytearray(built(0, [b"", b""], first=14)), codec=0, attributes=0x30)
        )
    else:
        del log.batches[2:]
    log.stable = log.batches[-1].last + 1
    made = detour()
    made.bombs = {3: Suspect(10, 10)}
    assert made.leads(states(p3=10)) == {3}
    assert offsets(made.fetch(())) == [10, 11]
    assert offsets(made.fetch(())) == [12, 13]
    assert not control or offsets(made.fetch(())) == []
    assert made.past == set(), "the last records do not count in the states yet"
    assert made.fetch(()) is None
    assert made.past == {3}
    assert made.leads(states(p3=14)) == frozenset()
    assert made.leads(states(p3=12)) == frozenset(), "also if reading goes back"


def test_an_empty_answer_before_the_end_of_the_log_does_not_end_a_detour(log: Log) -> None:
    """A broker with a quota answers like that."""
    clock = Clock()
    log.batches, behind = [], log.batches[:2]
    made = detour(clock)
    made.bombs = {3: Suspect(10, 10)}
    made.leads(states(p3=10))
    assert made.fetch(()) is None
    log.batches, clock.now = behind, 1.0
    assert offsets(made.fetch(())) == [10, 11]
    assert made.past == set()


LARGE = 3_000_000
"""Bytes of a batch that is not compressed: six of them are more than the 16 MB that are looked at."""


def _portions(made: Detour) -> int:
    """How many batches come before librdkafka gets the partition."""
    count = 0
    while not made.past:
        count += made.fetch(()) is not None
    return count


def test_where_batches_are_ordinary_again_the_detour_ends(log: Log) -> None:
    ordinary = [built(0, [bytes(LARGE)], first=at) for at in range(10, 30)]
    behind = [built(0, [bytes(LARGE)], first=at) for at in range(1_000, 1_020)]
    many_headers = DefaultRecordBatchBuilder(2, 1, 0, -1, -1, -1, 10**9)
    many_headers.append(0, timestamp=1_000, key=None, value=b"x", headers=[("", b"")] * 10_000)
    headers = many_headers.build()
    headers[:8] = (12).to_bytes(8, "big")
    grown, many_records = built(1, [bytes(LARGE)], first=12), built(0, [b""] * 300, first=12)
    assert len(many_records) * 32 < 300 * 400
    for batches, reach, expected in (
        (ordinary, 10, 6),
        (ordinary, 18, 9),
        *(([*ordinary[:2], heavy, *behind], 10, 3 + 6) for heavy in (grown, many_records, bytes(headers))),
    ):
        log.batches = [batch for data in batches for batch in batches_of(data)]
        made = detour()
        made.bombs = {3: Suspect(10, reach)}
        made.leads(states(p3=10))
        assert _portions(made) == expected
        assert made.leads(states(p3=10 + expected)) == frozenset()


def test_a_bomb_among_suspects_is_reported(log: Log) -> None:
    made = detour()
    made.bombs = {3: Suspect(10, 10)}
    made.leads(states(p3=14))
    assert report(made.fetch(()))[0] == 14


def test_records_with_many_headers_come_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=1, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=10**9,
    )  # fmt: skip
    for at in range(5):
        builder.append(at, timestamp=1_000, key=None, value=b"x", headers=[("", b"")] * 60_000)
    monkeypatch.setattr("partitioner_service.kafka.detour.RawReader", Log([bytes(builder.build())]))
    made = detour()
    made.bombs = {3: Suspect(0, 0)}
    made.leads(states(p3=0))
    portions = [offsets(made.fetch(())) for _ in range(3)]
    assert portions == [[0, 1], [2, 3], [4]]


def test_a_partition_that_is_fetched_again_is_reported_again(log: Log) -> None:
    made = detour()
    made.leads(states(p3=14))
    assert made.fetch(()) is not None
    assert made.fetch(()) is None
    made.again({3, 4}, states(p3=14, p4=0))
    assert report(made.fetch(()))[0] == 14


@pytest.mark.parametrize("offset", [94, 95])
def test_behind_its_bomb_a_partition_is_left_to_librdkafka(log: Log, offset: int) -> None:
    made = detour()
    assert made.leads(states(p3=13)) == {3}
    made.fetch(())
    assert made.leads(states(p3=offset)) == frozenset()
    assert made.fetch(()) is None
    assert log.closed.wait(30), "the connection is closed, in a thread of its own"
    made.again({3}, states(p3=offset))
    assert made.fetch(()) is None


def test_a_paused_partition_is_not_read(log: Log) -> None:
    made = detour()
    made.leads(states(p3=10))
    assert made.fetch({3}) is None
    assert offsets(made.fetch({4})) == [10, 11]


def test_reading_goes_back_with_the_states(log: Log) -> None:
    made = detour()
    made.leads(states(p3=10))
    made.fetch(())
    made.fetch(())
    made.leads(states(p3=12))
    assert offsets(made.fetch(())) == [12, 13]


@pytest.mark.parametrize("error", [ServiceError("nobody answers"), ValueError("what nobody thought of")])
def test_a_broker_that_is_away_is_asked_again_after_a_rest(
    log: Log, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    clock = Clock()
    made = detour(clock)
    made.leads(states(p3=10))
    log.down = error
    assert made.fetch(()) is None
    assert f"topic[3] is asked for again: {error}" in caplog.text
    log.down = None
    assert made.fetch(()) is None
    clock.now = 5.0
    assert offsets(made.fetch(())) == [10, 11]


def test_an_offset_that_is_gone_is_reported_as_librdkafka_reports_it(log: Log) -> None:
    made, log.begin = detour(), 12
    made.leads(states(p3=10))
    assert report(made.fetch(()))[1].code() == KafkaError.OFFSET_OUT_OF_RANGE


def test_a_batch_with_a_wrong_checksum_is_reported_and_nothing_of_it_is_read(log: Log) -> None:
    damaged = bytearray(log.batches[1].data)
    damaged[-2] ^= 0xFF
    log.batches[1] = RawBatch(12, 13, bytes(damaged))
    made = detour()
    made.leads(states(p3=12))
    fetched = made.fetch(())
    offset, error = report(fetched)
    assert (offset, error.code()) == (12, KafkaError._BAD_MSG)
    assert offsets(fetched) == []


@pytest.mark.parametrize("deltas", [[0, 0, 0], [2, 1, 0], [0, 2, 3], [0, 1, 1_000]])
def test_of_a_batch_with_offsets_in_no_order_nothing_is_read(log: Log, deltas: list[int]) -> None:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 10**9)
    for delta in deltas:
        builder.append(delta, timestamp=1_000, key=None, value=b"x", headers=[])
    data = bytearray(builder.build())
    data[:8] = (14).to_bytes(8, "big")
    data[23:27] = (len(deltas) - 1).to_bytes(4, "big")  # all that a broker looks at
    log.batches[2:] = batches_of(signed(data))
    log.together = 3
    made = detour()
    made.bombs = {3: Suspect(10, 10)}
    made.leads(states(p3=10))
    fetched = made.fetch(())
    assert offsets(fetched) == [10, 11, 12, 13], "what stands before it comes with its report"
    offset, error = report(fetched)
    assert (offset, error.code()) == (14, KafkaError._BAD_MSG)
    assert "an offset is out of its order or range" in error.str()


def test_ordinary_batches_of_a_fetch_come_together(log: Log) -> None:
    log.together = 3
    made = detour()
    made.leads(states(p3=10))
    fetched = made.fetch(())
    assert offsets(fetched) == [10, 11, 12, 13]
    assert report(fetched)[0] == 14


def test_a_log_without_anything_new_rests(log: Log) -> None:
    clock = Clock()
    log.batches, kept = [], log.batches
    made = detour(clock)
    made.leads(states(p3=10))
    assert made.fetch(()) is None
    log.batches = kept
    assert made.fetch(()) is None
    clock.now = 1.0
    assert offsets(made.fetch(())) == [10, 11]


def test_a_large_batch_comes_in_pieces_and_a_pause_stops_it_in_the_middle(log: Log) -> None:
    log.batches[:2] = batches_of(built(1, [b""] * 25_000, first=10))
    made = detour()
    made.bombs = {3: replace(BOMB, first=25_010, last=25_010)}
    made.leads(states(p3=10))
    assert offsets(made.fetch(())) == list(range(10, 10_010))
    assert made.fetch({3}) is None
    assert offsets(made.fetch(())) == list(range(10_010, 20_010))
    made.leads(states(p3=10_015))
    assert offsets(made.fetch(()))[0] == 10_015, "it goes on there, although the batch begins before"


@pytest.mark.parametrize("behind", [True, False], ids=["other records", "nothing"])
def test_a_bomb_that_is_gone_gives_its_partition_back(log: Log, behind: bool) -> None:
    made = detour()
    log.batches = list(batches_of(built(0, [b"z"], first=200))) if behind else []
    log.end = 201 if behind else 14
    made.leads(states(p3=14))
    assert made.ahead(states(p3=14)) == made.ahead({}) == {3: 14}
    assert made.fetch(()) is None
    assert made.past == {3}
    assert made.leads(states(p3=14)) == frozenset()
    assert made.ahead({}) == {}


def test_a_zstd_bomb_before_another_is_reported_and_not_decompressed(log: Log) -> None:
    log.batches[1:1] = batches_of(built(4, [bytes(5_000_000)] * 40, first=12))
    made = detour()
    made.leads(states(p3=12))
    assert "Decompression bomb (zstd)" in report(made.fetch(()))[1].str()


def test_a_batch_of_a_format_that_nobody_writes_any_more_is_reported(log: Log) -> None:
    old = bytearray(log.batches[0].data)
    old[16] = 1
    log.batches[0] = RawBatch(10, 10, bytes(old))
    made = detour()
    made.leads(states(p3=10))
    assert "of before Kafka 0.11" in report(made.fetch(()))[1].str()


def test_a_fetch_that_is_on_its_way_when_reading_goes_elsewhere_is_dropped(log: Log) -> None:
    made = detour()
    made._moment = 0.0
    made.leads(states(p3=10))
    first = made.fetch(())
    made._moment = 30.0
    made.leads(states(p3=12))
    got = first or made.fetch(()) or made.fetch(())
    assert offsets(got) == ([10, 11] if first else [12, 13])


def test_a_turn_goes_through_no_more_records_than_it_hands_over(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction may be open. A batch of 400 kB may have 13 million empty records."""
    log.batches[:2] = batches_of(built(1, [b""] * 25_000, first=10))
    front, own = RawBatch._front, threading.current_thread()
    records = [0]

    def counted(batch: RawBatch, *words: Any) -> Any:
        records[-1] += threading.current_thread() is own
        return front(batch, *words)

    monkeypatch.setattr(RawBatch, "_front", counted)
    made = detour()
    made.bombs = {3: replace(BOMB, first=25_010, last=25_010)}
    for begin in (10, 24_000):
        made.leads(states(p3=begin))
        records[:] = [0]
        assert offsets(made.fetch(()))[0] == begin
        assert records[0] <= 10_001


def test_while_a_batch_is_judged_the_data_plane_goes_on(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    judged, begun, over = RawBatch.checked_records, threading.Event(), threading.Event()

    def slow(batch: RawBatch, *words: Any, **more: Any) -> Any:
        begun.set()
        assert over.wait(30)
        return judged(batch, *words, **more)

    monkeypatch.setattr(RawBatch, "checked_records", slow)
    made = detour()
    made._moment = 0.0
    made.leads(states(p3=10))
    assert made.fetch(()) is None
    assert begun.wait(30)
    assert made.fetch(()) is None
    over.set()
    made._moment = 30.0
    assert offsets(made.fetch(())) == [10, 11]


def test_a_heavy_batch_behind_others_of_its_fetch_comes_alone(log: Log) -> None:
    log.batches[2:] = batches_of(built(1, [bytes(LARGE)], first=14) + built(0, [b"x"], first=15))
    log.together = 4
    made = detour()
    made.bombs = {3: Suspect(10, 100)}
    made.leads(states(p3=10))
    assert [offsets(made.fetch(())) for _ in range(3)] == [[10, 11, 12, 13], [14], [15]]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches were in memory as another one was decompressed."""
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    counts: list[int] = []
    judged = RawBatch.checked_records

    def counted(batch: RawBatch, *words: Any, **more: Any) -> Any:
        counts.append(len(alive))
        records = judged(batch, *words, **more)
        alive.add(records)
        return records

    monkeypatch.setattr(RawBatch, "checked_records", counted)
    return counts


def test_a_paused_partition_neither_takes_memory_nor_holds_up_another_one(log: Log, held: list[int]) -> None:
    log.batches[:2] = batches_of(built(1, [b""] * 25_000, first=10))
    made = detour()
    made.bombs = dict.fromkeys((3, 4), replace(BOMB, first=25_010, last=25_010))
    made.leads(states(p3=10, p4=10))
    portions = []
    for paused in ({4}, {3}, {4}, {3}, {4}, {3}):
        fetched = made.fetch(paused)
        assert fetched is not None
        portions.append((set(fetched.partitions.tolist()), fetched.offsets[0], fetched.offsets[-1]))
    assert portions == [
        ({partition}, first, last)
        for first, last in ((10, 10_009), (10_010, 20_009), (20_010, 25_009))
        for partition in (3, 4)
    ]
    assert set(held) == {0}, "one batch at a time"


@given(
    st.lists(st.lists(st.integers(1, 12), max_size=4), min_size=1, max_size=3),
    st.lists(st.sets(st.integers(0, 2)), max_size=25),
)
def test_whatever_is_paused_when_each_record_comes_once_and_in_order(
    sizes: list[list[int]], pauses: list[set[int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("partitioner_service.kafka.detour._MOST_RECORDS", 5)
        logs = {}
        for partition, counts in enumerate(sizes):
            begins = [sum(counts[:at]) for at in range(len(counts) + 1)]
            batches = [built(1, [b"x"] * count, first=at) for at, count in zip(begins, counts, strict=False)]
            logs[partition] = Log(batches)
        patch.setattr("partitioner_service.kafka.detour.RawReader", Logs(logs))
        made = detour()
        made.bombs = dict.fromkeys(logs, replace(BOMB, first=900, last=900))
        made.leads({partition: states(p0=0)[0] for partition in logs})
        came: dict[int, list[int]] = {partition: [] for partition in logs}
        for paused in [*pauses, *[set[int]()] * (sum(map(sum, sizes)) + len(logs))]:
            fetched = made.fetch(paused)
            if fetched is not None:
                for partition, offset in zip(fetched.partitions.tolist(), offsets(fetched), strict=True):
                    came[partition].append(offset)
        made.close()
        assert came == {partition: list(range(sum(counts))) for partition, counts in enumerate(sizes)}


class Logs:
    """The logs of several partitions."""

    def __init__(self, logs: dict[int, Log]) -> None:
        self._logs = logs

    def __call__(self, *_: object) -> Self:
        return self

    def close(self) -> None: ...

    def fetch(self, partition: int, offset: int, *, most: int) -> RawFetch | None:
        return self._logs[partition].fetch(partition, offset, most=most)


def test_partitions_take_turns(log: Log) -> None:
    made = detour()
    made.bombs = {3: BOMB, 4: BOMB}
    made.leads(states(p3=10, p4=10))
    assert [offsets(made.fetch(()))[0] for _ in range(4)] == [10, 10, 12, 12]
