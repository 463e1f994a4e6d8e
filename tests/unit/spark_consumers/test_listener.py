"""What Spark says of a micro-batch becomes one record, taken as the one JSON text that Spark makes of it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from spark_consumers.listener import _Events
from spark_consumers.micro_batches import query_of, stage_of

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


def test_a_progress_names_its_query_or_view_and_its_stage() -> None:
    for name, said in (("q fused", ("q", "fused")), ("q.hourly combine", ("q.hourly", "combine"))):
        assert (query_of({"name": name}), stage_of({"name": name})) == said
    assert query_of({}) == ""
