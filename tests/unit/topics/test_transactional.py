"""No transactional client is used again after an abort."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings, load_settings
from topics import clients
from topics.query import plan_topic
from topics.query.plan_topic import PlanWriter
from topics.transactional import Transactional

ROOT = Path(__file__).parents[3]
ROOMS = (
    "cli",
    "controller",
    "evenflow",
    "partitioner_service",
    "producers",
    "spark_consumers",
    "topics",
    "workbench",
)


class Client:
    """A producer that may refuse its abort."""

    def __init__(self) -> None:
        self.patience: float | None = None
        self.refuses = False

    def init_transactions(self, timeout: float) -> None:
        self.patience = timeout

    def abort_transaction(self, timeout: float) -> None:
        if self.refuses:
            raise KafkaException(KafkaError(KafkaError._FENCED, fatal=True))


class Broker:
    """What makes clients. away: whether none can be made."""

    def __init__(self) -> None:
        self.clients = list[Client]()
        self.away = False

    def producer(self, kafka: KafkaSettings, **config: Any) -> Client:
        if self.away:
            raise ServiceError("no broker answers")
        assert config == {"transactional_id": "t"}
        self.clients.append(Client())
        return self.clients[-1]


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    result = Broker()
    monkeypatch.setattr(clients, "producer", result.producer)
    return result


def made(patience: list[float]) -> Any:
    """A transactional client that has so much patience, one number for each client that it makes."""
    return Transactional(KafkaSettings(), lambda: patience.pop(0), transactional_id="t")


def test_a_client_is_replaced_once_after_each_abort(broker: Broker) -> None:
    client = made([1.0, 2.0])
    assert not client.renew()
    client.abort(5.0)
    assert client.producer is broker.clients[0], "it is replaced when the next transaction begins"
    assert client.renew()
    assert not client.renew()
    assert client.producer is broker.clients[1]
    assert [each.patience for each in broker.clients] == [1.0, 2.0]


def test_a_client_that_may_not_abort_is_not_replaced(broker: Broker) -> None:
    """It may be fenced, and a new client would take the transactional id back."""
    client = made([1.0])
    client.producer.refuses = True
    with pytest.raises(KafkaException):
        client.abort(5.0)
    assert not client.renew()


def test_a_successor_that_cannot_be_made_is_made_later(broker: Broker) -> None:
    client = made([1.0, 2.0])
    client.abort(5.0)
    broker.away = True
    with pytest.raises(ServiceError):
        client.renew()
    broker.away = False
    assert client.renew()
    assert client.producer is broker.clients[1]


def test_whoever_else_aborts_a_transaction_ends_with_it() -> None:
    aborting = {
        path.relative_to(ROOT).as_posix()
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if ".abort_transaction" in path.read_text()
    }
    assert aborting == {"topics/transactional.py", "topics/query/plan_topic.py"}


class Refused:
    """A producer of which each commit has to be aborted."""

    def __init__(self) -> None:
        self.done = list[str]()

    def init_transactions(self, timeout: float) -> None:
        self.done.append("init")

    def begin_transaction(self) -> None:
        self.done.append("begin")

    def produce(self, topic: str, *, key: bytes, value: bytes) -> None:
        self.done.append("produce")

    def commit_transaction(self, timeout: float) -> None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "too late", txn_requires_abort=True))

    def abort_transaction(self, timeout: float) -> None:
        self.done.append("abort")


def test_a_writer_of_plans_writes_nothing_more_after_an_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Refused()
    monkeypatch.setattr(plan_topic, "producer", lambda kafka, **config: client)
    settings = load_settings(query={"name": "q"}, input={"partitions": 1}, partitioner={"workers": 1})
    writer = PlanWriter(settings, identity="controller")
    for _ in range(2):
        with pytest.raises(ServiceError, match="too late") as refused:
            writer.write(snapshot=(b"key", b"value"))
        assert (refused.value.hint or "").endswith("Then start it again")
    assert client.done == ["init", "begin", "produce", "abort"]
