"""The streams that the opponent can make, and small changes of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from benchmarks.own_grid.costs import LAWS, with_costs
from evenflow.generation.rank_laws import DISORDER
from evenflow.simulation import KeyedStream, Scenario, generated

_OTHER_KEYS = np.uint64(0x9E3779B97F4A7C15)
"""The second law of a mixture has keys of its own: their hashes differ by these bits."""
WARMUP = 0.4
"""Share of the tuples that the longest window takes. The figures are of the windows behind the first full
one.
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A stream with its window, workers and sources. It has one tuple per ms."""

    law: str
    """A stream of `evenflow simulate` with its settings."""
    other: str = "uniform"
    """The law of the tuples that are not of `law`."""
    mixed: float = 0.0
    """Share of the tuples that follow `other`."""
    keys: int = 100_000
    """Distinct keys of the stream."""
    zipf: float = 1.0
    """Exponent of the law."""
    slide: int = 5_000
    """Tuples in a slide."""
    slides: int = 20
    """Slides in a window."""
    period: float = 1.0
    """Slides in a period of the law."""
    workers: int = 64
    """Workers to which the tuples are routed."""
    sources: int = 1
    """Instances that route the stream."""
    disorder: float = 0.0
    """By how many slides a tuple's time may lie behind that of tuples before it."""
    costs: str = ""
    """A law of what tuples cost (`own_grid.costs`). Empty: each costs 1."""
    seed: int = 1
    """Seed of the stream and the hashes."""

    def stream(self, tuples: int) -> KeyedStream:
        """The tuples in arrival order."""
        stream = self._generated(self.law, tuples)
        times = stream.times
        # A generator of its own: a case without disorder has the same tuples as its neighbour with it.
        rng = np.random.default_rng([self.seed, DISORDER])
        if self.mixed > 0:
            other = self._generated(self.other, tuples)
            chosen = rng.random(tuples) < self.mixed
            stream = replace(
                stream,
                # The keys of the two laws are distinct, even where both draw the same rank.
                keys=np.where(chosen, other.keys ^ _OTHER_KEYS, stream.keys),
                codes=np.where(chosen, other.codes + stream.key_count, stream.codes).astype(np.int32),
                key_count=stream.key_count + other.key_count,
            )
        if self.disorder > 0:
            back = (rng.random(tuples) * self.disorder * self.slide).astype(np.int64)
            stream = replace(stream, times=np.maximum(times - back, 0))
        return with_costs(stream, self.costs, self.seed) if self.costs else stream

    def _generated(self, law: str, tuples: int) -> KeyedStream:
        return generated(
            law,
            tuples=tuples,
            keys=self.keys,
            zipf=self.zipf,
            seed=self.seed,
            period_ms=max(1, round(self.period * self.slide)),
        )

    def scenario(self) -> Scenario:
        """Windows, workers and sources."""
        return Scenario(
            workers=self.workers,
            sources=self.sources,
            seed=self.seed,
            window_ms=self.slide * self.slides,
            slide_ms=self.slide,
        )

    def described(self) -> str:
        """The case in words that `evenflow simulate` knows, as far as it can make it."""
        words = [f"`{self.law}`"]
        if self.mixed:
            words.append(f"{self.mixed:.0%} `{self.other}`")
        words += [f"{self.keys:,} keys", f"z {self.zipf:.2f}", f"n {self.workers}"]
        words += [f"{self.slides} slides of {self.slide:,} tuples", f"period {self.period:.2f} slides"]
        words += [f"{self.sources} sources"] if self.sources > 1 else []
        words += [f"disorder {self.disorder:.1f} slides"] if self.disorder else []
        words += [LAWS[self.costs]] if self.costs else []
        words += [f"seed {self.seed}"]
        return ", ".join(words)

    def as_json(self) -> dict[str, Any]:
        """The fields."""
        return asdict(self)


def _even(rng: np.random.Generator, low: float, high: float) -> float:
    return float(rng.uniform(low, high))


def _by_size(rng: np.random.Generator, low: float, high: float) -> int:
    """A whole number, every order of magnitude equally likely."""
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


def _law(rng: np.random.Generator) -> str:
    length = _by_size(rng, 2, 20_000)
    laws: tuple[Callable[[], str], ...] = (
        lambda: "zipf",
        lambda: "uniform",
        lambda: f"runs:length={length},longest={length * _by_size(rng, 1, 8)}",
        lambda: f"flash:share={_even(rng, 0.02, 0.9):.2f},every={_by_size(rng, 1, 20)}",
        lambda: f"sessions:alive={_by_size(rng, 2, 50_000)},life={_by_size(rng, 1, 40)}",
        lambda: f"drift:step={_by_size(rng, 1, 1_000)}",
        lambda: f"replaced:hot={_by_size(rng, 1, 2_000)},generations=50",
        lambda: f"wandering-exponent:step={_even(rng, 0.05, 0.6):.2f}",
        lambda: f"random-exponent:low={_even(rng, 0, 1):.2f},high={_even(rng, 1, 2.5):.2f}",
        lambda: "alternating",
        lambda: "wandering-load",
        lambda: f"disjoint:sources={_by_size(rng, 2, 16)}",
        lambda: "giant",
        lambda: "shift",
    )
    return laws[int(rng.integers(len(laws)))]()


_DRAWS: dict[str, Callable[[np.random.Generator], Any]] = {
    "law": _law,
    "other": _law,
    "mixed": lambda rng: 0.0 if rng.random() < 0.5 else round(_even(rng, 0.05, 0.95), 2),
    "keys": lambda rng: _by_size(rng, 100, 200_000),
    "zipf": lambda rng: round(_even(rng, 0.0, 2.5), 2),
    "slide": lambda rng: _by_size(rng, 50, 10_000),
    "slides": lambda rng: _by_size(rng, 1, 40),
    "period": lambda rng: round(math.exp(rng.uniform(math.log(0.1), math.log(40))), 2),
    "workers": lambda rng: int(rng.choice([4, 8, 16, 32, 64, 128])),
    # Half of the cases have one source.
    "sources": lambda rng: int(rng.choice([1, 1, 1, 2, 5, 16])),
    "disorder": lambda rng: 0.0 if rng.random() < 0.7 else round(_even(rng, 0.1, 3.0), 1),
    "costs": lambda rng: "" if rng.random() < 0.7 else str(rng.choice(sorted(LAWS))),
    "seed": lambda rng: int(rng.integers(1, 1_000)),
}
# A new field of a case must be drawn, too.
assert set(_DRAWS) == {field.name for field in fields(Case)}


def _fits(case: Case, tuples: int) -> bool:
    """Whether most windows are full, and the law can have so many sources and keys."""
    return case.slide * case.slides <= WARMUP * tuples and case.keys >= 50


def drawn(rng: np.random.Generator, tuples: int) -> Case:
    """A case from anywhere."""
    while True:
        case = Case(**{name: draw(rng) for name, draw in _DRAWS.items()})
        if _fits(case, tuples):
            return case


def near(case: Case, rng: np.random.Generator, tuples: int) -> Case:
    """A case that differs in one or two things."""
    while True:
        names = rng.choice(sorted(_DRAWS), size=int(rng.integers(1, 3)), replace=False)
        other = replace(case, **{str(name): _DRAWS[str(name)](rng) for name in names})
        if other != case and _fits(other, tuples):
            return other
