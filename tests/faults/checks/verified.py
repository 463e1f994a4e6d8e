"""What `evenflow verify` says of a run, against what the simulator itself has found in it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from evenflow.errors import DataLossError, EvenflowError, IncompatibleStateError
from tests.faults.processes import times

if TYPE_CHECKING:
    from tests.faults.run import Cluster


def misjudged(cluster: Cluster, wrong: list[str]) -> list[str]:
    """What is wrong with the verdict of `evenflow verify`, in words. wrong: what the simulator has found.

    It runs when all processes are over, over the topics as they are then.
    """
    try:
        seen = differences(cluster)
    except DataLossError as error:
        return [] if cluster.destroyed else [f"verify refuses although nothing was lost: {error.args[0]}"]
    except EvenflowError as error:
        return [f"verify failed: {type(error).__name__}: {error.args[0]}"]
    if wrong and not seen:
        return [f"verify is green, and it is wrong that {wrong[0]}"]
    if seen and not wrong:
        return [f"verify is red, and nothing is wrong: {seen[0]}"]
    return []


def is_red(cluster: Cluster) -> bool:
    """Whether `evenflow verify` reports a difference or a loss."""
    try:
        return bool(differences(cluster))
    except (DataLossError, IncompatibleStateError):
        return True
    except EvenflowError:
        return False  # it says that something does not work, and not what is lost


def differences(cluster: Cluster) -> list[str]:
    """The first differences that it reports."""
    cluster.world.over = True
    report = _verify()(cluster.settings[0], due_within=0.0, sleep=lambda _: None)
    return [str(one) for one in report.first]


@lru_cache(maxsize=1)
def _verify() -> Any:
    """The product's verify. It is imported late, because few runs need it and its database."""
    from workbench.verify.shell import verify

    times.install()
    return verify
