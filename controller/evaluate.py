"""Evaluate: makes observations from the collected records and the plans so far.

No Kafka, and no clock but `now`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise, starmap
from statistics import median

from controller import measures
from controller.beginnings import Beginning, Beginnings
from controller.collect import Arrival, PipelineFigures
from controller.plan_history import PlanHistory, stages_of, unrealised
from evenflow.elasticity import Observation, StageObservation
from evenflow.elasticity.observation import Part
from evenflow.reporting.responsible_instances import responsible_instances
from evenflow.reporting.words import span
from evenflow.settings import Settings
from evenflow.telemetry import BatchRecord, HeartbeatRecord, PartitionerRecord, Stage, inputs_of

LEAST_PATIENCE = 20.0
"""Seconds of silence that are never too long."""
_LIVE_MS = 300_000  # a larger latency means that event times are not live, as in a replay
_SPEED_OVER = 30.0  # s over which the speed of event time is measured


def patience(settings: Settings) -> float:
    """Seconds after which the newest record of a part is too old."""
    if settings.control.patience is not None:
        return settings.control.patience / 1000
    return max(LEAST_PATIENCE, 4 * settings.spark.batch_interval / 1000)


def realised_within(settings: Settings) -> float:
    """Seconds that a plan may take until it is reported as not realised. Executors need a while to start."""
    group = settings.control.group * settings.spark.batch_interval / 1000
    return max(90.0, 3 * patience(settings), 2 * group)


class Rounds:
    """When the next observation is due: as soon as every stage has sent a new record.

    Heartbeats of idle stages come more often than micro-batches. So if there are only heartbeats, an
    observation is due once per batch interval. If a stage is silent, an observation is due after `patience`,
    so that the silence is reported.
    """

    def __init__(self, settings: Settings, *, now: float) -> None:
        self._stages = stages_of(settings)
        self._interval = settings.spark.batch_interval / 1000
        self._patience = patience(settings)
        self._last_words: dict[Stage, object] = {}
        self._last = now

    def due(self, collected: PipelineFigures, now: float) -> bool:
        """Whether an observation is due. If so, the wait for the next one begins."""
        words = {stage: collected.stages[stage].word for stage in self._stages if stage in collected.stages}
        # Compared by identity, as two records may be equal.
        new = [
            word
            for stage, word in words.items()
            if word.at is not None and self._last_words.get(stage) is not word
        ]
        finished = any(isinstance(word.record, BatchRecord) for word in new)
        all_of_them = len(new) == len(self._stages)
        since = now - self._last
        if not (all_of_them and (finished or since >= self._interval)) and since < self._patience:
            return False
        self._last_words = {**words}
        self._last = now
        return True


@dataclass(frozen=True)
class Evaluation:
    """An observation, and what the controller needs besides but a policy does not."""

    observation: Observation
    """What the policy sees."""
    reached: int | None = None
    """Largest event time (ms) that a partitioner has seen. None before the first tuple."""
    batch_ms: float | None = None
    """Milliseconds of event time that go by in a batch interval.
    None if the speed of event time is not known."""
    overdue: tuple[str, ...] = ()
    """In words, which parts do not follow the newest plan although there was time enough."""
    instances: int = 0
    """How many partitioner instances count."""
    no_scale_in: str = ""
    """Why a scale-in would come too early. Empty if it would not."""


@dataclass
class Evaluator:
    """Makes observations. Remembers how fast event time advances, what has begun lately,
    and how many there were.
    """

    settings: Settings
    """Settings of the query that is controlled."""
    step: int = 0
    """Number of the newest observation, 0 before the first."""
    _times: deque[tuple[float, int]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._beginnings = Beginnings(self.settings)

    def observe(
        self, collected: PipelineFigures, history: PlanHistory, now: float, *, pending: bool = False
    ) -> Evaluation:
        """The next observation. pending: whether a plan is published that the log has not shown yet."""
        self.step += 1
        partitioners = [arrival.record for arrival in counted(self.settings, collected, now)]
        time = measures.reached(partitioners)
        history.reach(time, now=now)
        self._note(now, time)
        speed, steady = self._speed(), self._steady_speed()
        missing = unrealised(history, self.settings, partitioners, collected)
        # A plan that begins further ahead than the time allowed to realise it cannot be overdue yet.
        within = realised_within(self.settings)
        late = now - history.newest_since > within
        tomorrow = history.ahead(time) > 1000 * within * max(1.0, steady or 0.0)
        overdue = bool(missing) and late and not tomorrow
        young = self._beginnings.look(collected, history.pair, now, realised=not missing)
        observation = _Sight(self.settings, collected, partitioners, now, speed).observation(
            step=self.step, history=history, settling=pending or (bool(missing) and not late), young=young
        )
        return Evaluation(
            observation,
            reached=time,
            batch_ms=None if steady is None else steady * observation.interval_ms,
            overdue=tuple(missing) if overdue else (),
            instances=len(partitioners),
            no_scale_in=young.no_scale_in,
        )

    def _note(self, now: float, time: int | None) -> None:
        """Note that event time has reached `time`.

        Notes are kept for half a minute, but at least two of them.
        """
        times = self._times
        if time is None or (times and now <= times[-1][0]):
            return
        if times and time < times[-1][1]:
            times.clear()  # the partitioner that was ahead is gone
        times.append((now, time))
        while len(times) > 2 and times[1][0] <= now - _SPEED_OVER:
            times.popleft()

    def _speed(self) -> float | None:
        """Milliseconds of event time per ms of the controller's clock, over all notes.

        None with fewer than two.
        """
        return _between(self._times[0], self._times[-1]) if len(self._times) > 1 else None

    def _steady_speed(self) -> float | None:
        """Median of the speeds from each note to the next, as a gap in event time must not count as speed."""
        return median(starmap(_between, pairwise(self._times))) if len(self._times) > 1 else None


def _between(earlier: tuple[float, int], later: tuple[float, int]) -> float:
    return (later[1] - earlier[1]) / (later[0] - earlier[0]) / 1000  # ms over s, so per ms


@dataclass(frozen=True)
class _Sight:
    """Everything that an observation is made of, at one moment."""

    settings: Settings
    """Settings of the query that is controlled."""
    collected: PipelineFigures
    """The newest records of each part."""
    partitioners: list[PartitionerRecord]
    """The newest records of the instances that count."""
    now: float
    """The moment, in seconds of the monotonic clock."""
    speed: float | None
    """Milliseconds of event time per ms of the controller's clock. None if it is not known."""

    def observation(
        self, *, step: int, history: PlanHistory, settling: bool, young: Beginning
    ) -> Observation:
        working = measures.working(self.partitioners)
        rate = measures.added(record.rate for record in working)
        stages = self._parts(rate)
        return Observation(
            step=step,
            interval_ms=self.settings.spark.batch_interval,
            p=history.pair.p,
            r=history.pair.r,
            wiring=self.settings.spark.wiring,
            load=self._load(),
            rate=rate,
            keys=measures.added(record.keys for record in working),
            busy=measures.most(record.busy for record in working),
            lag=measures.added(record.lag for record in working),
            read=measures.added(map(measures.read_rate, working)),
            backlog_ms=self._backlog_ms(working, stages, rate),
            latency_ms=self._latency_ms(),
            stages=stages,
            settling=settling,
            starting=young.starting,
            stale=tuple(stale(self.settings, self.collected, self.now)),
        )

    def _load(self) -> float | None:
        """W. If there are two stages, that of the slower one. None if one of them is not known."""
        stages = stages_of(self.settings)
        return measures.most(
            measures.load(self.collected.stages[stage], self.now) if stage in self.collected.stages else None
            for stage in stages
        )

    def _parts(self, rate: float | None) -> dict[Part, StageObservation]:
        parts: dict[Part, StageObservation] = {}
        for stage in stages_of(self.settings):
            if stage in self.collected.stages:
                words = self.collected.stages[stage]
                parts |= measures.parts(words, measures.load(words, self.now), self.now, rate=rate)
        return parts

    def _backlog_ms(
        self, working: list[PartitionerRecord], stages: dict[Part, StageObservation], rate: float | None
    ) -> float | None:
        """How long the waiting input takes (ms). The larger of two estimates: by marks, by waiting frames."""
        last = self.collected.stages.get(stages_of(self.settings)[-1])
        merged = None if last is None or last.batch is None else last.batch.record.mark
        by_marks = measures.waiting_ms(
            measures.routed(working), merged, slide_ms=self.settings.query.slide_ms, speed=self.speed
        )
        queue = stages["combine"].queue if "combine" in stages else None
        # An empty queue needs no rate: without input there is none to divide by.
        by_frames = 0.0 if queue == 0 else queue / rate * 1000 if queue and rate else None
        return max((some for some in (by_marks, by_frames) if some is not None), default=None)

    def _latency_ms(self) -> float | None:
        """Latency (ms) of the newest windows by the controller's clock. None if event time is not live."""
        last = self.collected.stages.get(stages_of(self.settings)[-1])
        closing = None if last is None else last.closing
        if closing is None or closing.age(self.now) > patience(self.settings):
            return None
        query = self.settings.query
        assert closing.record.last_window_end is not None
        due = closing.record.last_window_end + query.result_delay
        latency = closing.wall_ms - due
        return latency if 0 <= latency <= _LIVE_MS else None


