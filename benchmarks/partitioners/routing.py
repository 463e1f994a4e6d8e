"""What the partitioner scenarios share: a warm partitioner that is timed block by block, on one core.

Time is processor time of the thread, so that other programs on the machine show as little as possible. Names
are measured in turns. Event time goes on at 10,000 tuples a slide of 1 s, as in the windowed suite of 000.
Options are the defaults. `NAME:cardinality=hll` is added for every rule that has this option.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, get_args

import numpy as np

from benchmarks.measuring.spread import in_turns, spread
from evenflow.generation.rank_laws import RANKS, Zipf
from evenflow.keys import candidate
from evenflow.numeric.arrays import UInt64s
from evenflow.partitioners import Partitioner, create, names
from evenflow.simulation.streams import rank_hashes
from evenflow.text.options import parse_choice

WORKERS, KEYS, EXPONENT, SEED = 64, 100_000, 1.0, 1
_PER_MS, _BATCH = 10, 10_000
"""Tuples per ms of event time, and tuples of a micro-batch, which is a slide."""


@dataclass(frozen=True)
class RoutingSize:
    """How much is run."""

    warm: int
    """Tuples before the first figure."""
    block: int
    """Tuples for each figure."""
    repetitions: int
    """Number of figures."""


def size(*, smoke: bool) -> RoutingSize:
    """The size of a run. The warm-up fills more than a window of 60 slides."""
    return RoutingSize(20_000, 20_000, 2) if smoke else RoutingSize(800_000, 400_000, 7)


def labels() -> list[str]:
    """Every registered name, each followed by its variant with HyperLogLog if it has one."""
    entries = []
    for name in names():
        entries.append(name)
        field = create(name, workers=2).options_type.model_fields.get("cardinality")
        if field is not None and "hll" in get_args(field.annotation):
            entries.append(f"{name}:cardinality=hll")
    return entries


def zipf_keys(tuples: int, *, keys: int = KEYS) -> UInt64s:
    """Seeded key hashes of a Zipf 1.0, shape (tuples,).

    They are real hashes. Keys made as rank x an odd constant would meet the same constant in the hash tables
    of the sketches and fall into few places, so that d-choices seems to cost 31 ns instead of 22.
    """
    ranks = Zipf(keys, EXPONENT).ranks(np.random.default_rng([SEED, RANKS]).random(tuples), 0)
    return rank_hashes(keys)[ranks]


class Warm:
    """A partitioner whose state is warm. A call routes the next block and gives its ns per tuple."""

    def __init__(self, label: str, keys: UInt64s, how_much: RoutingSize, *, workers: int = WORKERS) -> None:
        name, options = parse_choice(label)
        self.partitioner: Partitioner = create(name, workers=workers, seed=SEED, **options)
        self._keys, self._block, self._routed = keys, how_much.block, 0
        self._route(how_much.warm)

    def __call__(self) -> float:
        return self._route(self._block) / self._block * 1e9

    def _route(self, tuples: int) -> float:
        """Route the next tuples of the stream, which begins anew at its end. Seconds of processor time."""
        step = _BATCH if self.partitioner.micro_batch else tuples
        seconds = 0.0
        for first in range(0, tuples, step):
            index = np.arange(self._routed, self._routed + min(step, tuples - first))
            # Keys and times are made outside the measured time.
            keys, times = self._keys[index % len(self._keys)], index // _PER_MS
            self._routed += len(index)
            assign = (
                self.partitioner.assign_batch if self.partitioner.micro_batch else self.partitioner.assign
            )
            began = time.thread_time()
            assign(keys, times)
            seconds += time.thread_time() - began
        return seconds


class BareHashing:
    """Computes F_1 of every key and nothing else. A call gives the ns per tuple."""

    def __init__(self, keys: UInt64s, how_much: RoutingSize, *, workers: int = WORKERS) -> None:
        self._keys, self._workers = keys[: how_much.block], workers
        # The first call compiles the kernel.
        self()

    def __call__(self) -> float:
        began = time.thread_time()
        candidate(self._keys, 1, self._workers, SEED)
        return (time.thread_time() - began) / len(self._keys) * 1e9


def costs(
    names: Sequence[str], keys: UInt64s, how_much: RoutingSize, *, workers: int = WORKERS
) -> dict[str, Any]:
    """Spread of the ns per tuple of each label and of `bare hashing`, measured in turns."""
    ways: dict[str, Any] = {"bare hashing": BareHashing(keys, how_much, workers=workers)}
    ways |= {label: Warm(label, keys, how_much, workers=workers) for label in names}
    return {label: spread(values) for label, values in in_turns(ways, how_much.repetitions).items()}


def middle(values: Sequence[float]) -> float:
    """Median, rounded for a table."""
    return round(median(values), 3)
