"""What the controller logs: a line at its beginning and every ten seconds, changes at once, warnings
rarely.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from controller.decide import Judgement
from controller.plan_history import PlanHistory
from evenflow.elasticity import Policy
from evenflow.plans import Plan
from evenflow.reporting import Concern, Concerns, Increases, with_fields
from evenflow.reporting.words import moment
from evenflow.settings import Settings
from evenflow.windows import NO_MARK

log = logging.getLogger("controller")


class LogLines:
    """Logs what the controller sees and does. clock: s, monotonic."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._concerns = Concerns(log, clock=clock)
        self._increases = Increases(clock=clock)
        self._counts: Counter[str] = Counter()
        self._last: Judgement | None = None

    def begins(self, policy: Policy, plans: PlanHistory, *, remembered: bool, dry_run: bool) -> None:
        """Log what this controller is about to do.

        remembered: whether the policy goes on from an earlier controller.
        """
        bounds, pair = policy.bounds, plans.pair
        log.info(
            "query %s, policy '%s'%s: p %d (%d to %d), r %d (%d to %d), plan epoch %d%s",
            self._settings.query.name,
            policy.name,
            " as an earlier controller left it" if remembered else "",
            pair.p,
            bounds.p_min,
            bounds.p_max,
            pair.r,
            bounds.r_min,
            bounds.r_max,
            plans.newest_epoch,
            "; a dry run, nothing is written" if dry_run else "",
            extra=with_fields({"event": "begin", "query": self._settings.query.name, "policy": policy.name}),
        )

    def ends(self, plans: PlanHistory, *, dry_run: bool) -> None:
        """Log what stays in force when this controller stops. The newest plan counts, though it may begin
        a little later.
        """
        if dry_run:
            return
        newest = plans.newest
        if newest is None:
            own = self._settings.partitioner.workers
            log.info("stopped: no plan was published, so `workers` (%d) holds", own)
            return
        p = plans.meaning(newest).p
        log.info(
            "stopped: the plan of epoch %d with %d worker%s stays in force; `evenflow plan --clear` gives"
            " `workers` its meaning back",
            newest.epoch,
            p,
            "" if p == 1 else "s",
            extra=with_fields({"event": "end", **newest.fields()}),
        )

    def adopted(self, plan: Plan) -> None:
        """Log that a plan of another writer is in the log, and counts."""
        why = f" ({plan.reason})" if plan.reason else ""
        log.info("%s was published by somebody else%s: it is adopted", plan_words(plan), why)

    def lost(self, plan: Plan, again: Plan | None) -> None:
        """Log that another writer's plan came first.

        plan: this controller's plan, which does not count. again: a repetition of the other writer's plan
        under a new epoch, None if no epoch can follow.
        """
        log.warning(
            "plan %d of this controller does not count: somebody else published one first%s",
            plan.epoch,
            "" if again is None else f"; it is repeated as plan {again.epoch}",
        )

    def judged(self, judgement: Judgement) -> None:
        """Count an observation, and log its plan, if it has one."""
        self._last = judgement
        self._counts["observations"] += 1
        if judgement.plan is not None:
            self._counts["plans"] += 1
            fields = {"event": "plan", **judgement.plan.fields()}
            log.info(
                "%s: %s", plan_words(judgement.plan), judgement.decision.reason, extra=with_fields(fields)
            )

    def look(self, ignored: Mapping[str, int]) -> None:
        """Log what is due. ignored: how many records count for nothing, by kind."""
        self._concerns.now(self._lasting())
        increase = self._increases.due(self._counts | Counter({"ignored": sum(ignored.values())}))
        if increase is not None and self._last is not None:
            fields = {"event": "heartbeat", **self._counts, "ignored": dict(ignored)}
            log.info("%s", line(self._last, fields), extra=with_fields(fields))

    def _lasting(self) -> list[Concern]:
        if self._last is None:
            return []
        evaluation = self._last.evaluation
        # The name of a concern must stay the same while it
        # lasts, so the seconds after " for " are no part of it.
        concerns = [
            Concern(name=words.split(" for ")[0], text=f"nothing is decided: {words}", over=_SPEAKS)
            for words in evaluation.observation.stale
        ]
        if evaluation.overdue:
            words = "; ".join(evaluation.overdue)
            text = f"the newest plan is not realised, so nothing more is asked for: {words}"
            concerns.append(Concern(name="not realised", text=text, over="the newest plan is realised"))
        return concerns


_SPEAKS = "what was missing is there again"


def line(judgement: Judgement, counts: Mapping[str, Any]) -> str:
    """The newest observation in one line. counts: observations, plans, and ignored records by kind."""
    parts = [
        f"{counts['observations']:,} observations, {counts.get('plans', 0):,} plans",
        *seen_words(judgement),
    ]
    ignored = sum(counts["ignored"].values())
    return ", ".join([*parts, *([f"{ignored:,} records ignored"] if ignored else [])])


def seen_words(judgement: Judgement) -> list[str]:
    """The figures of an observation that people look at first, as words."""
    observation, zone = judgement.evaluation.observation, judgement.decision.zone
    figures = (
        ("W {:.2f}" + ("" if zone is None else f" (zone {zone})"), observation.load),
        ("{:,.0f} tuples/s", observation.rate),
        ("{:,.0f} keys", observation.keys),
        ("lag {:,.0f}", observation.lag),
    )
    return [
        f"p {observation.p}, r {observation.r}",
        *(words.format(value) for words, value in figures if value is not None),
    ]


def plan_words(plan: Plan) -> str:
    """A plan in words, without its reason."""
    begins = "at the next slide" if plan.effective_from == NO_MARK else f"from {moment(plan.effective_from)}"
    return f"plan {plan.epoch}: p {plan.p}, r {plan.r} {begins}"


def judgement_words(judgement: Judgement) -> str:
    """The line that a dry run prints for one observation."""
    observation, decision = judgement.evaluation.observation, judgement.decision
    if judgement.plan is not None:
        would = f"would publish {plan_words(judgement.plan)}"
    elif decision.held:
        would = "holds"
    else:
        would = "keeps the plan"
    return f"{observation.step}: {', '.join(seen_words(judgement))}: {would}: {decision.reason}"
