"""The note beside each Spark checkpoint: which query and which topics it belongs to,
and where its results go.

A run's folder (`runs.py`) holds Spark's own files and the note, `evenflow.json`. Spark itself would go on
with another query's offsets and state, with a topic that was deleted and made again, or into another folder
of results. This module refuses such a start and says what changed.
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from evenflow.errors import ConfigError, DataLossError, IncompatibleStateError, ServiceError
from evenflow.settings import Settings
from evenflow.settings.places import local_folder, private_folder
from evenflow.telemetry import Stage
from evenflow.text.strict_json import read_object
from evenflow.wire import Segment, decode_blob
from spark_consumers.checkpoints.folders import Folder
from spark_consumers.checkpoints.runs import COMPLETE, NOTE, newest_local_run, newest_run
from spark_consumers.checkpoints.storage import storage_error
from topics.query.waiting import wait_while
from topics.reader import read_range
from topics.state import TopicState

NOTE_VERSION = 5
_LARGEST_NOTE = 1_000_000  # bytes
_LEAST_ROOM = 1_000_000  # bytes that must fit on the disk before Spark is started
_LOG = logging.getLogger("evenflow.spark")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The checkpoint of one run of a stage."""

    spark: SparkSession
    """Session whose Hadoop file systems reach the checkpoint."""
    settings: Settings
    """Settings of the query."""
    stage: Stage
    """The stage whose checkpoint it is."""
    within: str = ""
    """Folder of the run, relative to that of the stage. Empty: the folder of the stage itself."""

    @classmethod
    def newest(cls, spark: SparkSession, settings: Settings, stage: Stage) -> Checkpoint:
        """The checkpoint of the last run that is complete. Empty if there is none."""
        folder = Folder(spark, stage_location(settings, stage))
        within = newest_run(folder.names(), lambda name: COMPLETE in folder.names(name))
        return cls(spark=spark, settings=settings, stage=stage, within=within or "")

    @property
    def location(self) -> str:
        """Folder or URI that Spark gets as `checkpointLocation`."""
        return f"{stage_location(self.settings, self.stage)}/{self.within}".rstrip("/")

    @property
    def planned(self) -> int | None:
        """Number of the last micro-batch that Spark has begun here. None before the first."""
        return max(self._batches("offsets"), default=None)

    @property
    def exists(self) -> bool:
        """Whether Spark has begun a micro-batch here."""
        return self.planned is not None

    @property
    def run(self) -> str | None:
        """Random word that was drawn when the note was written. None if there is no note yet.

        A copy of the checkpoint has the same word.
        """
        note = self._note()
        return None if note is None else str(note.get("run"))

    def admit(
        self,
        read: Mapping[str, TopicState],
        *,
        written: Mapping[str, TopicState] | None = None,
        results: str | None = None,
        resumed: bool = False,
        noting: bool = True,
    ) -> None:
        """Check the note against settings, topics (role -> state) and the results' place,
        or write a new note.

        read: topics whose records are needed. written: topics whose reader relies on every record that this
        stage has ever written. results: the sink's place, None for a stage that emits no results. resumed:
        whether reading begins at offsets that were checked already, not at the topic's beginning. noting:
        whether a new note is written if there is none.

        Raises IncompatibleStateError for a changed query or place, DataLossError for a recreated or trimmed
        topic.
        """
        topics = {**read, **(written or {})}
        note = self._note()
        if note is not None:
            self._compare(note, topics, results)
            if not resumed:
                self._refuse_trimmed(read, self.committed())
            return
        if self.exists:
            raise IncompatibleStateError(
                f"the checkpoint {self.location} was not made by evenflow (it has no {NOTE})",
                hint="set spark.checkpoint to another folder",
            )
        if not resumed:
            self._refuse_trimmed(read, {})
        if not noting:
            return
        note = {
            "v": NOTE_VERSION,
            "identity": self.settings.identity(),
            "fingerprint": self.settings.fingerprint,
            "topics": {role: state.topic_id for role, state in topics.items()},
            "results": results,
            "run": uuid4().hex,
        }
        self._folder.write(NOTE, json.dumps(note, indent=1, sort_keys=True))

    def committed_batch(self) -> int:
        """Number of the last micro-batch that was committed. -1 before the first."""
        return max(self._batches("commits"), default=-1)

    def committed(self) -> dict[int, int]:
        """Offsets (partition -> next to read) at which the last committed micro-batch ended.

        {} before the first.
        """
        batches = self._batches("commits")
        if not batches:
            return {}
        lines = self._folder.read(f"offsets/{max(batches)}")
        if lines is None:
            return {}
        # Spark's offset log: version, metadata, then one line of JSON per source.
        # A stage has one source of one topic.
        topics = json.loads(lines.splitlines()[2])
        (offsets,) = topics.values()
        return {int(partition): offset for partition, offset in offsets.items()}

    def _compare(self, note: dict[str, Any], topics: Mapping[str, TopicState], results: str | None) -> None:
        if note.get("v") != NOTE_VERSION:
            raise IncompatibleStateError(
                f"the checkpoint {self.location} has version {note.get('v')},"
                f" this evenflow reads {NOTE_VERSION}",
                hint="finish the query with the evenflow that began it, or give it a new name",
            )
        _refuse_changed(note, self.settings, self.location)
        for role, state in topics.items():
            if note["topics"].get(role) != state.topic_id:
                raise DataLossError(
                    f"topic {state.name} was deleted and made again since the"
                    f" checkpoint {self.location} was written",
                    hint=(
                        "what was in it is lost: give the query a new name, or rebuild it"
                        " (docs/operations/data-loss.md)"
                    ),
                )
        if note["results"] != results:
            raise IncompatibleStateError(
                f"the checkpoint {self.location} writes its results to {note['results']}, not to {results}: "
                "what it has emitted would be missing there",
                hint="set [results] back, or give the query a new name (new topics and checkpoint)",
            )

    def _refuse_trimmed(self, topics: Mapping[str, TopicState], committed: Mapping[int, int]) -> None:
        if not committed and self.settings.query.emit_from is not None:
            return  # the documented rebuild: windows that may lack tuples are not emitted
        for state in topics.values():
            for partition, begin in state.begin.items():
                needed = committed.get(partition, 0)
                if begin > needed:
                    raise DataLossError(
                        f"{state.name}[{partition}] begins at offset {begin},"
                        f" but offsets from {needed} are needed",
                        hint=(
                            "the broker deleted them (retention): rebuild the query with query.emit_from "
                            "(docs/operations/data-loss.md), and give the topic a longer retention.ms"
                        ),
                    )

    def _batches(self, folder: str) -> list[int]:
        return [int(name) for name in self._folder.names(folder) if name.isdigit()]

    def _note(self) -> dict[str, Any] | None:
        text = self._folder.read(NOTE)
        return None if text is None else _read_note(text, self.location)

    @property
    def _folder(self) -> Folder:
        return Folder(self.spark, self.location)


