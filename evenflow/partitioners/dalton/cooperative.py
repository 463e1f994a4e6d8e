"""Cooperative Dalton: several partitioners on one stream learn one policy.

Idea: each instance is a Dalton with statistics windows of DSYNC ms. At the end of such an interval it tells
the reducer what it has learned and counted (`tell`). It is then in AWAIT until the common table comes
(`hear`), and otherwise in PREPARE. In AWAIT it decides by the table it has, and keeps its rewards back. The
new table replaces the old one, and the rewards kept back are learned on top of it. From then on a key's local
count is compared with the load of all partitioners (GL, in proportion if the interval has changed). So a key
that is frequent at one partitioner only is not split.

    p = create("dalton-cooperative", workers=64, source=1, sources=4)
    workers = p.assign(keys, times)
    message = p.tell(now)                       # from `p.tells_at` on, without tuples too: others wait for it
    p.hear(table, now)                          # whenever a table comes

Rewards are not kept back as a list. Any number of steps Q += gamma (R - Q) is one affine map per value, so
the rewards take 16 n bytes per row however long the wait is. Rewards of keys that are not in the new table
are dropped with their rows.

Without any reply (`evenflow simulate` without `--exchange`) an instance stays in AWAIT, and goes on as a
single Dalton that learns in steps. When an interval ends, the rewards kept back are learned on its own table,
counts are compared with the load of its own last interval again, and the next message will ask for a longer
interval. One message is open at a time, and it tells of the last interval before AWAIT. It is sent again
unchanged at the end of each interval in AWAIT, because it may have been lost. Intervals that end in AWAIT are
told of by the values alone. With `keep_rewards` an instance stays in AWAIT, as Algorithm 2 has it: rewards
are kept back until a table comes, however late it is, and counts are compared with GL all the while. It
learns nothing if no table ever comes.
A row of the common table lasts for this interval and the next. In the course of the next one a new table
should come.

The common row of a key is the mean of the partitioners' rows, weighted by how many tuples of the key each of
them saw. The weights of a key sum to 1. The paper's formula divides by all tuples and by the number of
partitioners instead, which squeezes every value towards 0 and so lets untried workers win (`reducer`).

What it brings, and costs: all know which keys are split, so a worker could finish the windows of all other
keys by itself. Keys are on fewer workers than with as many `dalton` that know only their own tuples (figure
13 in docs/reproducing.md, half uniform, half Zipf 1.5: KSR 1.0174 instead of 1.0272). The load is less even
(there: imbalance 0.0112 of two that cooperate, 6.5e-3 of two alone), because a key with less than 1/n of all
tuples stays whole. Two without an exchange keep a key whole below 1/n of the tuples that they see themselves.
A partitioner sees only a share of the tuples, and the mean of the tables has learned no more than each of
them. So many partitioners on one stream learn slower than one (figure 15: 0.0137 with eight, 0.012 with one).
With `share_steps` (not in the paper) they learn as fast as one (0.012). Sharing the loads alone does not help
(0.0159).

Parameters: those of `dalton` with exact counts (every message needs the top n). `dsync_ms` interval at first
(one slide). A table may change it. Loads and holders, and so rewards, are of this partitioner's own tuples.
With `share_loads` (the paper does not say) messages also tell the loads of the window. A reward then depends
on the load that all partitioners together send to the worker: this one's now, and the others' as of the
latest table. The others' loads are forgotten when an interval ends in AWAIT. X(k) of a key that came with a
table may lack F_1(k) until the key goes there again. Source 0 of 1, whose tables come at once, equals
`dalton` with the same statistics window while the load is steady.
Cost per tuple: as `dalton`. O(keys of the interval) per message. State: that of `dalton` with exact counts,
and 16 n bytes per row for the rewards kept back, and the open message.
Paper: Zapridou et al., PVLDB 16(3) 2022 (000), Algorithm 2 and section 4.1.

Before a table has come back, it routes as `dalton` does:

    >>> create("dalton-cooperative", workers=4, source=1, sources=2).assign(keys, times).tolist()
    [3, 3, 1, 3, 0, 3]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from evenflow.errors import IncompatibleStateError
from evenflow.keys import candidate
from evenflow.numeric.arrays import NEVER, Int64s, Rows, State, record
from evenflow.partitioners.base import Block
from evenflow.partitioners.dalton.bandit import BanditOptions
from evenflow.partitioners.dalton.dalton import BanditPartitioner, move_to, within_reach
from evenflow.partitioners.dalton.messages import GlobalTable, SyncMessage, not_told
from evenflow.partitioners.dalton.q_table import INITIAL, CommonRows, adopt
from evenflow.partitioners.dalton.reducer import QTableReducer, dsync_bounds
from evenflow.partitioners.dalton.split_keys import SplitKeyTable
from evenflow.partitioners.exchange import Merger, Message, Table

SYNC = np.dtype([(name, np.int64) for name in ("awaiting", "due", "round", "late", "total", "told")])
"""Where a partitioner stands in the rounds of messages and tables.

