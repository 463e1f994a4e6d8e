"""The reducer of cooperating Daltons: many local Q-tables become one.

Idea: when the messages of all partitioners for a round have come, GL is the sum of their tuples, and the hot keys
are those with GL/n tuples or more (at most n keys). A hot key's values are the mean over the partitioners that have
a row for the key, weighted by how many tuples of the key each of them saw:

    Q(k, i) = sum_j f_j(k) Q_j(k, i) / sum_j f_j(k)

The paper divides by GL and P instead. That squeezes every value towards 0, and so lets untried workers win. With
weights that sum to 1, the result lies between the partitioners' own values. A partitioner without a row for the key
does not count. A hot key that no partitioner has learned yet starts at -2 everywhere. In round 0 such a key is left
out: as in a single Dalton, the first interval only gives the load to compare with.

The interval of synchronisation (DSYNC) doubles when a partitioner had to wait for longer than an interval. It halves
when the reducer was idle for longer than it worked. Both stay within bounds. Halving and doubling keep the ends of
intervals aligned. Time comes from `clock`, in any unit, so that tests are deterministic.

Messages may come in any order, repeated or late. The reducer keeps the latest message of each partitioner, and answers
a message of an earlier round with the latest table. The sums run in the order of partitioners, so the table does not
depend on the order of messages. A key just below the top n of every partitioner but one may be under-counted. A key
with GL/n tuples is among the top n of at least one partitioner.

Cost: O(P n^2) per round. State: P messages.
Paper: Zapridou et al., PVLDB 16(3) 2022 (000), section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenflow.arrays import Float64s, Int64s, UInt64s
from evenflow.errors import ConfigError
from evenflow.partitioners.dalton.messages import GlobalTable, SyncMessage, not_told
from evenflow.partitioners.dalton.q_table import INITIAL


def dsync_bounds(slide_ms: int) -> tuple[int, int]:
    """Shortest and longest interval of synchronisation, ms: an eighth of a slide, and 64 slides."""
    return max(1, slide_ms // 8), 64 * slide_ms


class QTableReducer:
    """Takes the messages of `members` partitioners and makes one table per round. Pure but for `clock`.

    `dsync_ms`: interval at first. `bounds`: least and greatest interval, ms. `adaptive`: whether the interval may
    change. ConfigError for numbers out of range.
    """

    def __init__(
        self,
        *,
        members: int,
        workers: int,
        dsync_ms: int,
        bounds: tuple[int, int],
        clock: Callable[[], float],
        adaptive: bool = True,
    ) -> None:
        if members < 1 or workers < 1:
            raise ConfigError(f"a reducer needs partitioners and workers, not {members} and {workers}")
        if not 1 <= bounds[0] <= dsync_ms <= bounds[1]:
            raise ConfigError(f"dsync_ms ({dsync_ms}) must be within {bounds[0]} to {bounds[1]}, at least 1")
        self.members, self.workers = members, workers
        self.dsync_ms, self.bounds, self.adaptive = dsync_ms, bounds, adaptive
        self.table: GlobalTable | None = None
        """The latest table."""
        self._clock = clock
        self._round = 0
        self._pending: dict[int, SyncMessage] = {}
        self._busy = 0.0
        self._since: float | None = None  # end of the last round

    def receive(self, message: SyncMessage) -> GlobalTable | None:
        """The table to broadcast, if this was the last message of its round or came too late. Otherwise None.

        ConfigError for a partitioner that is not among the members.
        """
        began = self._clock()
        if not 0 <= message.member < self.members:
            raise ConfigError(f"message of partitioner {message.member}, but there are {self.members}")
        if message.round < self._round:
            return self.table
        if message.round > self._round:  # this reducer has been restarted, and the partitioners have not
            self._round = message.round
            self._pending.clear()
        self._pending[message.member] = message
        return self._finish(began)

    def rescale(self, *, members: int, workers: int) -> GlobalTable | None:
        """Set the numbers of partitioners and workers from now on. Returns the table if that completes a round."""
        began = self._clock()
        self.members, self.workers = members, workers
        self._pending = {j: message for j, message in self._pending.items() if j < members}
        return self._finish(began)

    def _finish(self, began: float) -> GlobalTable | None:
        """The table if all messages are there. `began`: when the work of this call began, by `clock`."""
        if len(self._pending) < self.members:
            self._busy += self._clock() - began
            return None
        messages = [self._pending[j] for j in range(self.members)]
        total = sum(message.total for message in messages)
        keys = _hot_keys(messages, total, self.workers)
        values, learned = _weighted_mean(messages, keys, self.workers)
        if self._round == 0:
            keys, values = keys[learned], values[learned]
        now = self._clock()
        if self.adaptive:
            self._adapt(any(message.late for message in messages), now, self._busy + now - began)
        self.table = GlobalTable(
            round=self._round,
            total=total,
            dsync_ms=self.dsync_ms,
            keys=keys,
            values=values,
            loads=_sum_of_loads(messages, self.workers),
        )
        self._since, self._busy = now, 0.0
        self._pending.clear()
        self._round += 1
        return self.table

    def _adapt(self, late: bool, now: float, busy: float) -> None:
        if late:
            self.dsync_ms = min(self.bounds[1], 2 * self.dsync_ms)
        elif self._since is not None and now - self._since - busy > busy:
            self.dsync_ms = max(self.bounds[0], self.dsync_ms // 2)


def _hot_keys(messages: list[SyncMessage], total: int, workers: int) -> UInt64s:
    """Keys with at least 1/n of all tuples and at least two tuples, ascending."""
    reported = np.concatenate([message.keys for message in messages])
    keys, index = np.unique(reported, return_inverse=True)
    frequency = np.zeros(len(keys), np.int64)
    np.add.at(frequency, index, np.concatenate([message.frequencies for message in messages]))
    return keys[(frequency > 1) & (frequency * workers >= total)]


def _sum_of_loads(messages: list[SyncMessage], workers: int) -> Int64s:
    """The sum of the loads in the messages, shape (workers,). Empty if a message has no loads of these workers."""
    if any(len(message.loads) != workers for message in messages):
        return not_told()
    return np.sum([message.loads for message in messages], axis=0)


def _weighted_mean(messages: list[SyncMessage], keys: UInt64s, workers: int) -> tuple[Float64s, np.ndarray]:
    """(values of each key, shape (keys, workers); whether a partitioner has learned the key)."""
    parts = []
    for message in messages:
        if message.values.shape[1] != workers:  # the message is from before a rescale
            continue
        seen = dict(zip(message.keys.tolist(), message.frequencies.tolist(), strict=True))
        at = np.searchsorted(keys, message.row_keys)
        known = at < len(keys)
        known[known] = keys[at[known]] == message.row_keys[known]
        weights = np.array([seen.get(key, 0) for key in message.row_keys[known].tolist()], np.float64)
        parts.append((at[known], weights, message.values[known]))
    rows, weight = np.zeros(len(keys), np.int64), np.zeros(len(keys))
    for at, weights, _ in parts:
        rows[at] += 1
        weight[at] += weights
    values = np.zeros((len(keys), workers))
    low, high = np.full_like(values, np.inf), np.full_like(values, -np.inf)
    for at, weights, learned in parts:
        # If no partitioner with a row saw the key in this interval, all of them count alike.
        share = np.where(weight[at] > 0, weights / np.maximum(weight[at], 1), 1 / rows[at])
        values[at] += share[:, None] * learned
        low[at], high[at] = np.minimum(low[at], learned), np.maximum(high[at], learned)
    values = np.clip(values, low, high)  # rounding must not leave the range of the partitioners' values
    values[rows == 0] = INITIAL
    return values, rows > 0
