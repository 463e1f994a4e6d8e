"""Notices within seconds that a topic was deleted or made anew while a service runs.

A client knows topics by their names, so it would go on with the new topic as if nothing had happened.
Therefore the ids that Kafka gives to topics are compared every few seconds with the ids at the start. One
request asks for all of them, and nobody waits for its answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from confluent_kafka import KafkaException, TopicCollection

from evenflow.errors import DataLossError
from evenflow.settings import KafkaSettings
from topics.admin import url_safe
from topics.answers import UNKNOWN_TOPIC
from topics.clients import admin
from topics.state import TopicState

_EVERY_SECONDS = 3.0
_ANSWER_SECONDS = 10.0
_TIMES_ABSENT = 3


class Answer(Protocol):
    """The answer about one topic, which may not be there yet: a `Future` of a topic's description."""

    def done(self) -> bool:
        """Whether the answer has come."""

    def result(self) -> Any:
        """The description of the topic, with `topic_id` and `partitions`. Raises KafkaException."""


Ask = Callable[[list[str]], dict[str, Answer]]


class TopicWatch:
    """Watches topics. `check` raises once one of them is no longer the topic that it was at the start.

    topics: the topics at the start. A topic counts as deleted once the broker has answered so three times in
    a row, because a broker that has just started may not know the topic yet. Without an answer nothing is
    concluded.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Iterable[TopicState],
        *,
        clock: Callable[[], float] = time.monotonic,
        ask: Ask | None = None,
    ) -> None:
        self._kafka = kafka
        states = list(topics)
        self._ids = {topic.name: topic.topic_id for topic in states}
        self._clock = clock
        self._ask = self._describe if ask is None else ask
        self._asked_at = clock()
        self._answers: dict[str, Answer] = {}
        self._absent = dict.fromkeys(self._ids, 0)
        self._partitions = {topic.name: topic.partitions for topic in states}
        self._unanswered_since: float | None = None

    def partitions(self, topic: str) -> int:
        """How many partitions this topic had when it was looked at last.
        More may have been added since the start.
        """
        return self._partitions[topic]

    @property
    def servers(self) -> str:
        """The address of the brokers."""
        return self._kafka.bootstrap_servers

    @property
    def unanswered(self) -> float:
        """Seconds since the first question that no broker has answered. 0 if there is none."""
        return 0.0 if self._unanswered_since is None else self._clock() - self._unanswered_since

    def check(self) -> None:
        """Look at answers that have come, and ask again if it is time. This never waits.

        Raises DataLossError if a topic was deleted, or deleted and created again.
        """
        if self._answers and all(answer.done() for answer in self._answers.values()):
            answers, self._answers = self._answers, {}
            if any(map(_is_from_a_broker, answers.values())):
                self._unanswered_since = None
            for name, answer in answers.items():
                self._judge(name, answer)
        if self._clock() - self._asked_at >= _EVERY_SECONDS and not self._answers:
            self._asked_at = self._clock()
            if self._unanswered_since is None:
                self._unanswered_since = self._asked_at
            self._answers = self._ask(list(self._ids))

    def _judge(self, name: str, answer: Answer) -> None:
        try:
            description = answer.result()
        except KafkaException as error:
            absent = error.args[0].code() in UNKNOWN_TOPIC
            self._absent[name] = self._absent[name] + 1 if absent else 0
            if self._absent[name] >= _TIMES_ABSENT:
                raise _lost(f"{name} was deleted while the service ran") from None
            return
        self._absent[name] = 0
        now = url_safe(str(description.topic_id))
        if now != self._ids[name]:
            raise _lost(
                f"{name} was deleted and created again while the service ran"
                f" (topic id {self._ids[name]} is now {now})"
            )
        self._partitions[name] = len(description.partitions)

    def _describe(self, names: list[str]) -> dict[str, Answer]:
        client = admin(self._kafka)
        return dict(client.describe_topics(TopicCollection(names), request_timeout=_ANSWER_SECONDS))


def _is_from_a_broker(answer: Answer) -> bool:
    try:
        answer.result()
    except KafkaException as error:
        return bool(error.args[0].code() >= 0)  # the client's own errors, such as a timeout, are negative
    return True


def _lost(message: str) -> DataLossError:
    return DataLossError(
        message,
        hint=(
            "what was in it is lost: stop the query's services, give the query a new name and replay its"
            " input, or see 'Rebuild after data loss' in docs/operations/data-loss.md"
        ),
    )
