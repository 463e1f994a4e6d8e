"""When a stream is over, asked of a topic that is a plain list here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evenflow.errors import DataLossError
from evenflow.numeric.arrays import records
from evenflow.settings import Settings
from evenflow.twostep import BucketPosition, FrameAt, Tally
from evenflow.windows import END_MARK
from evenflow.wire import LANE, MARKS, BlobHeader, FrameHeader, Segment, encode_blob, encode_frame, records_of
from spark_consumers import end_of_stream
from spark_consumers.end_of_stream import EndOfTopic, check_complete, reads_on
from topics.state import TopicState

NO_ROWS = pa.record_batch([pa.array([], pa.int64())], names=["pane"])
SETTINGS = Settings(input={"partitions": 2}, partitioner={"workers": 3}, spark={"buckets": 1})


class Record:
    """A Kafka record, reduced to what is read of it."""

    def __init__(self, partition: int, offset: int, data: bytes) -> None:
        self._partition = partition
        self._offset = offset
        self._data = data

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return self._data


@lru_cache
def tells(marks: tuple[tuple[int, int], ...]) -> bytes:
    """A frame that tells these marks by input partition."""
    header = FrameHeader(
        fingerprint=SETTINGS.fingerprint,
        epoch=0,
        input_partitions=2,
        routed_partitions=3,
        session=1,
        marks=records_of([(partition, mark, 1) for partition, mark in marks], MARKS),
    )
    return encode_frame(NO_ROWS, header, sequence=0)


def ends(lanes: set[int]) -> bytes:
    """A frame that tells the end of these input partitions."""
    return tells(tuple((lane, END_MARK) for lane in sorted(lanes)))


class Topic:
    """Records by partition; counts how often it is read, and how many records were handed out."""

    def __init__(self, patch: pytest.MonkeyPatch, records: list[list[bytes]]) -> None:
        self.records = records
        self.reads = self.handed_out = 0
        patch.setattr(end_of_stream, "recorded_partitions", lambda settings: None)
        patch.setattr(end_of_stream, "describe", lambda kafka, names: {names[0]: self.state})
        patch.setattr(end_of_stream, "read_range", self.read)

    @property
    def state(self) -> TopicState:
        ends = {number: len(records) for number, records in enumerate(self.records)}
        begin = dict.fromkeys(ends, 0)
        return TopicState("routed", "id", len(ends), begin, ends, {})

    def read(
        self, kafka: Any, topic: str, *, begin: Mapping[int, int], end: Mapping[int, int]
    ) -> Iterator[list[Record]]:
        self.reads += 1
        for number, stop in ((n, e) for n, e in end.items() if n < len(self.records)):
            first = begin.get(number, 0)
            values = self.records[number][first:stop]
            result = [Record(number, offset, value) for offset, value in enumerate(values, first)]
            self.handed_out += len(result)
            yield result


def everything(topic: Topic) -> dict[int, int]:
    return dict(topic.state.end)


def test_the_newest_records_of_all_partitions_are_looked_at_in_one_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = Topic(
        monkeypatch,
        [
            [ends(set())] * 500 + [ends({0}), ends({1})],
            [ends(set())] * 500 + [ends({0, 1})],
            [ends({0})] + [ends(set())] * 9 + [ends({1})],
        ],
    )
    end = EndOfTopic(SETTINGS, "routed")
    assert not end.reached_by({0: 502, 1: 500, 2: 11}), "one record is not committed yet"
    assert topic.reads == 0
    assert end.reached_by(everything(topic))
    assert topic.reads == 1
    assert topic.handed_out <= 3 * 32


def test_where_a_lane_is_missing_it_is_looked_for_further_back_and_each_record_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent = ends(set())
    topic = Topic(
        monkeypatch,
        [[ends({0, 1})] + [silent] * 100, [silent] * 50 + [ends({0, 1})], [ends({0})] + [silent] * 300],
    )
    end = EndOfTopic(SETTINGS, "routed")
    assert not end.reached_by(everything(topic)), "lane 1 has not ended in partition 2"
    assert topic.handed_out == 101 + 32 + 301
    topic.records[2].append(ends({1}))
    before = topic.handed_out
    assert end.reached_by(everything(topic))
    assert topic.handed_out == before + 1
    assert end.reached_by(everything(topic))
    assert topic.handed_out == before + 1


def test_a_lane_that_has_not_ended_is_not_looked_for_further_back(monkeypatch: pytest.MonkeyPatch) -> None:
    running = [tells(((0, END_MARK), (1, number))) for number in range(5_000)]
    topic = Topic(monkeypatch, [list(running) for _ in range(3)])
    end = EndOfTopic(SETTINGS, "routed")
    assert not end.reached_by(everything(topic))
    assert topic.handed_out <= 3 * 32
    for partition in topic.records:
        partition.append(ends({1}))
    assert end.reached_by(everything(topic))
    assert topic.handed_out <= 3 * 33


def test_the_marks_of_a_segment_count_only_with_its_last_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A combiner that died between the parts of its last blob: the reducer has not closed the last windows
    yet.
    """
    rows = pa.record_batch([pa.array([b"a", b"b", b"c"], pa.large_binary())], names=["key"])
    segments = tuple(Segment(routed, 0, 9, 1, 0, 1, 0) for routed in range(3))
    header = BlobHeader(
        fingerprint=SETTINGS.fingerprint,
        topic_id="t",
        bucket=0,
        buckets=1,
        input_partitions=2,
        routed_partitions=3,
        segments=(*segments[:2], Segment(2, 0, 9, 2, 0, 1, 0)),
        marks=np.full((1, 2), END_MARK),
        lanes=records(0, LANE),
    )
    topic = Topic(monkeypatch, [[encode_blob(rows, header)]])
    end = EndOfTopic(SETTINGS, "partials")
    assert not end.reached_by(everything(topic))
    rest = replace(header, segments=(Segment(2, 0, 9, 2, 1, 1, 0),))
    topic.records[0].append(encode_blob(rows.slice(0, 1), rest))
    assert end.reached_by(everything(topic))


