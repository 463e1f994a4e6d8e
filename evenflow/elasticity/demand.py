"""What a plan needs of a cluster manager: executors of an application, from p and r."""

from __future__ import annotations

from collections.abc import Iterable

from evenflow.elasticity.observation import Part
from evenflow.settings import Settings


def executors(settings: Settings, parts: Iterable[Part], *, p: int, r: int) -> int:
    """Executors of an application that runs these parts. They take turns on its cores, so the larger demand decides."""
    spark = settings.spark
    cores = {
        "combine": -(-min(p, settings.routed_partitions) // spark.partitions_per_slot),
        "reduce": min(r, spark.buckets),
    }
    wanted = -(-max(cores[part] for part in parts) // spark.executor_cores)
    return wanted if spark.max_executors is None else min(wanted, spark.max_executors)
