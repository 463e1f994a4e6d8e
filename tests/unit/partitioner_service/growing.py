"""A run whose input topic gets partitions at any moment, with the real loop over a small Kafka."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evenflow.errors import IncompatibleStateError, ServiceError
from evenflow.progress import PartitionState
from evenflow.windows import NO_MARK
from evenflow.wire.markers import EndOfStream
from tests.unit.partitioner_service.lossy import INPUTS, Run
from tests.unit.partitioner_service.member import Member
from tests.unit.partitioner_service.small_kafka import Kafka, Row, connect

MOST = INPUTS + 4
_COMMIT_INTERVAL = 1.0
_STEPS = 200


class Killed(BaseException):
    """The process of an instance ends here."""


class GrowingRun(Run):
    """As `Run`. Partitions that the query has not taken in are not expected in any result.

    taken_at: mark (ms) that each partition was taken in with. refused: partitions came when all others had
    ended. calm: nothing happens while an instance works.
    """

    def __post_init__(self) -> None:
        self.taken_at: dict[int, int] = {}
        self.refused = self.calm = False
        self.busy: list[Member] = []
        self.all_ever: list[Member] = []
        self.kafka = Kafka(self.settings, self.draw, self.committed, self.log)
        self.kafka.meanwhile, self.kafka.taken = self.meanwhile, self.take
        connect(self.kafka)
        super().__post_init__()

    def start(self) -> None:
        if not self.kafka.input:
            self.kafka.input = [self._rows(rows) for rows in self.input]
            self.kafka.begin(INPUTS)
        self.begun += 1
        for member in self.all_ever:
            if member not in self.members:
                member.producer.abort_transaction()  # the broker fences it
        member = Member(self.settings, self.kafka, self.begun)
        self.all_ever.append(member)
        self.members.append(member)

    @property
    def members(self) -> list[Member]:
        """The instances that live."""
        living: Any = self.instances
        return living

    def _rows(self, rows: list[tuple[str, int]]) -> list[Row]:
        end = EndOfStream(producer="p", tuples=len(rows)).headers()
        return [*((json.dumps({"k": key, "t": time}).encode(), []) for key, time in rows), (None, end)]

    def add(self) -> None:
        """The topic gets one partition or two. They may hold records before anybody knows of them."""
        for _ in range(self.draw.randrange(1, 3)):
            if len(self.input) < MOST:
                self.input.append(self._records())
                self.kafka.input.append(self._rows(self.input[-1]))

    def take(self, states: Mapping[int, PartitionState]) -> None:
        """Partitions are taken in with these states."""
        for p, state in states.items():
            self.taken_at[p] = NO_MARK if state.idle_mark is None else state.idle_mark
            for key, time in self.input[p]:
                if (time // 1000 + 1) * 1000 > self.taken_at[p]:
                    for end in (time // 1000 + 1, time // 1000 + 2):
                        self.expected[end * 1000 - 2000, key.encode()] += 1

    # ---- what happens to instances

    def work(self, instance: Any) -> None:
        """One step of its loop, in which anything may happen."""
        if instance not in self.instances or instance in self.busy:
            return
        self.kafka.now += self.draw.choice((0.0, 0.4, 1.5))
        self.busy.append(instance)
        try:
            instance.loop.step()
        except IncompatibleStateError:
            assert all(state.ended for state in self.committed.values())
            self.refused = True
            self._replace(instance)
        except (Killed, ServiceError):  # after several aborts in a row an instance ends itself
            self._replace(instance)
        finally:
            self.busy.remove(instance)

    def _replace(self, instance: Member) -> None:
        """It ends, and another one comes."""
        self.members.remove(instance)
        self.start()
        self.rebalance()

    def commit(self, instance: Any, added: Mapping[int, PartitionState] | None = None) -> None:
        """It is time to commit."""
        self.kafka.now += _COMMIT_INTERVAL
        self.work(instance)

    def abort(self, instance: Any) -> None:
        """Its next transaction with offsets is aborted."""
        instance.producer.refuses = True
        self.commit(instance)

    def rebalance(self) -> None:
        """Partitions are handed out anew. Members that work just now lose theirs. Not all know all new
        partitions.
        """
        there = [member for member in self.members if member not in self.busy]
        if not there:
            return
        calm, self.calm = self.calm, True
        for member in there:
            if not member.consumer.lost:
                member.consumer.revoke()
        self.calm = calm
        shares: dict[Any, list[int]] = {member.consumer: [] for member in there}
        known = len(self.input) if calm else self.draw.randint(len(self.committed), len(self.input))
        for p in range(known):
            shares[self.draw.choice(there).consumer].append(p)
        away = [member.consumer for member in self.members if member in self.busy]
        self.kafka.rebalance(shares, away=away)

    def meanwhile(self) -> None:
        """An instance has called Kafka. Something may happen before it goes on."""
        if self.calm or not self.busy or len(self.busy) > 2 or self.draw.random() > 0.06:
            return
        act = self.draw.random()
        if act < 0.2:
            self.add()
        elif act < 0.6:
            for _ in range(self.draw.randrange(1, 4)):
                self.work(self.draw.choice(self.instances))
        elif act < 0.75:
            self.rebalance()
        elif act < 0.9:
            self.busy[-1].producer.refuses = True
        else:
            raise Killed

    def step(self) -> None:
        """Something happens to a partitioner, or to the topic."""
        act = self.draw.random()
        if act < 0.1:
            self.add()
        elif act < 0.3:
            self.work(self.draw.choice(self.instances))
        else:
            super().step()

    def restart(self) -> None:
        """All instances die, and a new one takes everything over and tells it."""
        self.instances, self.calm = [], True
        self.start()
        self.rebalance()
        for _ in range(3):
            self.work(self.instances[0])

    def finish(self) -> None:
        """Read to the end with what there is. New partitions are taken in unless all others have ended."""
        self.calm, after = True, 0
        self.rebalance()
        for _ in range(_STEPS):
            for instance in [*self.instances]:
                self.work(instance)
                self.commit(instance)
            over = self.refused or len(self.committed) == len(self.input)
            after += over and all(state.ended for state in self.committed.values())
            if after > 4:
                return
        raise AssertionError("the input is not read to its end")
