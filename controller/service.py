"""The controller's loop: collect, evaluate, decide, realise, until the controller is told to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator

from controller.collect import Collector
from controller.decide import Decider, Judgement, ReplicaDecider, policy_of
from controller.evaluate import Evaluation, Evaluator, Rounds, patience, reached
from controller.kubernetes import ScaledReplicas, leading, lost
from controller.log_lines import LogLines
from controller.memory import remember
from controller.plan_history import PlanHistory, stages_of
from controller.realise import DryRun, PlanPublisher, Realiser, Replicas, SaidReplicas
from evenflow.elasticity import Policy
from evenflow.errors import ServiceError
from evenflow.host.stopping import stopped_by_signals
from evenflow.plans import Plan
from evenflow.reporting import Trouble, on_every_line, unanswered
from evenflow.reporting.responsible_instances import responsible_instances
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from evenflow.telemetry import DecisionRecord, Telemetry, inputs_of
from monitoring.health import Checks, Turns
from monitoring.instruments.controller import ControllerInstruments
from monitoring.live.glance import Glance
from monitoring.live.picture import Picture
from monitoring.serving import served
from topics.admin import ensure_topics, pipeline_topics, refuse_unwritable
from topics.follower import Follower, offset_of
from topics.query.input_topic import admitted
from topics.query.plan_topic import PlanFollower
from topics.records import Record
from topics.watch import TopicWatch

log = logging.getLogger("controller")

OWN_TOPICS: tuple[TopicRole, ...] = ("telemetry", "plan", "snapshots", "controller", "audit")
"""Roles of the topics that the controller reads and writes."""
_NEWEST = 500  # telemetry records that are read at the start: enough to have heard every part
_TURN_SECONDS = 0.2
Tell = Callable[[Judgement, DecisionRecord], None]


def control(
    settings: Settings,
    *,
    stop: threading.Event | None = None,
    dry_run: bool = False,
    tell: Tell | None = None,
    replicas: Replicas | None = None,
    clock: Callable[[], float] = time.monotonic,
    wall: Callable[[], float] = time.time,
) -> None:
    """Control the query until `stop`, SIGTERM or SIGINT.

    dry_run: whether to only look. Then nothing is written, no topic is made, and another controller is not
    disturbed. tell: called with each judgement. replicas: changes the number of partitioner instances, by
    default as `[control]` says. clock: s, monotonic. wall: s since 1970.

    Raises ConfigError for a policy that cannot be used, WriterFenced when another controller has taken over,
    and other EvenflowErrors when the query is refused or the broker does not answer.
    """
    stop = stop or threading.Event()
    on_every_line(query=settings.query.name, part="controller", epoch=0)
    instruments = ControllerInstruments(settings)
    host, port = settings.control.web_host, settings.control.web_port
    controller: Controller | None = None
    loop, led = Turns("the controller's loop", clock=clock), threading.Event()

    def glance() -> Glance | None:
        return None if controller is None else controller.picture.glance()

    def health() -> Checks:
        # A controller that waits for the lease is healthy.
        starting = led.is_set() and not loop.begun
        trouble = None if controller is None else controller.broker_gone
        reason = "it has not begun to control yet" if starting else None if trouble is None else trouble.text
        return Checks(loop.trouble(), reason)

    if dry_run:
        # A dry run must neither take the lease nor change the number of instances.
        alone = settings.control.model_copy(update={"lease": None, "replicas_of": None})
        settings = settings.model_copy(update={"control": alone})
    if replicas is None and settings.control.replicas_of is not None:
        replicas = ScaledReplicas(settings, clock=clock)
    # Entered first below, so that a port in use is refused before another controller is fenced.
    pages = served(
        instruments,
        host,
        port,
        setting="control.web_port",
        health=health,
        glance=glance,
        web=settings.web,
    )
    with stopped_by_signals(stop), pages, leading(settings, stop, clock=clock) as leads:
        if stop.is_set():
            return
        led.set()
        controller = Controller(
            settings,
            dry_run=dry_run,
            tell=_both(instruments.decided, tell),
            replicas=replicas,
            clock=clock,
            wall=wall,
        )
        instruments.watch(
            record_count=lambda: controller.record_count,
            ignored=controller.ignored,
            silence=controller.silence,
            patience=patience(settings),
        )
        try:
            while not stop.is_set():
                if not leads():
                    raise lost(settings.control.lease or "")
                controller.turn(_TURN_SECONDS)
                loop.turned()
            controller.keep()
            controller.tell_end()
        finally:
            controller.close()


def _both(first: Callable[[DecisionRecord], None], second: Tell | None) -> Tell:
    def tell(judgement: Judgement, record: DecisionRecord) -> None:
        first(record)
        if second is not None:
            second(judgement, record)

    return tell


class Controller:
    """One controller of a query. `turn` does what is due, and is to be called again and again.

    As soon as it is made, it fences the controller that the query had before, except in a dry run. policy:
    decides in place of the configured one. What it has learned is neither read nor saved, and what the
    configured one has learned stays as it is.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        policy: Policy | None = None,
        dry_run: bool = False,
        tell: Tell | None = None,
        replicas: Replicas | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        # First: a wrong policy is refused without a broker.
        override, policy = policy, policy or policy_of(settings)
        self._settings = settings = admitted(settings)
        self.picture = Picture(settings, clock=clock, wall=wall)
        self._dry_run, self._tell, self._clock, self._wall = dry_run, tell, clock, wall
        self._begun = clock()
        if not dry_run:
            specs = pipeline_topics(settings)
            ensure_topics(settings.kafka, [specs[role] for role in OWN_TOPICS])
            # A plan is written with its entry or not at all, so a missing right must not show at the first
            # plan only.
            refuse_unwritable(settings.kafka, specs["audit"].name, "audit")
        # Rule "the beginning is locked before it is read": first the controller before this one is fenced,
        # then the log is read, and only then is anything decided.
        self._realiser: Realiser = DryRun() if dry_run else PlanPublisher(settings, saves=override is None)
        remembered = override is None and remember(settings, policy)
        self._collector = Collector(settings, clock=clock, wall=wall, on_record=self._paint)
        self._evaluator = Evaluator(settings)
        self._decider = Decider(settings, policy)
        self._replicas = ReplicaDecider(settings)
        self._scaler = replicas or SaidReplicas()
        self._talk = LogLines(settings, clock=clock)
        self._pending: Plan | None = None
        self._history = PlanHistory(settings)
        self._plans = PlanFollower(settings)
        # Uncommitted records, too: an instance's open transaction
        # must not hold back the telemetry of all others.
        self._telemetry = Follower(settings, "telemetry", newest=_NEWEST, isolation="read_uncommitted")
        self._fresh_from, self._read_at = self._telemetry.end, clock()
        for message in self._telemetry.all_so_far():
            self._collector.take(message.value(), fresh=offset_of(message) >= self._fresh_from)
        plans = self._plans.all_so_far()
        self._history.start(plans, reached=reached(self._collector.known), now=clock())
        for plan in plans:
            self._decider.groups.learn(plan)
        self._rounds = Rounds(settings, now=clock())
        self._watch = TopicWatch(settings.kafka, [self._plans.state, self._telemetry.state])
        self._talk.begins(policy, self._history, remembered=remembered, dry_run=dry_run)

    def turn(self, timeout: float) -> None:
        """Take in new plans and records, and judge what is due. timeout: s to wait for the first record."""
        for evaluation in self.observations(timeout):
            self.judge(evaluation)

    def observations(self, timeout: float) -> Iterator[Evaluation]:
        """Take in new plans and records.
        Yields each observation as soon as it is due: judge it before the next one.

        timeout: s to wait for the first record.
        """
        self._watch.check()
        self._learn()
        for message in self._new_telemetry(timeout):
            if self._collector.take(message.value(), fresh=offset_of(message) >= self._fresh_from):
                yield from self._due()
        yield from self._due()
        self._talk.look(self.ignored())

    def judge(self, evaluation: Evaluation) -> Judgement:
        """Let the policy decide on this observation, and publish what follows from it."""
        judgement = self._decider.judge(evaluation, self._history)
        self._realise(judgement)
        return judgement

    @property
    def policy(self) -> Policy:
        """The policy that decides."""
        return self._decider.policy

    @property
    def broker_gone(self) -> Trouble | None:
        """What is wrong if Kafka does not answer."""
        return unanswered(self._watch.servers, self._watch.unanswered)

    @property
    def record_count(self) -> int:
        """How many records of this query's parts the controller has taken in."""
        return self._collector.record_count

    def silence(self) -> dict[str, float]:
        """Seconds since each part was heard.

        A part that was last heard before the controller began counts from the controller's beginning on. All
        partitioners are one part, and the longest silence counts. A partitioner whose input partitions others
        have taken over does not count.
        """
        now, known, limit = self._clock(), self._collector.known, patience(self._settings)
        # Copies, as a scrape asks from a thread of its own while the loop changes the originals.
        partitioners, ours = list(known.partitioners.values()), stages_of(self._settings)
        words: dict[str, float | None] = {
            stage: stage_words.word.at for stage, stage_words in list(known.stages.items()) if stage in ours
        }
        answering = responsible_instances(
            reversed(partitioners),
            partitions=inputs_of(
                (arrival.record for arrival in partitioners), self._settings.input_partitions
            ),
            owned=lambda arrival: arrival.record.owned,
            anyway=lambda arrival: arrival.age(now) < limit,
        )
        if answering:
            words["partitioner"] = answering[-1].at
        return {part: now - (self._begun if at is None else at) for part, at in words.items()}

    def _paint(self, record: Telemetry, fresh: bool) -> None:
        self.picture.add(record, old=not fresh)

    def keep(self) -> None:
        """Save what the policy has learned. If the broker is gone by now, that is only logged."""
        try:
            self._realiser.close(self.policy)
        except ServiceError as error:
            log.warning("what the policy has learned was not saved: %s", error.message)

    def tell_end(self) -> None:
        """Log which plan stays in force."""
        self._talk.ends(self._history, dry_run=self._dry_run)

    def close(self) -> None:
        """Close the connections to the broker."""
        self._plans.close()
        self._telemetry.close()

    def _new_telemetry(self, timeout: float) -> list[Record]:
        """Records since the last call.

        After a long silence, of the broker or of all parts, the records that piled up meanwhile do not count
        as fresh.
        """
        messages, now = self._telemetry.new(timeout), self._clock()
        if messages and now - self._read_at > patience(self._settings):
            self._fresh_from = self._telemetry.log_end()
        if messages:
            self._read_at = now
        return messages

    def _learn(self) -> None:
        now, event_time = self._clock(), reached(self._collector.known)
        for plan in self._plans.new():
            counts = bool(self._history.learn([plan], reached=event_time, now=now))
            self._decider.groups.learn(plan)
            ours = plan == self._pending
            if ours:
                self._pending = None
            if ours and not counts:
                self._repeat(plan)
            elif counts and not ours:
                self._talk.adopted(plan)

    def _repeat(self, lost: Plan) -> None:
        """Publish the plan that counts under a new epoch, because two plans have the same one.

        Another writer was first with that epoch, so its plan counts. But compaction may remove that plan and
        keep this controller's, which came later under the same key.
        """
        again = self._history.repeated()
        if again is not None:
            self._realiser.repeat(again)
        self._pending = again
        self._talk.lost(lost, again)

    def _due(self) -> Iterator[Evaluation]:
        now = self._clock()
        if self._rounds.due(self._collector.known, now):
            pending = self._pending is not None or self._decider.groups.pending
            yield self._evaluator.observe(self._collector.known, self._history, now, pending=pending)

    def _realise(self, judgement: Judgement) -> None:
        time_ms = round(self._wall() * 1000)
        record = judgement.record(self._settings, self.policy.name, time_ms=time_ms, dry_run=self._dry_run)
        self._realiser.realise(judgement, record, self.policy)
        if self._dry_run:
            self.picture.add(record)  # otherwise the record comes back through the telemetry topic
        if not self._dry_run and judgement.plan is not None:
            self._pending = judgement.plan
        self._talk.judged(judgement)
        if self._tell is not None:
            self._tell(judgement, record)
        decision = self._replicas.judge(judgement.evaluation)
        if decision is not None:
            self._scaler.ask(now=judgement.evaluation.instances, target=decision.p, reason=decision.reason)

    def ignored(self) -> dict[str, int]:
        """Number of records of telemetry and plans that count for nothing, by kind."""
        plans = {"that are no plan": self._plans.ignored} if self._plans.ignored else {}
        return {**self._collector.ignored, **plans}
