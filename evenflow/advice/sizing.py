"""How many workers, partitioner instances and partitions a stream needs.

The number of workers is the one that the user asks for. If the user gives a worker's capacity instead, the
workers are so many that even the fullest one stays at `UTILISATION` of its capacity. Its load may exceed the
mean by the tolerance with which a partitioner is chosen. Otherwise the present settings count. Partitions are
fixed for the life of a query, so there are more of them than needed now.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenflow.errors import ConfigError
from evenflow.limits import MOST_WORKERS
from evenflow.partitioners.base import MAX_WORKERS
from evenflow.settings.sections.sharing import chosen_partitions

MOST_INPUT_PARTITIONS = 256
UTILISATION = 0.8
"""Share of a worker's capacity that is planned for. The rest is room to catch up."""
INSTANCE_RATE = 600_000.0
"""Tuples per second planned for one partitioner instance: less than half of what was measured in
shapes up to 256 workers, and of what shares partitions beyond (docs/measurements.md).
"""
HEADROOM = 2
"""Partitions for each worker or instance in use, so that the number of workers or instances can double."""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the user asks for, and the present settings.

    ConfigError for a value out of range, and if both workers and capacity are given.
    """

    workers: int | None = None
    """Workers wanted. None: computed from the capacity, or else the present number."""
    capacity: float | None = None
    """Tuples per second that one worker can take."""
    rate: float | None = None
    """Tuples per second to plan for. None: the busiest slide of the sample."""
    instances: int | None = None
    """Partitioner instances. None: as many as the rate needs."""
    window_ms: int | None = None
    """Sliding window, ms. None: the whole sample is one window."""
    slide_ms: int = 1_000
    """Slide of the window, ms. The busiest one decides about the rate."""
    batch: int | None = None
    """Tuples in a micro-batch, for candidates that need micro-batches. None: the tuples of one slide."""
    also: tuple[str, ...] = ()
    """More candidates, NAME[:option=value,...]."""
    tolerance: float = 0.10
    """How much more than the least cost a simpler candidate may cost, as a share."""
    merge_cost: float = 1.0
    """Work of merging one more partial, in tuples."""
    hash_seeds: int = 3
    """Number of hash seeds that a candidate is tried with. Each places the keys differently."""
    top: int = 20
    """Most hot keys to name."""
    present_workers: int = 8
    """Workers by the present settings."""
    present_max_workers: int | None = None
    """Largest number of workers by the present settings. None: they do not say."""
    present_routed_partitions: int | None = None
    """Partitions of the routed topic by the present settings. None: they do not say."""
    present_input_partitions: int = 4
    """Input partitions by the present settings. Fewer are never recommended."""
    seed: int = 7
    """The pipeline's hash seed."""

    def __post_init__(self) -> None:
        least_of = {"workers": 1, "instances": 1, "window_ms": 1, "slide_ms": 1, "top": 0, "hash_seeds": 1}
        for wish, least in least_of.items():
            value = getattr(self, wish)
            if value is not None and value < least:
                raise ConfigError(f"{wish} must be at least {least}, not {value}")
        for wish, most in {"workers": MOST_WORKERS, "instances": MAX_WORKERS}.items():
            value = getattr(self, wish)
            if value is not None and value > most:
                raise ConfigError(f"{wish} must be at most {most:,}, not {value:,}")
        for wish in ("capacity", "rate"):
            value = getattr(self, wish)
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"{wish} must be more than 0 tuples per second, not {value}")
        for wish in ("tolerance", "merge_cost"):
            if not 0 <= getattr(self, wish) < math.inf:
                raise ConfigError(f"{wish} must be at least 0, not {getattr(self, wish)}")
        if self.workers is not None and self.capacity is not None:
            raise ConfigError(
                "workers and capacity both say how many workers there are", hint="give one of the two"
            )


