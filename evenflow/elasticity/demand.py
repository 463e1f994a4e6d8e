"""What a plan needs from a cluster manager: the executors of an application, computed from p and r."""

from __future__ import annotations

from collections.abc import Iterable

from evenflow.elasticity.observation import Part
from evenflow.settings import Settings


def executors(settings: Settings, parts: Iterable[Part], *, p: int, r: int) -> int:
    """Executors of an application that runs these parts of the chain, the reserve included.

    The parts take turns on the application's cores, so the part that needs more cores decides. There are at
    most `spark.max_executors`.
    """
    spark = settings.spark
    # -(-a // b) is the division of whole numbers, rounded up.
    cores = {
        "combine": -(-min(p, settings.routed_partitions) // spark.partitions_per_slot),
        "reduce": min(r, spark.buckets),
    }
    needed_executors = -(-max(cores[part] for part in parts) // spark.executor_cores)
    wanted = needed_executors + spark.reserve_executors
    return wanted if spark.max_executors is None else min(wanted, spark.max_executors)