def stage_location(settings: Settings, stage: Stage) -> str:
    """Folder or URI with the runs of a stage."""
    return f"{settings.query_checkpoint}/{stage}"


def _read_note(text: str | bytes, location: str) -> dict[str, Any]:
    try:
        return read_object(text, most_bytes=_LARGEST_NOTE, depth=10).fields
    except ValueError as error:
        raise IncompatibleStateError(
            f"{location}/{NOTE} cannot be read: {error}",
            hint="restore the checkpoint folder from a copy, or give the query a new name",
        ) from None


def _refuse_changed(note: Mapping[str, Any], settings: Settings, location: str) -> None:
    if note["fingerprint"] == settings.fingerprint:
        return
    changed = settings.changes_since(note["identity"])
    raise IncompatibleStateError(
        f"the checkpoint {location} is of another query; changed since then:\n  " + "\n  ".join(changed),
        hint="set it back, give the query a new name, or remove what it left with `evenflow reset`",
    )


def refuse_changed_notes(settings: Settings, stages: Sequence[Stage]) -> None:
    """Compare the notes of checkpoints in a local folder with the settings, before Spark is started.

    Each stage compares its note once more when it starts, wherever its checkpoint is. This early look only
    saves the user the wait for Spark. Raises IncompatibleStateError for a changed query.
    """
    for stage in stages:
        location = stage_location(settings, stage)
        folder = local_folder(location)
        if folder is None:
            continue
        file = newest_local_run(folder) / NOTE
        if not file.is_file():
            continue
        note = _read_note(file.read_bytes(), location)
        if note.get("v") == NOTE_VERSION:
            _refuse_changed(note, settings, location)


def wait_for_room(settings: Settings) -> None:
    """Make the folder of the checkpoints, before Spark is started.

    If the disk is full, wait for at most `kafka.startup_wait`. A folder that is not local is left to Spark.
    Raises ConfigError when a local folder cannot be made or written, ServiceError when its disk stays full.
    """
    folder = settings.spark.checkpoint_folder
    if "://" in folder or folder.startswith("file:"):
        return
    if wait_while(lambda: _without_room(folder), settings):
        _LOG.info("there is room in %s: going on", folder)
    full = _without_room(folder)
    if full is not None:
        raise full


