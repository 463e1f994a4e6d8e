"""Realise: a plan, and the decision that made it, reach the topics in one transaction.

Everything else follows from the plan topic. The Spark applications follow it and ask their own cluster
manager for executors. The partitioners follow it and change p by themselves. Only the number of partitioner
instances needs somebody who sets it, which is what a `Replicas` does.
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
from topics.query.plan_topic import PlanWriter, entry_of

log = logging.getLogger(__name__)

IDENTITY = "controller"
"""Identity of the transactions: <query>.controller. A second controller of the query takes it over."""
_SAVED_EVERY = 10  # observations


class Realiser(Protocol):
    """Where judgements go."""

    def realise(self, judgement: Judgement, record: DecisionRecord, policy: Policy) -> None:
        """Publish the plan of a judgement, if it has one, together with the record of it.

        Raises WriterFenced when another controller has taken over, ServiceError when the broker refuses.
        """

    def repeat(self, plan: Plan) -> None:
        """Publish a plan without a decision: the plan that already counts, under a new epoch."""

    def close(self, policy: Policy) -> None:
        """Save what the policy has learned, if that is possible in time."""


class PlanPublisher:
    """Publishes each judgement in a transaction of its own.

    The transaction also holds what the policy has learned if the judgement has a plan, and at every tenth
    observation.
    """

    def __init__(self, settings: Settings, *, saves: bool = True) -> None:
        """Take over from the controller that the query had before.

        saves: whether what the policy has learned is saved. Raises ServiceError when the broker refuses.
        """
        self._settings, self._saves = settings, saves
        self._writer = PlanWriter(settings, identity=IDENTITY)

    def realise(self, judgement: Judgement, record: DecisionRecord, policy: Policy) -> None:
        """As `Realiser` says."""
        step = judgement.evaluation.observation.step
        save = self._saves and (judgement.plan is not None or step % _SAVED_EVERY == 0)
        self._writer.write(
            judgement.plan,
            telemetry=[(IDENTITY, record.encode())],
            snapshot=snapshot_record(policy) if save else None,
            audit=None if judgement.plan is None else entry_of(judgement.plan, by=IDENTITY),
        )

    def repeat(self, plan: Plan) -> None:
        """As `Realiser` says. Raises what `realise` raises."""
        self._writer.write(plan, audit=entry_of(plan, by=IDENTITY))

    def close(self, policy: Policy) -> None:
        """As `Realiser` says. Raises what `realise` raises."""
        if self._saves:
            self._writer.write(snapshot=snapshot_record(policy))


class DryRun:
    """A dry run: nothing is written, and no other controller is fenced."""

    def realise(self, judgement: Judgement, record: DecisionRecord, policy: Policy) -> None:
        """Nothing."""

    def repeat(self, plan: Plan) -> None:
        """Nothing."""

    def close(self, policy: Policy) -> None:
        """Nothing."""


class Replicas(Protocol):
    """Changes how many partitioner instances run. On Kubernetes: the scale of a StatefulSet or Deployment."""

    def ask(self, *, now: int, target: int, reason: str) -> None:
        """Ask for `target` instances. now: how many are heard. reason: of the decision, for the log.

        This is called again after each observation in which `now` and `target` differ.
        """


class SaidReplicas:
    """Logs how many instances are wanted, once for each change.

    For where only a person can start an instance.
    """

    def __init__(self) -> None:
        self._last_request: tuple[int, int] | None = None

    def ask(self, *, now: int, target: int, reason: str) -> None:
        """As `Replicas` says."""
        # The same request comes with every observation until it is followed.
        if self._last_request != (now, target):
            self._last_request = (now, target)
            log.info("%d partitioner instances would do, %d run: %s", target, now, reason)
