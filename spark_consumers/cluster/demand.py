"""How many executors a plan asks for, by the stages that an application runs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from evenflow.elasticity.demand import executors, needed_executors
from evenflow.elasticity.observation import PARTS, Part
from evenflow.plans import Plan
from evenflow.settings import Settings
from evenflow.telemetry import Stage


def executors_wanted(settings: Settings, stages: Sequence[Stage], plan: Plan | None) -> int:
    """Executors to ask for, for these stages in one application, with the reserve.

    plan: None before the first plan, then the settings decide.
    """
    p, r = _pair(settings, plan)
    return executors(settings, _parts(stages), p=p, r=r)


def executors_in_reserve(settings: Settings, stages: Sequence[Stage], plan: Plan | None) -> int:
    """How many of these the plan does not need. `spark.max_executors` may leave less than the setting asks
    for.
    """
    p, r = _pair(settings, plan)
    return executors_wanted(settings, stages, plan) - needed_executors(settings, _parts(stages), p=p, r=r)


def most_executors(settings: Settings, stages: Sequence[Stage]) -> int:
    """Executors that the largest possible plan asks for."""
    return executors(settings, _parts(stages), p=settings.max_workers, r=settings.bucket_count)


def _pair(settings: Settings, plan: Plan | None) -> tuple[int, int]:
    return (settings.partitioner.workers, settings.reducers) if plan is None else (plan.p, plan.r)


def _parts(stages: Sequence[Stage]) -> tuple[Part, ...]:
    return tuple(part for part in PARTS if part in stages or "fused" in stages)
