"""What `evenflow skip` says became of its order. Without Kafka."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from evenflow.errors import ConfigError
from evenflow.progress import PartitionState
from evenflow.settings import load_settings
from partitioner_service.begin.rebuild import Fold
from partitioner_service.plane.skips import behind
from topics.batches.batch_extent import BadBatch
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


@pytest.mark.parametrize("count", [2, 13_900_000, 1 << 31])
def test_a_batch_of_any_length_can_be_skipped_as_a_whole(count: int) -> None:
    last = 5 + count - 1
    assert skipping._through(0, 5, last, BadBatch(5, last, "a bomb")) == last
    with pytest.raises(ConfigError, match=f"say --through {last} to skip {count:,} offsets"):
        skipping._through(0, 5, None, BadBatch(5, last, "a bomb"))


def test_no_batch_has_more_offsets_than_an_order_may_skip() -> None:
    last = 5 + (1 << 31)
    with pytest.raises(ConfigError, match="the batch has more than 2,147,483,648 offsets"):
        skipping._through(0, 5, last, BadBatch(5, last, "a bomb"))


@pytest.mark.timeout(30)
def test_the_longest_order_is_obeyed_and_found_again_as_fast_as_a_short_one() -> None:
    count = 1 << 31
    order = replace(ORDER, through=ORDER.offset + count - 1)
    assert SkipOrder.decode(order.encode()) == order
    before = PartitionState(fingerprint="f", topic_id="t", offset=5, read=5, routed=5)
    after = behind(before, order)
    assert (after.offset, after.read, after.rejected) == (5 + count, 5 + count, count)
    assert PartitionState.decode(after.encode(), offset=after.offset) == after
    fold = SimpleNamespace(state=before)
    Fold.skip(fold, order.offset, order.through)  # type: ignore[arg-type]
    assert fold.state == after


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