awaiting: whether a message is open, that is, made and not answered by a table.
due: whether `tell` gives the open message when it is asked next.
round: of the open message, or of the next one.
late: length of an interval that has ended while the last message was open, ms. 0 if none has.
total: GL, tuples of all partitioners in an interval, or `_ALONE`.
told: the round in which loads were told, or `_NEVER_TOLD`.
"""
_ALONE = -1
"""No table has come yet."""
_NEVER_TOLD = -1
_MOST_LOAD = 1 << 61
"""Loads and totals are cut to this, so that sums stay within int64."""


class DaltonCooperativeOptions(BanditOptions):
    """Options of dalton-cooperative. See the module's docstring."""

    dsync_ms: int | None = Field(
        None, ge=1, description="Interval of synchronisation at first, ms. None = one slide."
    )

    share_loads: bool = Field(
        False, description="Rewards see the loads of all partitioners, not only of this one."
    )

    share_steps: bool = Field(
        False,
        description="A step learns as much as one tuple of each partitioner would: 1 - (1 - gamma)^sources.",
    )

    keep_rewards: bool = Field(
        False,
        description=(
            "Rewards are kept back until a table comes, however many intervals that takes. Without a table,"
            " as with one instance, nothing is learned."
        ),
    )

    @model_validator(mode="after")
    def _interval_is_within_bounds(self) -> Self:
        low, high = dsync_bounds(self.slide_ms)
        if self.dsync_ms is not None and not low <= self.dsync_ms <= high:
            raise ValueError(f"dsync_ms ({self.dsync_ms}) must be within {low} to {high} for this slide")
        return self


_VARIABLE: dict[str, tuple[str, ...]] = {**BanditPartitioner.variable_state, "message": ("bytes",)}
_MESSAGE_BYTES = 4096
"""Bytes of a message besides its arrays, at most."""


