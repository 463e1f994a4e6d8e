"""The tuples of a closed loop in virtual time: when they are sent, and how many of them each worker gets.

The tuples are those of the live loop: the stream of the warm-up, then that of the shape, both by the shape's
rate. The real partitioner routes them, so a hot key loads the workers as it does in the live loop.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

import numpy as np

from evenflow.errors import ConfigError
from evenflow.keys import hash_keys
from evenflow.numeric.arrays import Float64s, UInt64s
from evenflow.settings import Settings
from evenflow.sources.datasets import open_source
from partitioner_service.kafka.learned_state import new_partitioner
from workbench.elastic.shapes import STEADY, Shape


class VirtualStream:
    """What is sent, by the virtual clock.

    began: when the shape begins, s. warm_up_s: seconds before that for which its first rate comes.
    ConfigError for a partitioner that decides on whole micro-batches.
    """

    def __init__(self, shape: Shape, settings: Settings, *, began: float, warm_up_s: float) -> None:
        self.began, self.seconds, self.first_rate = began, shape.seconds, shape.first_rate
        self._curve = shape.rates()
        self._partitioner = new_partitioner(settings)
        if self._partitioner.micro_batch:
            raise ConfigError(
                f"a loop in virtual time routes tuple by tuple, and partitioner {settings.partitioner.name}"
                " decides on whole micro-batches"
            )
        self._warm = int(np.ceil(warm_up_s * shape.first_rate))
        self._keys, self._since = _tuples(shape, self._warm)
        self._routed = 0
        """How many tuples, those of the warm-up included, have been routed."""

    def sent(self, at: float) -> float:
        """Tuples sent by this time, below 0 before the shape begins."""
        since = at - self.began
        if since < 0:
            return since * self.first_rate
        return float(self._curve.due(np.array(min(since, self.seconds))))

    def between(self, first: float, last: float) -> float:
        """Tuples sent from the first to the last of these times. 0 if the last is the earlier one."""
        return max(0.0, self.sent(last) - self.sent(first))

    def when(self, tuples: float) -> float:
        """By when so many have been sent."""
        if tuples < 0:
            return self.began + tuples / self.first_rate
        return self.began + float(self._curve.inverse(np.array(tuples)))

    def loads(self, p: int, until: float) -> Float64s:
        """Tuples of each of p workers, shape (p,), of those sent by this time that have not been routed
        yet. Tuples are routed in the order in which they are sent, so no call may go back in time.
        """
        last = min(max(self._routed, self._warm + round(self.sent(until))), len(self._keys))
        rows = slice(self._routed, last)
        self._routed = last
        if self._partitioner.workers != p:
            self._partitioner.rescale(p)
        times = np.round(1000 * (self.began + self._since[rows])).astype(np.int64)
        workers = self._partitioner.assign(self._keys[rows], times)
        return np.bincount(workers, minlength=p).astype(np.float64)


@lru_cache(maxsize=8)
def _tuples(shape: Shape, warm: int) -> tuple[UInt64s, Float64s]:
    """Of each tuple, that many of the warm-up first: the hash of its key, and when it is sent, in seconds
    since the shape begins.
    """
    count = shape.tuples()
    keys = np.concatenate([_hashes(STEADY, warm), _hashes(shape.source, count)])
    since = np.concatenate(
        [np.arange(-warm, 0) / shape.first_rate, shape.rates().inverse(np.arange(count, dtype=np.float64))]
    )
    keys.flags.writeable = since.flags.writeable = False
    return keys, since


def _hashes(source: str, tuples: int) -> UInt64s:
    """The key hashes of a source's first tuples."""
    batches = open_source(source).batches(max(1, tuples))
    return np.concatenate([hash_keys(batch.keys) for batch in islice(batches, 1)])[:tuples]
