"""Plays a variant of the recommended policy on a shape, with every seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.elastic import SHAPES, LoopOptions, verdict_of
from workbench.elastic.virtual_time import Bound, play

POLICY = "ds2"
SEEDS = tuple(range(20))
FORECAST: Mapping[str, Any] = {"forecast_s": 10}
"""A forecast of two batch intervals."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A row of the tables."""

    name: str
    """What the page calls it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the policy."""
    reserve: int = 0
    """Executors in reserve."""
    bound: Bound | None = None
    """Of a micro-batch while the pipeline scales."""
    partitioner: str = "evenflow"
    """What routes the tuples."""


VARIANTS = (
    Variant(name="as it is"),
    Variant(name="reserve", reserve=1),
    Variant(name="forecast", options=FORECAST),
    Variant(name="reserve, forecast", reserve=1, options=FORECAST),
    Variant(name="bound 0.8", bound=Bound(intervals=0.8)),
    Variant(name="bound 1", bound=Bound(intervals=1)),
    Variant(name="bound 1.25", bound=Bound(intervals=1.25)),
    Variant(name="bound 1, 1 s to switch", bound=Bound(intervals=1, switch_s=1)),
    Variant(name="forecast, bound 1", options=FORECAST, bound=Bound(intervals=1)),
    Variant(name="reserve, bound 1", reserve=1, bound=Bound(intervals=1)),
    Variant(name="reserve, hashing", reserve=1, partitioner="hashing"),
)

Figures = dict[str, list[float]]
"""Figure -> one value for each seed: overloaded and late as shares, p50 and p99 in s, core seconds, plans."""


def measure(variant: Variant, shape: str, *, seeds: Sequence[int]) -> Figures:
    """The figures of a variant on a shape."""
    runs = [_figures(variant, shape, seed=seed) for seed in seeds]
    return {name: [run[name] for run in runs] for name in runs[0]}


def _figures(variant: Variant, shape: str, *, seed: int) -> dict[str, float]:
    options = LoopOptions(
        shape=SHAPES[shape],
        policy=POLICY,
        policy_options=variant.options,
        reserve=variant.reserve,
        partitioner=variant.partitioner,
    )
    verdict = verdict_of(play(options, seed=seed, bound=variant.bound), slo_ms=options.slo_ms)
    return {
        "overloaded": verdict.overloaded,
        "late": verdict.slo_violations or 0.0,
        "p50": (verdict.latency_p50_ms or 0.0) / 1000,
        "p99": (verdict.latency_p99_ms or 0.0) / 1000,
        "cores": verdict.slot_seconds,
        "plans": float(verdict.actions),
    }
