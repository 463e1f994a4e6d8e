"""Which routed partition a worker has, and where its tuples are in a frame if it shares the partition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from evenflow.settings import Settings

Ranks = npt.NDArray[np.uint16]
"""By cell (worker * stretches + stretch), its place among the rows of a block: partition by partition,
a partition stretch by stretch, and a stretch worker by worker. Shape (workers * stretches,)."""


@dataclass(frozen=True)
class Sharing:
    """Worker w has partition w mod `partitions`, and place w // `partitions` in its frames."""

    workers: int
    """Largest number of workers."""
    partitions: int
    """Partitions of the routed topic, at most `workers`."""

    @classmethod
    def of(cls, settings: Settings) -> Sharing:
        """That of these settings."""
        return cls(settings.max_workers, settings.routed_partitions)

    @property
    def places(self) -> int:
        """Most workers that share a partition."""
        return -(-self.workers // self.partitions)

    def ranks(self, stretches: int) -> Ranks:
        """The rank of each cell of a block with so many stretches."""
        return _ranks(self, stretches)


@lru_cache(maxsize=64)
def _ranks(sharing: Sharing, stretches: int) -> Ranks:
    worker, stretch = np.divmod(np.arange(sharing.workers * stretches), stretches)
    place, partition = np.divmod(worker, sharing.partitions)
    ranks = ((partition * stretches + stretch) * sharing.places + place).astype(np.uint16)
    ranks.flags.writeable = False
    return ranks
