"""How many executors a plan asks for, by the part of the work that an application does. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from evenflow.plans import Plan
from evenflow.settings import Settings
from spark_consumers.checkpoints import Stage


def executors_wanted(settings: Settings, stages: Sequence[Stage], plan: Plan | None) -> int:
    """Executors for these stages in one application; plan: None before the first, then the settings say it.

    A combiner wants a core for every `partitions_per_slot` workers (p), a reducer one for every reduce bucket that runs
    at once (r). Where one application has both parts, fused or not, they take turns on its cores: the larger counts.
    """
    spark = settings.spark
    p = min(settings.partitioner.workers if plan is None else plan.p, settings.routed_partitions)
    r = min((spark.reducers or spark.buckets) if plan is None else plan.r, spark.buckets)
    combine = 0 if stages == ("reduce",) else _ceil(p, spark.partitions_per_slot)
    reduce = 0 if stages == ("combine",) else r
    return _bounded(settings, _ceil(max(combine, reduce), spark.executor_cores))


def most_executors(settings: Settings, stages: Sequence[Stage]) -> int:
    """What the largest plan there can be would ask for."""
    largest = Plan(epoch=1, p=settings.routed_partitions, r=settings.spark.buckets)
    return executors_wanted(settings, stages, largest)


def _bounded(settings: Settings, executors: int) -> int:
    most = settings.spark.max_executors
    return max(1, executors if most is None else min(executors, most))


def _ceil(of: int, by: int) -> int:
    return -(-of // by)
