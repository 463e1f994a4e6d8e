"""The plan topic: one partition, one log, read in the order in which it was written.

Plans are written in transactions, and only committed plans are read. So a writer that is fenced while it
writes leaves nothing behind. The topic is compacted and holds few records, so reading all of it at a start
does not take long (evenflow/plans.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException

from evenflow.errors import ServiceError
from evenflow.plans import Plan, parse_plan
from evenflow.settings import Settings
from topics.admin import describe
from topics.clients import FENCED, producer, seconds, service_error
from topics.follower import Follower
from topics.offsets import stable_ends
from topics.query.audit import AuditEntry, who
from topics.reader import read_range
from topics.records import Record
from topics.state import TopicState

log = logging.getLogger(__name__)

_TRANSACTION_TIMEOUT_MS = 10_000


def plan_in(value: bytes | None, settings: Settings) -> Plan:
    """The plan in a record of the query's plan topic.

    Raises ValueError for a record that is no plan of this query, and for a plan with more workers than
    `max_workers`. Every reader of the topic passes over these same records, so all readers come to the same
    schedule.
    """
    plan = parse_plan(value, fingerprint=settings.fingerprint)
    if plan.p > settings.max_workers:
        raise ValueError(
            f"plan epoch {plan.epoch} is impossible: it asks for {plan.p} workers, and the query has"
            f" {settings.max_workers} at most"
        )
    return plan


class PlanRecords:
    """Turns records of the plan topic into plans.

    A record that is no plan is logged once, counted, and ignored.

    ignored: number of these records. next_offset: the offset behind all records that were handed over with an
    offset.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._topic = settings.topic("plan")
        self.ignored = 0
        self.next_offset = 0

    def plan_of(self, message: Record) -> Plan | None:
        """The plan in a record. None if the record is no plan of the query."""
        return self.of_value(message.value(), message.offset())

    def of_value(self, value: bytes | None, offset: int | None) -> Plan | None:
        """As `plan_of`, for callers that have the value and the offset of a record.

        offset: None if it is unknown.
        """
        read_before = (
            offset is not None and offset < self.next_offset
        )  # read before: already logged and counted
        self.next_offset = max(self.next_offset, -1 if offset is None else offset + 1)
        try:
            return plan_in(value, self._settings)
        except ValueError as error:
            if not read_before:
                self.ignored += 1
                log.warning("ignoring the record at offset %s of %s: %s", offset, self._topic, error)
            return None


def read_plans(settings: Settings, reading: PlanRecords | None = None) -> list[Plan]:
    """Every plan that is published now, in the order of the log. Empty if there is no plan topic.

    reading: turns the records into plans. Pass it to read on behind these records later.
    """
    return list(_published(settings, PlanRecords(settings) if reading is None else reading))


def _published(settings: Settings, reading: PlanRecords) -> Iterator[Plan]:
    topic = settings.topic("plan")
    state = describe(settings.kafka, [topic]).get(topic)
    if state is None:
        return
    for block in read_range(settings.kafka, topic, end=stable_ends(settings.kafka, state)):
        for message in block:
            plan = reading.plan_of(message)
            if plan is not None:
                yield plan


class PlanFollower:
    """Follows the plan topic: first all plans that are there, then each new one."""

    def __init__(self, settings: Settings) -> None:
        """Raises ServiceError if the broker does not answer or there is no plan topic."""
        self._reading = PlanRecords(settings)
        self._follower = Follower(settings, "plan")

    @property
    def ignored(self) -> int:
        """Number of records that were no plan of this query."""
        return self._reading.ignored

    @property
    def state(self) -> TopicState:
        """The plan topic as it was when the follower was made."""
        return self._follower.state

    def all_so_far(self) -> list[Plan]:
        """Every plan that was there when the follower was made.

        Raises ServiceError as `Follower.all_so_far` does.
        """
        return self._plans(self._follower.all_so_far())

    def new(self, timeout: float = 0.0) -> list[Plan]:
        """Plans that were published since the last call, waiting for at most `timeout` s for the first."""
        return self._plans(self._follower.new(timeout))

    def close(self) -> None:
        """Close the connection to the broker."""
        self._follower.close()

    def _plans(self, messages: list[Record]) -> list[Plan]:
        return [plan for message in messages if (plan := self._reading.plan_of(message)) is not None]


