"""A producer with confluent-kafka's interface, transactional or not."""

from __future__ import annotations

import zlib
from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, TopicPartition

from tests.faults.model import network
from tests.faults.model.errors import Refused, kafka_error, timed_out, timed_out_may_retry
from tests.faults.model.listing import listed
from tests.faults.model.log import Entry, Log

_SLOWEST_SEND = 0.02
_WAIT = 0.01
_UNANSWERED_SHARE = 0.3
"""In how many logs the last records of a transaction had no answer when it was aborted."""
_FENCED_TEXT = "This instance has been fenced by a newer instance"


class _Queued(NamedTuple):
    log: Log
    entry: Entry
    answered: Callable[[Any, Any], object] | None


class Producer:
    """Records wait in a queue, and reach the broker a little later or when a call flushes it."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._broker = network.broker()
        self._world = self._broker.world
        self._process = self._world.current
        self._id: str | None = config.get("transactional.id")
        self._timeout = float(config.get("transaction.timeout.ms", 60_000)) / 1000
        self._queue: deque[_Queued] = deque()
        self._answers: list[tuple[Callable[[Any, Any], object], Any]] = []
        self._epoch = -1
        self._open = False
        self._fatal: int | None = None
        self._abort: int | None = None
        self._ended: str | None = None
        self._touched = False
        self._coming = False
        self._numbers = Counter[Log]()  # of the next record
        self._unanswered = Counter[Log]()  # records of the open transaction that were sent

    # ---- what every client has

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        return self._world.call("list_topics", lambda: listed(self._broker), lost=timed_out)

    def __len__(self) -> int:
        return len(self._queue)

    # ---- records

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int = -1,
        on_delivery: Callable[[Any, Any], object] | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        self._refuse_dead()
        if self._fatal is not None:
            raise kafka_error(KafkaError._FATAL, "Local: Fatal error")
        if self._id is not None and (self._abort is not None or not self._open):
            raise kafka_error(KafkaError._STATE, "Local: Erroneous state")
        if partition < 0:
            result = self._broker.topics.get(topic)
            count = 1 if result is None else len(result.logs)
            partition = 0 if count == 1 or key is None else zlib.crc32(_bytes(key) or b"") % count
        log = self._broker.log(topic, partition)
        if log is None:
            raise kafka_error(KafkaError._UNKNOWN_PARTITION, "Local: Unknown partition")
        stamp = timestamp or round(self._world.wall() * 1000)
        named = None if headers is None else [(name, _bytes(held)) for name, held in dict_or_list(headers)]
        self._queue.append(_Queued(log, Entry(_bytes(key), _bytes(value), named, stamp, None), on_delivery))
        if not self._coming:
            self._coming = True
            self._world.at(self._world.random.uniform(0, _SLOWEST_SEND), self._arrive)

    def poll(self, timeout: float = 0) -> int:
        self._refuse_dead()
        if timeout:
            self._world.sleep(timeout)
        return self._run_callbacks()

    def flush(self, timeout: float = -1) -> int:
        self._world.call("flush", self._send, lost=None)
        if self._abort is None:
            self._unanswered.clear()
        self._run_callbacks()
        self._raise_fatal()
        return len(self._queue)

    def purge(self) -> None:
        self._queue.clear()

    # ---- transactions

    def init_transactions(self, timeout: float = -1) -> None:
        deadline = self._world.now + timeout
        while True:
            epoch = self._world.call("init", self._take, lost=timed_out_may_retry)
            if epoch is not None:
                self._epoch = epoch
                return
            if self._world.now > deadline:
                raise timed_out_may_retry()
            self._world.sleep(_WAIT)

    def begin_transaction(self) -> None:
        self._refuse_dead()
        self._raise_fatal()
        if self._open:
            raise kafka_error(KafkaError._STATE, "transaction already in progress")
        self._open, self._touched, self._ended = True, False, None
        self._unanswered.clear()

    def send_offsets_to_transaction(
        self, offsets: list[TopicPartition], metadata: Any, timeout: float = -1
    ) -> None:
        group, generation, member = metadata
        result = {(part.topic, part.partition): (part.offset, part.metadata or "") for part in offsets}

        def deed() -> None:
            self._broker.groups.check(group, generation, member)
            self._broker.transactions.offsets(self._identity, self._epoch, group, result)
            self._touched = True

        self._raise_fatal()
        self._raise_abortable()
        if not self._open:
            raise kafka_error(KafkaError._STATE, "no transaction in progress")
        self._wait_for_markers(timeout)
        self._asked("offsets", deed)

    def commit_transaction(self, timeout: float = -1) -> None:
        self._end("commit", timeout)

    def abort_transaction(self, timeout: float = -1) -> None:
        self._queue.clear()
        self._count_back()
        self._end("abort", timeout)

    # ---- beneath

    @property
    def _identity(self) -> str:
        assert self._id is not None
        return self._id

    def _take(self) -> int | None:
        return self._broker.transactions.take(self._identity, self._timeout)

    def _end(self, outcome: str, timeout: float) -> None:
        self._refuse_dead()
        self._raise_fatal()
        if not self._open:
            raise kafka_error(KafkaError._STATE, "no transaction in progress")
        if self._ended == outcome:  # a repeated call waits for the answer to the first one
            self._open, self._abort = False, None
            return
        if outcome == "commit":
            self._raise_abortable()
            self._wait_for_markers(timeout)
            self._world.call("flush", self._send)
            self._raise_fatal()
            self._raise_abortable()
        else:
            self._abort = None  # what made the abort necessary does not stand in its way

        def deed() -> None:
            if self._touched:
                self._broker.transactions.end(self._identity, self._epoch, outcome)
            self._ended = outcome

        self._asked(outcome, deed, lost=timed_out_may_retry)
        self._open, self._abort = False, None

    def _asked(self, what: str, deed: Callable[[], None], *, lost: Any = timed_out_may_retry) -> None:
        """Ask the coordinator. Its refusals become the client's state and its errors."""
        try:
            self._world.call(what, deed, lost=lost)
        except Refused as refused:
            self._note(refused.code)
        self._raise_fatal()
        self._raise_abortable()

    def _note(self, code: int) -> None:
        if code == KafkaError.INVALID_PRODUCER_EPOCH:
            self._fatal = KafkaError._FENCED
        else:
            self._abort = code

    def _count_back(self) -> None:
        """Forget that the last records of the transaction were sent, as if no answer to them had come.

        librdkafka does so at an abort, and gives their numbers to the next records.
        """
        draw = Random(f"{self._id} {self._epoch} {self._world.now}")
        for log, count in self._unanswered.items():
            if draw.random() < _UNANSWERED_SHARE:
                self._numbers[log] -= draw.randint(1, count)
        self._unanswered.clear()

    def _wait_for_markers(self, timeout: float) -> None:
        """The broker takes nothing of a new transaction while it ends the one before."""
        while self._broker.transactions.busy(self._identity):
            self._world.sleep(_WAIT)

    def _arrive(self) -> None:
        """The background thread sends what is queued, unless the process stands still."""
        self._coming = False
        process = self._process
        if process is not None and not process.alive:
            self._queue.clear()
        elif process is not None and process.stalled_since is not None:
            self._coming = True
            self._world.at(0.5, self._arrive)
        elif self._id is not None and self._broker.transactions.busy(self._id):
            self._coming = True
            self._world.at(_WAIT, self._arrive)
        else:
            self._send(self._world.random.randint(1, max(1, len(self._queue))))
            if self._queue:
                self._coming = True
                self._world.at(self._world.random.uniform(0, _SLOWEST_SEND), self._arrive)

    def _send(self, most: int | None = None) -> None:
        while self._queue and (most is None or most > 0):
            most = None if most is None else most - 1
            queued = self._queue.popleft()
            error = None
            try:
                if self._id is None:
                    queued.log.append(queued.entry)
                else:
                    number = self._numbers[queued.log]
                    self._broker.transactions.write(self._id, self._epoch, queued.log, queued.entry, number)
                    self._numbers[queued.log] += 1
                    self._unanswered[queued.log] += 1
                    self._touched = True
            except Refused as refused:
                self._note(refused.code)
                self._queue.clear()
                error = KafkaError(refused.code)
            if queued.answered is not None:
                self._answers.append((queued.answered, error))

    def _run_callbacks(self) -> int:
        answers, self._answers = self._answers, []
        for answered, error in answers:
            answered(error, None)
        return len(answers)

    def _refuse_dead(self) -> None:
        self._world.refuse_dead()

    def _raise_fatal(self) -> None:
        if self._fatal is not None:
            raise kafka_error(self._fatal, _FENCED_TEXT, fatal=True)

    def _raise_abortable(self) -> None:
        if self._abort is not None:
            raise kafka_error(self._abort, abort=True)


def dict_or_list(headers: Any) -> Any:
    """Headers as pairs."""
    return headers.items() if isinstance(headers, dict) else headers


def _bytes(text: bytes | str | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
