"""Whether a stage may start: a start that would lose, mix or silently repeat results is refused."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from evenflow.errors import EvenflowError
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from evenflow.telemetry import Stage
from spark_consumers.checkpoints.folders import Folder
from spark_consumers.checkpoints.notes import Checkpoint, resume_offsets, stage_location
from spark_consumers.checkpoints.results_note import begun_at, is_noted, note_beginning
from spark_consumers.sinks import sink_of
from spark_consumers.sinks.base import StartFacts
from topics.state import TopicState

_LOG = logging.getLogger("evenflow.spark")
_LOOKS = 10
"""How often a stage is looked at whose other driver is at work."""


def read_by(stage: Stage) -> TopicRole:
    """Role of the topic that a stage reads."""
    return "partials" if stage == "reduce" else "routed"


class Admission:
    """Judges the start of one stage. topics: role -> state of each topic that the stage reads or writes."""

    def __init__(
        self, spark: SparkSession, settings: Settings, stage: Stage, topics: Mapping[str, TopicState]
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._stage = stage
        self._topics = topics

    def look(self, newest: Callable[[], Checkpoint]) -> None:
        """Raise if this start would lose or mix results. Nothing is written.
        newest: the checkpoint of the last run.

        Another driver may begin the stage, or go on, while this one looks. What belongs to its run then seems
        to be of a stranger. So a refusal counts only if the last run is the same before and after.
        """
        for _ in range(_LOOKS):
            checkpoint = newest()
            before = _position(checkpoint)
            try:
                self._judge(checkpoint, noting=False)
                return
            except EvenflowError as error:
                if _position(newest()) == before:
                    raise
                refusal = error
        raise refusal

    def admit(self, checkpoint: Checkpoint) -> str:
        """As `look`, and write the notes of a stage that begins. Returns Spark's `startingOffsets`.

        checkpoint: of this run.
        """
        return self._judge(checkpoint, noting=True)

    def _judge(self, checkpoint: Checkpoint, *, noting: bool) -> str:
        settings, topics, role = self._settings, self._topics, read_by(self._stage)
        read: dict[str, TopicState] = {role: topics[role]}
        # These names come first: a driver that is still at work plans a micro-batch before its results are
        # there.
        path = settings.results.folder
        names = {} if path is None or self._stage == "combine" else {path: self._names(path)}
        planned = checkpoint.planned
        if self._stage == "combine":
            # Partials without a checkpoint: from "earliest" on, the combiner would write them a second time.
            lost = planned is None and any(topics["partials"].end.values())
            starting = _resume(settings, topics) if lost and noting else "earliest"
            checkpoint.admit(read, written={"partials": topics["partials"]}, resumed=lost, noting=noting)
            return starting
        sink = sink_of(settings)
        place = sink.place(settings)
        written: dict[str, TopicState] = {role: topics[role] for role in sorted(sink.topics)}
        # An old checkpoint is compared first, as changed settings explain why the sink's place looks wrong. A
        # new checkpoint gets its note last: nothing may be written before the sink has admitted the start.
        if planned is not None:
            checkpoint.admit(read, written=written, results=place, noting=noting)
        sink.admit(settings, self._evidence(checkpoint, place, names))
        if planned is None:
            checkpoint.admit(read, written=written, results=place, noting=noting)
        # Also behind a checkpoint, if the topic of the note was lost, or an earlier release wrote it into
        # another one: it is wanted when the checkpoint is.
        if noting and (planned is None or not is_noted(settings, place)):
            note_beginning(settings, place, stage_location(settings, self._stage))
        return "earliest"

    def _evidence(self, checkpoint: Checkpoint, place: str, names: Mapping[str, list[str]]) -> StartFacts:
        """What this start finds. names: of folders that were looked at before the checkpoint was."""
        planned = checkpoint.planned
        return StartFacts(
            names=lambda folder: names[folder] if folder in names else self._names(folder),
            text=self._text,
            written=self._written,
            planned=planned,
            begun=begun_at(self._settings, place) if planned is None else None,
            run=checkpoint.run,
        )

    def _names(self, place: str) -> list[str]:
        return Folder(self._spark, place).names()

    def _text(self, file: str) -> str | None:
        folder, _, name = file.rpartition("/")
        return Folder(self._spark, folder).read(name)

    def _written(self, topic: str) -> int:
        """How many records the topic has ever got, including those that retention has deleted."""
        states = {state.name: state for state in self._topics.values()}
        return sum(states[topic].end.values()) if topic in states else 0


def _position(checkpoint: Checkpoint) -> tuple[str, str | None, int | None]:
    """Which run the checkpoint is of, and how far it has come."""
    return checkpoint.location, checkpoint.run, checkpoint.planned


def _resume(settings: Settings, topics: Mapping[str, TopicState]) -> str:
    """Spark's `startingOffsets` for a combiner that has lost its checkpoint."""
    resume = resume_offsets(settings, topics["routed"], topics["partials"])
    _LOG.warning("the combiner has no checkpoint, but there are partials: it goes on at offsets %s", resume)
    return json.dumps({topics["routed"].name: {str(number): offset for number, offset in resume.items()}})
