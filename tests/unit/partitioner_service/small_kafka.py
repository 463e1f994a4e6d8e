"""A small Kafka for runs of the real `Source`, `Sink`, `AddedPartitions` and `Loop`: one thread, one topic
of each role.

What is modelled is what a taking-in rests on. Offsets, frames and the record of the beginning become visible
with their transaction, in the order in which they were written. The broker refuses the offsets of a member of
another generation. A rebalance may begin inside any call of a busy member. That member then loses its
partitions and hears of it later. Offsets are handed over and committed in one go, so nobody looks while they
are pending.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException, TopicPartition

from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.settings.beginning import Beginning, encode_beginning, parse_beginning
from partitioner_service.kafka import source
from tests.column_fetcher import either_fetcher
from topics import clients, offsets
from topics.query import record as query_record

Row = tuple[bytes | None, list[tuple[str, bytes]]]
"""Value and headers of an input record."""


@dataclass(frozen=True)
class Record:
    """An input record as a consumer gets it."""

    place: tuple[int, int]
    row: Row

    def topic(self) -> str:
        return "in"

    def partition(self) -> int:
        return self.place[0]

    def offset(self) -> int:
        return self.place[1]

    def key(self) -> None:
        return None

    def value(self) -> bytes | None:
        return self.row[0]

    def headers(self) -> list[tuple[str, bytes]]:
        return self.row[1]

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_NOT_AVAILABLE, -1

    def error(self) -> None:
        return None

    def __len__(self) -> int:
        return len(self.row[0] or b"")


@dataclass(eq=False)
class Transaction:
    """A transaction of a producer. over: None while it is open, then whether it was committed."""

    record: bytes | None = None
    over: bool | None = None


@dataclass(eq=False)
class Kafka:
    """committed: states by input partition. log: (offset, frame) by routed partition, as far as readers see
    them.

    meanwhile: called inside each call of a client. taken: called with the states of partitions that were
    taken in. given_up: how many transactions were aborted that would have taken partitions in.
    """

    settings: Settings
    draw: Random
    committed: dict[int, PartitionState]
    log: list[list[tuple[int, bytes]]]
    meanwhile: Callable[[], None] = lambda: None
    taken: Callable[[Mapping[int, PartitionState]], None] = lambda states: None
    input: list[list[Row]] = field(default_factory=list)
    record: bytes = b""
    generation: int = 0
    now: float = 0.0
    offset: int = 0
    given_up: int = 0

    def __post_init__(self) -> None:
        self.written: list[deque[tuple[Transaction, int, bytes]]] = [deque() for _ in self.log]

    def begin(self, inputs: int) -> None:
        """The query begins with so many input partitions."""
        begin = dict.fromkeys(range(inputs), 0)
        identity = self.settings.identity()
        self.record = encode_beginning(Beginning(identity=identity, input_id="in", begin=begin, began_at=0))

    @property
    def recorded(self) -> int:
        """How many input partitions the record of the beginning counts."""
        return len(parse_beginning(self.record, where="the record").begin)

    def rebalance(self, shares: Mapping[Consumer, list[int]], *, away: Collection[Consumer] = ()) -> None:
        """Hand the partitions out. away: members that are busy. They lose theirs."""
        self.generation += 1
        for member in away:
            member.lost = True
        for member, share in shares.items():
            member.generation, member.share = self.generation, share

    def end(self, transaction: Transaction, states: Mapping[int, PartitionState] | None) -> None:
        """Commit this transaction with these states, or abort it."""
        transaction.over = states is not None
        if states is not None:
            self._note(transaction, states)
            self.committed.update(states)
        elif transaction.record is not None:
            self.given_up += 1
        for routed, frames in enumerate(self.written):
            while frames and frames[0][0].over is not None:
                written_in, offset, frame = frames.popleft()
                if written_in.over:
                    self.log[routed].append((offset, frame))

    def _note(self, transaction: Transaction, states: Mapping[int, PartitionState]) -> None:
        new = states.keys() - self.committed.keys()
        if transaction.record is not None:
            before, self.record = self.recorded, transaction.record
            assert new, "two instances have taken the same partition in"
            assert new == set(range(before, self.recorded)), (
                "the record has other partitions than the offsets"
            )
            self.taken({p: states[p] for p in new})
        assert transaction.record is not None or not new, "taken in without a record"

    # ---- what the admin client and the reader of a topic are asked

    def list_topics(self, topic: str, *, timeout: float) -> Any:
        self.meanwhile()
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=range(len(self.input)))})

    def list_offsets(self, asked: Mapping[TopicPartition, Any], **more: Any) -> dict[TopicPartition, Any]:
        self.meanwhile()
        answers = {}
        for part, spec in asked.items():
            answers[part] = Future[Any]()
            first = type(spec).__name__.startswith("Earliest") or spec._value == -2
            answers[part].set_result(SimpleNamespace(offset=0 if first else len(self.input[part.partition])))
        return answers

    def read_last(self, *words: Any) -> Any:
        self.meanwhile()
        return SimpleNamespace(value=lambda record=self.record: record)


class Consumer:
    """A member of the group. share: what it is assigned, None once it has heard. lost: it has lost what it
    had.
    """

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self.generation = 0
        self.share: list[int] | None = None
        self.lost = False
        self.positions: dict[int, int] = {}
        self.callbacks: dict[str, Any] = {}

    def subscribe(self, topics: list[str], **callbacks: Any) -> None:
        self.callbacks = callbacks

    def consumer_group_metadata(self) -> int:
        return self.generation

    def consume(self, most: int, timeout: float) -> list[Record]:
        if self.lost:
            self.lost = False
            self.callbacks["on_lost"](self, [])
        if self.share is not None:
            share, self.share = self.share, None
            self.callbacks["on_assign"](self, [TopicPartition("in", p) for p in share])
            return []
        result = []
        for p, position in sorted(self.positions.items()):
            rows = self._kafka.input[p][position:][: self._kafka.draw.randrange(6)]
            result += [Record((p, position + at), row) for at, row in enumerate(rows)]
            self.positions[p] += len(rows)
        return result

    def get_watermark_offsets(self, place: TopicPartition, *, cached: bool) -> tuple[int, int]:
        """Where the log begins and ends, as of the newest records."""
        return 0, len(self._kafka.input[place.partition])

    def revoke(self) -> None:
        """As inside of a `consume`: the member gives up what it has."""
        self.callbacks["on_revoke"](self, [])

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.positions = {entry.partition: entry.offset for entry in partitions}

    def unassign(self) -> None:
        self.positions = {}

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self._kafka.meanwhile()
        result, known = [], self._kafka.committed
        for entry in partitions:
            state = known.get(entry.partition)
            place = (-1001,) if state is None else (state.offset, state.encode())
            result.append(TopicPartition(entry.topic, entry.partition, *place))
        return result


class Producer:
    """A transactional producer. refuses: its next commit is refused, and the transaction has to be
    aborted.
    """

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._open: Transaction | None = None
        self._states: dict[int, PartitionState] = {}
        self._aborted = False
        self.refuses = False

    @property
    def record(self) -> bytes | None:
        """The record of the beginning that is in the open transaction."""
        return None if self._open is None else self._open.record

    def init_transactions(self, timeout: float) -> None:
        """Nothing to fence."""

    def poll(self, timeout: float) -> None:
        """All is delivered."""

    flush = poll

    def begin_transaction(self) -> None:
        self._kafka.meanwhile()
        assert self._open is None
        assert not self._aborted, "a client was used again after an abort"
        self._open, self._states = Transaction(), {}

    def produce(self, topic: str, value: bytes, key: bytes | None, partition: int, **more: Any) -> None:
        kafka = self._kafka
        kafka.meanwhile()
        assert self._open is not None
        if topic == kafka.settings.topic("routed"):
            kafka.offset += 1
            kafka.written[partition].append((self._open, kafka.offset, value))
        elif topic == kafka.settings.topic("snapshots"):
            self._open.record = value

    def send_offsets_to_transaction(
        self, offsets: list[TopicPartition], generation: int, timeout: float
    ) -> None:
        self._kafka.meanwhile()
        if self.refuses or generation != self._kafka.generation:
            self.refuses = False
            refuse()
        self._states = {e.partition: PartitionState.decode(e.metadata, offset=e.offset) for e in offsets}

    def commit_transaction(self, timeout: float) -> None:
        self._end(self._states)

    def abort_transaction(self, timeout: float = 0) -> None:
        self._aborted = True
        self._end(None)

    def _end(self, states: Mapping[int, PartitionState] | None) -> None:
        ended, self._open = self._open, None
        if ended is not None:
            self._kafka.end(ended, states)


def refuse() -> NoReturn:
    """The broker says that the transaction has to be aborted."""
    raise KafkaException(KafkaError(KafkaError.ILLEGAL_GENERATION, "refused", txn_requires_abort=True))


_IN_USE: list[Kafka] = []


def connect(kafka: Kafka) -> None:
    """Let the clients that are made from now on reach this one."""
    _IN_USE[:] = [kafka]


@contextmanager
def reached() -> Iterator[None]:
    """Within this, evenflow's clients reach the Kafka that was connected last."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clients, "consumer", lambda *words, **more: Consumer(_IN_USE[0]))
        patch.setattr(clients, "producer", lambda *words, **more: Producer(_IN_USE[0]))
        for module in (clients, offsets):
            patch.setattr(module, "admin", lambda *words: _IN_USE[0])
        patch.setattr(source, "opened", either_fetcher)
        patch.setattr(query_record, "read_last", lambda *words: _IN_USE[0].read_last())
        yield
