"""The cells of a sweep: every combination of exponent, seed, sources, workers and partitioner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from evenflow.errors import ConfigError
from evenflow.simulation.provenance import Origin, described, origin_of
from evenflow.simulation.scenario import Entrant, Scenario, entrant
from evenflow.simulation.streams import KeyedStream, generated, kind_of

MOST_CELLS = 1_000_000
Key = tuple[Any, ...]
"""What tells a cell from all others: the values of `IDENTITY`."""
IDENTITY = (
    "partitioner",
    "workers",
    "tuples",
    "stream",
    "seed",
    "exponent",
    "generator_keys",
    "period_ms",
    "rate",
    "key",
    "time",
    "digest",
    "hash_seed",
    "sources",
    "window_ms",
    "slide_ms",
    "warmup_slides",
    "batch",
    "exchange_delay_ms",
    "exchange_loss",
)
"""Columns that say what a cell is. They are known before the cell runs."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One simulation of a sweep."""

    who: Entrant
    """The partitioner that is simulated."""
    scenario: Scenario
    """Workers, sources, windows and the seed of the hash family."""
    origin: Origin
    """The stream that is routed, with its seed and exponent."""
    tuples: int
    """Tuples of the stream that are routed."""

    @property
    def identity(self) -> dict[str, Any]:
        """The values of `IDENTITY` by name."""
        values = {
            "partitioner": self.who.label,
            "workers": self.scenario.workers,
            "tuples": self.tuples,
            **described(self.origin, self.scenario),
        }
        return {name: values[name] for name in IDENTITY}

    @property
    def key(self) -> Key:
        """The values of `IDENTITY`."""
        return tuple(self.identity.values())

    def stream(self) -> KeyedStream:
        """The generated stream of the cell, in memory. ConfigError for a stream that cannot be."""
        origin = self.origin
        assert origin.seed is not None
        assert origin.generator_keys is not None
        assert origin.period_ms is not None
        return generated(
            origin.stream,
            tuples=self.tuples,
            keys=origin.generator_keys,
            zipf=1.0 if origin.exponent is None else origin.exponent,
            seed=origin.seed,
            rate=origin.rate,
            period_ms=origin.period_ms,
        )


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The lists that a sweep combines, and what all its cells share. ConfigError for a list that cannot
    be.
    """

    partitioners: tuple[str, ...]
    """Partitioners as the user wrote them."""
    workers: tuple[int, ...]
    """Numbers of workers, each of which is tried."""
    sources: tuple[int, ...]
    """Numbers of sources, each of which is tried."""
    seeds: tuple[int, ...]
    """Seeds of the stream and of the hash family. With a file, of the hash family only."""
    exponents: tuple[float, ...]
    """Exponents of a generated stream. Empty for a file, and for a stream without an exponent."""
    scenario: Scenario
    """The rest of the scenario. Its workers, sources and seed are replaced by those of the cell."""
    origin: Origin
    """The stream. The seed and the exponent of a generated stream are replaced by those of the cell."""
    tuples: int
    """Tuples of each cell's stream."""

    def __post_init__(self) -> None:
        for name in ("partitioners", "workers", "sources", "seeds"):
            values = getattr(self, name)
            if not values:
                raise ConfigError(f"a sweep needs {name}", hint="name at least one")
            if len(set(values)) < len(values):
                raise ConfigError(f"the {name} of a sweep are given twice: {values}", hint="name each once")
        if self.exponents and not self.has_exponent:
            raise ConfigError(
                f"the stream {self.origin.stream} has no exponent", hint="leave the exponents out"
            )
        if min(self.seeds) < 0:
            raise ConfigError(f"a seed must be at least 0, not {min(self.seeds)}")
        if self.size > MOST_CELLS:
            raise ConfigError(
                f"the sweep has {self.size:,} cells, more than {MOST_CELLS:,}", hint="shorten its lists"
            )
        # Each entrant is made once for each number of workers, so that a wrong option fails before the first
        # cell runs.
        for text, workers in product(self.partitioners, self.workers):
            replace(self.scenario, workers=workers).check(entrant(text))
        # Making a scenario checks it.
        for sources in self.sources:
            replace(self.scenario, sources=sources)

    @property
    def is_generated(self) -> bool:
        """Whether each cell generates its stream. Otherwise all cells have the tuples of one file."""
        return self.origin.generator_keys is not None

    @property
    def has_exponent(self) -> bool:
        """Whether the stream has an exponent that can be set."""
        return self.is_generated and kind_of(self.origin.stream).has_exponent

    @property
    def size(self) -> int:
        """Number of cells."""
        lists = (self.partitioners, self.workers, self.sources, self.seeds, self.exponents or (None,))
        size = 1
        for values in lists:
            size *= len(values)
        return size

    def cells(self) -> list[Cell]:
        """All cells. Those on the same stream come one after the other."""
        return [
            Cell(
                who=entrant(text),
                scenario=self._scenario(workers, sources, seed),
                origin=self._origin(exponent, seed),
                tuples=self.tuples,
            )
            # The last list varies fastest, so the cells of one stream (exponent and seed) stand together.
            for exponent, seed, sources, workers, text in product(
                self.exponents or (None,), self.seeds, self.sources, self.workers, self.partitioners
            )
        ]

    def _scenario(self, workers: int, sources: int, seed: int) -> Scenario:
        channel = self.scenario.exchange
        return replace(
            self.scenario,
            workers=workers,
            sources=sources,
            seed=seed,
            exchange=None if channel is None else replace(channel, seed=seed),
        )

    def _origin(self, exponent: float | None, seed: int) -> Origin:
        origin = self.origin
        if origin.generator_keys is None or origin.period_ms is None:
            return origin
        return origin_of(
            origin.stream,
            seed=seed,
            zipf=1.0 if exponent is None else exponent,
            keys=origin.generator_keys,
            period_ms=origin.period_ms,
            rate=origin.rate,
        )
