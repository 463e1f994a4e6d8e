"""Partitioners and their reducer in virtual time: messages and tables take as long as a test says."""

from collections.abc import Callable
from itertools import count

import numpy as np

from evenflow.partitioners import create
from evenflow.partitioners.dalton.cooperative import DaltonCooperative
from evenflow.partitioners.dalton.messages import GlobalTable, SyncMessage
from evenflow.partitioners.dalton.reducer import QTableReducer, dsync_bounds
from tests.unit.partitioners.streams import Stream


def member(source: int, sources: int, workers: int, **options: object) -> DaltonCooperative:
    settings = {"window_ms": 1000, "slide_ms": 100, **options}
    made = create("dalton-cooperative", workers=workers, source=source, sources=sources, **settings)
    assert isinstance(made, DaltonCooperative)
    return made


def reducer(members: int, workers: int, *, adaptive: bool = False, **settings: object) -> QTableReducer:
    ticks = count()
    given = {"dsync_ms": 100, "bounds": dsync_bounds(100), "clock": lambda: float(next(ticks)), **settings}
    return QTableReducer(members=members, workers=workers, adaptive=adaptive, **given)  # type: ignore[arg-type]


class Cooperation:
    """Tuple t goes to partitioner t mod P; every message and table travels for `delay(time)` ms."""

    def __init__(
        self,
        members: list[DaltonCooperative],
        reducer: QTableReducer,
        *,
        delay: Callable[[int], int] = lambda time: 0,
        step: int = 10,
    ) -> None:
        self.members, self.reducer, self.delay, self.step = members, reducer, delay, step
        self.messages: list[tuple[int, SyncMessage]] = []
        self.tables: list[tuple[int, GlobalTable]] = []
        self.sent: list[SyncMessage] = []
        self.received: list[GlobalTable] = []
        self.intervals: list[int] = []
        self.now = 0

    def run(self, stream: Stream) -> np.ndarray:
        """The worker of each tuple; the stream's times must not go backwards."""
        keys, times = stream
        out = np.empty(len(keys), np.int32)
        owner = np.arange(len(keys)) % len(self.members)
        first = 0
        for now in range(int(times[0]) // self.step * self.step, int(times[-1]) + 1, self.step):
            self.exchange(now)
            last = int(np.searchsorted(times, now + self.step))
            for j, p in enumerate(self.members):
                mine = first + np.flatnonzero(owner[first:last] == j)
                out[mine] = p.assign(keys[mine], times[mine])
            first = last
        return out

    def exchange(self, now: int) -> None:
        """Everything that is due by now; with no delay, all in this moment."""
        self.now = now
        self.deliver(now)
        for p in self.members:
            p.advance_to(now)
        self.deliver(now)

    def deliver(self, now: int) -> None:
        while True:
            for p in self.members:
                for message in p.take_messages():
                    copy = SyncMessage.from_bytes(message.to_bytes())
                    self.sent.append(copy)
                    self.messages.append((now + self.delay(now), copy))
            due = [message for at, message in self.messages if at <= now]
            self.messages = [one for one in self.messages if one[0] > now]
            for message in due:
                table = self.reducer.receive(message)
                if table is not None:
                    self.intervals.append(table.dsync_ms)
                    self.tables.append((now + self.delay(now), GlobalTable.from_bytes(table.to_bytes())))
            arrived = [table for at, table in self.tables if at <= now]
            self.tables = [one for one in self.tables if one[0] > now]
            for table in arrived:
                self.received.append(table)
                for p in self.members:
                    p.receive(table)
            if not due and not arrived:
                return


def kept_back(p: DaltonCooperative) -> int:
    """How many values have rewards that are kept back."""
    size = len(p._split)
    # `kept` is 1 where the affine map Q -> kept*Q + gain is still the identity.
    return int((p._split.table.kept[:size] != 1).sum())
