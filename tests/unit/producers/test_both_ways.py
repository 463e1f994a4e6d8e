"""A whole replay writes the same topic, whichever way it hands its records over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import producers.replay
from evenflow.settings import load_settings
from evenflow.sources.generators import generate
from evenflow.sources.source import SourceOptions
from evenflow.wire.markers import EndOfStream
from producers.clock import ManualClock
from producers.profiles import FixedRate, Profile
from producers.replay import DeliveryError, ReplaySummary, replay
from producers.writers import Sending
from tests.mock_kafka import TOPIC, MockKafka, TopicReader
from topics.state import TopicState

PARTITIONS, TUPLES = 3, 1_000
INPUTS: dict[str, dict[str, Any]] = {
    "json": {},
    "csv": {"format": "csv", "columns": ["time", "key", "value"]},
    "text": {"format": "text"},
}
PACES: dict[str, dict[str, Any]] = {
    "full speed": {},
    "paced": {"profile": FixedRate(500)},
    "live": {"profile": FixedRate(500), "live": True},
}
Content = dict[int, list[Any]]


@pytest.fixture(scope="module")
def kafka() -> MockKafka:
    return MockKafka(PARTITIONS)


@pytest.fixture
def reader(kafka: MockKafka, monkeypatch: pytest.MonkeyPatch) -> Iterator[TopicReader]:
    """Reads the topic, of which a mock broker cannot be asked everything."""
    state = TopicState(TOPIC, "id", PARTITIONS, {}, {}, {})
    monkeypatch.setattr(producers.replay, "describe", lambda *some: {TOPIC: state})
    monkeypatch.setattr(producers.replay, "refuse_ended", lambda *some, **more: None)
    made = TopicReader(kafka, PARTITIONS)
    yield made
    made.close()


def send(kafka: MockKafka, form: str, sending: Sending, **more: Any) -> ReplaySummary:
    settings = load_settings(
        query={"name": "q", "key": "value", "time": "@timestamp"} if form == "text" else {"name": "q"},
        kafka={"bootstrap_servers": kafka.servers},
        input={"topic": TOPIC} | INPUTS[form],
    )
    words = f"z=1,keys=20,tuples={TUPLES},rate=1000,seed=3"
    options = SourceOptions(columns=("key",) if form == "text" else ("key", "time", "value"))
    return replay(settings, generate("zipf", words, options), sending=sending, clock=ManualClock(), **more)


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("form", INPUTS)
def test_topics_are_the_same(kafka: MockKafka, reader: TopicReader, form: str, pace: str) -> None:
    contents: list[Content] = []
    for sending in ("arrays", "calls"):
        summary = send(kafka, form, sending, **PACES[pace])
        assert summary.sending == sending
        assert (summary.tuples, summary.failed, summary.ended) == (TUPLES, 0, True)
        contents.append(reader.read(TUPLES + PARTITIONS))
        markers = [EndOfStream.from_headers(records[-1][3]) for records in contents[-1].values()]
        assert [marker and marker.tuples for marker in markers] == list(summary.per_partition)
    assert contents[0] == contents[1]


def test_live_tuples_carry_the_time_at_which_they_are_sent(kafka: MockKafka, reader: TopicReader) -> None:
    send(kafka, "json", "arrays", **PACES["live"])
    begin = ManualClock().wall_ms()
    for records in reader.read(TUPLES + PARTITIONS).values():
        stamps = [stamp for _, _, stamp, _ in records[:-1]]
        assert [json.loads(value)["time"] for value, _, _, _ in records[:-1]] == stamps
        assert stamps == sorted(stamps)
        assert begin <= stamps[0] < begin + 100
        assert begin + 1_900 <= stamps[-1] <= begin + 2_100


@pytest.mark.parametrize("sending", ["arrays", "calls"])
def test_records_that_the_broker_refuses_end_the_replay_without_a_marker(
    kafka: MockKafka, reader: TopicReader, sending: Sending
) -> None:
    kafka.refuse(44, times=1)  # POLICY_VIOLATION
    profile: Profile = FixedRate(1)
    with pytest.raises(DeliveryError, match="POLICY_VIOLATION") as caught:
        send(kafka, "json", sending, profile=profile, limit=50)
    summary = caught.value.summary
    assert summary.failed >= 1
    assert summary.tuples + summary.failed + (summary.unsent or 0) == 50
    assert sum(len(records) for records in reader.read(summary.tuples).values()) == summary.tuples
