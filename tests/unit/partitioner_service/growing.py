"""A run whose input topic gets partitions at any moment."""

from __future__ import annotations

from evenflow.windows import NO_MARK
from partitioner_service.added import first_states, slowest_of
from partitioner_service.session import Stint, totals
from tests.unit.partitioner_service.lossy import INPUTS, SETTINGS, Instance, Run

MOST = INPUTS + 4


class GrowingRun(Run):
    """As `Run`. Partitions that the query has not taken in are not expected in any result.

    taken_at: mark (ms) that each partition was taken in with.
    """

    def __post_init__(self) -> None:
        self.taken_at: dict[int, int] = {}
        self.owners: dict[int, Instance] = {}
        super().__post_init__()

    def add(self) -> None:
        """The topic gets one partition or two. They may hold records before anybody knows of them."""
        for _ in range(self.draw.randrange(1, 3)):
            if len(self.input) < MOST:
                self.input.append(self._records())

    def rebalance(self) -> None:
        """Partitions that are not taken in are assigned, too, and nobody reads them yet."""
        super().rebalance()
        waiting = range(len(self.committed), len(self.input))
        self.owners = {p: self.draw.choice(self.instances) for p in waiting}

    def take_in(self, instance: Instance, *, dies: bool = False) -> None:
        """As `Loop`: take in what the topic has besides, if this instance may. dies: before its transaction commits."""
        new = range(len(self.committed), len(self.input))
        self._begin_stint(instance)
        self.commit(instance)
        slowest = slowest_of(SETTINGS.query, self.committed)
        if not new or slowest not in instance.states or self.committed[slowest].ended:
            return
        states = first_states(SETTINGS.query, self.committed[slowest], dict.fromkeys(new, 0))
        instance.open += instance.router.take_in({**instance.states, **states}, inputs=len(self.input))
        for other in self.instances:
            # Others go on meanwhile, and believe to be the one, too.
            if other is not instance and self.draw.random() < 0.3:
                self.work(other)
                self.commit(other)
                self.take_in(other)
        if dies:
            self.abort(instance)
            return
        assert not states.keys() & self.committed.keys(), "two instances have taken the same partition in"
        self.commit(instance, states)
        for p, state in states.items():
            self.taken_at[p] = NO_MARK if state.idle_mark is None else state.idle_mark
            self._expect(p)

    def _expect(self, p: int) -> None:
        for key, time in self.input[p]:
            if (time // 1000 + 1) * 1000 > self.taken_at[p]:
                for end in (time // 1000 + 1, time // 1000 + 2):
                    self.expected[end * 1000 - 2000, key.encode()] += 1

    def read_more(self, instance: Instance) -> None:
        """As `Source.assign_again`: begin with partitions that were assigned before they were taken in."""
        mine = {p for p, owner in self.owners.items() if owner is instance and p in self.committed}
        if not mine:
            return
        self.commit(instance)
        self.abort(instance)
        for p in mine:
            instance.states[p] = self.committed[p]
            # Nobody has been told to read it before.
            del self.owners[p]
        instance.inputs = len(self.committed)
        self.totals[instance.session.number] = totals(self.committed)
        instance.session.stint = Stint.DUE

    def step(self) -> None:
        """Something happens to a partitioner, or to the topic."""
        act = self.draw.random()
        instance = self.draw.choice(self.instances)
        if act < 0.1:
            self.add()
        elif act < 0.3:
            self.take_in(instance, dies=self.draw.random() < 0.3)
        elif act < 0.4:
            self.read_more(instance)
        else:
            super().step()

    def finish(self) -> None:
        """Take in what can be, and read the input to its end with what there is."""
        for instance in self.instances:
            self.take_in(instance)
        self.rebalance()
        super().finish()