class DaltonCooperative(BanditPartitioner):
    """Several Daltons on one stream that learn one policy by exchanging their tables."""

    options_type = DaltonCooperativeOptions
    options: DaltonCooperativeOptions
    tells = True
    variable_state = _VARIABLE
    _sync: Rows
    """One of SYNC."""
    _body: bytes
    """The open message. Empty in PREPARE."""

    @property
    def _statistics_ms(self) -> int:
        return self.options.dsync_ms or self.options.slide_ms

    @property
    def _gamma(self) -> float:
        gamma, sources = self.options.gamma, self.sources if self.options.share_steps else 1
        return 1 - (1 - gamma) ** sources if sources > 1 else gamma

    @property
    def awaiting(self) -> bool:
        """Whether a message is open that no table has answered. Rewards are then kept back (AWAIT)."""
        return bool(self._sync["awaiting"])

    @property
    def round(self) -> int:
        """Round of the open message, or of the next one."""
        return int(self._sync["round"])

    @property
    def dsync_ms(self) -> int:
        """Interval of synchronisation now, ms."""
        return int(self._stats["length"])

    @property
    def tells_at(self) -> int | None:
        """The end of the interval. None if the first one has not begun, or if a message is there to be
        told.
        """
        end = int(self._stats["end"])
        return None if end == NEVER or self._sync["due"] else end

    def tell(self, now: int) -> Message | None:
        """What was learned and counted in the interval that has ended by `now`, or the open message again."""
        time = int(within_reach(now))
        if self._stats["end"] == NEVER or time >= self._stats["end"]:
            self._boundary(time)
        if not self._sync["due"]:
            return None
        self._sync["due"] = 0
        return Message(self.source, self.round, self._body)

    def hear(self, table: Table, now: int) -> bool:
        """Take over the common table.

        A table that has come after the end of the interval is late, even if nobody has told the end yet.
        """
        table.check(self.sources)
        common = GlobalTable.from_bytes(table.body)
        low, high = dsync_bounds(self.options.slide_ms)
        if not low <= common.dsync_ms <= high:
            raise IncompatibleStateError(
                f"the table asks for {common.dsync_ms} ms between messages, not {low} to {high}"
            )
        if table.round < self.round:
            return False
        length, end = self.dsync_ms, int(self._stats["end"])
        if self.awaiting and within_reach(now) > end:
            self._sync["late"] = length
        self._adopt(common)
        expected = min(common.total * common.dsync_ms // length, _MOST_LOAD)
        # Counts of the present interval are compared with GL at once, and those of the next one too
        # (`_boundary`).
        self._stats["previous"] = self._sync["total"] = expected
        self._stats["length"] = common.dsync_ms
        if end != NEVER:
            # The interval that has begun at end - length ends on the grid of the new length.
            self._stats["end"] = ((end - length) // common.dsync_ms + 1) * common.dsync_ms
        self._others = self._loads_of_others(table, common)
        self._sync["round"] = table.round + 1
        self._sync["awaiting"] = self._sync["due"] = 0
        self._body = b""
        return True

    def merger(self, *, clock: Callable[[], float]) -> Merger:
        """The reducer of tables. It begins with the interval of this partitioner."""
        bounds = dsync_bounds(self.options.slide_ms)
        return QTableReducer(workers=self.workers, dsync_ms=self.dsync_ms, bounds=bounds, clock=clock)

    def _loads_of_others(self, table: Table, common: GlobalTable) -> Int64s:
        """What the others sent to each worker, as the table has it.
        Zeros if it cannot be told apart from one's own.
        """
        separable = self.source not in table.sources or table.round == self._sync["told"]
        if len(common.loads) != self.workers or not separable:
            return np.zeros(self.workers, np.int64)
        # The common loads include what this partitioner reported, which would otherwise count twice.
        own = self._reported_loads if self.source in table.sources else 0
        return np.clip(common.loads - own, 0, _MOST_LOAD // self.workers)

    def _start(self) -> None:
        self._sync = record(SYNC, total=_ALONE, told=_NEVER_TOLD)
        super()._start()
        self._body = b""

    def _shape(self) -> None:
        super()._shape()
        self._reported_loads = np.zeros(self.workers, np.int64)
        self._sync["told"] = _NEVER_TOLD

    def _new_split(self) -> SplitKeyTable:
        return SplitKeyTable(self.workers, cap=self.options.first_cap, deferring=True)

    def _assign(self, block: Block) -> None:
        block, row = block._replace(times=within_reach(block.times)), 0
        while row < len(block.keys):
            window, awaiting = int(self._stats["window"]), self.awaiting
            manual = not awaiting or self.options.keep_rewards
            row = self._route(block, row, manual=manual, deferring=awaiting)
            if awaiting and window != self._stats["window"]:
                self._sync["late"], self._sync["due"] = self.dsync_ms, 1
            if row < len(block.keys) and block.times[row] >= self._stats["end"]:
                self._boundary(int(block.times[row]))
            elif row < len(block.keys):
                self._make_room()

    def _boundary(self, time: int) -> None:
        """End the interval before `time`, and begin that of `time`."""
        begun = self._stats["end"] != NEVER
        late, keeps = begun and self.awaiting, self.options.keep_rewards
        if late:
            self._sync["late"], self._sync["due"] = self.dsync_ms, 1
        elif begun:
            # Before `move_to`, which forgets the statistics that the message tells.
            self._body = self._message().to_bytes()
            self._sync["awaiting"], self._sync["due"], self._sync["late"] = 1, 1, 0
        # A rule that is not deferring learns nothing of what was kept back.
        move_to(self._learned(), self._rule(manual=not late, deferring=late and not keeps), time)
        if late and keeps:
            self._others[:] = 0
        if begun and (not late or keeps) and self._sync["total"] != _ALONE:
            self._stats["previous"] = self._sync["total"]

    def _message(self) -> SyncMessage:
        counted = self._counts.entries(int(self._stats["window"]))
        rows = self._split.hot_rows()
        row_keys = self._split.table.key[rows]
        selection = np.isin(counted.keys, row_keys, assume_unique=True)
        selection[_top(counted.counts, self.workers)] = True
        if self.options.share_loads:
            self._reported_loads = self._loads.loads.copy()
            self._sync["told"] = self.round
        return SyncMessage(
            total=int(self._stats["seen"]),
            late=int(self._sync["late"]),
            keys=counted.keys[selection],
            frequencies=counted.counts[selection],
            row_keys=row_keys,
            values=self._split.table.q[rows],
            loads=self._reported_loads if self.options.share_loads else not_told(),
        )

    def _adopt(self, table: GlobalTable) -> None:
        values = table.values
        if (
            values.shape[1] != self.workers
        ):  # the table is from before a rescale: its values are of other workers
            values = np.full((len(table.keys), self.workers), INITIAL)
        # A kernel cannot grow the table, so there must be room for all keys, and for one more so that it is
        # not full.
        while len(self._split.table.key) < len(self._split) + len(table.keys) + 1:
            self._split.grow()
        window = int(self._stats["window"])
        entries = self._counts.entries(window)
        # When home last had each key: known of keys that this partitioner counted in the present interval.
        slides = np.full(len(table.keys), NEVER, np.int64)
        counted = np.isin(table.keys, entries.keys)
        slides[counted] = entries.last[np.searchsorted(entries.keys, table.keys[counted])]
        now = int(self._loads.clock["slide"])
        oldest = now - len(self._loads.ring) + 1 if now != NEVER else NEVER + 1
        homes = candidate(table.keys, 1, self.workers, self.seed)
        adopt(self._split.table, CommonRows(table.keys, values, homes, slides), oldest, window)

    def _fixed_bytes(self) -> int:
        return super()._fixed_bytes() + self._reported_loads.nbytes

    def _state_bytes(self) -> int:
        return super()._state_bytes() + len(self._body)

    def _state_bound(self, keys: int) -> int:
        """With the open message: at most n keys, those with a row, and the rows."""
        n = self.workers
        rows = min(4 * n, 2 * keys + n)
        return super()._state_bound(keys) + _MESSAGE_BYTES + 16 * (n + rows) + 8 * (n + 1) * rows + 8 * n

    def _most_rows(self, keys: int) -> int:
        """As for `dalton`, with n keys of the last table and room for n keys of the next one.

        A table makes keys cold at once, so intervals count one by one and not in pairs. An interval may be as
        short as `dsync_bounds` allows, and each of up to ten halvings may cut an interval short. Not counted
        is a table of more than n keys, which may come from before a rescale to fewer workers.
        """
        n, (shortest, _) = self.workers, dsync_bounds(self.options.slide_ms)
        intervals = -(-self.options.window_ms // shortest) + 10
        return min(4 * n * (intervals + 2), 2 * keys + n) + n

    def _state(self) -> State:
        mine = {"sync": self._sync, "others": self._others, "told": self._reported_loads}
        return {**super()._state(), **mine, "message": np.frombuffer(self._body, np.uint8)}

    def _load_state(self, state: State) -> None:
        super()._load_state(state)
        self._sync, self._others, self._reported_loads = state["sync"], state["others"], state["told"]
        self._body = state["message"].tobytes()


def _top(counts: Int64s, size: int) -> Int64s:
    """Positions of the `size` largest counts. Among equal counts the first ones."""
    if len(counts) <= size:
        return np.arange(len(counts))
    least = np.partition(counts, len(counts) - size)[len(counts) - size]
    # More than `size` may tie at the least count. The stable sort keeps the first of them.
    near = np.flatnonzero(counts >= least)
    return near[np.argsort(-counts[near], kind="stable")][:size]