def _without_room(folder: str) -> ServiceError | None:
    try:
        private_folder(Path(folder))
        # Only a write tells for sure: a quota may be used up while the disk reports free space.
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_LEAST_ROOM))
            file.flush()
            return None
    except OSError as error:
        full = storage_error("the checkpoint", str(error), folder)
        if full is not None:
            return full
        raise ConfigError(
            f"the folder of the checkpoints, {folder}, cannot be written: {error.strerror or error}",
            hint=(
                "set spark.checkpoint (or XDG_STATE_HOME) to a folder that"
                " outlives this process and its machine"
            ),
        ) from None


def refuse_other_wiring(spark: SparkSession, settings: Settings, stages: tuple[Stage, ...]) -> None:
    """Refuse to change the wiring of a query: the checkpoint of its first wiring holds the open windows.

    Raises IncompatibleStateError.
    """
    others: tuple[Stage, ...] = ("combine", "reduce") if stages == ("fused",) else ("fused",)
    for stage in others:
        if Checkpoint.newest(spark, settings, stage).exists:
            began = "fused" if stage == "fused" else "split"
            raise IncompatibleStateError(
                f"query {settings.query.name} was begun with spark.wiring = '{began}'",
                hint=f"go on with wiring = '{began}', or give the query a new name",
            )


def resume_offsets(settings: Settings, routed: TopicState, partials: TopicState) -> dict[int, int]:
    """Where a combiner without checkpoint goes on (routed partition -> offset): after what all buckets have.

    Raises IncompatibleStateError when the buckets do not agree. Then a micro-batch was cut off half-way, and
    a new micro-batch, which may cut the same offsets in another way, would overlap with it. Raises
    DataLossError when the offsets needed are gone.
    """
    reached = _reached(settings, routed, partials)
    # A partition is torn if a segment lacks rows, if a bucket
    # has no blob of it, or if buckets end at other offsets.
    torn = sorted(
        number
        for number, buckets in reached.items()
        if any(lane.unfinished for lane in buckets.values())
        or len(buckets) < settings.bucket_count
        or len({lane.last for lane in buckets.values()}) > 1
    )
    if torn:
        raise IncompatibleStateError(
            f"the combiner has lost its checkpoint, and {partials.name} ends with blobs of routed partitions "
            f"{torn} that not every bucket got: where to go on is ambiguous",
            hint=(
                "restore the combiner's checkpoint, or rebuild the query under a new name"
                " (docs/operations/data-loss.md)"
            ),
        )
    resume = {
        # Bucket 0 stands for all buckets: they agree, or the start was refused above.
        number: reached[number][0].last + 1 if number in reached else 0
        for number in range(settings.routed_partitions)
    }
    for number, offset in resume.items():
        if routed.begin.get(number, 0) > offset:
            raise DataLossError(
                f"{routed.name}[{number}] begins at offset {routed.begin[number]},"
                f" but the combiner must go on at {offset}",
                hint="rebuild the query under a new name (docs/operations/data-loss.md)",
            )
    return resume


@dataclass
class _Lane:
    """What one bucket got of one routed partition."""

    last: int = -1
    """Last offset of the newest segment that is complete. -1 before the first."""
    unfinished: dict[int, int] = field(default_factory=dict)
    """Last offset of each newer segment -> how many of its rows have come."""

    def add(self, segment: Segment) -> None:
        if segment.last <= self.last:
            return
        # A repeated part counts once: what matters is how far the rows of the segment reach.
        have = max(self.unfinished.get(segment.last, 0), segment.begin + segment.rows)
        self.unfinished[segment.last] = have
        if have == segment.total:
            self.last = segment.last
            self.unfinished = {last: have for last, have in self.unfinished.items() if last > self.last}


def _reached(settings: Settings, routed: TopicState, partials: TopicState) -> dict[int, dict[int, _Lane]]:
    """What each bucket got of each routed partition ({partition: {bucket: lane}}), by all blobs in the
    topic.
    """
    reached: dict[int, dict[int, _Lane]] = {}
    for messages in read_range(settings.kafka, partials.name):
        for message in messages:
            header = decode_blob(message.value(), fingerprint=settings.fingerprint).header
            if header.topic_id != routed.topic_id:
                raise DataLossError(
                    f"{partials.name} holds blobs of an earlier topic {routed.name}, which was deleted since",
                    hint="give the query a new name, or rebuild it (docs/operations/data-loss.md)",
                )
            for segment in header.segments:
                buckets = reached.setdefault(segment.routed, {})
                buckets.setdefault(message.partition(), _Lane()).add(segment)
    return reached
