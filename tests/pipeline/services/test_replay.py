"""Replays on a real broker: what arrives, how it ends, and what a failure says."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer, TopicPartition

from evenflow.errors import ConfigError, IncompatibleStateError, ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import KafkaSettings, Settings, load_settings
from evenflow.settings.kafka import librdkafka_config
from evenflow.sources.datasets import open_source
from evenflow.sources.source import Source, SourceOptions
from evenflow.wire.markers import HEADER, EndOfStream
from producers import topic_end
from producers.clock import ManualClock
from producers.profiles import FixedRate, RecordedSpeed
from producers.records import values_of
from producers.replay import DeliveryError, replay
from tests.patience import PATIENCE
from topics.admin import describe, ensure_topics, pipeline_topics
from topics.clients import consumer
from topics.reader import read_range
from topics.state import TopicSpec, TopicState

pytestmark = pytest.mark.pipeline
both = pytest.mark.usefixtures("either_sending")
ROWS = "key,time,amount\nb,3000,1\na,1000,\n,1000,3\nö,2000,4\n"


def settings_for(kafka: KafkaSettings, name: str, **sections: dict[str, object]) -> Settings:
    sections["input"] = {"partitions": 3, **sections.get("input", {})}
    return load_settings(
        query={"name": name, **sections.pop("query", {})}, kafka=kafka.model_dump(), **sections
    )


def source_for(settings: Settings, text: str, **options: object) -> Source:
    return open_source(text, SourceOptions.for_settings(settings, **options))  # type: ignore[arg-type]


def topic_content(settings: Settings) -> tuple[dict[int, list[Message]], dict[int, list[EndOfStream]]]:
    """Tuples and markers of the input topic by partition, in offset order."""
    tuples: dict[int, list[Message]] = defaultdict(list)
    markers: dict[int, list[EndOfStream]] = defaultdict(list)
    for batch in read_range(settings.kafka, settings.topic("input")):
        for message in batch:
            marker = EndOfStream.from_headers(message.headers())
            if marker is None:
                tuples[message.partition()].append(message)
            else:
                markers[message.partition()].append(marker)
    return tuples, markers


@pytest.fixture(params=["arrays", "calls"])
def either_sending(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replays of a test hand records over in this way: each test runs on both."""
    monkeypatch.setitem(globals(), "replay", partial(replay, sending=request.param))


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS, encoding="utf-8")
    return str(path)


@both
def test_partition_key_value_and_timestamp_survive_in_order_of_time(
    kafka_settings: KafkaSettings, query_name: str, rows: str, request: pytest.FixtureRequest
) -> None:
    settings = settings_for(kafka_settings, query_name)
    summary = replay(settings, source_for(settings, rows))
    tuples, markers = topic_content(settings)
    arrived = {
        partition: [(m.key(), m.timestamp(), json.loads(m.value()), m.headers()) for m in messages]
        for partition, messages in tuples.items()
    }
    created = 1
    assert arrived == {
        0: [
            (b"a", (created, 1000), {"key": "a", "time": 1000, "amount": None}, None),
            (b"b", (created, 3000), {"key": "b", "time": 3000, "amount": 1}, None),
        ],
        1: [(b"", (created, 1000), {"key": "", "time": 1000, "amount": 3}, None)],
        2: [("ö".encode(), (created, 2000), {"key": "ö", "time": 2000, "amount": 4}, None)],
    }
    assert markers == {
        partition: [EndOfStream(producer="replay", tuples=count, producers=1)]
        for partition, count in enumerate([2, 1, 1])
    }
    assert (summary.tuples, summary.per_partition, summary.failed, summary.unsent) == (4, (2, 1, 1), 0, 0)
    assert summary.ended
    assert not summary.interrupted
    assert summary.sending == request.node.callspec.params["either_sending"]