def numbered(*numbers: int) -> list[bytes]:
    """Frames of session 1 with these numbers."""
    header = FrameHeader(
        fingerprint=SETTINGS.fingerprint, epoch=0, input_partitions=2, routed_partitions=3, session=1
    )
    return [encode_frame(NO_ROWS, header, sequence=number) for number in numbers]


def test_what_was_read_up_to_the_last_frames_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    Topic(monkeypatch, [numbered(*range(60)), numbered(*range(3)), []])
    frames = {0: FrameAt(59, 1, 59), 1: FrameAt(2, 1, 2)}
    check_complete(SETTINGS, Tally(frames=frames), {}, stage="fused")


@pytest.mark.parametrize(
    ("now", "standing"),
    [
        ([0, 1, 4], "frame 4 of session 1 at offset 2"),
        ([0, 1], "frame 1 of session 1 at offset 1"),
        ([], "none"),
    ],
)
def test_a_log_that_was_cut_and_grew_to_where_it_was_read_is_a_loss(
    monkeypatch: pytest.MonkeyPatch, now: list[int], standing: str
) -> None:
    Topic(monkeypatch, [numbered(*now), numbered(0), []])
    tally = Tally(frames={0: FrameAt(2, 1, 2), 1: FrameAt(0, 1, 0)})
    with pytest.raises(
        DataLossError, match=rf"partition 0 .*at offset 2, but .* is {standing}: the log was cut"
    ):
        check_complete(SETTINGS, tally, {}, stage="combine")
    # The reduce stage does not read that topic.
    check_complete(SETTINGS, tally, {}, stage="reduce")


def test_a_frame_that_retention_has_deleted_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(monkeypatch, [[], [], []])
    state = replace(topic.state, begin={0: 5, 1: 0, 2: 0}, end={0: 5, 1: 0, 2: 0})
    monkeypatch.setattr(end_of_stream, "describe", lambda kafka, names: {names[0]: state})
    check_complete(SETTINGS, Tally(frames={0: FrameAt(4, 1, 4)}), {}, stage="fused")


def test_a_frame_is_looked_for_behind_records_that_are_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ends of transactions have offsets, too, and are not handed out."""
    topic = Topic(monkeypatch, [numbered(0), [], []])
    state = replace(topic.state, end={0: 500, 1: 0, 2: 0})
    monkeypatch.setattr(end_of_stream, "describe", lambda kafka, names: {names[0]: state})
    check_complete(SETTINGS, Tally(frames={0: FrameAt(0, 1, 0)}), {}, stage="fused")


def test_frames_behind_the_committed_offsets_belong_to_a_micro_batch_that_is_under_way() -> None:
    """An instance that stopped gave its partitions to another one, which repeated the end marks. The tasks
    had read them, and their micro-batch was not committed.
    """
    tally = Tally(frames={0: FrameAt(514, 1, 37), 1: FrameAt(521, 2, 49)})
    assert reads_on(tally, {0: 515, 1: 515}, stage="fused")
    assert reads_on(tally, {0: 515, 1: 521}, stage="combine")
    assert not reads_on(tally, {0: 515, 1: 522}, stage="fused")
    assert not reads_on(tally, {0: 3, 1: 4}, stage="reduce"), "those are offsets of partials"


def test_a_bucket_with_open_windows_at_the_end_waits_for_frames_that_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Topic(monkeypatch, [[], [], []])
    over = BucketPosition(windows=0, panes=0, next_end=None, marks=(END_MARK, END_MARK))
    check_complete(SETTINGS, Tally(bucket_stands={0: over}), {}, stage="reduce")
    tally = Tally(bucket_stands={0: over, 1: replace(over, windows=2, panes=2, next_end=9)})
    with pytest.raises(DataLossError, match="bucket 1 still has 2 open windows"):
        check_complete(SETTINGS, tally, {}, stage="reduce")


def test_a_bucket_that_has_not_read_the_end_lacks_blobs_that_were_cut_off() -> None:
    """Partials may be cut and grow again to where they had been read, and the bucket may know of no open
    window.
    """
    begun = BucketPosition(windows=0, panes=0, next_end=None, marks=(END_MARK, 7))
    with pytest.raises(DataLossError, match=r"partials was read .* bucket 1 has not read .* partition 1"):
        check_complete(SETTINGS, Tally(bucket_stands={1: begun}), {}, stage="reduce")


def test_a_combiner_is_over_before_the_buckets_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    Topic(monkeypatch, [numbered(0), [], []])
    begun = BucketPosition(windows=2, panes=2, next_end=9, marks=(END_MARK, 7))
    tally = Tally(frames={0: FrameAt(0, 1, 0)}, bucket_stands={0: begun})
    check_complete(SETTINGS, tally, {}, stage="combine")
    with pytest.raises(DataLossError):
        check_complete(SETTINGS, tally, {}, stage="fused")