def reached(collected: PipelineFigures) -> int | None:
    """Largest event time (ms) in the newest record of any partitioner, however old that record is."""
    return measures.reached(arrival.record for arrival in collected.partitioners.values())


def counted(settings: Settings, collected: PipelineFigures, now: float) -> list[Arrival[PartitionerRecord]]:
    """The partitioners that count now: those that are not silent, the newest record first.

    A partitioner that has just died is not silent for a while yet. It stops counting as soon as others own
    its input partitions.
    """
    limit = patience(settings)
    return responsible_instances(
        (arrival for arrival in reversed(collected.partitioners.values()) if arrival.age(now) < limit),
        partitions=_inputs(settings, collected),
        owned=lambda arrival: arrival.record.owned,
        anyway=lambda arrival: not arrival.record.owned,
    )


def _inputs(settings: Settings, collected: PipelineFigures) -> int:
    return inputs_of(
        (arrival.record for arrival in list(collected.partitioners.values())), settings.input_partitions
    )


def stale(settings: Settings, collected: PipelineFigures, now: float) -> list[str]:
    """In words: which parts have been silent for longer than `patience`, or have never sent a record."""
    return [*_silent_partitioners(settings, collected, now), *_silent_stages(settings, collected, now)]


def _silent_partitioners(settings: Settings, collected: PipelineFigures, now: float) -> list[str]:
    alive = counted(settings, collected, now)
    unowned = _inputs(settings, collected) - sum(arrival.record.owned for arrival in alive)
    # If the controller scales the instances, `partitioner.instances` does not say how many run now.
    expected = 1 if settings.control.replicas_of is not None else settings.partitioner.instances
    if len(alive) >= expected:
        return [f"{unowned} input partitions belong to no partitioner that speaks"] if unowned else []
    names = {arrival.record.instance for arrival in alive}
    silent = [arrival for name, arrival in collected.partitioners.items() if name not in names]
    words = [_no_record(f"partitioner {arrival.record.instance}", arrival, now) for arrival in silent]
    never = expected - len(alive) - len(silent)
    if never > 0:
        words.append(f"{never} of {expected} partitioners {'has' if never == 1 else 'have'} never spoken")
    # At most one complaint per expected instance.
    # The oldest names go first: they may be of instances long gone.
    return words[-expected:]


def _silent_stages(settings: Settings, collected: PipelineFigures, now: float) -> list[str]:
    words = []
    for stage in stages_of(settings):
        if stage not in collected.stages:
            words.append(f"the {stage} stage has never spoken")
        elif collected.stages[stage].word.age(now) >= patience(settings):
            words.append(_no_record(f"the {stage} stage", collected.stages[stage].word, now))
    return words


def _no_record(
    part: str,
    arrival: Arrival[PartitionerRecord] | Arrival[BatchRecord] | Arrival[HeartbeatRecord],
    now: float,
) -> str:
    if arrival.at is None:
        return f"no record of {part} since the controller began, or was cut off"
    return f"no record of {part} for {span(1000 * arrival.age(now))}"
