"""The plan log as the controller follows it: plans in force and to come, and whether they are realised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from controller.collect import PipelineFigures, StageWords
from evenflow.elasticity import demand
from evenflow.elasticity.observation import PARTS, Part
from evenflow.plans import KEPT, LAST_EPOCH, Plan, Schedule
from evenflow.reporting import on_every_line
from evenflow.settings import Settings
from evenflow.telemetry import PartitionerRecord, Stage, parts_of


@dataclass(frozen=True)
class Pair:
    """The two numbers that a plan sets."""

    p: int
    """Workers."""
    r: int
    """Reduce buckets at once."""


class PlanHistory:
    """The plans that count.

    Like any other reader of the topic, it must get every plan in the order of the log.
    """

    def __init__(self, settings: Settings) -> None:
        self._schedule = Schedule(settings.query.slide_ms)
        self._most = Pair(settings.max_workers, settings.bucket_count)
        self._without = Pair(settings.partitioner.workers, settings.reducers)
        self._pairs: dict[int, Pair] = {}
        self.newest: Plan | None = None
        self.newest_since = 0.0
        """When (s, monotonic) the newest plan was learned or came into force, whichever was later."""

    @property
    def in_force(self) -> Plan | None:
        """The plan in force. None before the first plan has begun."""
        return self._schedule.current

    @property
    def pair(self) -> Pair:
        """p and r in force. Before the first plan, those of the settings."""
        return self._without if self.in_force is None else self.meaning(self.in_force)

    @property
    def newest_epoch(self) -> int:
        """Epoch of the newest plan. 0 before the first plan."""
        return self._schedule.newest

    def of_epoch(self, epoch: int) -> Pair | None:
        """p and r of the plan of that epoch. None if the plan is not known any more."""
        return self._without if epoch == 0 else self._pairs.get(epoch)

    def meaning(self, plan: Plan) -> Pair:
        """p and r of a plan as every part applies it: at most `max_workers`, and the number of buckets."""
        return Pair(min(plan.p, self._most.p), min(plan.r, self._most.r))

    def ahead(self, reached: int | None) -> int:
        """Event time (ms) from `reached` to the beginning of the newest plan.
        0 if it has begun, or without `reached`.
        """
        begins = [entry.begins for entry in self._schedule.upcoming if entry.plan is self.newest]
        return max(0, begins[0] - reached) if begins and reached is not None else 0

    def repeated(self) -> Plan | None:
        """The newest plan that counts, with the next epoch.

        None before the first plan and after the last epoch.
        """
        if self.newest is None or self.newest_epoch >= LAST_EPOCH:
            return None
        reason = f"as plan {self.newest.epoch}, of which there are two"
        return replace(self.newest, epoch=self.newest_epoch + 1, group=None, reason=reason)

    def learn(self, plans: Iterable[Plan], *, reached: int | None, now: float) -> list[Plan]:
        """Take in the next plans of the log. Returns the plans that count.

        reached: largest event time (ms) so far, None before the first tuple. now: s, monotonic.
        """
        counted = [plan for plan in plans if self._schedule.learn(plan, reached=reached)]
        for plan in counted:
            self._pairs[plan.epoch] = self.meaning(plan)
            self.newest, self.newest_since = plan, now
            on_every_line(epoch=plan.epoch)
        for epoch in sorted(self._pairs)[:-KEPT]:
            del self._pairs[epoch]
        return counted

    def start(self, plans: Iterable[Plan], *, reached: int | None, now: float) -> None:
        """Take in all plans of the log at the start.

        The plan that should be in force by then is in force at once.
        """
        # Learned without `reached`, plans keep their own beginnings.
        # With it, old plans would begin at the next slide.
        self.learn(plans, reached=None, now=now)
        self._schedule.start((), reached=reached)

    def reach(self, time: int | None, *, now: float) -> None:
        """Note that event time has reached `time` (ms). Plans that begin at or before it come into force."""
        begun = None if time is None else self._schedule.pass_to(time)
        if begun is not None and begun is self.newest:
            self.newest_since = now


def unrealised(
    history: PlanHistory,
    settings: Settings,
    partitioners: Iterable[PartitionerRecord],
    collected: PipelineFigures,
) -> list[str]:
    """In words: which parts do not follow the newest plan yet.

    A part whose p and r are those of the plan follows it.
    """
    if history.newest is None:
        return []
    plan = history.meaning(history.newest)
    return [
        *(
            f"partitioner {record.instance} routes to {_workers(record.workers)}"
            for record in partitioners
            if record.workers != plan.p
        ),
        *_stages(history, settings, plan, collected.stages),
    ]


def _stages(
    history: PlanHistory, settings: Settings, plan: Pair, stages: Mapping[Stage, StageWords]
) -> list[str]:
    laggards = []
    for stage in stages_of(settings):
        word = stages[stage].word.record if stage in stages else None
        if word is None or word.executors is None:
            continue  # without a cluster manager a plan changes p only
        followed = history.of_epoch(word.epoch)
        # The split stages may share one application.
        if not any(_enough(settings, parts, plan, word.executors) for parts in (parts_of(stage), PARTS)):
            own = demand.needed_executors(settings, parts_of(stage), p=plan.p, r=plan.r)
            laggards.append(f"the {stage} stage has {word.executors} executors of the {own} it needs")
        elif followed is None or _differ(stage, followed, plan):
            laggards.append(f"the {stage} stage follows plan {word.epoch}")
    return laggards


def _enough(settings: Settings, parts: Sequence[Part], plan: Pair, executors: int) -> bool:
    """Whether an application that runs these parts has what the plan needs, with or without its reserve."""
    least = demand.needed_executors(settings, parts, p=plan.p, r=plan.r)
    return least <= executors <= demand.executors(settings, parts, p=plan.p, r=plan.r)


def _differ(stage: Stage, followed: Pair, plan: Pair) -> bool:
    # The combine stage does not depend on r, nor the reduce stage on p.
    return (stage != "reduce" and followed.p != plan.p) or (stage != "combine" and followed.r != plan.r)


def _workers(number: int) -> str:
    return f"{number} worker{'' if number == 1 else 's'}"


def stages_of(settings: Settings) -> tuple[Stage, ...]:
    """The Spark stages that this wiring has."""
    return ("fused",) if settings.spark.wiring == "fused" else ("combine", "reduce")
