"""A closed loop with every policy, and with none, on one shape of stream.

Each run is a whole pipeline on this machine (`workbench.elastic`): live replay, a partitioner, Spark with
executor processes of its own, and a controller. Two cores cannot show that more executors compute faster, so
a tuple costs the combiner a wait. At the end of every run all of its windows are compared with a direct
aggregation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.elasticity.picture import courses
from benchmarks.measuring.step_lines import step
from benchmarks.pictures import PLOTS, keep
from evenflow import elasticity
from evenflow.errors import ServiceError
from workbench.elastic import SHAPES, LoopOptions, fields, run_loop, shape_of

NONE = "none"
_SMOKE_SECONDS = 20.0
_RECOMMENDED = "ds2"
_RESERVES = (0, 1)
"""So many executors beyond those that the policy asks for."""
_OPTIONS: dict[str, dict[str, Any]] = {"prompt-plus": {"proportional": True, "max_step": 2}}
"""Options of policies that would otherwise need more micro-batches than a run of three minutes has."""


def policies() -> tuple[str, ...]:
    """No policy, and all registered policies."""
    return (NONE, *elasticity.names())


def measure(shape: str, *, smoke: bool) -> dict[str, object]:
    """A row for each policy. ServiceError if a window differs from the direct aggregation."""
    chosen = shape_of(shape, seconds=_SMOKE_SECONDS) if smoke else SHAPES[shape]
    rows = []
    for policy in ("prompt-plus",) if smoke else policies():
        options = LoopOptions(
            shape=chosen,
            policy=None if policy == NONE else policy,
            policy_options=_OPTIONS.get(policy, {}),
        )
        with step(f"{policy} on {shape}"):
            result = run_loop(options)
        if result.report.differences:
            raise ServiceError(f"{policy} on {shape}: {result.report.text()}")
        rows.append(fields(result))
    if not smoke:
        keep(rows, courses, PLOTS / f"elasticity-{shape}.svg")
    return {"profile": chosen.profile, "policies": [_short(row) for row in rows]}


def beside(shape: str, partitioners: Sequence[str], *, smoke: bool, picture: str) -> dict[str, object]:
    """A row for each of these partitioners, all with Prompt+. ServiceError if a window is not exact."""
    chosen = shape_of(shape, seconds=_SMOKE_SECONDS) if smoke else SHAPES[shape]
    rows = []
    for name in partitioners[-1:] if smoke else partitioners:
        options = LoopOptions(shape=chosen, policy_options=_OPTIONS["prompt-plus"], partitioner=name)
        with step(f"{name} on {shape}"):
            result = run_loop(options)
        if result.report.differences:
            raise ServiceError(f"{name} on {shape}: {result.report.text()}")
        rows.append(fields(result) | {"policy": f"prompt-plus, {name}"})
    if not smoke:
        keep(rows, courses, PLOTS / f"{picture}.svg")
    return {"profile": chosen.profile, "partitioners": [_short(row) for row in rows]}


def with_reserves(shape: str, *, smoke: bool) -> list[dict[str, Any]]:
    """A row of the recommended policy for each of `_RESERVES`. ServiceError if a window is not exact."""
    chosen = shape_of(shape, seconds=_SMOKE_SECONDS) if smoke else SHAPES[shape]
    rows = []
    for reserve in _RESERVES[-1:] if smoke else _RESERVES:
        with step(f"{_RECOMMENDED} on {shape}, {reserve} executors in reserve"):
            result = run_loop(LoopOptions(shape=chosen, policy=_RECOMMENDED, reserve=reserve))
        if result.report.differences:
            raise ServiceError(f"{_RECOMMENDED} on {shape}: {result.report.text()}")
        rows.append({"shape": shape, **fields(result)})
    return [_short(row) for row in rows]


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """The row without its course and other fields that a table has no room for."""
    left_out = ("course", "plans", "profile", "wiring", "rows", "tuples", "slo_ms", "provenance")
    return {name: NONE if value is None else value for name, value in row.items() if name not in left_out}


def described(shape: str) -> str:
    """The words that describe the scenario of this shape."""
    return f"policies in a closed loop on the shape {SHAPES[shape].profile}: zones, cores, latency, actions"
