"""A small partitioner that tells, and instances of it that share a topic in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from evenflow.errors import IncompatibleStateError
from evenflow.numeric.arrays import Int64s, State
from evenflow.partitioners import Partitioner, registry
from evenflow.partitioners.base import Block
from evenflow.partitioners.exchange import Merger, Message, Table
from evenflow.partitioners.explanation import Explanation
from evenflow.settings import Settings, load_settings
from partitioner_service.exchange.channel import Channel
from partitioner_service.exchange.member import Member
from partitioner_service.kafka.learned_state import new_partitioner

SLIDE = 1_000


def numbers(body: bytes) -> Int64s:
    """The int64 values of a body."""
    if not body or len(body) % 8:
        raise IncompatibleStateError(f"{len(body)} bytes are no numbers")
    return np.frombuffer(body, "<i8")


class Adding(Merger):
    """Adds what the members tell."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def check(self, message: Message) -> None:
        """IncompatibleStateError for a body that holds no numbers."""
        numbers(message.body)

    def merge(self, messages: Sequence[Message]) -> bytes:
        """The sum, for the present number of workers."""
        total = np.zeros(self.workers, np.int64)
        for message in messages:
            told = numbers(message.body)
            if len(told) == self.workers:
                total += told
        return total.tobytes()

    def rescale(self, workers: int) -> None:
        """Add numbers of so many workers."""
        self.workers = workers


class Telling(Partitioner):
    """Sends each key to a worker that depends on the newest table, so that a table does change the
    routing.
    """

    tells = True

    def _start(self) -> None:
        # sum of the newest table, next round, next slide's end
        self._known = np.array([0, 0, -1], np.int64)

    def _rescale(self) -> None:
        pass

    def _assign(self, block: Block) -> None:
        block.out[:] = (block.keys + np.uint64(self._known[0] % 1_000)) % np.uint64(self.workers)

    @property
    def tells_at(self) -> int | None:
        return None if self._known[2] < 0 else int(self._known[2])

    def tell(self, now: int) -> Message | None:
        self._known[2] = (now // SLIDE + 1) * SLIDE
        return Message(self.source, int(self._known[1]), self._sent.tobytes())

    def hear(self, table: Table, now: int) -> bool:
        if table.round < self._known[1]:
            return False
        self._known[0], self._known[1] = numbers(table.body).sum() + 1, table.round + 1
        return True

    def merger(self, *, clock: Callable[[], float]) -> Merger:
        return Adding(self.workers)

    @property
    def round(self) -> int:
        """The round of the next message."""
        return int(self._known[1])

    def _state(self) -> State:
        return {"known": self._known}

    def _load_state(self, state: State) -> None:
        self._known = state["known"]

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        return Explanation(rule="the newest table", workers=None)

    def _choices(self) -> int:
        return 1

    def _head_keys(self) -> int | None:
        return None

    def _state_bytes(self) -> int:
        return int(self._known.nbytes)


@contextmanager
def telling() -> Iterator[None]:
    """Within, there is a partitioner named `telling`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry._ENTRIES, "telling", registry._Entry(Telling))
        yield


def settings_of(instance: int | str = 0, instances: int = 2, **partitioner: Any) -> Settings:
    """Settings of one of several instances. Call it within `telling`."""
    how = {"name": "telling", "workers": 3, "instance": str(instance), "instances": instances}
    return load_settings(
        query={"name": "q", "key": "k", "time": "t", "window": "4s", "slide": "1s"},
        input={"partitions": 4},
        partitioner=how | partitioner,
    )


class Topic:
    """The sync topic in memory. broken: what the broker answers instead of taking a record. processes:
    that used it.
    """

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.broken: str | None = None
        self.processes = 0

    def sync(self, record: bytes, *, answered: Callable[[str | None], None]) -> None:
        """Take a record, as `SideRecords` does."""
        if self.broken is None:
            self.records.append(record)
        answered(self.broken)


class Instance:
    """One instance: its channel and member, and a partitioner. It reads the topic from where it stands
    now.
    """

    def __init__(
        self,
        settings: Settings,
        topic: Topic,
        clock: Callable[[], float],
        *,
        wall: Callable[[], float] | None = None,
    ) -> None:
        self.settings, self.topic = settings, topic
        topic.processes += 1
        self.channel = Channel(settings, clock=clock, wall=wall or clock, session=100 + topic.processes)
        self.member: Member = self.channel.member(topic)
        # Nearly always a `Telling`, whose round tests read.
        self.partitioner: Any = new_partitioner(settings)
        self.at = len(topic.records)
        self.elected = False

    def read(self) -> None:
        """Take everything that stands in the topic, as the Faust agent does."""
        while self.at < len(self.topic.records):
            self.at += 1
            self.channel.offer(self.topic.records[self.at - 1])

    def step(self, now: int | None) -> None:
        """What the loop does between blocks."""
        self.read()
        self.member.hear(self.partitioner, now)
        self.member.stand(self.partitioner, elected=self.elected)
        self.member.tell(self.partitioner, now)

    @property
    def shown(self) -> dict[str, Any]:
        """Its figures."""
        return self.channel.figures.shown()


class Group:
    """Instances that share a topic and a clock."""

    def __init__(self, instances: int = 2, *, running: int | None = None, **partitioner: Any) -> None:
        self.topic = Topic()
        self.clock = 0.0
        self.how = partitioner | {"instances": instances}
        self.instances = [self.begin(number) for number in range(running or instances)]
        self.elect(0)

    def begin(self, number: int) -> Instance:
        """A new process of this instance."""
        return Instance(settings_of(number, **self.how), self.topic, lambda: self.clock)

    def elect(self, *numbers: int) -> None:
        """These instances own input partition 0, as they see it."""
        for number, instance in enumerate(self.instances):
            instance.elected = number in numbers

    def step(self, now: int, *, seconds: float = 0.05) -> None:
        """Every instance once, and then all that is told reaches all."""
        self.clock += seconds
        for instance in self.instances:
            instance.step(now)
        for instance in self.instances:
            instance.channel.tick()
        for instance in self.instances:
            instance.read()

    @property
    def rounds(self) -> list[int]:
        """The next round of each."""
        return [instance.partitioner.round for instance in self.instances]
