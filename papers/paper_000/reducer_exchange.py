"""Cooperating Daltons that talk to a reducer. Its work takes event time, so that the interval can adapt to
the work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from evenflow.numeric.arrays import Int32s
from evenflow.partitioners.dalton.cooperative import DaltonCooperative
from evenflow.partitioners.dalton.reducer import QTableReducer, dsync_bounds
from evenflow.partitioners.exchange import Table
from evenflow.partitioners.rounds import Rounds
from evenflow.simulation import KeyedStream


@dataclass
class ExchangeRun:
    """How the stream was routed, and what the partitioners exchanged meanwhile."""

    workers: Int32s
    """The worker of each tuple, shape (m,)."""
    messages: int = 0
    """Messages to the reducer, also those that were told again because the table was late."""
    told_bytes: int = 0
    """Bytes of those messages and of the tables, without envelopes. A table counts once for each
    partitioner.
    """
    dsync_ms: list[int] = field(default_factory=list)
    """The interval after each step."""
    table_times: list[int] = field(default_factory=list)
    """When all partitioners took over a table, in ms of event time."""


class _Clock:
    """Time of the reducer, in ms of event time. Each round adds `costs` to it."""

    def __init__(self) -> None:
        self.now, self.costs, self._reading = 0.0, 0.0, False

    def __call__(self) -> float:
        """The present time. The reducer reads it twice per round: before its work and after it."""
        # The second reading of a pair: the work on the round lies between the two.
        if self._reading:
            self.now += self.costs
        self._reading = not self._reading
        return self.now


def talk(
    parts: Sequence[DaltonCooperative],
    stream: KeyedStream,
    *,
    slide_ms: int,
    work_ms: Callable[[int], float] = lambda now: 0.0,
    adaptive: bool = False,
    merger: type[QTableReducer] = QTableReducer,
) -> ExchangeRun:
    """Route the stream, and let the partitioners tell and hear. Rounds wait for all of them.

    The reducer works on a round for `work_ms(now)`. The partitioners get the round's table when this work is
    done. merger: how the reducer makes a table.
    """
    clock = _Clock()
    dsync_ms = parts[0].dsync_ms
    reducer = merger(
        workers=parts[0].workers,
        dsync_ms=dsync_ms,
        bounds=dsync_bounds(slide_ms) if adaptive else (dsync_ms, dsync_ms),
        clock=clock,
    )
    rounds = Rounds(reducer, sources=len(parts), patience=inf, clock=lambda: 0.0)
    conversation = ExchangeRun(np.empty(len(stream), np.int32))
    due: deque[tuple[float, Table]] = deque()
    step = dsync_bounds(slide_ms)[0]
    for low in range(0, len(stream), step):
        now = int(stream.times[low])
        _deliver(due, parts, now, conversation)
        # A reducer that has been idle begins now. One that is behind begins when its last round is done.
        clock.now, clock.costs = max(clock.now, now), work_ms(now)
        for message in [message for part in parts if (message := part.tell(now)) is not None]:
            conversation.messages += 1
            conversation.told_bytes += len(message.body)
            table = rounds.take(message)
            if table is not None:
                due.append((clock.now, table))
                conversation.told_bytes += len(parts) * len(table.body)
        _deliver(due, parts, now, conversation)
        _route(parts, stream, conversation.workers, low, min(low + step, len(stream)))
        conversation.dsync_ms.append(parts[0].dsync_ms)
    return conversation


def _deliver(
    due: deque[tuple[float, Table]], parts: Sequence[DaltonCooperative], now: int, conversation: ExchangeRun
) -> None:
    while due and due[0][0] <= now:
        _, table = due.popleft()
        acceptances = [part.hear(table, now) for part in parts]
        # A slide has a table only if every partitioner took it over.
        if all(acceptances):
            conversation.table_times.append(now)


def _route(parts: Sequence[DaltonCooperative], stream: KeyedStream, out: Int32s, low: int, high: int) -> None:
    for number, part in enumerate(parts):
        # The first row from `low` on whose index is `number` modulo the partitioners.
        mine = slice(low + (number - low) % len(parts), high, len(parts))
        out[mine] = part.assign(
            np.ascontiguousarray(stream.keys[mine]), np.ascontiguousarray(stream.times[mine])
        )
