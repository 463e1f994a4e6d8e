"""What the sources of one stream tell each other: how many tuples of the window they sent each worker, or
what these cost.

A message is the loads of one source, and a table is the sum over the messages of a round. Both are int64,
little-endian, one number for each worker. So the length says for how many workers they are.

What a source sent stays in the window when the source is gone, killed or silent. So the merger remembers the
last message of each source for a window, until the source tells again. A table that has such loads has them
as a second part, with a mark behind both: a source whose message was lost must not take its own loads for
those of another. Without slides (a tumbling or a cumulative window) nothing is remembered. A window is
counted in rounds, so what is remembered outlives a silence of the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from evenflow.errors import IncompatibleStateError
from evenflow.numeric.arrays import Float64s, Int64s
from evenflow.partitioners.exchange import Merger, Message

ROUNDS = np.dtype([(name, np.int64) for name in ("round", "told", "due", "unanswered")])
"""Where a source stands in the rounds.

round: of the next message. told: the last round in which loads were told, or `NOT_TOLD`. due: event time of
the next message, ms, or NEVER before the first one. unanswered: messages since the last table.
"""
NOT_TOLD = -1
PATIENCE = 3
"""Messages without an answer, after which a source levels alone again and tells new loads."""
BIAS_PARTS = 1024
"""Parts of a unit of load that a bias is counted in. So it is a whole number, the same on every machine."""
_MOST_BIAS = 3
"""Tuples that a source's bias can be.
It is a matter of what chance and whole tuples leave, which is about one.
"""
_LEARNING = 0.05
"""Share of an overload that one table adds to the bias.
It averages over some 20 slides, most of which is chance.
"""
_MOST = 1 << 52
"""Load of one worker that a source can have sent."""
_MOST_IN_ALL = 1 << 60
"""A sum stays there. So it never leaves int64, whatever the sources tell."""
_NUMBER = np.dtype("<i8")
_MARK = np.array([-1], _NUMBER).tobytes()
"""Stands behind the two parts of a table. No load is below 0."""


def to_bytes(loads: Int64s) -> bytes:
    """The body of a message or a table."""
    return loads.astype(_NUMBER).tobytes()


def from_bytes(body: bytes) -> Int64s:
    """The loads of a body, which may be any bytes. IncompatibleStateError for bytes that are no loads."""
    if not body or len(body) % _NUMBER.itemsize:
        raise IncompatibleStateError(f"{len(body)} bytes are no loads of workers")
    loads = np.frombuffer(body, _NUMBER).astype(np.int64)
    if loads.min() < 0:
        raise IncompatibleStateError("there is a load below 0")
    return loads


class Loads(NamedTuple):
    """What a table says. Both have the shape (workers,)."""

    reported: Int64s
    """Loads of the sources whose messages the table was made of."""
    remembered: Int64s
    """Loads of other sources, which told them in an earlier round."""


def table_bytes(loads: Loads) -> bytes:
    """The body of a table. What is remembered is only there if it is not 0."""
    if not loads.remembered.any():
        return to_bytes(loads.reported)
    # The mark tells such a body from loads of twice as many workers.
    return to_bytes(np.concatenate([loads.reported, loads.remembered])) + _MARK


def table_loads(body: bytes) -> Loads:
    """The loads of a table's body, which may be any bytes. IncompatibleStateError for bytes that are none."""
    loads, marked = from_bytes(body.removesuffix(_MARK)), body.endswith(_MARK)
    if marked and len(loads) % 2:
        raise IncompatibleStateError(f"{len(loads)} loads are no two parts of a table")
    return Loads(*np.split(loads, 2)) if marked else Loads(loads, np.zeros_like(loads))


def learned(bias: Int64s, overload: Float64s, unit: int) -> Int64s:
    """The bias after one more table: how much emptier than level a source keeps each worker, (n,), in parts
    of a unit.

    The worker of a source's hottest keys, or one with many whole keys, ends each slide a little above the
    mean, at every source. Each source takes that for chance, which it cannot level further. In the sum it is
    not chance. Only overloads count, because the fullest worker is what hurts. The mean stays 0, so that
    there is room for all tuples.

    overload: the common imbalance by worker, per source, in units of load. unit: load of a tuple (of the
    grain, where tuples cost differently).
    """
    most = _MOST_BIAS * unit
    # A great overload is a change of the stream, which splitting levels. It teaches no more than a small one.
    steps = np.rint(np.clip(overload, 0, most) * (_LEARNING * BIAS_PARTS)).astype(np.int64)
    clipped = np.clip(bias + steps, -most * BIAS_PARTS, most * BIAS_PARTS)
    return clipped - int(np.rint(clipped.sum() / len(clipped)))


class LoadsMerger(Merger):
    """Adds the loads of all sources. Loads of another number of workers do not count.

    slides: of a window, in each of which there is a round. A source that has been silent for some rounds
    counts with the share of the window that is left of what it told. (Which of its tuples lie in which slide
    it has not told.)
    """

    def __init__(self, workers: int, *, slides: int = 1) -> None:
        self.workers = workers
        self._slides = slides
        self._last: dict[int, _LastMessage] = {}

    def check(self, message: Message) -> None:
        """IncompatibleStateError for a message that has no loads."""
        if int(from_bytes(message.body).max()) > _MOST:
            raise IncompatibleStateError(f"there is a load above {_MOST:,}")

    def merge(self, messages: Sequence[Message]) -> bytes:
        """The sum of the loads, and that of the sources that did not tell theirs in this round."""
        now = messages[0].round
        current = {message.source: _LastMessage(from_bytes(message.body), now) for message in messages}
        silent = {
            source: last
            for source, last in self._last.items()
            if source not in current and now - last.round < self._slides
        }
        self._last = silent | current
        told = self._sum(last.loads for last in current.values())
        return table_bytes(Loads(told, self._sum(self._left(last, now) for last in silent.values())))

    def remember(self, message: Message) -> None:
        """Count these loads until their source tells others, or the window is over."""
        self._last[message.source] = _LastMessage(from_bytes(message.body), message.round)

    def _left(self, last: _LastMessage, now: int) -> Int64s:
        """What is left of a message in the window of round `now`."""
        rounds = max(0, now - last.round)
        # Divided first, as a product could leave int64.
        whole, rest = np.divmod(last.loads, self._slides)
        left: Int64s = whole * (self._slides - rounds) + rest * (self._slides - rounds) // self._slides
        return left

    def _sum(self, parts: Iterable[Int64s]) -> Int64s:
        total = np.zeros(self.workers, np.int64)
        for loads in parts:
            if len(loads) == self.workers:
                total = np.minimum(total + loads, _MOST_IN_ALL)
        return total

    def rescale(self, workers: int) -> None:
        """Add loads of this many workers from now on."""
        self.workers = workers


class _LastMessage(NamedTuple):
    """The last message of a source."""

    loads: Int64s
    """Its loads."""
    round: int
    """The message's round."""
