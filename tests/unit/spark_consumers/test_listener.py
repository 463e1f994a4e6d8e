"""What Spark says of a micro-batch becomes one record, taken as the one JSON text that Spark makes of it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from evenflow.twostep import Stand, Tally
from spark_consumers.listener import _Events, telemetry_record, told_since

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


def test_the_record_says_stage_rows_and_load() -> None:
    record = telemetry_record(PROGRESS, 1000)
    assert (record["stage"], record["batch"], record["rows"], record["load"]) == ("fused", 7, 3, 0.5)
    assert record["offsets"] == [{"q.routed": {"0": 4}}]
    assert telemetry_record(PROGRESS, 0)["load"] is None


def test_the_record_says_how_many_frames_lay_behind_the_micro_batch() -> None:
    behind = {"endOffset": {"q.routed": {"0": 4, "1": 7}}, "latestOffset": {"q.routed": {"0": 9, "1": 7}}}
    assert telemetry_record(PROGRESS | {"sources": [behind]}, 1000)["backlog"] == 5
    assert telemetry_record(PROGRESS, 1000)["backlog"] == 0
    assert telemetry_record(PROGRESS | {"sources": [behind | {"endOffset": None}]}, 1000)["backlog"] == 0


def test_what_the_workers_told_is_the_difference_and_the_newest_stand() -> None:
    before = Tally(tuples=10, rows=4, unfit=1, closed={0: 2}, emitted={0: 50})
    stand = Stand(windows=3, next_end=70, marks=(60, 65))
    told = told_since(
        before, before + Tally(tuples=5, rows=2, closed={0: 1}, emitted={0: 60}, stands={0: stand})
    )
    assert told == {
        "tuples": 5, "rows_out": 2, "windows_closed": 1, "unfit": 0, "last_window_end": 60, "open_windows": 3,
        "next_window_end": 70, "marks": [60, 65],
    }  # fmt: skip
    assert told_since(Tally(), Tally())["marks"] is None
