"""The reducer of cooperating Daltons: many local Q-tables become one.

Idea: of the messages of a round, GL is the sum of their tuples, and the hot keys
are those with GL/n tuples or more (at most n keys). A hot key's values are the mean over the partitioners
that have a row for the key, weighted by how many tuples of the key each of them saw:

    Q(k, i) = sum_j f_j(k) Q_j(k, i) / sum_j f_j(k)

The paper divides by GL and P instead. That squeezes every value towards 0, and so lets untried workers win.
With weights that sum to 1, the result lies between the partitioners' own values. A partitioner without a row
for the key does not count. A hot key that no partitioner has learned yet starts at -2 everywhere. In round 0
such a key is left out: as in a single Dalton, the first interval only gives the load to compare with.

The interval of synchronisation (DSYNC) doubles when a partitioner had to wait for longer than an interval.
The message says which interval that was, and twice that interval is the least that comes next. So one
lateness that several partitioners tell, or one tells again, doubles the interval once. DSYNC halves when
nobody was late and the reducer was idle for longer than it worked. Both stay within bounds. Halving and
doubling keep the ends of intervals aligned. Time comes from `clock`, in any unit, so that tests are
deterministic.

Which messages make a round is the business of `rounds`. The sums run in the order of partitioners, so the
table does not depend on the order of messages. A key just below the top n of every partitioner but one may be
under-counted. A key with GL/n tuples is among the top n of at least one partitioner.

Cost: O(P n^2) per round. State: three numbers.
Paper: Zapridou et al., PVLDB 16(3) 2022 (000), section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Float64s, Int64s, UInt64s
from evenflow.partitioners.dalton.messages import GlobalTable, SyncMessage, not_told
from evenflow.partitioners.dalton.q_table import INITIAL
from evenflow.partitioners.exchange import Merger, Message


def dsync_bounds(slide_ms: int) -> tuple[int, int]:
    """Shortest and longest interval of synchronisation, ms: an eighth of a slide, and 64 slides."""
    return max(1, slide_ms // 8), 64 * slide_ms


class QTableReducer(Merger):
    """Makes one table of the messages of a round. Pure but for `clock`.

    `dsync_ms`: interval at first. `bounds`: least and greatest interval, ms. ConfigError for numbers out of
    range.
    """

    def __init__(
        self, *, workers: int, dsync_ms: int, bounds: tuple[int, int], clock: Callable[[], float]
    ) -> None:
        if workers < 1:
            raise ConfigError(f"a reducer needs workers, not {workers}")
        if not 1 <= bounds[0] <= dsync_ms <= bounds[1]:
            raise ConfigError(f"dsync_ms ({dsync_ms}) must be within {bounds[0]} to {bounds[1]}, at least 1")
        self.workers = workers
        self.dsync_ms, self.bounds = dsync_ms, bounds
        self._clock = clock
        self._since: float | None = None  # end of the last round

    def check(self, message: Message) -> None:
        """IncompatibleStateError for bytes that are no `SyncMessage`."""
        SyncMessage.from_bytes(message.body)

    def merge(self, messages: Sequence[Message]) -> bytes:
        """The bytes of the `GlobalTable`."""
        began = self._clock()
        reports = [SyncMessage.from_bytes(message.body) for message in messages]
        total = sum(message.total for message in reports)
        keys = _hot_keys(reports, total, self.workers)
        values, learned = _weighted_mean(reports, keys, self.workers)
        if messages[0].round == 0:
            keys, values = keys[learned], values[learned]
        self._adapt(max(message.late for message in reports), began)
        loads = _sum_of_loads(reports, self.workers)
        return GlobalTable(
            total=total, dsync_ms=self.dsync_ms, keys=keys, values=values, loads=loads
        ).to_bytes()

    def rescale(self, workers: int) -> None:
        """Make tables for this many workers from now on. Values of other numbers of workers do not count."""
        self.workers = workers

    def _adapt(self, late: int, began: float) -> None:
        """Set the interval. late: the longest interval that a partitioner was late under, or 0. began:
        this round's work.
        """
        now = self._clock()
        if late:
            self.dsync_ms = min(self.bounds[1], max(self.dsync_ms, 2 * late))
        elif self._since is not None and began - self._since > now - began:
            self.dsync_ms = max(self.bounds[0], self.dsync_ms // 2)
        self._since = now


def _hot_keys(messages: list[SyncMessage], total: int, workers: int) -> UInt64s:
    """Keys with at least 1/n of all tuples and at least two tuples, ascending."""
    reported = np.concatenate([message.keys for message in messages])
    keys, index = np.unique(reported, return_inverse=True)
    frequency = np.zeros(len(keys), np.int64)
    np.add.at(frequency, index, np.concatenate([message.frequencies for message in messages]))
    return keys[(frequency > 1) & (frequency * workers >= total)]


def _sum_of_loads(messages: list[SyncMessage], workers: int) -> Int64s:
    """The sum of the loads in the messages, shape (workers,).
    Empty if a message has no loads of these workers.
    """
    if any(len(message.loads) != workers for message in messages):
        return not_told()
    return np.sum([message.loads for message in messages], axis=0)


def _weighted_mean(messages: list[SyncMessage], keys: UInt64s, workers: int) -> tuple[Float64s, np.ndarray]:
    """(values of each key, shape (keys, workers); whether a partitioner has learned the key)."""
    parts = []
    for message in messages:
        if message.values.shape[1] != workers:  # the message is from before a rescale
            continue
        # Of each reported key. A row may be of a key that had no tuple in the interval.
        frequencies = dict(zip(message.keys.tolist(), message.frequencies.tolist(), strict=True))
        at = np.searchsorted(keys, message.row_keys)
        known = at < len(keys)
        known[known] = keys[at[known]] == message.row_keys[known]
        weights = np.array([frequencies.get(key, 0) for key in message.row_keys[known].tolist()], np.float64)
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