def entry_of(plan: Plan, *, because: str = "", by: str = "") -> AuditEntry:
    """The entry of the audit log for a plan that this process publishes.

    because: why, by default the plan's own reason. by: the part that decided it, empty for a person.
    """
    words = f"plan {plan.epoch}: {plan.p} workers, {plan.r} buckets at once"
    process = who()
    return AuditEntry(
        action="plan",
        what=words,
        who=f"{by}, {process}" if by else process,
        because=because or plan.reason,
    )


class WriterFenced(ServiceError):
    """Another writer of the same identity has taken over."""


class PlanWriter:
    """Publishes plans, and records about them, in transactions of one identity.

    A second writer of the same identity fences the first: the broker refuses everything that the first still
    writes.
    """

    def __init__(self, settings: Settings, *, identity: str) -> None:
        """Take over the identity. Raises ServiceError if the broker refuses or does not answer."""
        self._settings = settings
        self._identity = f"{settings.query.name}.{identity}"
        self._producer = producer(
            settings.kafka, transactional_id=self._identity, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS
        )
        self._patience = seconds(settings.kafka)
        self._failure: ServiceError | None = None
        self._do("taking over", lambda: self._producer.init_transactions(self._patience))

    def write(
        self,
        plan: Plan | None = None,
        *,
        telemetry: Iterable[tuple[str, bytes]] = (),
        snapshot: tuple[bytes, bytes] | None = None,
        audit: AuditEntry | None = None,
    ) -> None:
        """Write all of these records in one transaction, or none of them.

        telemetry, snapshot: (key, value) of records for the telemetry and the controller's own topic. audit:
        who wants the plan. Raises WriterFenced if another writer has taken over, and ServiceError for other
        refusals. A writer that has failed writes nothing more.
        """
        settings = self._settings

        def all_of_it() -> None:
            self._producer.begin_transaction()
            if plan is not None:
                value = plan.encode(settings.fingerprint)
                self._producer.produce(settings.topic("plan"), value=value, key=plan.key)
            for key, record in telemetry:
                self._producer.produce(settings.topic("telemetry"), value=record, key=key)
            if snapshot is not None:
                self._producer.produce(settings.topic("controller"), key=snapshot[0], value=snapshot[1])
            if audit is not None:
                self._producer.produce(settings.topic("audit"), value=audit.encode())
            self._producer.commit_transaction(self._patience)

        self._do("publishing", all_of_it)

    def _do(self, doing: str, operation: Callable[[], object]) -> None:
        """Call `operation`, and turn Kafka's errors into WriterFenced or ServiceError.

        doing: in words, for the error's text.
        """
        if self._failure is not None:
            raise self._failure  # a client that was fenced answers with other, misleading errors
        try:
            operation()
        except KafkaException as error:
            code = error.args[0]
            if code.code() in FENCED:
                self._failure = _taken_over(self._identity, code)
                raise self._failure from None
            # After an abort Kafka might not write what this client commits (`topics.transactional`). Another
            # one would fence a writer that has come meanwhile.
            failure = service_error(error, self._settings.kafka, f"{doing} plans as {self._identity}")
            self._failure = ServiceError(failure.message, hint=f"{failure.hint}. Then start it again")
            if code.txn_requires_abort():
                with suppress(KafkaException):  # if it fails, the broker aborts after a timeout
                    self._producer.abort_transaction(self._patience)
            raise self._failure from None


def _taken_over(identity: str, error: KafkaError) -> WriterFenced:
    return WriterFenced(
        f"another writer has taken over {identity}: {error.str()}",
        hint=(
            "the newer one goes on; one controller of a query is enough. Without another one, this one stood"
            f" still in a transaction for longer than {_TRANSACTION_TIMEOUT_MS / 1000:g} s: start it again"
        ),
    )