@dataclass(frozen=True, kw_only=True)
class PipelineSize:
    """Workers, instances and partitions for a stream."""

    workers: int
    """Workers that the routed tuples are divided among."""
    instances: int
    """Instances of the partitioner service."""
    max_workers: int
    """Largest number of workers, with room for more than there are."""
    routed_partitions: int
    """Partitions of the routed topic."""
    input_partitions: int
    """Partitions of the input topic, with room for more instances."""
    reasons: tuple[str, ...]
    """Why these numbers, each as a sentence."""


def size(wishes: Wishes, *, rate: float | None) -> PipelineSize:
    """The workers, instances and partitions for a rate.

    rate: tuples per second to plan for, None if it is not known. ConfigError if a capacity is given without a
    rate, or if more workers are needed than a query can have.
    """
    workers, why_workers = _workers(wishes, rate)
    instances = wishes.instances or (1 if rate is None else math.ceil(rate / INSTANCE_RATE))
    most, routed, why_routed = _routed(wishes, workers)
    inputs = min(MOST_INPUT_PARTITIONS, max(wishes.present_input_partitions, HEADROOM * instances))
    why_inputs = (
        f"{inputs} input partitions, as now: enough for {_instances(instances)}"
        if inputs == wishes.present_input_partitions
        else f"{inputs} input partitions: {HEADROOM} for each of {_instances(instances)}"
        f" ({INSTANCE_RATE:,.0f} tuples/s planned for one); their number is fixed for the life of a query"
    )
    return PipelineSize(
        workers=workers,
        instances=instances,
        max_workers=most,
        routed_partitions=routed,
        input_partitions=inputs,
        reasons=(why_workers, why_routed, why_inputs),
    )


def _workers(wishes: Wishes, rate: float | None) -> tuple[int, str]:
    if wishes.workers is not None:
        return wishes.workers, f"{_number(wishes.workers)}, as asked"
    if wishes.capacity is None:
        return wishes.present_workers, f"{_number(wishes.present_workers)}, as in the present settings"
    if rate is None:
        raise ConfigError(
            "a capacity tells nothing without a rate, and the sample has no event times",
            hint="give --rate too, or name the time column with --time",
        )
    room = UTILISATION * wishes.capacity
    workers = math.ceil(rate * (1 + wishes.tolerance) / room)
    if workers > MOST_WORKERS:
        raise ConfigError(
            f"{rate:,.0f} tuples/s at {wishes.capacity:,.0f} tuples/s a worker need {workers:,} workers, "
            f"more than the {MOST_WORKERS:,} that a query may have",
            hint="is the capacity right? It is in tuples per second",
        )
    return workers, (
        f"{_number(workers)}: {rate:,.0f} tuples/s, a worker at {UTILISATION:.0%} of {wishes.capacity:,.0f} "
        f"tuples/s, and {wishes.tolerance:.0%} for the fullest one"
    )


def _routed(wishes: Wishes, workers: int) -> tuple[int, int, str]:
    """Largest number of workers, partitions of the routed topic, and why."""
    present = wishes.present_max_workers
    if present is not None and present >= workers:
        partitions = wishes.present_routed_partitions or chosen_partitions(present)
        return present, partitions, f"{_most(present, partitions)}, as in the present settings"
    most = min(MOST_WORKERS, HEADROOM * workers)
    partitions = chosen_partitions(most)
    fixed = f"fixed for the life of a query; {HEADROOM} for a worker leave room to grow"
    return most, partitions, f"{_most(most, partitions)}, {fixed}"


def _most(workers: int, partitions: int) -> str:
    if partitions == workers:
        return f"{partitions} routed partitions: the most workers there can ever be"
    return f"{partitions} routed partitions, which at most {workers:,} workers share"


def _number(workers: int) -> str:
    return f"{workers:,} worker{'s' if workers > 1 else ''}"


def _instances(instances: int) -> str:
    return f"{instances} partitioner instance{'s' if instances > 1 else ''}"
