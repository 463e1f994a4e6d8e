"""Cooperative Dalton: several partitioners on one stream learn one policy.

Idea: each is a Dalton with statistics windows of DSYNC ms. At the end of one it tells the reducer what it
has learned and counted (`take_messages`) and is in AWAIT until the common table comes (`receive`), else in
PREPARE. In AWAIT it decides by the table it has and keeps its rewards back. The new table replaces the old
one, the rewards kept back are learned on top of it, and the load of all partitioners (GL, in proportion
when the interval changes) becomes the one that a key's local count is compared with. So a key that is
frequent here only is not split.

    p = create("dalton-cooperative", workers=64, source=1, sources=4)
    workers = p.assign(keys, times)
    for message in p.take_messages(): send(message.to_bytes())
    p.receive(GlobalTable.from_bytes(data))     # whenever one comes
    p.advance_to(now)                           # when no tuple comes: the others wait for its message

Rewards kept back are not a list: any number of steps Q += gamma (R - Q) is one affine map per value, so
they take 16 n bytes per row however long the wait. Rewards of keys that are not in the new table go with
their rows.

Without any reply (`evenflow simulate` without `--exchange`) the scheme goes on as a lonely Dalton that
learns in steps: it stays in AWAIT. When an interval ends, the rewards kept back are learned on its own
table, the load of its own last interval is compared with again, and the next message will ask for a longer
interval. One message is open at a time, and it tells of its last interval. Those that ended in AWAIT are
told of by their values alone.
A row of the common table lasts this interval and the next one, in whose course its successor should come.

What it brings, and costs: keys are on fewer workers than with as many `dalton` that know their own tuples only,
and the load is less even, not more (half uniform, half Zipf 1.5: imbalance 2.7e-3 of two alone, 8.6e-3 of two
that cooperate). A partitioner sees a share of the tuples, and the mean of the tables has learned no more than
each of them. So many partitioners learn slower than one (Zipf 1.5, eight of them: 3.2e-2, one: 3.9e-3). With
`share_steps` (not in the paper) they learn as fast as one (4.0e-3). Telling the loads alone mends nothing.

Parameters: those of `dalton` with exact counts (every message needs the top n), `dsync_ms` interval at
first (one slide). The table may change it. Loads and holders, and so rewards, are of this partitioner's
own tuples. With `share_loads` (the paper does not say) messages tell the window loads as well, and a reward
is of the load that all partitioners together send to the worker: one's own now and the others' at the
latest table. Those others are forgotten when an interval ends in AWAIT. X(k) of a key that came with a
table may lack F_1(k) until the key goes there again. Source 0 of 1, whose tables come at once, equals
`dalton` with the same statistics window while the load is steady.
Cost per tuple: as `dalton`. O(keys of the interval) per message. State: that of `dalton` with exact counts, and
16 n bytes per row for the rewards kept back.
Paper: Zapridou et al., PVLDB 16(3) 2022 (000), Algorithm 2 and section 4.1.

Before a message has come back it does as `dalton` does:

    >>> create("dalton-cooperative", workers=4, source=1, sources=2).assign(keys, times).tolist()
    [3, 3, 1, 3, 0, 3]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from evenflow.arrays import NEVER, Int32s, Int64s, State, UInt64s, Whole
from evenflow.errors import ConfigError
from evenflow.kernels import kernel
from evenflow.keys import candidate
from evenflow.partitioners.dalton.bandit import BanditOptions
from evenflow.partitioners.dalton.dalton import (
    BanditPartitioner,
    Learned,
    begin_window,
    slide_to,
    within_reach,
)
from evenflow.partitioners.dalton.messages import GlobalTable, SyncMessage, not_told
from evenflow.partitioners.dalton.q_table import INITIAL, Told, adopt, purge
from evenflow.partitioners.dalton.reducer import QTableReducer, dsync_bounds
from evenflow.partitioners.dalton.split_keys import SplitKeys
from evenflow.partitioners.exchange import Exchange

_AWAIT, _ROUND, _LATE, _TOTAL, _TOLD = range(5)
"""Of `sync`. The last one is the round in which loads were told, or `_NEVER_TOLD`."""
_ALONE = -1
_NEVER_TOLD = -1


@kernel
def _end_interval(known: Learned, time: Whole) -> None:
    """Begin the statistics window of `time`, and the slide if it is a new one."""
    window = known.window
    clock = window.clock[()]
    if time >= clock["end"]:
        slide_to(known, time)
    begin_window(known, time)
    known.counts.fill[0] = 0
    purge(known.table, known.stats[()]["window"], clock["slide"] - window.ring.shape[0] + 1)


class DaltonCooperativeOptions(BanditOptions):
    """Options of dalton-cooperative. See the module's docstring."""

    dsync_ms: int | None = Field(
        None, ge=1, description="Interval of synchronisation at first, ms; none = one slide."
    )

    share_loads: bool = Field(
        False, description="Rewards see the loads of all partitioners, not only of this one."
    )

    share_steps: bool = Field(
        False,
        description="A step is what one tuple of each partitioner would teach: 1 - (1 - gamma)^sources.",
    )

    @model_validator(mode="after")
    def _interval_is_within_bounds(self) -> Self:
        low, high = dsync_bounds(self.slide_ms)
        if self.dsync_ms is not None and not low <= self.dsync_ms <= high:
            raise ValueError(f"dsync_ms ({self.dsync_ms}) must be within {low} to {high} for this slide")
        return self


