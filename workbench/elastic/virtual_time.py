"""A closed loop in virtual time: the shapes, the settings and the controller of the live loop, and a model of
Spark.

The controller is the real one, without Kafka: its collector, its evaluator, its rules and its planner. So is
the partitioner (`virtual_stream`), which reports its rate. Spark is a queue of micro-batches:

* A micro-batch begins at a multiple of the batch interval, or at once if the one before took longer. It takes
  all that is committed by then, or at most what its `Bound` allows.
* It has a task for each routed partition. The tasks go to the executors' cores in their order, each to the
  core that is free first. A time that does not depend on the tuples comes on top.
* An executor that a plan asks for registers after a while. Its first task waits until its Python has started.
* A window comes out with the micro-batch that has all tuples up to its end and the delay of results.

The ranges of `Times` are those of the micro-batches in docs/measurements/elasticity-*.json. A course is read
by the same figures as one of a live loop (`course_figures`). The model leaves out that all processes share
two cores.
"""

from __future__ import annotations

import heapq
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from controller.collect import Collector
from controller.decide import Decider, Judgement, policy_of
from controller.evaluate import Evaluator, Rounds, reached
from controller.plan_history import PlanHistory
from evenflow.elasticity import demand
from evenflow.elasticity.observation import PARTS
from evenflow.errors import ConfigError
from evenflow.plans import Plan, Schedule
from evenflow.settings import Settings
from evenflow.telemetry import BatchRecord, HeartbeatRecord, PartitionerRecord, PartWork, Record
from workbench.elastic.course import Batch, Change, Course
from workbench.elastic.loop import INPUT_PARTITIONS, LoopOptions, loop_settings
from workbench.elastic.virtual_stream import VirtualStream

