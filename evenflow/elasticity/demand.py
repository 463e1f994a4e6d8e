"""What a plan needs from a cluster manager: the executors of an application, computed from p and r."""

from __future__ import annotations

from collections.abc import Iterable

from evenflow.elasticity.observation import Part
from evenflow.settings import Settings


def executors(settings: Settings, parts: Iterable[Part], *, p: int, r: int) -> int:
    """Executors to ask for, for an application that runs these parts of the chain: what it needs, and the
    reserve. At most `spark.max_executors`.
    """
    return _at_most(settings, needed_executors(settings, parts, p=p, r=r) + settings.spark.reserve_executors)


def needed_executors(settings: Settings, parts: Iterable[Part], *, p: int, r: int) -> int:
    """Executors that an application needs to run these parts of the chain, at most `spark.max_executors`.

    The parts take turns on the application's cores, so the part that needs more cores decides.
    """
    spark = settings.spark
    cores = {"combine": settings.combine_cores(p), "reduce": min(r, settings.bucket_count)}
    # -(-a // b) is the division of whole numbers, rounded up.
    return _at_most(settings, -(-max(cores[part] for part in parts) // spark.executor_cores))


def _at_most(settings: Settings, executors: int) -> int:
    most = settings.spark.max_executors
    return executors if most is None else min(executors, most)
