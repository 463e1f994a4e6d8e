"""A stream through phases: what changes at the begin of each, and how level the loads are, slide by slide."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fleet.instances import PANES, Fleet
from evenflow.numeric.arrays import Float64s

LEVEL, LEAST = 1.25, 1e-3
"""Loads are as level as before if the imbalance of windows is on average at most `LEVEL` times that of
before. `LEAST` is level in any case: a thousandth of the tuples."""
KEYS, Z = 20_000, 1.2
SEED = 1


class Phase(NamedTuple):
    """What happens before the first slide of a phase."""

    event: str
    """What happens, in words."""
    runs: tuple[int, ...]
    """Numbers of the instances that run from then on."""
    kills: tuple[int, ...] = ()
    """Numbers of the instances that are killed first."""
    shifted: bool = False
    """Whether other keys are the frequent ones from then on."""


def course(fleet: Fleet, phases: Sequence[Phase], *, smoke: bool) -> dict[str, Any]:
    """All phases, each of `length` slides.

    slides: imbalance of each slide. windows: of the window that ends with it. rounds: of the exchange, after
    each slide. again: slides after each event until windows were as level as before it.
    """
    rng = np.random.default_rng(SEED)
    length, tuples = (2, 1_000) if smoke else (2 * PANES, 8_000)
    law, names = zipf_law(KEYS, Z), np.arange(KEYS)
    slides: list[float] = []
    for phase in phases:
        for number in phase.kills:
            fleet.kill(number)
        fleet.run(*phase.runs)
        if phase.shifted:
            names = rng.permutation(names)
        slides += [fleet.slide(names[rng.choice(KEYS, tuples, p=law)]) for _ in range(length)]
    fleet.end()
    windows = fleet.window_imbalance()
    events = {phase.event: number * length for number, phase in enumerate(phases)}
    return {
        "partitioner": fleet.settings.partitioner.name,
        "length": length,
        "events": events,
        "slides": [round(value, 6) for value in slides],
        "windows": [round(value, 6) for value in windows],
        "rounds": fleet.rounds,
        "again": {event: recovery(windows, at, length) for event, at in events.items() if at},
    }


def recovery(windows: Sequence[float], event: int, length: int) -> int:
    """Slides from the event on until all windows that follow in its phase are on average as level as before
    it.

    windows: imbalance of the window that ends with each slide. What was before is the mean of the last
    `PANES` of them.
    """
    level = max(LEAST, LEVEL * mean(windows[max(0, event - PANES) : event]))
    after = windows[event : event + length]
    return next((passed for passed in range(length) if mean(after[passed:]) <= level), length)


def zipf_law(keys: int, z: float) -> Float64s:
    """The probability of each key, shape (keys,)."""
    weights = 1 / np.arange(1, keys + 1, dtype=np.float64) ** z
    return weights / weights.sum()
