"""The plan topic: one partition, one log, read in the order in which it was written.

Plans are written in transactions and read committed, so a writer that was fenced in mid-write leaves nothing behind.
The topic is compacted and holds few records: reading all of it at a start is short (evenflow/plans.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from evenflow.errors import ServiceError
from evenflow.plans import Plan, parse_plan
from evenflow.settings import Settings
from topics.admin import describe
from topics.clients import consumer, producer, seconds, service_error
from topics.offsets import stable_ends
from topics.reader import read_range

log = logging.getLogger(__name__)

_FENCED = frozenset(
    {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED, KafkaError._STATE}
)


class Plans:
    """Turns records of the plan topic into plans; what is none is said once each, counted, and ignored.

    next_offset: behind all records that it was handed with their offset.
    """

    def __init__(self, settings: Settings) -> None:
        self._topic = settings.topic("plan")
        self._fingerprint = settings.fingerprint
        self.ignored = 0
        self.next_offset = 0

    def of(self, message: Message) -> Plan | None:
        """The plan in a record, None for anything else."""
        return self.of_value(message.value(), message.offset())

    def of_value(self, value: bytes | None, offset: int | None) -> Plan | None:
        """As `of`, for who has the parts of a record."""
        known = offset is not None and offset < self.next_offset
        self.next_offset = max(self.next_offset, -1 if offset is None else offset + 1)
        try:
            return parse_plan(value, fingerprint=self._fingerprint)
        except ValueError as error:
            if not known:
                self.ignored += 1
                log.warning("ignoring the record at offset %s of %s: %s", offset, self._topic, error)
            return None


def read_plans(settings: Settings, reading: Plans | None = None) -> list[Plan]:
    """Every plan that is published now, in order; what is no plan is ignored. None of a topic that is not there.

    reading: is handed the records, for who reads on behind them.
    """
    return list(_published(settings, Plans(settings) if reading is None else reading))


def _published(settings: Settings, reading: Plans) -> Iterator[Plan]:
    topic = settings.topic("plan")
    state = describe(settings.kafka, [topic]).get(topic)
    if state is None:
        return
    for block in read_range(settings.kafka, topic, end=stable_ends(settings.kafka, state)):
        for message in block:
            plan = reading.of(message)
            if plan is not None:
                yield plan


class PlanFollower:
    """Plans as they are published: all that are there at first, then each new one."""

    def __init__(self, settings: Settings) -> None:
        """Raises ServiceError without a broker or a plan topic."""
        self._settings = settings
        self._reading = Plans(settings)
        self._topic = settings.topic("plan")
        state = describe(settings.kafka, [self._topic]).get(self._topic)
        if state is None:
            raise ServiceError(
                f"topic {self._topic} does not exist",
                hint="`evenflow partition` makes it; see `evenflow doctor`",
            )
        self._end = stable_ends(settings.kafka, state)[0]
        self._position = state.begin[0]
        self._reader = consumer(
            settings.kafka, group=f"{settings.query.name}.plan-reader", enable_partition_eof=True
        )
        self._reader.assign([TopicPartition(self._topic, 0, state.begin[0])])

    @property
    def ignored(self) -> int:
        """Records that were no plan of this query."""
        return self._reading.ignored

    def all_so_far(self) -> list[Plan]:
        """Every plan that was there when the follower was made; ServiceError when the broker does not hand them over."""
        found: list[Plan] = []
        tries = 0
        while self._position < self._end:
            before = self._position
            found += self.new(0.5)
            tries = 0 if self._position > before else tries + 1
            if tries > 2 * seconds(self._settings.kafka):
                raise ServiceError(f"reading {self._topic} makes no progress at offset {self._position}")
        return found

    def new(self, timeout: float = 0.0) -> list[Plan]:
        """Plans that were published since the last call, waiting for at most `timeout` s for the first."""
        found = []
        try:
            messages = self._reader.consume(100, timeout=timeout)
        except KafkaException as error:
            raise service_error(error, self._settings.kafka, f"reading {self._topic}") from None
        for message in messages:
            error = message.error()
            if error is None:
                self._position = message.offset() + 1
                plan = self._reading.of(message)
                if plan is not None:
                    found.append(plan)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._position = max(self._position, message.offset())
            elif not error.retriable() and error.code() not in (
                KafkaError._ALL_BROKERS_DOWN,
                KafkaError._TRANSPORT,
            ):
                raise service_error(error, self._settings.kafka, f"reading {self._topic}")
        return found

    def close(self) -> None:
        """Leave the broker alone."""
        self._reader.close()


class Fenced(ServiceError):
    """Another writer of the same identity has taken over."""


class PlanWriter:
    """Publishes plans, and records about them, in transactions of one identity.

    A second writer of that identity fences the first: whatever the first still wants to write is refused.
    """

    def __init__(self, settings: Settings, *, identity: str) -> None:
        """Take the identity over. Raises ServiceError when the broker refuses or does not answer."""
        self._settings = settings
        self._identity = f"{settings.query.name}.{identity}"
        self._producer = producer(
            settings.kafka, transactional_id=self._identity, transaction_timeout_ms=10_000
        )
        self._patience = seconds(settings.kafka)
        self._do("taking over", lambda: self._producer.init_transactions(self._patience))

    def write(self, plan: Plan | None = None, telemetry: list[tuple[str, bytes]] | None = None) -> None:
        """All of it or nothing; telemetry: key and value of each record.

        Raises Fenced when another writer has taken over, ServiceError for other refusals.
        """
        settings = self._settings

        def all_of_it() -> None:
            self._producer.begin_transaction()
            if plan is not None:
                value = plan.encode(settings.fingerprint)
                self._producer.produce(settings.topic("plan"), value=value, key=plan.key)
            for key, record in telemetry or ():
                self._producer.produce(settings.topic("telemetry"), value=record, key=key)
            self._producer.commit_transaction(self._patience)

        self._do("publishing", all_of_it)

    def _do(self, doing: str, what: Callable[[], object]) -> None:
        try:
            what()
        except KafkaException as error:
            code = error.args[0]
            if code.fatal() or code.code() in _FENCED:
                raise Fenced(
                    f"another writer has taken over {self._identity}: {code.str()}",
                    hint="one controller of a query is enough; the newer one goes on",
                ) from None
            if code.txn_requires_abort():
                self._producer.abort_transaction(self._patience)
            raise service_error(error, self._settings.kafka, f"{doing} plans as {self._identity}") from None
        except ServiceError as error:  # raised by the client's own error callback
            raise Fenced(error.message, hint=error.hint) from None
