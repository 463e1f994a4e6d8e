"""The two ways to fetch: through confluent-kafka's `consume`,
or from queues without a Python object for each record.

The consumer is a member of the group in both. Callbacks of a rebalance run inside `fetch`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol, cast

from confluent_kafka import Consumer, KafkaException

from evenflow.settings import Settings
from partitioner_service.fetch.fetch_result import FetchResult
from partitioner_service.fetch.librdkafka import Librdkafka
from partitioner_service.fetch.queues import ONE_QUEUE, Queues, bounds
from topics import clients
from topics.librdkafka.loaded import NotProvenError
from topics.records import Record

log = logging.getLogger(__name__)


class Fetcher(Protocol):
    """Fetches what comes next of the assigned partitions."""

    name: str
    """As of `partitioner.reading`."""

    def fetch(self, most: int, timeout: float) -> FetchResult:
        """What comes next, up to `most` records and events, after at most `timeout` seconds."""

    def split(self, partitions: Iterable[int]) -> None:
        """These partitions are about to be assigned, and no others."""

    def leave(self, partitions: Collection[int]) -> frozenset[int]:
        """Do not read exactly these of the assigned partitions for now. Returns those of them that have to be
        paused for that.
        """

    def take_back(self) -> None:
        """No partition is read any more. Call this before the assignment is given up."""

    def close(self) -> None:
        """Let go of everything. Call this before the consumer is closed."""


class Messages:
    """Makes a Python object of each record (`partitioner.reading = "consume"`)."""

    name = "consume"

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def fetch(self, most: int, timeout: float) -> FetchResult:
        """As of `Fetcher`."""
        return FetchResult.of_messages(cast(list[Record], self._consumer.consume(most, timeout)))

    def split(self, partitions: Iterable[int]) -> None:
        """Nothing to do: all records come by the consumer's own queue."""

    def leave(self, partitions: Collection[int]) -> frozenset[int]:
        """As of `Fetcher`. All of them: the consumer's own queue holds the records of all partitions."""
        return frozenset(partitions)

    def take_back(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


def opened(
    settings: Settings, client: Callable[[Mapping[str, int]], Consumer], *, client_id: str
) -> tuple[Consumer, Fetcher]:
    """A consumer, and a fetcher for it as of `fetcher_of`.

    client: makes a consumer with these bounds on what it fetches ahead. They are those for all input
    partitions, because an instance may be the only one for a while. Raises as `fetcher_of`.
    """
    if settings.partitioner.reading == "queues":
        consumer = client(bounds(settings.input_partitions))
        fetcher = fetcher_of(settings, consumer, client_id=client_id)
        if isinstance(fetcher, Queues):
            return consumer, fetcher
        consumer.close()
    consumer = client(ONE_QUEUE)
    return consumer, Messages(consumer)


def fetcher_of(settings: Settings, consumer: Consumer, *, client_id: str) -> Fetcher:
    """The fetcher that `partitioner.reading` names. It is `consume` where queues are not proven, and then
    the log says why.

    Raises ServiceError without a broker.
    """
    if settings.partitioner.reading == "consume":
        return Messages(consumer)
    try:
        return Queues(consumer, Librdkafka(consumer, client_id), settings.topic("input"))
    except NotProvenError as reason:
        log.warning(
            "records are read by consume(), at about half the speed: %s; see 'Reading' in "
            "docs/operations/changing-settings.md",
            reason,
        )
        return Messages(consumer)
    except KafkaException as error:
        raise clients.service_error(error, settings.kafka, f"asking for {settings.topic('input')}") from None
