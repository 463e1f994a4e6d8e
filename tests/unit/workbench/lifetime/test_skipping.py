"""What `evenflow skip` says became of its order. Without Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.progress import PartitionState
from evenflow.settings import load_settings
from topics.query.skip_orders import SkipAnswer, SkipOrder, answer_key
from workbench.lifetime import skipping

ORDER = SkipOrder(partition=0, offset=5, through=7, because="why", who="me", at=1)


class Answer:
    """The record of an answer."""

    def __init__(self, answer: SkipAnswer) -> None:
        self._answer = answer

    def key(self) -> bytes:
        return answer_key(ORDER)

    def value(self) -> bytes:
        return self._answer.encode()


class Topic:
    """The answers as they come, each with its time (s). Every look takes half a second."""

    def __init__(self, *answers: tuple[float, SkipAnswer]) -> None:
        self.now = 0.0
        self._answers = list(answers)

    def new(self, timeout: float) -> list[Answer]:
        self.now += 0.5
        come = [answer for at, answer in self._answers if at <= self.now]
        self._answers = [(at, answer) for at, answer in self._answers if at > self.now]
        return [Answer(answer) for answer in come]


class Reader:
    """Of a consumer only what is called."""

    def close(self) -> None:
        pass


def outcome(monkeypatch: pytest.MonkeyPatch, topic: Topic, *, passed_at: float) -> skipping.Outcome:
    """passed_at: when (s) the committed state stands behind the order."""

    def committed(*_: Any) -> dict[int, PartitionState]:
        offset = 8 if topic.now >= passed_at else 5
        return {0: PartitionState(fingerprint="f", topic_id="t", offset=offset)}

    monkeypatch.setattr(skipping, "state_reader", lambda settings: Reader())
    monkeypatch.setattr(skipping, "committed_states", committed)
    settings = load_settings(query={"name": "q"})
    return skipping._wait(settings, ORDER, topic, 60.0, lambda: topic.now)  # type: ignore[arg-type]


def test_a_batch_that_was_read_after_all_is_not_called_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    said = outcome(monkeypatch, Topic(), passed_at=20.0)
    assert (said.done, said.as_json()["skipped"]) == (False, 0)
    assert "the batch was read after all" in said.words
    assert "q.rejected has a record of it" in said.words


@pytest.mark.parametrize(("passed_at", "late"), [(20.0, 0.0), (20.0, 3.0), (59.0, 3.0)])
def test_the_partitioners_answer_counts_also_if_it_comes_behind_the_commit(
    monkeypatch: pytest.MonkeyPatch, passed_at: float, late: float
) -> None:
    topic = Topic((passed_at + late, SkipAnswer(True, "3 offsets were skipped")))
    said = outcome(monkeypatch, topic, passed_at=passed_at)
    assert (said.done, said.as_json()["skipped"], said.words) == (True, 3, "3 offsets were skipped")


def test_an_order_that_nobody_obeys_in_time_is_neither_done_nor_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = outcome(monkeypatch, Topic(), passed_at=1_000.0)
    assert said.done is None
    assert "nobody has obeyed the order yet" in said.words
