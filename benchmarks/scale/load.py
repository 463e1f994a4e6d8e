"""The keys at 10 M tuples/s: laws fitted to real data, and how partitioners route them.

    python -m benchmarks.scale.load --data FOLDER     fits the exponents again (papers/data.py has the files)

A fitted law is Zipf over as many keys as the data set has. Its exponent is the one at which two tuples have
the same key as often as in the data (`evenflow.advice.sample.zipf_exponent`). A stream of ten million tuples
a second has more keys than a sample of a million tuples. So the law keeps the exponent and gets a million
keys.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evenflow.advice.sample import keys_of
from evenflow.partitioners.registry import options_type
from evenflow.scale.law import ZipfLaw
from evenflow.simulation import KeyedStream, Scenario, entrant, generated
from evenflow.simulation.run import simulate
from papers.data import DATASETS, is_there, read_dataset

PARTITIONERS = ("evenflow", "hashing", "d-choices", "dalton")
"""The partitioners that are simulated. The first one is the default of the settings."""
_WINDOW = ":window_ms=60000,slide_ms=1000"


def stream_of(law: ZipfLaw, slide_tuples: int) -> KeyedStream:
    """A stream of two slides of a second with `slide_tuples` tuples each."""
    return generated(
        "zipf", tuples=2 * slide_tuples, keys=law.keys, zipf=law.zipf, seed=1, rate=float(slide_tuples)
    )


@dataclass(frozen=True)
class RoutingFigures:
    """How a partitioner routes a slide of a law."""

    ksr: float
    """Mean number of workers that hold a key."""
    imbalance: float
    """Fullest worker over the mean, less 1."""
    most_holders: float
    """Workers that hold the most widely split key."""
    ns: float
    """Nanoseconds per tuple."""


def groups_skew(law: ZipfLaw, groups: int, *, seeds: int = 20) -> float:
    """Fullest over mean load of `groups` groups that keys are hashed to, as the median over seeds."""
    skews = []
    for seed in range(seeds):
        group_of_key = np.random.default_rng(seed).integers(0, groups, law.keys)
        skews.append(float(np.bincount(group_of_key, weights=law.shares, minlength=groups).max() * groups))
    return float(np.median(skews))


def routed(
    stream: KeyedStream, partitioners: Sequence[str], *, workers: int, sources: int
) -> dict[str, RoutingFigures]:
    """How each partitioner routes the second slide.

    Rules that know of windows have a window of 60 slides, of which only two slides have come.
    """
    scenario = Scenario(workers=workers, sources=sources, window_ms=1_000, slide_ms=1_000, warmup_slides=1)
    entrants = [entrant(name + (_WINDOW if _knows_windows(name) else "")) for name in partitioners]
    results = simulate(stream, entrants, scenario, processes=1)
    return {
        name: RoutingFigures(
            result.figures.ksr,
            # Window imbalance is over the tuples of the window. Times the workers it is over the mean load.
            (result.figures.window_imbalance or 0.0) * workers,
            result.figures.max_holders,
            result.figures.ns_per_tuple,
        )
        for name, result in zip(partitioners, results, strict=True)
    }


def _knows_windows(name: str) -> bool:
    return "window_ms" in options_type(name).model_fields


def fitted(name: str, data: Path) -> tuple[int, int, float | None, float]:
    """Of a data set: tuples, keys, exponent (None where none fits), and share of the most frequent key."""
    stream = read_dataset(name, data)
    keys = keys_of(stream, complete=True)
    return len(stream), keys.distinct, keys.zipf, float(keys.shares[0])


def main() -> int:
    """Print the exponent of each data set that is there."""
    parser = ArgumentParser(description="Zipf exponents of real data sets")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the files")
    data = parser.parse_args().data
    for name in DATASETS:
        if is_there(name, data):
            tuples, keys, zipf, top = fitted(name, data)
            print(f"{name:18} {tuples:>9,} tuples {keys:>7,} keys  z {zipf:.2f}  first key {100 * top:.2f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
