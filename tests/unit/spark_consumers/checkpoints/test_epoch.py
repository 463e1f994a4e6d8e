"""A driver's epoch after a transaction that had to be aborted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from evenflow.errors import FencedError, ServiceError
from evenflow.settings import load_settings
from spark_consumers.checkpoints import epoch
from spark_consumers.checkpoints.epoch import Holder, StageEpoch
from topics import clients

SETTINGS = load_settings(query={"name": "q"}, input={"partitions": 1}, partitioner={"workers": 1})


class Client:
    """A producer whose next commits fail with these errors."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._spent = False

    def init_transactions(self, timeout: float) -> None:
        self._broker.taken_over()

    def begin_transaction(self) -> None:
        assert not self._spent, "a client was used again after an abort"

    def produce(self, topic: str, *, key: bytes, value: bytes) -> None:
        if self._broker.full:
            self._broker.full = False
            raise BufferError

    def commit_transaction(self, timeout: float) -> None:
        self._broker.commits += 1
        if self._broker.late:
            self._broker.late = False
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer yet"))
        if self._broker.refuses:
            self._broker.refuses = False
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "too late", txn_requires_abort=True))

    def abort_transaction(self, timeout: float) -> None:
        if self._broker.slow:
            self._broker.slow -= 1
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "retry call to resume", retriable=True))
        self._spent = True


class Broker:
    """What a driver hears of the stage. newest: the driver that has written its epoch last. slow: aborts that
    have no answer in time. late: the next commit has none. full: the next record is not taken.
    """

    def __init__(self) -> None:
        self.clients = list[Client]()
        self.newest: Holder | None = None
        self.refuses = self.away = False
        self.late = self.full = False
        self.slow = self.commits = 0
        self.taken_over: Callable[[], None] = lambda: None

    def producer(self, kafka: object, **config: Any) -> Client:
        self.clients.append(Client(self))
        return self.clients[-1]

    def look(self, settings: object, stage: object) -> Holder | None:
        if self.away:
            raise ServiceError("no broker answers")
        return self.newest


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    result = Broker()
    monkeypatch.setattr(clients, "producer", result.producer)
    monkeypatch.setattr(epoch, "newest_holder", result.look)
    return result


@pytest.fixture
def driver(broker: Broker) -> Iterator[StageEpoch]:
    """A driver of epoch 1."""
    result = StageEpoch(SETTINGS, "fused")
    yield result
    result.close()


def test_a_driver_goes_on_with_a_new_client_after_an_abort(broker: Broker, driver: StageEpoch) -> None:
    broker.refuses = True
    driver.check()
    driver.check()
    assert len(broker.clients) == 2


def test_an_abort_without_an_answer_is_repeated(broker: Broker, driver: StageEpoch) -> None:
    broker.refuses, broker.slow = True, 3
    driver.check()
    assert (len(broker.clients), broker.slow) == (2, 0)


def test_an_answer_that_comes_after_a_check_has_given_up_proves_nothing(
    broker: Broker, driver: StageEpoch
) -> None:
    broker.late = True
    with pytest.raises(ServiceError, match="no answer yet"):
        driver.check()
    before = broker.commits
    driver.check()
    assert broker.commits == before + 2, "that of the check before, and one of its own"


def test_a_transaction_without_its_record_proves_nothing(broker: Broker, driver: StageEpoch) -> None:
    broker.full, before = True, broker.commits
    with pytest.raises(BufferError):
        driver.check()
    assert broker.commits == before
    driver.check()
    assert (broker.commits, len(broker.clients)) == (before + 1, 2)


def test_a_driver_whose_first_epoch_was_aborted_does_not_start(broker: Broker) -> None:
    """Another driver may have come meanwhile, and have the same epoch."""
    broker.refuses = True
    with pytest.raises(ServiceError, match="could not be written") as refused:
        StageEpoch(SETTINGS, "fused")
    assert refused.value.hint == "start it again"
    assert len(broker.clients) == 1


def test_a_driver_whose_transaction_was_aborted_fences_no_newer_one(
    broker: Broker, driver: StageEpoch
) -> None:
    broker.refuses, broker.newest = True, Holder(epoch=2, who="another")
    for _ in range(2):
        with pytest.raises(FencedError, match="another, with epoch 2"):
            driver.check()
    assert len(broker.clients) == 1, "a new client would fence the newer driver"


def test_a_driver_that_has_fenced_a_newer_one_unawares_ends_too(broker: Broker, driver: StageEpoch) -> None:
    def come() -> None:
        broker.newest = Holder(epoch=2, who="another")

    broker.refuses, broker.taken_over = True, come
    for _ in range(2):
        with pytest.raises(FencedError, match="another, with epoch 2"):
            driver.check()


def test_a_driver_that_cannot_look_for_a_newer_one_looks_before_it_commits_again(
    broker: Broker, driver: StageEpoch
) -> None:
    def go_away() -> None:
        broker.away = True

    broker.refuses, broker.taken_over = True, go_away
    with pytest.raises(ServiceError, match="no broker answers"):
        driver.check()
    broker.away, broker.newest = False, Holder(epoch=2, who="another")
    with pytest.raises(FencedError, match="another, with epoch 2"):
        driver.check()
    assert len(broker.clients) == 2


def test_a_driver_that_could_not_look_goes_on_if_there_is_no_newer_one(
    broker: Broker, driver: StageEpoch
) -> None:
    broker.refuses = broker.away = True
    with pytest.raises(ServiceError, match="no broker answers"):
        driver.check()
    assert len(broker.clients) == 1
    broker.away = False
    driver.check()
    assert len(broker.clients) == 2