Range = tuple[float, float]
"""The ends of a uniform law, in seconds."""
_EPOCH_S = 1_700_000_000
"""When the clock starts, in seconds since 1970. A multiple of every batch interval of whole seconds."""
_WARM_UP_S = 30.0
"""Seconds of the first rate before the shape begins."""
_DRIVER_AGE_MS = 30_000
"""How long the driver has been at work when they begin."""
_FRAMES_A_SECOND = 20
"""Frames of a worker, by the default linger."""
_PARTIALS = 0.2
"""Partial rows of a tuple, as in the live loops."""
_PARTIALS_A_SECOND = 21_600.0
"""Partial rows that one core reduces in a second, as in the live loops."""
_KEYS = 1_000.0
"""Distinct keys of a batch interval."""
_FIRST_BEAT = 1.5
"""Batch intervals without a finished micro-batch after which a stage says that it lives."""
_BEAT_S = 5.0
"""Seconds from then until it says so again."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """Laws of the times that the model draws."""

    overhead: Range = (0.5, 1.1)
    """Of a micro-batch, whatever it processes."""
    registration: Range = (2.0, 4.0)
    """From a plan until the executors that it asks for have registered."""
    cold_start: Range = (2.0, 4.0)
    """From then until such an executor can compute."""
    commit_age: Range = (0.1, 0.6)
    """How old the newest tuple is that a micro-batch finds."""
    spread: float = 0.03
    """Standard deviation of the logarithm of a task's time, and of the reported rate."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How much a micro-batch may read while the pipeline scales: from a plan until it is realised and its
    first micro-batches, on which nothing is decided, are over.
    """

    intervals: float
    """Most tuples, over what the measured capacity does within a batch interval."""
    switch_s: float = 0.0
    """Seconds for which nothing runs when the bound begins or ends to hold. Spark reads the limit of a source
    when a query starts, so the query would have to start again."""


def play(
    options: LoopOptions, *, seed: int, bound: Bound | None = None, times: Times | None = None
) -> Course:
    """The course of this loop. The same seed gives the same course.

    Ports and the objective for the latency change nothing. ConfigError for impossible options, for the split
    wiring, and for a partitioner that decides on whole micro-batches.
    """
    if options.wiring != "fused":
        raise ConfigError("a loop in virtual time has the fused wiring only")
    with tempfile.TemporaryDirectory(prefix="evenflow-virtual-") as folder:
        settings = loop_settings(options, Path(folder))
    return _Loop(options, settings, seed=seed, bound=bound, times=times or Times()).course()


@dataclass(frozen=True)
class _Executor:
    registered: float
    """When it can be given a task, s."""
    warm: float
    """When it can compute one, s."""


@dataclass(frozen=True)
class _Work:
    """A micro-batch as it is done. Times are in seconds of the virtual clock."""

    begins: float
    """When it begins."""
    ends: float
    """When it is done."""
    tuples: float
    """Tuples that it processes."""
    tasks: list[float]
    """Seconds of each task."""
    waiting: float
    """Tuples that it left, because of its bound."""

    @property
    def reduced_s(self) -> float:
        """Seconds that the reducer computes."""
        return _PARTIALS * self.tuples / _PARTIALS_A_SECOND

    @property
    def capacity(self) -> float | None:
        """Tuples/s of the combiner while it works, as the controller reckons it. None without work."""
        busy = sum(self.tasks)
        if not busy:
            return None
        return self.tuples * (busy + self.reduced_s) / ((self.ends - self.begins) * busy)


class _Loop:
    """A run. Event time is the virtual clock's, in seconds."""

    def __init__(
        self, options: LoopOptions, settings: Settings, *, seed: int, bound: Bound | None, times: Times
    ) -> None:
        self._settings, self._bound, self._times = settings, bound, times
        self._rng = np.random.default_rng(seed)
        self._interval = settings.spark.batch_interval / 1000
        self._slide = settings.query.slide_ms / 1000
        self._delay = settings.query.result_delay / 1000
        shape = options.shape
        # Where in a batch interval the shape begins, and where a period of the partitioner ends.
        began = _EPOCH_S + 2 * _WARM_UP_S + float(self._rng.uniform(0, self._interval))
        self._phase = float(self._rng.uniform(0, self._interval))
        self._driver_began = began - _WARM_UP_S
        self._input = VirtualStream(shape, settings, began=began, warm_up_s=_WARM_UP_S + self._interval)
        self._control = _Control(settings, now=began) if options.policy is not None else None
        self._routing, self._driver = (Schedule(settings.query.slide_ms) for _ in range(2))
        self._routed: list[tuple[float, int]] = [(-math.inf, settings.partitioner.workers)]
        """From which event time on which p holds."""
        self._executors = [_Executor(-math.inf, -math.inf) for _ in range(self._executors_for(None))]
        self._merged = self._driver_began - self._interval
        """Event time up to which micro-batches have read."""
        self._closed = math.floor(self._merged / self._slide) * self._slide
        self._finished, self._finished_at = 0, self._driver_began
        self._capacity: float | None = None
        self._bounded = False
        self._batches: list[Batch] = []
        self._changes: list[Change] = []
        self._latencies: list[tuple[float, float]] = []
        self._rates: list[tuple[float, float]] = []

    def course(self) -> Course:
        """Play until the shape ends."""
        begins, ends = self._driver_began, self._input.began + self._input.seconds
        while begins < ends:
            begins = self._batch(begins)
        return Course(
            interval=self._interval,
            p=self._settings.partitioner.workers,
            r=self._settings.reducers,
            batches=tuple(batch for batch in self._batches if 0 <= batch.at <= self._input.seconds),
            changes=tuple(self._changes),
            decisions=0 if self._control is None else self._control.judged,
            rates=tuple(self._rates),
            latencies=tuple(self._latencies),
        )

    # ---- micro-batches

    def _batch(self, due: float) -> float:
        """Run the micro-batch that is due now. Returns when the next one is."""
        begins = due + self._switch_s()
        until = begins - self._drawn(self._times.commit_age)
        first, last = self._merged, self._read_to(until)
        overhead, tasks = self._drawn(self._times.overhead), self._tasks(first, last)
        ends = self._done(begins, overhead, tasks)
        beat = self._finished_at + _FIRST_BEAT * self._interval
        while beat < ends:
            if beat > begins:
                self._say_alive(beat, begins)  # a plan may follow, and executors in the middle of the batch
                ends = self._done(begins, overhead, tasks)
            beat += _BEAT_S
        self._merged, self._finished, self._finished_at = last, self._finished + 1, ends
        self._close(ends)
        work = _Work(begins, ends, self._input.between(first, last), tasks, self._input.between(last, until))
        self._capacity = work.capacity or self._capacity
        self._tell(work)
        return max(ends, math.floor(begins / self._interval + 1) * self._interval)

    def _switch_s(self) -> float:
        """Seconds that pass because the bound begins or ends to hold."""
        before = self._bounded
        self._bounded = self._bound is not None and self._control is not None and self._control.scaling
        return self._bound.switch_s if self._bound is not None and self._bounded != before else 0.0

    def _read_to(self, until: float) -> float:
        """Event time up to which the micro-batch reads, if there is input until then."""
        if self._bound is None or not self._bounded or self._capacity is None:
            return until
        most = self._bound.intervals * self._interval * self._capacity
        return min(until, self._input.when(self._input.sent(self._merged) + most))

    def _tasks(self, first: float, last: float) -> list[float]:
        """Seconds of each task: of each routed partition what was routed to it in this event time."""
        loads = np.zeros(self._settings.max_workers)
        ends = [*(at for at, _ in self._routed[1:]), math.inf]
        for (at, p), end in zip(self._routed, ends, strict=True):
            low, high = max(first, at), min(last, end)
            if low < high:
                loads[:p] += self._input.loads(p, high)
        partitions = self._settings.routed_partitions
        # Workers that share a partition share its task.
        loads = np.pad(loads, (0, -len(loads) % partitions)).reshape(-1, partitions).sum(axis=0)
        noise = self._rng.lognormal(0, self._times.spread, len(loads))
        seconds: list[float] = (loads * noise * self._settings.spark.combine_wait / 1e6).tolist()
        return [task for task in seconds if task > 0]

    def _done(self, begins: float, overhead: float, tasks: list[float]) -> float:
        """When these tasks are done on the executors that there are, or will be."""
        ends = starts = begins + overhead / 2
        cores = [(max(starts, executor.registered), executor.warm) for executor in self._executors]
        heapq.heapify(cores)
        for task in tasks:
            free, warm = heapq.heappop(cores)
            done = max(free, warm) + task
            ends = max(ends, done)
            heapq.heappush(cores, (done, done))
        return ends + overhead / 2

    def _close(self, ends: float) -> None:
        """Note the windows that the micro-batch closes."""
        last = math.floor((self._merged - self._delay) / self._slide) * self._slide
        while self._closed < last:
            self._closed += self._slide
            if self._closed > self._input.began:
                late_ms = 1000 * (ends - self._closed - self._delay)
                self._latencies.append((ends - self._input.began, late_ms))

    # ---- what the parts say

    def _tell(self, work: _Work) -> None:
        """Spark says that the micro-batch has ended."""
        load = (work.ends - work.begins) / self._interval
        left = self._frames(work.waiting)
        mark = round(1000 * (self._merged - self._delay))
        self._driver.pass_to(mark)
        del self._executors[self._most_wanted() :]  # the newest go
        state = self._state(work.ends)
        self._batches.append(
            Batch(
                at=work.ends - self._input.began,
                stage="fused",
                load=load,
                tuples=round(work.tuples),
                backlog=left,
                slots=state["slots"],
                executors=state["executors"],
                epoch=state["epoch"],
            )
        )
        record = BatchRecord(
            **self._head(work.ends),
            **state,
            batch=self._finished,
            rows=self._frames(work.tuples),
            duration_ms=round(1000 * (work.ends - work.begins)),
            load=load,
            backlog=left,
            parts={
                "combine": PartWork(
                    tasks=len(work.tasks),
                    busy_ms=1000 * sum(work.tasks),
                    longest_ms=1000 * max(work.tasks, default=0.0),
                    rows=round(work.tuples),
                ),
                "reduce": PartWork(
                    tasks=1,
                    busy_ms=1000 * work.reduced_s,
                    longest_ms=1000 * work.reduced_s,
                    rows=round(_PARTIALS * work.tuples),
                ),
            },
            reducers=self._settings.reducers,
            mark=mark,
            tuples=round(work.tuples),
        )
        self._hear(work.ends, record)

    def _say_alive(self, at: float, begins: float) -> None:
        """Spark says that a micro-batch is under way."""
        running_ms = round(1000 * (at - begins))
        record = HeartbeatRecord(
            **self._head(at), **self._state(at), batch=self._finished, running_ms=running_ms
        )
        self._hear(at, record)

    def _state(self, at: float) -> dict[str, Any]:
        """What all records of the stage have."""
        executors = sum(executor.registered <= at for executor in self._executors)
        return {
            "stage": "fused",
            "batch_interval_ms": self._settings.spark.batch_interval,
            "slots": executors,
            "executors": executors,
            "epoch": 0 if self._driver.current is None else self._driver.current.epoch,
            "finished": self._finished,
            "warm_ms": round(1000 * (at - self._driver_began)) + _DRIVER_AGE_MS,
        }

    def _partitioner(self, at: float) -> PartitionerRecord:
        """The partitioner says how it does."""
        self._routing.pass_to(round(1000 * at))
        current = self._routing.current
        period_end = math.floor((at - self._phase) / self._interval) * self._interval + self._phase
        rate = self._input.between(period_end - self._interval, period_end) / self._interval
        rate *= float(self._rng.lognormal(0, self._times.spread))
        self._rates.append((at - self._input.began, rate))
        tuples = round(self._input.between(self._driver_began, at))
        return PartitionerRecord(
            **self._head(at),
            instance="0",
            started=_EPOCH_S * 1000,
            owned=INPUT_PARTITIONS,
            inputs=INPUT_PARTITIONS,
            epoch=0 if current is None else current.epoch,
            workers=self._settings.partitioner.workers if current is None else current.p,
            tuples=tuples,
            rejected=0,
            read=tuples,
            filtered=0,
            period_ms=self._settings.spark.batch_interval,
            rate=rate,
            keys=_KEYS,
            lag=0,
            event_time=round(1000 * at),
            mark=round(1000 * (at - self._delay)),
        )

    def _hear(self, at: float, word: Record) -> None:
        """The controller hears this after a word of the partitioner, and may publish a plan."""
        if self._control is None or at < self._input.began:
            return
        for judgement in self._control.hear(at, self._partitioner(at), word):
            if judgement.plan is not None:
                self._follow(judgement.plan, at)
                self._changes.append(
                    Change(
                        at=at - self._input.began,
                        p=judgement.plan.p,
                        r=judgement.plan.r,
                        epoch=judgement.plan.epoch,
                        zone=judgement.decision.zone,
                        reason=judgement.decision.reason,
                    )
                )

    # ---- plans

    def _follow(self, plan: Plan, at: float) -> None:
        """Route by this plan from its event time on, and ask for its executors."""
        self._routing.learn(plan, reached=round(1000 * at))
        self._driver.learn(plan, reached=None)
        begins = self._routing.upcoming[-1].begins / 1000
        self._routed = [*(entry for entry in self._routed if entry[0] < begins), (begins, plan.p)]
        for _ in range(self._most_wanted() - len(self._executors)):
            registered = at + self._drawn(self._times.registration)
            self._executors.append(_Executor(registered, registered + self._drawn(self._times.cold_start)))

    def _most_wanted(self) -> int:
        """Executors for the plan in force and all to come. Fewer are kept only once a plan is in force."""
        plans = [self._driver.current, *(entry.plan for entry in self._driver.upcoming)]
        return max(map(self._executors_for, plans))

    def _executors_for(self, plan: Plan | None) -> int:
        p = self._settings.partitioner.workers if plan is None else plan.p
        r = self._settings.reducers if plan is None else plan.r
        return demand.executors(self._settings, PARTS, p=p, r=r)

    # ---- small things

    def _frames(self, tuples: float) -> int:
        seconds = tuples / max(1.0, self._input.first_rate)
        return round(seconds * _FRAMES_A_SECOND * self._settings.partitioner.workers)

    def _drawn(self, law: Range) -> float:
        return float(self._rng.uniform(*law))

    def _head(self, at: float) -> dict[str, Any]:
        settings = self._settings
        return {
            "query": settings.query.name,
            "fingerprint": settings.fingerprint,
            "time": round(1000 * at),
        }


