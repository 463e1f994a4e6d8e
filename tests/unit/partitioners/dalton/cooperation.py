"""Partitioners and their reducer in virtual time: messages and tables take as long as a test says."""

from collections.abc import Callable
from itertools import count
from math import inf

import numpy as np

from evenflow.partitioners import create
from evenflow.partitioners.dalton.cooperative import DaltonCooperative
from evenflow.partitioners.dalton.messages import GlobalTable, SyncMessage
from evenflow.partitioners.dalton.reducer import QTableReducer, dsync_bounds
from evenflow.partitioners.exchange import Message, Table
from evenflow.partitioners.rounds import Rounds
from tests.unit.partitioners.streams import Stream


def member(source: int, sources: int, workers: int, **options: object) -> DaltonCooperative:
    settings = {"window_ms": 1000, "slide_ms": 100, **options}
    made = create("dalton-cooperative", workers=workers, source=source, sources=sources, **settings)
    assert isinstance(made, DaltonCooperative)
    return made


def reducer(
    workers: int, *, adaptive: bool = False, dsync_ms: int = 100, **settings: object
) -> QTableReducer:
    """Its bounds leave no other interval, unless it is adaptive."""
    ticks = count()
    bounds = dsync_bounds(100) if adaptive else (dsync_ms, dsync_ms)
    given = {"bounds": bounds, "clock": lambda: float(next(ticks)), **settings}
    return QTableReducer(workers=workers, dsync_ms=dsync_ms, **given)  # type: ignore[arg-type]


def told(message: Message | None) -> SyncMessage:
    assert message is not None
    return SyncMessage.from_bytes(message.body)


def table_of(number: int, sources: tuple[int, ...] = (0,), **fields: object) -> Table:
    """A table as the reducer would send it. Without keys and values it has none."""
    given = {"total": 100, "dsync_ms": 100, "keys": np.empty(0, np.uint64), **fields}
    return Table(number, sources, GlobalTable(**given).to_bytes())  # type: ignore[arg-type]


class Cooperation:
    """Tuple t goes to partitioner t mod P; every message and table travels for `delay(time)` ms. Rounds
    wait for all.
    """

    def __init__(
        self,
        members: list[DaltonCooperative],
        reducer: QTableReducer,
        *,
        delay: Callable[[int], int] = lambda time: 0,
        step: int = 10,
    ) -> None:
        self.members, self.delay, self.step = members, delay, step
        self.rounds = Rounds(reducer, sources=len(members), patience=inf, clock=lambda: 0.0)
        self.messages: list[tuple[int, Message]] = []
        self.tables: list[tuple[int, Table]] = []
        self.sent: list[Message] = []
        self.received: list[Table] = []
        self.now = 0

    @property
    def intervals(self) -> list[int]:
        return [GlobalTable.from_bytes(table.body).dsync_ms for table in self.received]

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
            message = p.tell(now)
            if message is not None:
                self.sent.append(message)
                self.messages.append((now + self.delay(now), message))
        self.deliver(now)

    def deliver(self, now: int) -> None:
        due = [message for at, message in self.messages if at <= now]
        self.messages = [one for one in self.messages if one[0] > now]
        for message in due:
            table = self.rounds.take(message)
            if table is not None:
                self.tables.append((now + self.delay(now), table))
        arrived = [table for at, table in self.tables if at <= now]
        self.tables = [one for one in self.tables if one[0] > now]
        for table in arrived:
            self.received.append(table)
            for p in self.members:
                p.hear(table, now)


def kept_back(p: DaltonCooperative) -> int:
    """How many values have rewards that are kept back."""
    size = len(p._split)
    # `kept` is 1 where the affine map Q -> kept*Q + gain is still the identity.
    return int((p._split.table.retention[:size] != 1).sum())
