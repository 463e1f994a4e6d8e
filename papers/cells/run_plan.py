"""What is to be measured: streams, cells, and the two sizes of a run. A cell is one setting over all
seeds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from evenflow.simulation import KeyedStream, generated
from papers.data import DATASETS, read_dataset
from papers.drawn_streams import DRAWN

LEAST_SEEDS = 10
"""Number of hash seeds of a full run. Figures are medians over these seeds."""


@dataclass(frozen=True, order=True)
class Stream:
    """A generated stream, or a data set.

    For an elastic operator (sections `bandits` and `group-ahead`) `kind` is the load and `tuples` the number
    of steps.
    """

    kind: str
    """Law of a generated stream, or name of the data set."""
    tuples: int = 0
    """How many there are. Of a data set the most that are read, 0 for all."""
    keys: int = 0
    """Distinct keys of a generated stream."""
    zipf: float = 0.0
    """Exponent of a generated stream. 0 for a law that has none."""

    @property
    def is_data(self) -> bool:
        """Whether the stream is read, not generated."""
        return self.kind in DATASETS

    @property
    def label(self) -> str:
        """The stream's name in the keys of the results."""
        if self.is_data:
            return f"{self.kind}/{self.tuples}" if self.tuples else self.kind
        law = f"{self.kind}{self.zipf:g}" if self.zipf else self.kind
        keys = f"/{self.keys}keys" if self.keys else ""
        return f"{law}{keys}/{self.tuples}"

    def opened(self, data: Path, *, seed: int = 1) -> KeyedStream:
        """The tuples. `seed` draws those of a generated stream. ConfigError if the data is not in the
        folder `data`.
        """
        if self.is_data:
            return read_dataset(self.kind, data, most=self.tuples or None)
        if self.kind in DRAWN:
            return DRAWN[self.kind](self.tuples, self.keys, seed)
        return generated(self.kind, tuples=self.tuples, keys=self.keys, zipf=self.zipf, seed=seed)


class StreamCache:
    """A stream that is made when it is asked for. Only the latest one is kept, so that memory holds one
    stream.
    """

    def __init__(self, stream: Stream, plan: RunPlan) -> None:
        self._stream, self._data = stream, plan.data
        self._latest: tuple[int, KeyedStream] | None = None

    def at(self, seed: int = 1) -> KeyedStream:
        """The tuples drawn with this seed. A data set has the same tuples for every seed."""
        seed = 1 if self._stream.is_data else seed
        if self._latest is None or self._latest[0] != seed:
            self._latest = (seed, self._stream.opened(self._data, seed=seed))
        return self._latest[1]


@dataclass(frozen=True, order=True)
class Cell:
    """One setting of one section. It is measured with every seed."""

    section: str
    """Name of the section of the page."""
    experiment: str
    """Name of the experiment within it."""
    stream: Stream
    """What is routed."""
    workers: int
    """n. In the section `group-ahead` the most workers."""
    partitioner: str = ""
    """The partitioner with its options. Empty if the experiment has none."""

    @property
    def key(self) -> str:
        """The name under which the figures are kept."""
        parts = [self.experiment, self.stream.label, f"n{self.workers}", self.partitioner]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class RunPlan:
    """How large a run is."""

    size: Literal["full", "quick"]
    """A quick run shows that everything works, not what the papers say."""
    seeds: tuple[int, ...]
    """Seeds of streams and hashes. Figures are medians over them."""
    data: Path = field(compare=False)
    """Folder of the data sets."""
    processes: int = 1
    """How many processes measure cells at once."""

    @property
    def quick(self) -> bool:
        """Whether this is a small run. It shows that everything works, not what the papers say."""
        return self.size == "quick"

    @property
    def more_seeds(self) -> tuple[int, ...]:
        """Twice as many seeds, for figures whose seeds differ much."""
        return tuple(range(1, 2 * len(self.seeds) + 1))

    def pick(self, full: int, quick: int) -> int:
        """The value for this size of run."""
        return quick if self.quick else full


def full_plan(data: Path, processes: int) -> RunPlan:
    """The run that docs/reproducing.md is made from."""
    return RunPlan("full", tuple(range(1, LEAST_SEEDS + 1)), data, processes)


def quick_plan(data: Path, processes: int) -> RunPlan:
    """A small run: small streams and two seeds."""
    return RunPlan("quick", (1, 2), data, processes)
