"""The shell of verify asks for committed offsets exactly as the partitioner does: by the same group, as patiently."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from evenflow.errors import ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from partitioner_service.source import data_plane_group
from topics import clients
from workbench.verify import shell


class Group:
    """A consumer that answers these in turn; an error code is raised, the last answer is repeated."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.name = ""
        self.closed = False

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, int):
            raise KafkaException(KafkaError(answer))
        return list(answer)

    def close(self) -> None:
        self.closed = True


def asked(monkeypatch: pytest.MonkeyPatch, settings: Settings, group: Group) -> list[Any]:
    """`read_committed` with this group in place of the broker's."""

    def consumer(kafka: Any, *, group: str, **rest: Any) -> Group:
        made.name = group
        return made

    made = group
    topic = settings.topic("input")
    state = SimpleNamespace(begin={0: 0}, topic_id="id")
    monkeypatch.setattr(clients, "consumer", consumer)
    monkeypatch.setattr(shell, "describe", lambda kafka, names: {topic: state})
    try:
        return shell.read_committed(settings)
    finally:
        assert group.closed
        assert group.name == data_plane_group(settings)


def answer(settings: Settings) -> list[TopicPartition]:
    state = PartitionState(fingerprint=settings.fingerprint, topic_id="id", offset=7)
    return [TopicPartition(settings.topic("input"), 0, 7, state.encode())]


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    ],
)
def test_an_answer_that_waiting_heals_is_waited_for(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    settings = load_settings(query={"name": "q"}, input={"partitions": 1})
    (state,) = asked(monkeypatch, settings, Group(code, answer(settings)))
    assert state.offset == 7


def test_a_broker_that_never_answers_and_one_that_refuses_are_clear_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = load_settings(query={"name": "q"}, input={"partitions": 1}, kafka={"request_timeout": 1})
    for code in (KafkaError.UNSTABLE_OFFSET_COMMIT, KafkaError.GROUP_AUTHORIZATION_FAILED):
        with pytest.raises(ServiceError, match=r"committed offsets of q\.partitioner"):
            asked(monkeypatch, settings, Group(code))
