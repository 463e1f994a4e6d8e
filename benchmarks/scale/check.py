"""Checks the model: micro-batches without tuples, as `growth-lanes` measures them, beside the sum of their
unit costs.
"""

from __future__ import annotations

from benchmarks.cores.growth import Pipeline
from benchmarks.cores.growth_lanes import SHAPES
from benchmarks.scale.timing import cpu
from evenflow.scale.costs import Units
from evenflow.scale.runs import empty_batch

_BATCHES = 6


def checked(units: Units, *, smoke: bool) -> list[dict[str, float]]:
    """A row for each shape of `growth-lanes`: CPU seconds of combine plus reduce, measured and by the
    model.
    """
    return [
        {
            "routed": routed,
            "inputs": inputs,
            "buckets": buckets,
            "measured": _measured(routed, inputs, buckets),
            "model": empty_batch(routed, inputs, buckets, units),
        }
        for routed, inputs, buckets in (SHAPES[:1] if smoke else SHAPES)
    ]


def _measured(routed: int, inputs: int, buckets: int) -> float:
    pipeline = Pipeline(routed=routed, inputs=inputs, buckets=buckets)
    upcoming = iter([pipeline.frames(tuples=0, keys=1) for _ in range(_BATCHES + 1)])

    def batch() -> None:
        pipeline.reduce(pipeline.combine(next(upcoming))[0])

    return cpu(batch, repetitions=_BATCHES)