@both
def test_every_tuple_of_a_large_stream_arrives_once_and_in_order(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings = settings_for(kafka_settings, query_name)
    source = source_for(settings, "zipf:z=1.2,keys=1000,tuples=200001,disorder=400ms")
    summary = replay(settings, source)
    tuples, markers = topic_content(settings)
    sent = [
        value
        for batch in source.batches()
        for value in values_of(batch, settings.input, key="key").to_pylist()
    ]
    for partition in range(3):
        assert [message.value() for message in tuples[partition]] == sent[partition::3]
        assert markers[partition][0].tuples == summary.per_partition[partition] == 66_667


def test_records_by_key_lie_where_librdkafkas_murmur2_puts_them(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings = settings_for(kafka_settings, query_name)
    replay(settings, source_for(settings, "uniform:keys=300,tuples=3000"), partition_by="key")
    tuples, _ = topic_content(settings)
    ours = {message.key(): partition for partition, messages in tuples.items() for message in messages}
    other = f"{query_name}-murmur2"
    ensure_topics(kafka_settings, [TopicSpec(name=other, partitions=3, config={})])
    theirs: dict[bytes, int] = {}
    producer = Producer(librdkafka_config(kafka_settings, partitioner="murmur2"))
    for key in ours:
        producer.produce(other, b"", key, on_delivery=lambda _, m: theirs.update({m.key(): m.partition()}))
    producer.flush(30)
    assert ours == theirs


def test_a_raw_key_query_reads_the_key_column_from_the_record_key(
    kafka_settings: KafkaSettings, query_name: str, rows: str
) -> None:
    settings = settings_for(kafka_settings, query_name, query={"key": "@key", "time": "@timestamp"})
    replay(settings, source_for(settings, rows, key="key", time="time", columns=("amount",)))
    tuples, _ = topic_content(settings)
    assert (tuples[2][0].key(), tuples[2][0].timestamp()[1], tuples[2][0].value()) == (
        "ö".encode(),
        2000,
        b'{"amount":4}',
    )


@pytest.mark.parametrize(
    ("form", "query", "expected"),
    [
        ({"format": "csv", "columns": ["time", "key"], "delimiter": ";"}, {}, b"2000;\xc3\xb6"),
        ({"format": "text"}, {"key": "value", "time": "@timestamp"}, b"\xc3\xb6"),
    ],
)
def test_records_are_written_in_the_input_format(
    kafka_settings: KafkaSettings, query_name: str, rows: str, form, query, expected: bytes
) -> None:
    settings = settings_for(kafka_settings, query_name, input=form, query=query)
    replay(settings, source_for(settings, rows, key="key", time="time"))
    assert topic_content(settings)[0][2][0].value() == expected


@both
def test_an_ended_topic_is_refused_and_not_written_to(
    kafka_settings: KafkaSettings, query_name: str, rows: str
) -> None:
    settings = settings_for(kafka_settings, query_name)
    replay(settings, source_for(settings, rows))
    for producer_id in ("replay", "another"):
        with pytest.raises(IncompatibleStateError, match="has ended") as caught:
            replay(settings, source_for(settings, rows), producer_id=producer_id)
        assert "query.name" in str(caught.value.hint)
    tuples, markers = topic_content(settings)
    assert sum(map(len, tuples.values())) == 4
    assert sum(map(len, markers.values())) == 3


@pytest.mark.parametrize("behind", ["a tuple", "a damaged marker", "a transaction"])
def test_a_topic_that_ended_somewhere_before_its_last_record_is_refused(
    kafka_settings: KafkaSettings, query_name: str, rows: str, behind: str
) -> None:
    settings = settings_for(kafka_settings, query_name)
    replay(settings, source_for(settings, rows))
    stranger = Producer(
        librdkafka_config(kafka_settings)
        | ({"transactional.id": query_name} if behind == "a transaction" else {})
    )
    if behind == "a transaction":
        stranger.init_transactions()
        stranger.begin_transaction()
    for partition in range(3):
        headers = [(HEADER, b"[" * 9_999)] if behind == "a damaged marker" else None
        value = None if headers else b"{}"
        stranger.produce(settings.topic("input"), value=value, partition=partition, headers=headers)
    if behind == "a transaction":
        stranger.commit_transaction()  # its mark is the last offset, and no record
    stranger.flush()
    with pytest.raises(IncompatibleStateError, match="has ended"):
        replay(settings, source_for(settings, rows), producer_id="another")


def test_what_partitioners_have_read_is_not_read_again_to_find_markers(
    kafka_settings: KafkaSettings, query_name: str, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(kafka_settings, query_name, input={"producers": 2})
    replay(settings, source_for(settings, rows), producer_id="one")
    topic = describe(kafka_settings, [settings.topic("input")])[settings.topic("input")]
    commit_states(settings, topic, ended=("one",))
    read: list[Message] = []

    def watched(*words: object, **more: object) -> Iterator[list[Message]]:
        for batch in read_range(*words, **more):  # type: ignore[arg-type]
            read.extend(batch)
            yield batch

    monkeypatch.setattr(topic_end, "read_range", watched)
    with pytest.raises(IncompatibleStateError, match="'one' has ended already"):
        replay(settings, source_for(settings, rows), producer_id="one")
    replay(settings, source_for(settings, rows), producer_id="two")
    assert read == []
    with pytest.raises(IncompatibleStateError, match="all 2 announced producers have ended"):
        replay(settings, source_for(settings, rows), producer_id="three")


def commit_states(settings: Settings, topic: TopicState, *, ended: tuple[str, ...]) -> None:
    """As a partitioner does that has read the whole topic."""
    client = consumer(settings.kafka, group=settings.data_plane_group)
    offsets = [
        TopicPartition(
            topic.name,
            partition,
            end,
            PartitionState(
                fingerprint=settings.fingerprint,
                topic_id=topic.topic_id,
                offset=end,
                ended_producers=ended,
                announced=2,
            ).encode(),
        )
        for partition, end in topic.end.items()
    ]
    client.commit(offsets=offsets, asynchronous=False)
    client.close()


def test_a_replay_without_end_may_be_followed_by_another(
    kafka_settings: KafkaSettings, query_name: str, rows: str
) -> None:
    settings = settings_for(kafka_settings, query_name)
    assert not replay(settings, source_for(settings, rows), end=False).ended
    assert replay(settings, source_for(settings, rows), limit=3).tuples == 3
    tuples, markers = topic_content(settings)
    assert sum(map(len, tuples.values())) == 7
    assert [markers[partition][0].tuples for partition in range(3)] == [1, 1, 1]


@both
def test_two_announced_producers_each_end_once_in_any_order(
    kafka_settings: KafkaSettings, query_name: str, rows: str
) -> None:
    settings = settings_for(kafka_settings, query_name, input={"producers": 2})
    replay(settings, source_for(settings, rows), producer_id="one")
    with pytest.raises(IncompatibleStateError, match="'one' has ended already"):
        replay(settings, source_for(settings, rows), producer_id="one")
    replay(settings, source_for(settings, rows), producer_id="two", limit=2)
    for producer_id in ("one", "three"):
        with pytest.raises(IncompatibleStateError, match="all 2 announced producers have ended"):
            replay(settings, source_for(settings, rows), producer_id=producer_id)
    _, markers = topic_content(settings)
    assert {
        partition: {m.producer: (m.tuples, m.producers) for m in result}
        for partition, result in markers.items()
    } == {
        0: {"one": (2, 2), "two": (1, 2)},
        1: {"one": (1, 2), "two": (1, 2)},
        2: {"one": (1, 2), "two": (0, 2)},
    }


@both
def test_a_failed_delivery_ends_the_replay_with_counts_and_no_marker(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = settings_for(kafka_settings, query_name)
    large = random.Random(1).randbytes(6_000_000).hex()  # lz4 must not bring it below the 4 MB limit
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "".join(f'{{"key":"k","time":{t},"pad":"{large if t == 5 else t}"}}\n' for t in range(1, 10))
    )
    with pytest.raises(DeliveryError, match="MSG_SIZE_TOO_LARGE") as caught:
        replay(settings, source_for(settings, str(path)))
    summary = caught.value.summary
    assert summary.failed >= 1
    assert summary.tuples + summary.failed + (summary.unsent or 0) == 9
    assert not summary.ended
    tuples, markers = topic_content(settings)
    assert sum(map(len, tuples.values())) == summary.tuples
    assert not markers


@both
def test_the_marker_counts_tuples_through_a_stop_and_a_stopped_replay_has_none(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings = settings_for(kafka_settings, query_name)
    seen: list[int] = []
    summary = replay(
        settings,
        source_for(settings, "zipf:tuples=endless,keys=10"),
        progress=lambda sent, total: seen.append(sent),
        stop=lambda: len(seen) >= 3,
    )
    assert summary.interrupted
    assert not summary.ended
    assert summary.tuples == seen[-1]
    tuples, markers = topic_content(settings)
    assert sum(map(len, tuples.values())) == summary.tuples
    assert not markers


@both
def test_a_paced_replay_takes_the_time_that_its_profile_says(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings, clock = settings_for(kafka_settings, query_name), ManualClock()
    replay(settings, source_for(settings, "uniform:tuples=5001,keys=10"), profile=FixedRate(10), clock=clock)
    assert clock.elapsed == pytest.approx(500, abs=0.2)
    assert max(clock.slept) <= 0.1


def test_a_replay_at_recorded_speed_takes_the_recorded_time_divided(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings, clock = settings_for(kafka_settings, query_name), ManualClock()
    source = source_for(settings, "uniform:tuples=601,keys=10,rate=10,disorder=2s")
    replay(settings, source, profile=RecordedSpeed(6), clock=clock)
    assert clock.elapsed == pytest.approx(10, abs=0.5)


@both
def test_live_tuples_carry_the_clock_at_sending(kafka_settings: KafkaSettings, query_name: str) -> None:
    settings, clock = settings_for(kafka_settings, query_name), ManualClock(wall_ms=1_800_000_000_000)
    source = source_for(settings, "uniform:tuples=21,keys=10")
    replay(settings, source, profile=FixedRate(10), live=True, clock=clock)
    tuples, _ = topic_content(settings)
    messages = [message for part in tuples.values() for message in part]
    stamps = sorted(message.timestamp()[1] for message in messages)
    assert stamps == sorted(json.loads(message.value())["time"] for message in messages)
    assert stamps[0] == 1_800_000_000_000
    assert stamps[-1] == pytest.approx(1_800_000_002_000, abs=150)


@both
def test_a_missing_broker_is_said_in_bounded_time(query_name: str, rows: str) -> None:
    kafka = KafkaSettings(bootstrap_servers="127.0.0.1:9", request_timeout=1_000)
    settings = settings_for(kafka, query_name)
    before = time.monotonic()
    with pytest.raises(ServiceError, match=r"127\.0\.0\.1:9"):
        replay(settings, source_for(settings, rows))
    assert time.monotonic() - before < 10


def test_event_times_that_kafka_cannot_hold_are_refused_before_anything_is_sent(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("key,time\na,5\nb,-7\n")
    settings = settings_for(kafka_settings, query_name)
    with pytest.raises(ConfigError, match="event time -7 ms of tuple 1"):
        replay(settings, source_for(settings, str(path)))
    assert topic_content(settings) == ({}, {})


@both
def test_event_time_zero_is_sent_unless_the_query_reads_the_record_timestamp(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings = settings_for(kafka_settings, query_name)
    replay(settings, source_for(settings, "uniform:tuples=1,start=0"))
    ((message,),) = topic_content(settings)[0].values()
    assert json.loads(message.value())["time"] == 0
    assert message.timestamp()[1] == 1
    by_timestamp = settings_for(kafka_settings, query_name + "-t", query={"time": "@timestamp"})
    with pytest.raises(ConfigError, match="event time 0 ms"):
        replay(by_timestamp, source_for(by_timestamp, "uniform:tuples=1,start=0"))


def test_a_source_that_lacks_a_column_of_the_query_is_refused(
    kafka_settings: KafkaSettings, query_name: str, rows: str
) -> None:
    query = {"aggregates": {"total": "sum(price)"}}
    settings = settings_for(kafka_settings, query_name, query=query)
    with pytest.raises(ConfigError, match="'price'"):
        replay(settings, source_for(settings, rows))


def test_a_topic_with_other_partitions_or_none_is_refused(
    kafka_settings: KafkaSettings, query_name: str, rows: str
) -> None:
    settings = settings_for(kafka_settings, query_name)
    with pytest.raises(ServiceError, match="does not exist"):
        replay(settings, source_for(settings, rows), create_topic=False)
    ensure_topics(kafka_settings, [pipeline_topics(settings)["input"]])
    more = settings_for(kafka_settings, query_name, input={"partitions": 4})
    for create in (True, False):
        with pytest.raises((ConfigError, IncompatibleStateError), match="has 3 partitions"):
            replay(more, source_for(more, rows), create_topic=create)


@both
def test_an_empty_stream_still_ends_every_partition(kafka_settings: KafkaSettings, query_name: str) -> None:
    settings = settings_for(kafka_settings, query_name)
    assert replay(settings, source_for(settings, "uniform:tuples=0")).ended
    tuples, markers = topic_content(settings)
    assert not tuples
    assert [markers[partition][0].tuples for partition in range(3)] == [0, 0, 0]


class Command:
    """`evenflow replay` in a process of its own."""

    def __init__(self, kafka: KafkaSettings, name: str, *words: str) -> None:
        environment = {
            **os.environ,
            "EVENFLOW_QUERY__NAME": name,
            "EVENFLOW_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cli.main", "replay", *words],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def result(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=120 * PATIENCE)
        return self.process.returncode, out, err


def test_the_command_prints_one_summary_object_on_standard_output(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    code, out, err = Command(kafka_settings, query_name, "zipf:tuples=1000,keys=10", "--json").result()
    assert code == 0, err
    summary = json.loads(out)
    assert (summary["tuples"], summary["partitions"], summary["failed"]) == (1000, 4, 0)
    assert summary["tuples_per_second"] > 0
    assert "ended" in err


def test_a_text_file_whose_columns_are_named_is_replayed_as_a_table(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data.txt").write_text("a 1 0.5\nb 2 0.25\n" * 50)
    monkeypatch.setenv("EVENFLOW_QUERY__KEY", "c0")
    monkeypatch.setenv("EVENFLOW_QUERY__TIME", "c1")
    words = ["--delimiter", " ", "--no-header", "--key", "c0", "--time", "c1"]
    code, _, err = Command(kafka_settings, query_name, str(tmp_path / "data.txt"), *words).result()
    assert code == 0, err
    assert "read as CSV with delimiter ' ', no header, columns c0, c1, c2; --format says otherwise" in err
    tuples, _ = topic_content(load_settings(query={"name": query_name}, kafka=kafka_settings.model_dump()))
    values = [json.loads(record.value()) for records in tuples.values() for record in records]
    assert len(values) == 100
    assert {tuple(value) for value in values} == {("c0", "c1", "c2")}


def test_the_command_fails_with_a_message_and_no_traceback(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    code, out, err = Command(kafka_settings, query_name, "zipf:keys=0", "--json").result()
    assert (code, out) == (2, "")
    assert "at least 1" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_command_with_counts_and_without_a_marker(
    kafka_settings: KafkaSettings, query_name: str, number: signal.Signals
) -> None:
    command = Command(kafka_settings, query_name, "zipf:tuples=endless,keys=10", "--rate", "2000", "--json")
    settings = load_settings(query={"name": query_name}, kafka=kafka_settings.model_dump())
    deadline = time.monotonic() + 60
    while not _has_tuples(settings):
        assert time.monotonic() < deadline
        assert command.process.poll() is None, command.result()
    command.process.send_signal(number)
    code, out, err = command.result()
    assert code == 130, err
    summary = json.loads(out)
    tuples, markers = topic_content(settings)
    assert sum(map(len, tuples.values())) == summary["tuples"] > 0
    assert summary["interrupted"]
    assert not markers


def _has_tuples(settings: Settings) -> bool:
    topic = describe(settings.kafka, [settings.topic("input")]).get(settings.topic("input"))
    return topic is not None and topic.records > 0
