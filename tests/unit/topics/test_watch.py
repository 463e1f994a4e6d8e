"""Topics that are made anew while a service runs are noticed within seconds; a broker that is away is no
verdict.
"""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from evenflow.errors import DataLossError
from evenflow.settings import KafkaSettings
from topics.state import TopicState
from topics.watch import TopicWatch

ABSENT = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
AWAY = KafkaException(KafkaError(KafkaError._TIMED_OUT))


class Watched:
    """Two topics, a clock, and brokers whose answers come when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ids: dict[str, Any] = {"q.input": "id+1/==", "q.routed": "id2"}
        self.partitions = 1
        self.asked: list[dict[str, Future[Any]]] = []
        topics = [
            TopicState(name=name, topic_id=known, partitions=1, begin={}, end={}, config={})
            for name, known in (("q.input", "id-1_"), ("q.routed", "id2"))
        ]
        self.watch = TopicWatch(KafkaSettings(), topics, clock=lambda: self.now, ask=self._ask)

    def _ask(self, names: list[str]) -> dict[str, Future[Any]]:
        self.asked.append({name: Future() for name in names})
        return self.asked[-1]

    def answer(self) -> None:
        for name, future in self.asked[-1].items():
            result = self.ids[name]
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(SimpleNamespace(topic_id=result, partitions=[0] * self.partitions))

    def after(self, seconds: float) -> None:
        """Time passes, is noticed, and the brokers answer."""
        self.now += seconds
        self.watch.check()
        self.answer()
        self.watch.check()


def test_one_request_every_few_seconds_and_nobody_waits_for_its_answer() -> None:
    watched = Watched()
    watched.watch.check()
    assert not watched.asked
    for second in range(1, 8):
        watched.now = second
        watched.watch.check()
    assert [sorted(asked) for asked in watched.asked] == [["q.input", "q.routed"]]
    watched.answer()
    watched.watch.check()
    assert len(watched.asked) == 2


def test_a_topic_that_was_made_anew_is_named_with_what_to_do() -> None:
    watched = Watched()
    watched.after(5)
    watched.ids["q.routed"] = "other"
    with pytest.raises(
        DataLossError, match=r"q\.routed was deleted and created again .*id2 is now other"
    ) as caught:
        watched.after(5)
    assert "new name" in (caught.value.hint or "")


def test_brokers_that_do_not_answer_are_no_verdict() -> None:
    watched = Watched()
    watched.ids["q.input"] = AWAY
    for _ in range(20):
        watched.after(5)


def test_a_topic_that_is_absent_again_and_again_was_deleted() -> None:
    watched = Watched()
    for result in (ABSENT, ABSENT, AWAY, ABSENT, ABSENT, "id2", ABSENT, ABSENT):
        watched.ids["q.routed"] = result
        watched.after(5)
    with pytest.raises(DataLossError, match=r"q\.routed was deleted while"):
        watched.after(5)


def test_partitions_that_were_added_are_counted() -> None:
    watched = Watched()
    assert watched.watch.partitions("q.input") == 1
    watched.partitions = 3
    watched.after(3)
    assert watched.watch.partitions("q.input") == 3


def test_a_broker_counts_as_gone_from_the_first_question_without_an_answer_until_the_next_answer() -> None:
    watched = Watched()
    watched.after(3)
    assert watched.watch.unanswered == 0
    watched.now += 3
    watched.watch.check()
    watched.now += 7
    assert watched.watch.unanswered == 7
    watched.ids = dict.fromkeys(watched.ids, AWAY)
    watched.answer()
    watched.watch.check()
    watched.now += 3
    watched.watch.check()
    assert watched.watch.unanswered == 10, "the client itself has given up: no broker has answered"
    watched.ids = dict.fromkeys(watched.ids, ABSENT)
    watched.after(3)
    assert watched.watch.unanswered == 0, "that a topic is absent is an answer"
