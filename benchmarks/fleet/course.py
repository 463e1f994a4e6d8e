"""A stream through phases: what changes at the begin of each, and how level the loads are, slide by slide."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple, Protocol

import numpy as np

from benchmarks.fleet.instances import PANES
from evenflow.numeric.arrays import Float64s, Int64s

SLIDE_TUPLES = 8_000
LEVEL, LEAST = 1.25, 4 / (PANES * SLIDE_TUPLES)
"""Loads are as level as before if the imbalance of windows is on average at most `LEVEL` times that of
before. `LEAST` is level in any case: a tuple of a window for each of four instances. The loads of each are
whole, so together they can be off by so many."""
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


class Levels(NamedTuple):
    """How level windows are around an event. Each value but the last two is an imbalance."""

    before: float
    """Mean of the last `PANES` windows before the event."""
    greatest: float
    """The greatest one of the event's phase."""
    after: float
    """Mean of the phase from its slide `PANES` on, when windows hold no slide of before."""
    again: int
    """Slides until windows are as level as before, or below `LEAST` (`recovery`)."""
    without_least: int
    """Slides until windows are as level as before, however level that was."""


class Instances(Protocol):
    """Instances of one partitioner, as `Fleet` has them on a broker."""

    partitioner: str
    """Its name."""
    rounds: list[int | None]
    """The newest round of the exchange after each slide."""

    def run(self, *numbers: int) -> None:
        """As `Fleet.run`."""

    def kill(self, number: int) -> None:
        """As `Fleet.kill`."""

    def slide(self, keys: Int64s) -> float:
        """As `Fleet.slide`."""

    def end(self) -> None:
        """As `Fleet.end`."""

    def window_imbalance(self) -> list[float]:
        """As `Fleet.window_imbalance`."""


def course(fleet: Instances, phases: Sequence[Phase], *, smoke: bool, seed: int = SEED) -> dict[str, Any]:
    """All phases, each of `length` slides. seed: of the stream. Each seed has keys of its own.

    slides: imbalance of each slide. windows: of the window that ends with it. rounds: of the exchange, after
    each slide. again: slides after each event until windows were as level as before it.
    """
    rng = np.random.default_rng(seed)
    length, tuples = (2, 1_000) if smoke else (2 * PANES, SLIDE_TUPLES)
    law, names = zipf_law(KEYS, Z), np.arange(KEYS) + KEYS * (seed - SEED)
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
        "partitioner": fleet.partitioner,
        "seed": seed,
        "length": length,
        "events": events,
        "slides": [round(value, 6) for value in slides],
        "windows": [round(value, 6) for value in windows],
        "rounds": fleet.rounds,
        "again": {event: recovery(windows, at, length) for event, at in events.items() if at},
    }


def levels(row: Mapping[str, Any], event: str) -> Levels:
    """How level windows are around this event of a course. row: what `course` gives."""
    windows, length, at = row["windows"], row["length"], row["events"][event]
    after = windows[at : at + length]
    return Levels(
        before=mean(windows[max(0, at - PANES) : at]),
        greatest=max(after),
        after=mean(after[PANES:] or after[-1:]),
        again=recovery(windows, at, length),
        without_least=recovery(windows, at, length, least=0.0),
    )


def beside_others(rows: Sequence[dict[str, Any]], picture: Path) -> list[dict[str, Any]]:
    """These courses, and those of other titles and seeds that are kept beside the picture, by seed."""
    kept = picture.with_suffix(".json")
    there = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else []
    new = {(row["title"], row["seed"]) for row in rows}
    others = [row for row in there if (row["title"], row["seed"]) not in new]
    return sorted([*others, *rows], key=lambda row: int(row["seed"]))


def recovery(windows: Sequence[float], event: int, length: int, *, least: float = LEAST) -> int:
    """Slides from the event on until all windows that follow in its phase are on average as level as before
    it.

    windows: imbalance of the window that ends with each slide. What was before is the mean of the last
    `PANES` of them. least: this imbalance is level in any case.
    """
    level = max(least, LEVEL * mean(windows[max(0, event - PANES) : event]))
    after = windows[event : event + length]
    return next((passed for passed in range(length) if mean(after[passed:]) <= level), length)


def zipf_law(keys: int, z: float) -> Float64s:
    """The probability of each key, shape (keys,)."""
    weights = 1 / np.arange(1, keys + 1, dtype=np.float64) ** z
    return weights / weights.sum()
