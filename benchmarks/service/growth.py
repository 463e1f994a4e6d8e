"""The partitioner service with 1,000 workers and 100 input partitions beside 8 and 4, on a real broker.

Once with a routed partition for each worker and commits every half a second, and once with the routed
partitions and the rhythm that evenflow chooses for each shape. The shapes between them are for the model of
docs/scale.md.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from benchmarks.measuring.cpu import budget, occupancy
from benchmarks.measuring.pipelines import measured_broker
from benchmarks.measuring.spread import beside, in_turns, judged
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.measuring.stream import settings_for, write_input
from benchmarks.service.data_plane import commits_of, plane_speed
from evenflow.settings import Settings

ID = "growth-service"
WHAT = (
    "tuples/s of the partitioner service with 1,000 workers x 100 input partitions against 8 x 4, as chosen"
    " (goal: 0.9)"
)

GOAL = 0.9
"""The least ratio of the speed of the large shape to that of the small one, both as chosen."""

SMALL, LARGE = (8, 4), (1_000, 100)
SHORT = {"block_tuples": 50_000, "commit_interval": 500}
LONG = {"block_tuples": 200_000, "commit_interval": 2_000}
_MANY = 16_000_000
"""Tuples for the shapes as chosen. The client fetches up to a million ahead before the first commit, so a
shorter run would mostly work off what was fetched before it is measured.
"""
_TIMES_AS_MANY = 4
"""So many times the tuples, for several commits in the long rhythm."""
SHAPES = (
    ((8, 4), SHORT),
    ((64, 16), SHORT),
    ((256, 16), SHORT),
    ((256, 16), LONG),
    ((1_000, 16), SHORT),
    ((1_000, 16), LONG),
)
"""(workers with a routed partition each, input partitions), and the rhythm."""


def run(*, smoke: bool) -> dict[str, object]:
    """Rates and CPU time of both shapes, measured in turns, their ratios, and the goal."""
    tuples, repetitions = (200_000, 1) if smoke else (3_000_000, 3)
    many = tuples if smoke else _MANY
    large = (160, 16) if smoke else LARGE
    numbers = count()
    with measured_broker("data_plane") as (broker, meter):

        def shaped(
            workers: int, inputs: int, *, chosen: bool = False, rhythm: dict[str, Any] | None = None
        ) -> Settings:
            length = "long" if chosen else "short"
            return settings_for(
                broker.settings(),
                f"bench-{next(numbers)}",
                input={"topic": f"bench.input.{inputs}.{length}", "partitions": inputs},
                partitioner={
                    "name": "hashing",
                    "workers": workers,
                    **({} if chosen else {"routed_partitions": workers}),
                    # A chosen transaction may be as long as a smoke run.
                    **({} if chosen and not smoke else commits_of(smoke=smoke)),
                    **(rhythm or {}),
                    # The first transaction registers a thousand partitions, which takes this broker a while.
                    "transaction_timeout": "60s",
                },
            )

        for shape in (SMALL, large):
            write_input(shaped(*shape), tuples=tuples)
            write_input(shaped(*shape, chosen=True), tuples=many)
        # `shaped` gives each turn a query of its own, so that every turn reads the whole input.
        speeds = in_turns(
            {
                "large": lambda: plane_speed(shaped(*large), meter),
                "small": lambda: plane_speed(shaped(*SMALL), meter),
                "large, chosen": lambda: plane_speed(shaped(*large, chosen=True), meter),
                "small, chosen": lambda: plane_speed(shaped(*SMALL, chosen=True), meter),
            },
            repetitions,
            tell=True,
        )
        rows, filled = [], {SMALL[1], large[1]}
        for (workers, inputs), rhythm in SHAPES[:1] if smoke else SHAPES:
            settings = shaped(workers, inputs, rhythm={} if smoke else rhythm)
            if inputs not in filled:
                write_input(settings, tuples=_TIMES_AS_MANY * tuples)
                filled.add(inputs)
            with step(f"{workers} x {inputs}, {rhythm}"):
                speed = plane_speed(settings, meter)
            rows.append(
                {
                    "workers": workers,
                    "inputs": inputs,
                    **rhythm,
                    "tuples_per_second": round(speed.tuples_per_second),
                    **budget(speed.used, tuples=speed.tuples),
                    **occupancy(speed.used, speed.tuples / speed.tuples_per_second),
                }
            )
    chosen_speeds = speeds["large, chosen"], speeds["small, chosen"]
    return {
        "tuples": tuples,
        "tuples_as_chosen": many,
        "large": "{} x {}".format(*large),
        "small": "{} x {}".format(*SMALL),
        **beside(speeds["large"], speeds["small"], ("large", "small")),
        "as_chosen": beside(*chosen_speeds, ("large", "small")) | judged(*chosen_speeds, GOAL),
        "shapes": rows,
    }
