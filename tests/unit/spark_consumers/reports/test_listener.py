"""What Spark says of a micro-batch becomes one record, taken as the one JSON text that Spark makes of it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from evenflow.errors import DataLossError, FencedError
from evenflow.settings import Settings
from evenflow.telemetry import LONGEST_WORDS, HeartbeatRecord, parse
from evenflow.twostep import Tally
from spark_consumers.application import _last_words
from spark_consumers.cluster.executors import ExecutorState
from spark_consumers.reports import listener
from spark_consumers.reports.batch_limits import BatchLimits
from spark_consumers.reports.listener import Telemetry, _Events
from spark_consumers.reports.micro_batches import query_of, stage_of

PROGRESS = {
    "name": "q fused",
    "batchId": 7,
    "timestamp": "2026-01-01T00:00:00.000Z",
    "numInputRows": 3,
    "durationMs": {"triggerExecution": 500},
    "sources": [{"endOffset": {"q.routed": {"0": 4}}}],
}


def test_progress_is_taken_in_one_call_and_other_events_say_nothing() -> None:
    told: list[str] = []
    asked: list[str] = []

    def progress() -> Any:
        asked.append("progress")
        return SimpleNamespace(json=lambda: json.dumps(PROGRESS))

    events = _Events(told.append)
    events.onQueryProgress(SimpleNamespace(progress=progress))
    for other in (events.onQueryStarted, events.onQueryIdle, events.onQueryTerminated):
        other(SimpleNamespace())
    assert asked == ["progress"]
    assert [json.loads(text) for text in told] == [PROGRESS]


class Sent:
    """A producer that keeps what it is given."""

    def __init__(self) -> None:
        self.records: list[HeartbeatRecord] = []

    def produce(self, topic: str, *, key: str, value: bytes) -> None:
        record = parse(value)
        assert isinstance(record, HeartbeatRecord)
        self.records.append(record)

    def poll(self, timeout: float) -> None:
        """Nothing is to be delivered."""


def telemetry(monkeypatch: pytest.MonkeyPatch, sent: Sent) -> Telemetry:
    monkeypatch.setattr(listener, "producer", lambda kafka: sent)
    settings = Settings(query={"name": "q"}, input={"partitions": 1})
    others: Any = SimpleNamespace(value=Tally())
    return Telemetry(
        settings,
        ["combine", "reduce"],
        others,
        others,
        ExecutorState,
        limits={"combine": BatchLimits(400, 4), "reduce": BatchLimits(400)},
    )


def test_an_application_that_fails_says_why_at_once_and_then_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Sent()
    said = telemetry(monkeypatch, sent)
    with pytest.raises(DataLossError), _last_words([said]):
        raise DataLossError("q.results was deleted while the service ran" + "!" * 400)
    assert [record.stage for record in sent.records] == ["combine", "reduce"]
    assert {record.ended for record in sent.records} == {
        "q.results was deleted while the service ran".ljust(LONGEST_WORDS, "!")
    }
    said.last_word("again")
    said._beat("combine", sent.records[0])
    assert len(sent.records) == 2


def test_every_word_of_a_stage_says_the_limits_of_its_micro_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Sent()
    telemetry(monkeypatch, sent).last_word("over")
    assert [(word.stage, word.frames_per_batch, word.combine_tasks) for word in sent.records] == [
        ("combine", 400, 4),
        ("reduce", 400, None),
    ]


def test_an_application_that_another_one_has_replaced_says_no_last_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = Sent()
    with pytest.raises(FencedError), _last_words([telemetry(monkeypatch, sent)]):
        raise FencedError("another driver has taken over")
    assert not sent.records


def test_a_progress_names_its_query_or_view_and_its_stage() -> None:
    for name, said in (("q fused", ("q", "fused")), ("q.hourly combine", ("q.hourly", "combine"))):
        assert (query_of({"name": name}), stage_of({"name": name})) == said
    assert query_of({}) == ""
