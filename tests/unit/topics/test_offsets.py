"""Offsets of partitions that exist: a broker may not know a partition yet."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings
from topics import offsets
from topics.offsets import known_offsets

KAFKA = KafkaSettings(bootstrap_servers="127.0.0.1:9", request_timeout=3_000)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, dict[int, int]]]:
    """What the broker says, one answer after the other, the last one again and again. Each takes a second."""
    result: list[dict[str, dict[int, int]]] = []
    now = [0.0]

    def list_offsets(specs: dict[TopicPartition, OffsetSpec], **_: Any) -> dict[TopicPartition, Any]:
        now[0] += 1
        answer = result.pop(0) if len(result) > 1 else result[0]
        return {part: future(answer.get(part.topic, {}).get(part.partition)) for part in specs}

    monkeypatch.setattr(
        offsets,
        "admin",
        lambda kafka: SimpleNamespace(list_offsets=list_offsets, list_topics=lambda timeout: None),
    )
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: None)
    monkeypatch.setattr(offsets, "time", clock)
    return result


def future(offset: int | None) -> Future[Any]:
    """What the broker says of a partition. None: it does not know the partition."""
    made: Future[Any] = Future()
    if offset is None:
        made.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    else:
        made.set_result(SimpleNamespace(offset=offset))
    return made


def test_a_partition_that_the_broker_does_not_know_yet_is_asked_for_again(answers: list[Any]) -> None:
    answers += [{}, {"in": {0: 5}}, {"in": {0: 5, 2: 7}}]
    assert known_offsets(KAFKA, "in", [0, 2], OffsetSpec.latest()) == {0: 5, 2: 7}


def test_a_partition_that_stays_unknown_is_an_error_and_never_offset_0(answers: list[Any]) -> None:
    answers += [{"in": {0: 5}}]
    with pytest.raises(ServiceError, match=r"does not know in\[2\] after 3 s"):
        known_offsets(KAFKA, "in", [0, 2], OffsetSpec.latest())
