"""What a delivery counts and in which order records go, whatever the client says in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

import producers.delivery
from evenflow.errors import ServiceError
from evenflow.settings import load_settings
from producers.delivery import Delivery
from topics.librdkafka.producer import Handover

FULL, LARGE = KafkaError(KafkaError._QUEUE_FULL), KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)


@dataclass
class ModelledClient:
    """Takes so many records before it says something else, and once more for each answer.

    answers: (records that are taken, what is said then). Behind the last one everything is taken.
    """

    answers: list[tuple[int, KafkaError]] = field(default_factory=list)
    failed: Callable[[int, int, KafkaError], None] = lambda *some: None
    in_polls: list[Callable[[], object]] = field(default_factory=list)
    taken: list[tuple[bytes | None, bytes | None, int, int]] = field(default_factory=list)
    left: int = 0
    given_up: bool = False

    def hand_over(self, values: Any, keys: Any, partitions: Any, times: Any) -> Handover:
        rows = list(
            zip(values.to_pylist(), keys.to_pylist(), partitions.tolist(), times.tolist(), strict=True)
        )
        if self.answers and self.answers[0][0] < len(rows):
            count, said = self.answers.pop(0)
            self.taken += rows[:count]
            return Handover(count, said)
        self.taken += rows
        return Handover(len(rows), None)

    def hand_over_headers(self, partition: int, time: int, headers: Sequence[tuple[str, bytes]]) -> None:
        raise KafkaException(LARGE)

    def poll(self, timeout: float) -> None:
        if self.in_polls:
            self.in_polls.pop(0)()

    def flush(self, timeout: float) -> int:
        return 0 if self.given_up else self.left

    def purge(self) -> None:
        self.given_up = True
        if self.left:
            self.failed(0, self.left, KafkaError(KafkaError._PURGE_QUEUE))

    def __len__(self) -> int:
        return self.left


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> ModelledClient:
    made = ModelledClient()

    def writer_of(*some: object, failed: Any, **more: object) -> ModelledClient:
        made.failed = failed
        return made

    monkeypatch.setattr(producers.delivery, "writer_of", writer_of)
    return made


def delivery() -> Delivery:
    return Delivery(load_settings(query={"name": "q"}).kafka, "in", 2)


def send(to: Delivery, count: int) -> int:
    numbers = pa.array([b"%d" % row for row in range(count)], pa.large_binary())
    keys = pa.nulls(count, pa.large_binary())
    return to.send(numbers, keys, (np.arange(count) % 2).astype(np.int32), np.arange(count) + 1)


def rows(count: int) -> list[tuple[bytes | None, bytes | None, int, int]]:
    return [(b"%d" % row, None, row % 2, row + 1) for row in range(count)]


def test_a_full_queue_is_waited_for_and_the_refused_record_goes_next(client: ModelledClient) -> None:
    client.answers = [(3, FULL), (0, FULL), (4_999, FULL), (1, FULL)]
    sent = delivery()
    assert send(sent, 12_001) == 12_001
    assert client.taken == rows(12_001)
    assert sent.delivered().tolist() == [6_001, 6_000]
    assert not sent.stopped


def test_a_refused_record_counts_as_sent_and_as_failed_and_ends_the_sending(client: ModelledClient) -> None:
    client.answers = [(3, FULL), (2, LARGE)]
    sent = delivery()
    assert send(sent, 20) == 6
    assert client.taken == rows(5)
    assert (sent.sent.tolist(), sent.failed) == ([3, 3], 1)
    assert sent.delivered().tolist() == [3, 2], "the refused one was of partition 1"
    assert sent.reasons == [f"MSG_SIZE_TOO_LARGE: {LARGE.str()} (1 times)"]


def test_failures_of_which_a_poll_tells_end_the_sending_after_the_chunk(client: ModelledClient) -> None:
    sent = delivery()
    client.in_polls = [lambda: client.failed(1, 7, LARGE)]
    assert send(sent, 12_001) == 5_000
    assert sent.delivered().tolist() == [2_500, 2_493]
    assert sent.failed == 7


def test_an_error_that_nothing_heals_ends_the_waiting_for_room(client: ModelledClient) -> None:
    def refuse() -> None:
        raise ServiceError("refused by the broker")

    sent = delivery()
    client.answers, client.in_polls = [(3, FULL)], [refuse]
    assert send(sent, 10) == 3
    assert sent.stopped
    assert sent.reasons == ["refused by the broker"]
    assert sent.delivered().tolist() == [2, 1]


def test_what_is_queued_after_a_failure_is_given_up_and_counted(client: ModelledClient) -> None:
    sent = delivery()
    send(sent, 10)
    client.failed(0, 1, LARGE)
    client.left = 4
    sent.flush()
    assert client.given_up
    assert sent.failed == 5
    assert len(sent.reasons) == 2


def test_records_without_an_answer_are_told(client: ModelledClient) -> None:
    sent = delivery()
    send(sent, 10)
    client.left = 4
    sent.flush()
    assert not client.given_up
    assert sent.reasons == ["4 records got no answer from the broker"]


def test_a_marker_that_is_refused_counts_as_sent_and_as_failed(client: ModelledClient) -> None:
    sent = delivery()
    sent.send_marker(1, [("h", b"")], 5)
    assert (sent.sent.tolist(), sent.delivered().tolist(), sent.failed) == ([0, 1], [0, 0], 1)


def test_only_the_first_few_reasons_are_kept_and_every_failure_is_counted(client: ModelledClient) -> None:
    sent = delivery()
    for code in range(10, 20):
        client.failed(0, 2, KafkaError(code))
    assert sent.failed == 20
    assert len(sent.reasons) == 3
