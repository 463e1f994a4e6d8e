"""Beginnings: micro-batches that say nothing of the load, and times at which no scale-in is safe yet.

The first micro-batches of a driver are slow whatever the load is: Java and Python warm up, and the first one
reads at once what had waited. The first micro-batches after a change of p or r are slow, too, because new
executors warm up. Nothing is decided on these. A scale-in also waits until the pipeline has run for a while.
Then a pipeline that begins cannot swing. An overload that lasts is answered as soon as the start-up is over.

No Kafka, and no clock but `now`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller import measures
from controller.collect import Arrival, PipelineFigures, StageWords
from controller.plan_history import Pair, stages_of
from evenflow.reporting.words import span
from evenflow.settings import Settings
from evenflow.telemetry import BatchRecord, Stage

LEAST = 3
"""So many micro-batches of a driver belong to its start-up."""
WARM_MS = 20_000
"""For so long (ms) after its first micro-batch a driver warms up. Short micro-batches are many by then."""
LONGEST_MS = 60_000
"""A start-up ends so long (ms) after the first micro-batch. What is slow then is a real overload."""
AFTER_A_CHANGE = 2
"""So many micro-batches after a change of p or r has been realised do not count."""
_FELL = 0.9
"""While W is above 1 and falls to this share from one micro-batch to the next,
the start's backlog is worked off.
"""


@dataclass(frozen=True)
class Beginning:
    """What is too young at an observation, in words."""

    starting: tuple[str, ...] = ()
    """Which stages have not started up yet. Nothing is decided while there are any."""
    no_scale_in: str = ""
    """Why a scale-in would come too early. Empty if it would not."""


@dataclass
class _Stage:
    """What is remembered of a stage."""

    finished: int
    """Micro-batches that the stage had finished, by its newest record."""
    since: float
    """When (s) this driver was first heard."""
    batch: Arrival[BatchRecord] | None = None
    """The newest micro-batch of the stage."""
    before: float | None = None
    """W of the micro-batch before it."""
    mark: int | None = None
    """How many it had finished when the newest change of p or r was realised."""

    def take(self, words: StageWords) -> None:
        """Take in the newest micro-batch."""
        if words.batch is not self.batch:
            self.before = None if self.batch is None else measures.load_of(self.batch.record)
            self.batch = words.batch

    @property
    def works_off(self) -> bool:
        """Whether W is above 1 and falls."""
        now = None if self.batch is None else measures.load_of(self.batch.record)
        return now is not None and self.before is not None and 1 < now <= _FELL * self.before


@dataclass
class Beginnings:
    """Knows what has begun lately. To be asked at each observation."""

    settings: Settings
    """Settings of the query that is controlled."""
    _stages: dict[Stage, _Stage] = field(default_factory=dict)
    _pair: Pair | None = None
    _changing: bool = False
    _grown_at: float | None = None

    def look(self, known: PipelineFigures, pair: Pair, now: float, *, realised: bool) -> Beginning:
        """What is too young now. pair: in force. realised: whether every part follows the newest plan."""
        stages = {stage: known.stages[stage] for stage in stages_of(self.settings) if stage in known.stages}
        for stage, words in stages.items():
            self._take(stage, words, now)
        self._change(pair, now, realised=realised)
        why = (self._starting(stage, words, now) for stage, words in stages.items())
        return Beginning(tuple(words for words in why if words), self._no_scale_in(stages, now))

    def _take(self, stage: Stage, words: StageWords, now: float) -> None:
        finished = words.word.record.finished
        mine = self._stages.get(stage)
        if mine is None or finished < mine.finished:  # another driver
            self._stages[stage] = mine = _Stage(finished, now)
        mine.finished = finished
        mine.take(words)

    def _change(self, pair: Pair, now: float, *, realised: bool) -> None:
        """Note a change of p or r, and how far the stages were when it was realised."""
        before, self._pair = self._pair, pair
        if before is not None and pair != before:
            self._changing = True
            if pair.p > before.p or pair.r > before.r:
                self._grown_at = now
        if self._changing and realised:
            self._changing = False
            for stage in self._stages.values():
                stage.mark = stage.finished

    def _starting(self, stage: Stage, words: StageWords, now: float) -> str:
        if stage not in self._stages or measures.idle(words, now):
            return ""
        mine, warm_ms = self._stages[stage], words.word.record.warm_ms or 0
        if warm_ms < LONGEST_MS:
            if mine.finished < LEAST or warm_ms < WARM_MS:
                return (
                    f"the {stage} stage has just begun, and the first micro-batches of a driver do not count "
                    f"({mine.finished} so far)"
                )
            if mine.works_off:
                return f"the {stage} stage works off what had waited when it began"
        if mine.mark is not None and mine.finished < mine.mark + AFTER_A_CHANGE:
            return (
                f"the {stage} stage has finished {mine.finished - mine.mark} micro-batches since p or r"
                f" changed, and the first {AFTER_A_CHANGE} do not count"
            )
        return ""

    def _no_scale_in(self, stages: Mapping[Stage, StageWords], now: float) -> str:
        wait = self.settings.control.scale_in_wait
        for stage, mine in self._stages.items():
            warm_ms = stages[stage].word.record.warm_ms if mine.finished and stage in stages else None
            age_ms = 1000 * (now - mine.since) if warm_ms is None else warm_ms
            if age_ms < wait:
                return f"the {stage} stage began less than {span(wait)} ago"
        if self._grown_at is not None and 1000 * (now - self._grown_at) < wait:
            return f"p or r grew less than {span(wait)} ago"
        return ""
