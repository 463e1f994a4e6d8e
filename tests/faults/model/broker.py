"""The broker: topics with their logs, and the two coordinators."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.faults.model.groups import Groups
from tests.faults.model.log import Log, Transaction
from tests.faults.model.transactions import Transactions
from tests.faults.processes.world import World


@dataclass
class Topic:
    """A topic. topic_id: another one each time that a topic of this name is made."""

    name: str
    topic_id: str
    config: dict[str, str]
    logs: list[Log] = field(default_factory=list)


class Broker:
    """All that a cluster knows. ending: transactions that have ended and whose offsets are not written
    yet.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._results_before: dict[int, int] = {}
        self.topics: dict[str, Topic] = {}
        self.ending: list[Transaction] = []
        self.transactions = Transactions(self)
        self.groups = Groups(self)
        self._made = 0
        world.on_stall = self.groups.stalled

    def create(self, name: str, partitions: int, config: dict[str, str] | None = None) -> bool:
        """Make a topic. False if there is one of this name."""
        if name in self.topics:
            return False
        self._made += 1
        topic = Topic(name, f"{self._made:022d}", dict(config or {}))
        topic.logs = [Log(name, number) for number in range(partitions)]
        self.topics[name] = topic
        return True

    def note_results(self) -> None:
        """Note what the results topic has, because a micro-batch begins."""
        results = self.topics.get("q.results")
        self._results_before = {log.number: len(log.entries) for log in results.logs} if results else {}

    def forget_last_results(self) -> None:
        """Take away what the last micro-batch has written to the results topic. Only once a run is over."""
        results = self.topics.get("q.results")
        for log in results.logs if results else ():
            del log.entries[self._results_before.get(log.number, 0) :]

    def recreate(self, name: str) -> None:
        """Delete a topic and make it again, with as many partitions. Who knows the old one finds the new
        one by its name.
        """
        old = self.topics.pop(name)
        self.create(name, len(old.logs), old.config)

    def log(self, topic: str, partition: int) -> Log | None:
        """The log of a partition, None if there is no such partition."""
        result = self.topics.get(topic)
        return result.logs[partition] if result is not None and 0 <= partition < len(result.logs) else None

    def note(self, what: str, detail: str) -> None:
        """Write an event of the broker into the history."""
        self.world.history.note(self.world.now, "broker", what, detail)