@dataclass
class _Control:
    """The controller without Kafka: a plan that it publishes is in the log at once."""

    settings: Settings
    """Settings of the loop's query."""
    now: float
    """The virtual clock, s."""
    judged: int = 0
    """How many observations it has judged."""
    scaling: bool = False
    """Whether a plan is being realised, or its first micro-batches do not count yet."""

    def __post_init__(self) -> None:
        self._collector = Collector(self.settings, clock=lambda: self.now, wall=lambda: self.now)
        self._rounds = Rounds(self.settings, now=self.now)
        self._evaluator = Evaluator(self.settings)
        self._decider = Decider(self.settings, policy_of(self.settings))
        self._history = PlanHistory(self.settings)

    def hear(self, now: float, *records: Record) -> list[Judgement]:
        """Take these records in. Returns what was judged."""
        self.now, judgements = now, []
        for record in records:
            self._collector.take(record.encode())
            if self._rounds.due(self._collector.known, now):
                judgements.append(self._judge())
        return judgements

    def _judge(self) -> Judgement:
        groups = self._decider.groups
        evaluation = self._evaluator.observe(
            self._collector.known, self._history, self.now, pending=groups.pending
        )
        judgement = self._decider.judge(evaluation, self._history)
        self.judged += 1
        seen, plan = evaluation.observation, judgement.plan
        if plan is not None:
            self._history.learn([plan], reached=reached(self._collector.known), now=self.now)
            groups.learn(plan)
        self.scaling = plan is not None or seen.settling or bool(seen.starting)
        return judgement
