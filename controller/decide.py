"""Decide: the policy's decision on an observation, and the plan that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from controller.evaluate import Evaluation
from controller.plan_history import PlanHistory
from evenflow import elasticity
from evenflow.elasticity import Bounds, Decision, Policy
from evenflow.elasticity.groups import GroupPlanner
from evenflow.errors import ConfigError
from evenflow.plans import LAST_EPOCH, LONGEST_REASON, Plan
from evenflow.settings import Settings
from evenflow.telemetry import DecisionRecord


def policy_of(settings: Settings) -> Policy:
    """The configured policy in its first state. Raises ConfigError for an unknown name or option."""
    control = settings.control
    try:
        return elasticity.create(
            control.policy, bounds=bounds_of(settings), seed=control.seed, **control.options
        )
    except ConfigError as error:
        if not control.options or "policy" in control.model_fields_set:
            raise
        why = (
            f"control.policy is not set, and is {control.policy} then: name"
            " the policy that these options are of"
        )
        raise ConfigError(error.message, hint=f"{error.hint}; {why}" if error.hint else why) from None


def bounds_of(settings: Settings) -> Bounds:
    """The least and most p and r of a query.

    Without a cluster manager a plan changes p only, so the bounds keep r at its setting.
    """
    control, fixed = settings.control, settings.reducers if settings.spark.in_one_process else None
    return Bounds(
        p_min=control.p_min,
        p_max=control.p_max or settings.max_workers,
        r_min=fixed or control.r_min,
        r_max=fixed or control.r_max or settings.bucket_count,
    )


@dataclass(frozen=True)
class Judgement:
    """An observation and the policy's decision on it."""

    evaluation: Evaluation
    """The observation, with what the controller needs besides."""
    decision: Decision
    """p and r that the policy asks for, and why."""
    plan: Plan | None = None
    """The plan to publish. None if none is needed."""

    def record(
        self, settings: Settings, policy: str, *, time_ms: int, dry_run: bool = False
    ) -> DecisionRecord:
        """The record for the telemetry topic: the decision with the observation that caused it.

        policy: name of the policy. time_ms: ms since 1970. dry_run: then the plan is not published, so the
        record names no epoch.
        """
        observation, decision = self.evaluation.observation, self.decision
        return DecisionRecord(
            query=settings.query.name,
            fingerprint=settings.fingerprint,
            time=time_ms,
            policy=policy,
            step=observation.step,
            p=observation.p,
            r=observation.r,
            wanted_p=decision.p,
            wanted_r=decision.r,
            zone=decision.zone,
            epoch=None if self.plan is None or dry_run else self.plan.epoch,
            effective_from=None if self.plan is None else self.plan.fields()["effective_from"],
            held=decision.held,
            reason=decision.reason[:LONGEST_REASON],
            cause=decision.cause,
            observation=observation.fields(),
        )


class Decider:
    """Asks the policy, and holds it back where no policy may go.

    If an earlier plan was not realised in time, no further growth is asked for. While the pipeline is young,
    and after a growth, nothing shrinks for `control.scale_in_wait`. After the last epoch no change is asked
    for.
    """

    def __init__(self, settings: Settings, policy: Policy) -> None:
        self.policy = policy
        control = settings.control
        self.groups = GroupPlanner(slide_ms=settings.query.slide_ms, group=control.group, amend=control.amend)

    def judge(self, evaluation: Evaluation, history: PlanHistory) -> Judgement:
        """Judge one observation. Observations must come in order. history: the plans so far."""
        decision = self._bounded(self.policy.decide(evaluation.observation), evaluation, history)
        now = evaluation.observation
        plan = self.groups.step(
            batch=now.step,
            target=None if decision.held else (decision.p, decision.r),
            in_force=(now.p, now.r),
            reason=decision.reason,
            reached=evaluation.reached,
            batch_ms=evaluation.batch_ms or 0.0,
        )
        return Judgement(evaluation, decision, plan)

    def _bounded(self, decision: Decision, evaluation: Evaluation, history: PlanHistory) -> Decision:
        now = evaluation.observation
        if evaluation.overdue and (decision.p > now.p or decision.r > now.r):
            request = f"the policy asks for p {decision.p} and r {decision.r} ({decision.reason})"
            why = f"plan {history.newest_epoch} is not realised: {'; '.join(evaluation.overdue)}"
            return replace(
                decision, p=now.p, r=now.r, reason=f"{why}; {request}", cause="unrealised", held=True
            )
        if history.newest_epoch >= LAST_EPOCH and (decision.p, decision.r) != (now.p, now.r):
            why = f"the plan topic holds epoch {LAST_EPOCH}, and none can follow: delete that topic"
            return replace(decision, p=now.p, r=now.r, reason=why, cause="no-epoch-left", held=True)
        return self._not_too_early(decision, evaluation)

    def _not_too_early(self, decision: Decision, evaluation: Evaluation) -> Decision:
        now = evaluation.observation
        p, r = max(decision.p, now.p), max(decision.r, now.r)
        if not evaluation.no_scale_in or (p, r) == (decision.p, decision.r):
            return decision
        why = f"{decision.reason}, but {evaluation.no_scale_in}: no scale-in yet"
        return replace(
            decision, p=p, r=r, reason=why, cause="waiting" if (p, r) == (now.p, now.r) else decision.cause
        )


class ReplicaDecider:
    """How many partitioner instances would do, by the share of time that they are busy.

    A threshold policy decides.
    """

    def __init__(self, settings: Settings) -> None:
        control, most = settings.control, settings.input_partitions
        bounds = Bounds(p_min=min(control.replicas_min, most), p_max=min(control.replicas_max or most, most))
        self._policy = elasticity.create("threshold", bounds=bounds, metric="busy")

    def judge(self, evaluation: Evaluation) -> Decision | None:
        """A decision whose p is the wanted number of instances, at most one per input partition.

        None if no change is wanted, or if too little is known.
        """
        if not evaluation.instances:
            return None
        # The policy knows p and r only. So instances take the place of p, and r is fixed. Spark's start is
        # none of theirs.
        decision = self._policy.decide(
            replace(evaluation.observation, p=evaluation.instances, r=1, settling=False, starting=())
        )
        return None if decision.held or decision.p == evaluation.instances else decision
