"""Balance of window loads while instances are killed, added and taken away, slide by slide on a real broker.

Instances 0 and 1 run at first. Then 1 is killed (SIGKILL) and started again, then 2 and 3 are added, then taken away. The
stream keeps its law all the time: Zipf over many keys. What is measured is how far the loads of a window are from level
before each event, and how many slides pass until they are as level again.
"""

from __future__ import annotations

from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fleet import INPUTS, PANES, WORKERS, Fleet, fleet
from benchmarks.telling import step
from evenflow.arrays import Int64s
from workbench.broker import EmbeddedBroker

ID = "service-instances"
WHAT = "slides until window loads are as level as before a kill, and before 2 -> 4 -> 2 instances"

PARTITIONERS = ("evenflow", "dalton-cooperative", "dalton")
LEVEL = 1.25
"""Loads are as level as before if the imbalance of the slide is at most so many times that of the slides before."""
_SEED, _KEYS, _Z = 1, 20_000, 1.2


class Phase(NamedTuple):
    """What happens before the first slide of a phase, and which instances run from then on."""

    event: str
    runs: tuple[int, ...]


PHASES = (
    Phase("2 instances", (0, 1)),
    Phase("SIGKILL of 1", (0,)),
    Phase("1 is back", (0, 1)),
    Phase("2 -> 4", (0, 1, 2, 3)),
    Phase("4 -> 2", (0, 1)),
)


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each partitioner: the course, and for each event how long the loads took to be level again."""
    names = PARTITIONERS[:1] if smoke else PARTITIONERS
    rows = []
    with EmbeddedBroker() as broker:
        for name in names:
            with (
                step(f"{name}, {len(PHASES)} phases"),
                fleet(broker.settings(), f"instances-{name}", name, sources=4) as instances,
            ):
                rows.append({"partitioner": name, **course(instances, smoke=smoke)})
    return {"workers": WORKERS, "input_partitions": INPUTS, "window_slides": PANES, "partitioners": rows}


def course(instances: Fleet, *, smoke: bool) -> dict[str, Any]:
    """All phases. slides: imbalance of each slide. windows: of the window that ends with it."""
    rng = np.random.default_rng(_SEED)
    length, tuples = (1, 1_000) if smoke else (2 * PANES, 8_000)
    law = zipf_law(_KEYS, _Z)
    slides: list[float] = []
    for phase in PHASES:
        if phase.event.startswith("SIGKILL"):
            instances.kill(1)
        instances.run(*phase.runs)
        slides += [instances.slide(rng.choice(_KEYS, tuples, p=law)) for _ in range(length)]
    instances.end()
    windows = instances.window_imbalance()
    return {
        "length": length,
        "slides": [round(value, 5) for value in slides],
        "windows": [round(value, 5) for value in windows],
        "rounds": instances.rounds,
        "again": {
            phase.event: recovery(slides, number * length, length)
            for number, phase in enumerate(PHASES)
            if number
        },
    }


def recovery(slides: list[float], event: int, length: int) -> int:
    """Slides from the event until the rest of its phase is on average as level as the `PANES` slides before it."""
    level = LEVEL * mean(slides[max(0, event - PANES) : event])
    after = slides[event : event + length]
    return next((passed for passed in range(length) if mean(after[passed:]) <= level), length)


def zipf_law(keys: int, z: float) -> Any:
    """The probability of each key, shape (keys,)."""
    weights = 1 / np.arange(1, keys + 1, dtype=np.float64) ** z
    return weights / weights.sum()


def permuted(keys: Int64s, seed: int) -> Int64s:
    """Other keys with the same law."""
    return np.random.default_rng(seed).permutation(_KEYS)[keys]
