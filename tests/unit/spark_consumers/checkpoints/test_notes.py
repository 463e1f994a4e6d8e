"""The note beside a checkpoint: another results topic, another version or a damaged note is refused."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from evenflow.errors import DataLossError, IncompatibleStateError
from evenflow.settings import Settings
from spark_consumers import application
from spark_consumers.checkpoints import notes as checkpoints
from spark_consumers.checkpoints.notes import Checkpoint
from tests.hostile import BYTES
from topics.state import TopicState

ROUTED, RESULTS = (
    TopicState(name=f"q.{role}", topic_id=role, partitions=1, begin={0: 0}, end={0: 0}, config={})
    for role in ("routed", "results")
)


_SETTINGS = Settings(query={"name": "q"}, input={"partitions": 1})


class Files:
    """A checkpoint folder without Spark."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def names(self, folder: str = "") -> list[str]:
        return []

    def read(self, name: str) -> str | None:
        return self.texts.get(name)

    def write(self, name: str, text: str) -> None:
        self.texts[name] = text


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    made = Files()
    monkeypatch.setattr(checkpoints, "Folder", lambda spark, location: made)
    return made


def admit(results: TopicState = RESULTS) -> None:
    checkpoint = Checkpoint(spark=None, settings=_SETTINGS, stage="fused")  # type: ignore[arg-type]
    checkpoint.admit({"routed": ROUTED}, written={"results": results}, results="topic q.results")


def test_a_results_topic_that_was_made_again_is_refused(files: Files) -> None:
    admit()
    admit()
    with pytest.raises(DataLossError, match=r"topic q\.results was deleted and made again"):
        admit(replace(RESULTS, topic_id="other"))


def test_a_note_of_another_version_is_refused(files: Files) -> None:
    admit()
    note = json.loads(files.texts["evenflow.json"])
    files.texts["evenflow.json"] = json.dumps(note | {"v": 2})
    with pytest.raises(IncompatibleStateError, match="has version 2"):
        admit()


@pytest.mark.parametrize("number", range(len(BYTES)))
def test_a_damaged_note_is_refused(files: Files, number: int) -> None:
    files.texts["evenflow.json"] = BYTES[number].decode("utf-8", "replace")
    with pytest.raises(IncompatibleStateError):
        admit()


def test_the_topics_are_watched_while_the_application_waits() -> None:
    def check() -> None:
        raise DataLossError("made anew")

    stage: Any = object()
    with pytest.raises(DataLossError, match="made anew"):
        application._wait([stage], threading.Event(), False, (check,))
