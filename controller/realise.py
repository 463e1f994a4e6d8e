"""Realise: a plan, and the decision that made it, reach the topics in one transaction. All else asks somebody else.

The Spark applications ask their own cluster manager for executors, and the partitioners change p by themselves: both
follow the plan topic. Only the number of partitioner replicas is nobody's own business. A `Replicas` takes it.
"""

from __future__ import annotations

import logging
from typing import Protocol

from controller.decide import Judgement
from controller.memory import snapshot_record
from evenflow.elasticity import Policy
from evenflow.plans import Plan
from evenflow.settings import Settings
from evenflow.telemetry import DecisionRecord
from topics.plans import PlanWriter

log = logging.getLogger(__name__)

IDENTITY = "controller"
"""Of the transactions: <query>.controller. A second controller of the query takes it over."""
_SAVED_EVERY = 10


class Realiser(Protocol):
    """Where judgements go."""

    def realise(self, judgement: Judgement, record: DecisionRecord, policy: Policy) -> None:
        """Publish the plan of a judgement, if it has one, together with the record of it.

        Raises Fenced when another controller has taken over, ServiceError when the broker refuses.
        """

    def repeat(self, plan: Plan) -> None:
        """Publish a plan without a decision: what already counts, under a new epoch."""

    def close(self, policy: Policy) -> None:
        """Keep what the policy has learned, if that is possible in time."""


class Published:
    """Every judgement in a transaction of its own. Every tenth also with what the policy has learned."""

    def __init__(self, settings: Settings) -> None:
        """Take over from whoever controlled the query before. Raises ServiceError when the broker refuses."""
        self._settings = settings
        self._writer = PlanWriter(settings, identity=IDENTITY)

    def realise(self, judgement: Judgement, record: DecisionRecord, policy: Policy) -> None:
        """As `Realiser` says."""
        step = judgement.seen.observation.step
        save = judgement.plan is not None or step % _SAVED_EVERY == 0
        self._writer.write(
            judgement.plan,
            telemetry=[(IDENTITY, record.encode())],
            snapshot=snapshot_record(policy) if save else None,
        )

    def repeat(self, plan: Plan) -> None:
        """As `Realiser` says. Raises what `realise` raises."""
        self._writer.write(plan)

    def close(self, policy: Policy) -> None:
        """As `Realiser` says. Raises what `realise` raises."""
        self._writer.write(snapshot=snapshot_record(policy))


class Untouched:
    """A dry run: nothing is written, and no other controller is fenced."""

    def realise(self, judgement: Judgement, record: DecisionRecord, policy: Policy) -> None:
        """Nothing."""

    def repeat(self, plan: Plan) -> None:
        """Nothing."""

    def close(self, policy: Policy) -> None:
        """Nothing."""


class Replicas(Protocol):
    """Whoever can change how many partitioner instances run: a Deployment's scale on Kubernetes."""

    def ask(self, *, now: int, wanted: int, reason: str) -> None:
        """So many instances are wanted. Asked again after each observation in which now and wanted differ."""


class SaidReplicas:
    """Where nobody can start an instance but a person: says what is wanted, once for each number."""

    def __init__(self) -> None:
        self._said: tuple[int, int] | None = None

    def ask(self, *, now: int, wanted: int, reason: str) -> None:
        """As `Replicas` says."""
        if self._said != (now, wanted):
            self._said = (now, wanted)
            log.info("%d partitioner instances would do, %d run: %s", wanted, now, reason)