_VARIABLE: dict[str, tuple[str, ...]] = {**BanditPartitioner.variable_state, "outbox": ("bytes",)}


class DaltonCooperative(BanditPartitioner):
    """Several Daltons on one stream that learn one policy by exchanging their tables."""

    options_type = DaltonCooperativeOptions
    options: DaltonCooperativeOptions
    variable_state = _VARIABLE
    _outbox: list[SyncMessage]

    @property
    def _statistics_ms(self) -> int:
        return self.options.dsync_ms or self.options.slide_ms

    @property
    def _gamma(self) -> float:
        gamma, sources = self.options.gamma, self.sources if self.options.share_steps else 1
        return 1 - (1 - gamma) ** sources if sources > 1 else gamma

    @property
    def awaiting(self) -> bool:
        """Whether a message is out that no table has answered: rewards are kept back."""
        return bool(self._sync[_AWAIT])

    @property
    def round(self) -> int:
        """Round of the open message, or of the next one."""
        return int(self._sync[_ROUND])

    @property
    def dsync_ms(self) -> int:
        """Interval of synchronisation now."""
        return int(self._stats["length"])

    @property
    def deferred(self) -> int:
        """Values for which rewards are kept back."""
        size = len(self._split)
        return int((self._split.table.kept[:size] != 1).sum())

    def take_messages(self) -> list[SyncMessage]:
        """What is to be sent to the reducer, once."""
        messages = self._outbox
        self._outbox = []
        return messages

    def receive(self, table: GlobalTable) -> bool:
        """Take over the common table. False for one that came twice or is older than what is known."""
        if table.round < self.round:
            return False
        low, high = dsync_bounds(self.options.slide_ms)
        if not low <= table.dsync_ms <= high:
            raise ConfigError(f"the table asks for {table.dsync_ms} ms between messages, not {low} to {high}")
        self._adopt(table)
        length, end = self.dsync_ms, int(self._stats["end"])
        expected = table.total * table.dsync_ms // length
        self._stats["previous"] = self._sync[_TOTAL] = expected
        self._stats["length"] = table.dsync_ms
        if end != NEVER:
            self._stats["end"] = ((end - length) // table.dsync_ms + 1) * table.dsync_ms
        if len(table.loads) == self.workers and table.round == self._sync[_TOLD]:
            self._others = table.loads - self._told
        else:  # of other workers, or without what this partitioner told
            self._others[:] = 0
        self._sync[_ROUND] = table.round + 1
        self._sync[_AWAIT] = 0
        self._outbox = []
        return True

    def advance_to(self, time: int) -> None:
        """Time has come this far without a tuple: messages that are due are made."""
        time = int(within_reach(time))
        if self._stats["end"] == NEVER or time >= self._stats["end"]:
            self._boundary(time)

    @classmethod
    def exchange(cls, parts: Sequence[Self], slide_ms: int) -> Exchange:
        """At the end of every interval all messages go to one reducer, and its table to all, as bytes.

        Nobody waits and merging takes no event time, so the interval has nothing to adapt to and stays.
        """
        first = parts[0]
        reducer = QTableReducer(
            members=len(parts),
            workers=first.workers,
            dsync_ms=first.dsync_ms,
            bounds=dsync_bounds(first.options.slide_ms),
            clock=lambda: 0.0,
            adaptive=False,
        )

        def tell(now: int) -> None:
            for part in parts:
                part.advance_to(now)
            messages = [message.to_bytes() for part in parts for message in part.take_messages()]
            tables = [reducer.receive(SyncMessage.from_bytes(message)) for message in messages]
            for data in [table.to_bytes() for table in tables if table is not None]:
                for part in parts:
                    part.receive(GlobalTable.from_bytes(data))

        return Exchange(first.dsync_ms, tell)

    def _start(self) -> None:
        self._sync = np.array([0, 0, 0, _ALONE, _NEVER_TOLD], np.int64)
        super()._start()
        self._outbox = []

    def _shape(self) -> None:
        super()._shape()
        self._told = np.zeros(self.workers, np.int64)
        self._sync[_TOLD] = _NEVER_TOLD

    def _new_split(self) -> SplitKeys:
        return SplitKeys(self.workers, cap=self.options.first_cap, deferring=True)

    def _assign(self, keys: UInt64s, times: Int64s, out: Int32s) -> None:
        times, row = within_reach(times), 0
        while (row := self._route(keys, times, row, out, manual=True, deferring=self.awaiting)) < len(keys):
            if times[row] >= self._stats["end"]:
                self._boundary(int(times[row]))
            else:
                self._make_room()

    def _boundary(self, time: int) -> None:
        """An interval ends. The message is made before its statistics are forgotten."""
        begun = self._stats["end"] != NEVER
        if begun and self.awaiting:
            self._sync[_LATE] = 1
            self._split.apply_deferred()
            self._others[:] = 0
        elif begun:
            self._outbox = [self._message()]
            self._sync[[_AWAIT, _LATE]] = 1, 0
        _end_interval(self._learned(), time)
        if begun and self._sync[_TOTAL] != _ALONE and not self._sync[_LATE]:
            self._stats["previous"] = self._sync[_TOTAL]

    def _message(self) -> SyncMessage:
        keys, counts, _ = self._counts.entries(int(self._stats["window"]))
        rows = self._split.hot_rows()
        row_keys = self._split.table.key[rows]
        told = np.isin(keys, row_keys, assume_unique=True)
        told[_top(counts, self.workers)] = True
        if self.options.share_loads:
            self._told = self._loads.loads.copy()
            self._sync[_TOLD] = self.round
        return SyncMessage(
            member=self.source,
            round=self.round,
            total=int(self._stats["seen"]),
            late=bool(self._sync[_LATE]),
            keys=keys[told],
            frequencies=counts[told],
            row_keys=row_keys,
            values=self._split.table.q[rows],
            loads=self._told if self.options.share_loads else not_told(),
        )

    def _adopt(self, table: GlobalTable) -> None:
        values = table.values
        if values.shape[1] != self.workers:  # from before a rescale
            values = np.full((len(table.keys), self.workers), INITIAL)
        while len(self._split.table.key) < len(self._split) + len(table.keys) + 1:
            self._split.grow()
        window = int(self._stats["window"])
        keys, _, last = self._counts.entries(window)
        slides = np.full(len(table.keys), NEVER, np.int64)
        counted = np.isin(table.keys, keys)
        slides[counted] = last[np.searchsorted(keys, table.keys[counted])]
        now = int(self._loads.clock["slide"])
        oldest = now - len(self._loads.ring) + 1 if now != NEVER else NEVER + 1
        homes = candidate(table.keys, 1, self.workers, self.seed)
        adopt(self._split.table, Told(table.keys, values, homes, slides), oldest, window)

    def _fixed_bytes(self) -> int:
        return super()._fixed_bytes() + self._told.nbytes

    def _most_rows(self, keys: int) -> int:
        """As for `dalton`, and n keys of the last table, and room for n of the next one.

        A table makes keys cold at once, so intervals count one by one and not in pairs. They are as short as
        `dsync_bounds` allows, and up to ten halvings may cut one short each. Not counted: a table of more than
        n keys, which may come from before a rescale to fewer workers.
        """
        n, (shortest, _) = self.workers, dsync_bounds(self.options.slide_ms)
        intervals = -(-self.options.window_ms // shortest) + 10
        return min(4 * n * (intervals + 2), 2 * keys + n) + n

    def _state(self) -> State:
        sent = b"".join(message.to_bytes() for message in self._outbox)
        mine = {"sync": self._sync, "others": self._others, "told": self._told}
        return {**super()._state(), **mine, "outbox": np.frombuffer(sent, np.uint8)}

    def _load_state(self, state: State) -> None:
        super()._load_state(state)
        self._sync, self._others, self._told = state["sync"], state["others"], state["told"]
        sent = state["outbox"].tobytes()
        self._outbox = [SyncMessage.from_bytes(sent)] if sent else []


def _top(counts: Int64s, wanted: int) -> Int64s:
    """Positions of the largest counts, the first of equal ones."""
    if len(counts) <= wanted:
        return np.arange(len(counts))
    least = np.partition(counts, len(counts) - wanted)[len(counts) - wanted]
    near = np.flatnonzero(counts >= least)
    return near[np.argsort(-counts[near], kind="stable")][:wanted]
