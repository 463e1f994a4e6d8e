"""A commit whose answer never comes: whether it has happened or not, every tuple is routed once."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from evenflow.errors import ServiceError
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.kafka.sink import Sink
from partitioner_service.kafka.watchdog import IN_DOUBT
from tests.pipeline.planes import run, some_rows, total
from tests.pipeline.routed import create_topics, expected_counts, make_settings, read_routed, write

pytestmark = [pytest.mark.pipeline, pytest.mark.family, pytest.mark.usefixtures("either_reading")]

ROWS = 3_000


class Unanswered:
    """A producer whose third commit has no answer, however often it is tried.

    happens: whether the broker commits all the same.
    """

    def __init__(self, producer: Any, happens: bool) -> None:
        self._producer = producer
        self._happens = happens
        self._commits = 0
        self._in_doubt = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def begin_transaction(self) -> None:
        self._in_doubt = False
        self._producer.begin_transaction()

    def commit_transaction(self, timeout: float) -> None:
        if not self._in_doubt:
            self._commits += 1
            self._in_doubt = self._commits == 3
            if not self._in_doubt or self._happens:
                self._producer.commit_transaction(timeout)
        if self._in_doubt:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer", retriable=True))


@pytest.mark.parametrize("happens", [True, False])
def test_a_commit_without_an_answer_loses_and_doubles_nothing(
    kafka_settings: Any, query_name: str, monkeypatch: pytest.MonkeyPatch, happens: bool
) -> None:
    options = {"block_tuples": 300, "commit_interval": 1}
    settings = make_settings(kafka_settings, query_name, partitioner=options)
    settings = settings.model_copy(
        update={"kafka": settings.kafka.model_copy(update={"request_timeout": 2_000})}
    )
    create_topics(settings)
    rows = some_rows(ROWS)
    write(settings, rows)
    real = Sink.__init__

    def unanswered(self: Any, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs)
        self._client.producer = Unanswered(self._client.producer, happens)

    with monkeypatch.context() as patched:
        patched.setattr(Sink, "__init__", unanswered)
        if happens:
            with pytest.raises(ServiceError, match="could not be aborted") as refused:
                run(settings)
            assert refused.value.hint == IN_DOUBT
            assert 0 < total(all_states(settings))[0] < ROWS
        else:  # nothing was sent to the broker: the transaction is aborted, and its blocks are read again
            run(settings)
    if happens:
        run(settings)
    assert read_routed(settings).counts == expected_counts(settings, rows)
    assert total(all_states(settings)) == (ROWS, ROWS, 0)
