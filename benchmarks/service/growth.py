"""The partitioner service with 1,000 workers and 100 input partitions beside 8 and 4, on a real broker.

Once with a routed partition for each worker and commits every half a second, and once with the routed
partitions and the rhythm that evenflow chooses for each shape.
"""

from __future__ import annotations

from itertools import count

from benchmarks.measuring.pipelines import measured_broker
from benchmarks.measuring.spread import beside, in_turns, judged
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.measuring.stream import settings_for, write_input
from benchmarks.service.data_plane import plane_speed
from evenflow.settings import Settings

ID = "growth-service"
WHAT = (
    "tuples/s of the partitioner service with 1,000 workers x 100 input partitions against 8 x 4, as chosen"
    " (goal: 0.9)"
)

GOAL = 0.9
"""The least ratio of the speed of the large shape to that of the small one, both as chosen."""

SMALL, LARGE = (8, 4), (1_000, 100)


def run(*, smoke: bool) -> dict[str, object]:
    """Rates and CPU time of both shapes, measured in turns, their ratios, and the goal."""
    tuples, repetitions = (200_000, 1) if smoke else (3_000_000, 3)
    large = (160, 16) if smoke else LARGE
    numbers = count()
    with measured_broker("data_plane") as (broker, meter):

        def shaped(workers: int, inputs: int, *, chosen: bool = False) -> Settings:
            return settings_for(
                broker.settings(),
                f"bench-{next(numbers)}",
                input={"topic": f"bench.input.{inputs}", "partitions": inputs},
                partitioner={
                    "name": "hashing",
                    "workers": workers,
                    **({} if chosen else {"routed_partitions": workers}),
                    # A chosen transaction may be as long as a smoke run.
                    **({} if chosen and not smoke else {"commit_interval": 50 if smoke else 500}),
                    # The first transaction registers a thousand partitions, which takes this broker a while.
                    "transaction_timeout": "60s",
                },
            )

        for shape in (SMALL, large):
            write_input(shaped(*shape), tuples=tuples)
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
    chosen_speeds = speeds["large, chosen"], speeds["small, chosen"]
    return {
        "tuples": tuples,
        "large": "{} x {}".format(*large),
        "small": "{} x {}".format(*SMALL),
        **beside(speeds["large"], speeds["small"], ("large", "small")),
        "as_chosen": beside(*chosen_speeds, ("large", "small")) | judged(*chosen_speeds, GOAL),
    }
