"""Results as Parquet files that appear whole, each under a name that always holds the same rows.

    <path>/_evenflow.json                       whose results these are
    <path>/_writing/run-<epoch>/<micro-batch>-<random>/
                                                where Spark's tasks write. Readers skip names with `_`
    <path>/<query>-<micro-batch>-<bucket>.parquet

Once all tasks of a micro-batch are done, the driver moves their files out, with one rename for each file. It
refuses to do so if a file is missing that a task has written. A driver that starts removes what drivers
before it were writing, so it is this that a driver finds which was fenced between its tasks and its moves.
Spark repeats a micro-batch that it has not committed, from the same offsets and the same state. So a bucket
gets the same rows again, and a file of that name may stay or be replaced. That holds for a driver that was
fenced within its moves, too: its successor has repeated the same micro-batch. No reader ever sees half a
file or a row twice, whenever a micro-batch was cut off.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from evenflow.errors import ConfigError, DataLossError, IncompatibleStateError, ServiceError
from evenflow.settings import Settings
from evenflow.text.strict_json import read_object
from spark_consumers.checkpoints.results_note import IF_LOST
from spark_consumers.checkpoints.runs import epoch_of, run_name
from spark_consumers.stage_output import Publish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_consumers.checkpoints.folders import Folder

MARKER = "_evenflow.json"
MARKER_VERSION = 1
WRITING = "_writing"
_LARGEST_MARKER = 100_000
_PATIENCE = 60.0
_LOOK_SECONDS = 0.002
_PARTITION = "_evenflow_partition"  # a column that is counted and not written
_PART = re.compile(r"part-(\d+)-.*\.parquet")
_NAME = re.compile(r"(.+)-(\d+)-(\d+)\.parquet")
_OPTIONS = {
    "maxRecordsPerFile": "0",  # one file per bucket: its name stands for a bucket and a micro-batch
    "mapreduce.fileoutputcommitter.algorithm.version": "2",  # a task's file is moved once, not twice
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


@dataclass(frozen=True, kw_only=True)
class Owner:
    """Whose results a folder or a table holds."""

    query: str
    """Name of the query."""
    fingerprint: str
    """Fingerprint of the query's settings."""
    run: str
    """Random word that each checkpoint gets and keeps."""

    def text(self) -> str:
        """The owner as the text of a marker file."""
        fields = {"v": MARKER_VERSION, "query": self.query, "fingerprint": self.fingerprint, "run": self.run}
        return json.dumps(fields, indent=1)

    @classmethod
    def read(cls, text: str | bytes, where: str) -> Owner:
        """The owner that a marker file names. where: the folder, for the error message.

        Raises IncompatibleStateError if the text cannot be read.
        """
        try:
            fields = read_object(text, most_bytes=_LARGEST_MARKER, depth=5).fields
            if fields["v"] != MARKER_VERSION:
                raise ValueError(f"version {fields['v']}, not {MARKER_VERSION}")
            return cls(**{name: str(fields[name]) for name in ("query", "fingerprint", "run")})
        except (KeyError, ValueError) as error:
            raise IncompatibleStateError(
                f"{where}/{MARKER} cannot be read: {error}",
                hint="restore it from a copy, or set results.path to a new folder under a new query name",
            ) from None

    def refuse_other_run(self, where: str, settings: Settings, run: str | None, *, anew: str) -> None:
        """Raise IncompatibleStateError unless this checkpoint wrote the results.

        where: the place in words. run: word of the checkpoint that starts. anew: how to begin anew.
        """
        if self.run == run:
            return
        same = self.query == settings.query.name and self.fingerprint == settings.fingerprint
        whose = "this query with another checkpoint" if same else f"query {self.query} ({self.fingerprint})"
        raise IncompatibleStateError(
            f"{where} already holds the results of {whose}",
            hint="; ".join(
                [
                    "restore the checkpoint that wrote them",
                    *([IF_LOST] if same else []),
                    f"to begin anew {anew}",
                ]
            ),
        )

    def refuse_other_settings(self, where: str, settings: Settings) -> None:
        """Raise IncompatibleStateError unless the results are those that these settings describe.
        where: the place.
        """
        if self.fingerprint != settings.fingerprint:
            raise IncompatibleStateError(
                f"{where} holds the results of query {self.query} ({self.fingerprint}), but the settings"
                f" describe query {settings.fingerprint}",
                hint="take the settings that the pipeline ran with",
            )


def refuse_ahead(where: str, newest: int, planned: int | None, *, anew: str) -> None:
    """Raise IncompatibleStateError for a checkpoint that was set back to an older copy.

    Its next micro-batches would have numbers that are in use, but other rows.

    where: the place in words. newest: number of the last micro-batch there, -1 if none. planned: that of the
    checkpoint, None if it has begun none. anew: how to begin anew.
    """
    begun = -1 if planned is None else planned
    if newest > begun:
        known = "has begun none yet" if planned is None else f"has begun only those up to {begun}"
        raise IncompatibleStateError(
            f"{where} already holds the results of micro-batches up to {newest},"
            f" but this query's checkpoint {known}",
            hint=f"restore the checkpoint that wrote them; to begin anew {anew}",
        )


def marker_lost(path: str) -> DataLossError:
    """What ends an application whose folder of results has lost its marker."""
    return DataLossError(
        f"results.path {path} has lost its {MARKER} while the application ran: the folder was removed or"
        " emptied, with the results that were in it",
        hint="restore it from a copy, or rebuild the query under a new name (docs/operations/data-loss.md)",
    )


def file_name(query: str, batch: int, bucket: int) -> str:
    """Name of the file with the rows of one bucket in one micro-batch.

    Sorted names give micro-batches in order.
    """
    return f"{query}-{batch:010d}-{bucket:04d}.parquet"


def batch_of(name: str) -> int | None:
    """Number of the micro-batch that a file of results belongs to. None for any other name."""
    match = _NAME.fullmatch(name)
    return int(match[2]) if match else None


def visible(names: Iterable[str]) -> list[str]:
    """The names that readers take for results, sorted: `*.parquet` that do not begin with `_` or a dot."""
    return sorted(name for name in names if name.endswith(".parquet") and name[0] not in "_.")


@dataclass
class ResultFiles:
    """Writes a folder of results. Only the application that has the query's checkpoint may do so."""

    folder: Folder
    """Where the results are."""
    owner: Owner
    """What the marker of the folder says."""
    epoch: int
    """Epoch of the driver. It decides where the driver's tasks write."""
    _batches: int = field(default=0, init=False)

    def prepare(self) -> None:
        """Write the marker if there is none, and remove what drivers before this one were writing.

        Raises ConfigError if the folder cannot be written.
        """
        try:
            if self.folder.read(MARKER) is None:
                self.folder.write(MARKER, self.owner.text())
            for name in self.folder.names(WRITING):
                if (epoch_of(name) or 0) < self.epoch:
                    self.folder.delete(f"{WRITING}/{name}")
        except ServiceError as error:
            raise ConfigError(
                f"results.path {self.folder.location} cannot be written: {error.message}",
                hint="set results.path to a folder that this user may make and write",
            ) from None

    def write(self, rows: DataFrame, batch: int) -> Publish:
        """Write the rows of a micro-batch where no reader looks. Returns the function that moves them out.

        rows: the columns of the query's results, one Spark partition per bucket. Raises DataLossError if the
        folder was removed: Spark would make it anew, and what comes from then on would look like all results.
        """
        if not self.folder.exists(MARKER):
            raise marker_lost(self.folder.location)
        draft = f"{WRITING}/{run_name(self.epoch)}/{batch}-{uuid4().hex}"
        counted, buckets = _counted(with_times(rows))
        counted.write.options(**_OPTIONS).parquet(f"{self.folder.location}/{draft}")
        return partial(self.publish, draft, batch, buckets())

    def publish(self, draft: str, batch: int, buckets: Collection[int]) -> None:
        """Move the complete files of a micro-batch out of the folder in which its tasks wrote them.

        buckets: those that have rows, as the tasks reported it. Raises DataLossError, before anything is
        moved, if a file of them is missing.
        """
        moves = self._moves(draft, batch, buckets)
        if self._batches == 0:
            self._remove_surplus(batch, {target for _, target in moves})
        for source, target in moves:
            self.folder.bring(source, target)
        self.folder.delete(draft)
        self._batches += 1

    def _moves(self, draft: str, batch: int, buckets: Collection[int]) -> list[tuple[str, str]]:
        """(name as written, final name) of the file of each bucket that has rows."""
        parts = [match for name in self.folder.names(draft) if (match := _PART.fullmatch(name))]
        # Spark writes a file of partition 0 even if there are no rows. It is no file of a bucket.
        bucket_files = [(f"{draft}/{part[0]}", int(part[1])) for part in parts if int(part[1]) in buckets]
        assert len({bucket for _, bucket in bucket_files}) == len(bucket_files), (
            f"a bucket has two files: {bucket_files}"
        )
        missing = sorted(set(buckets) - {bucket for _, bucket in bucket_files})
        if missing:
            raise DataLossError(
                f"{self.folder.location}/{draft} lacks the files of buckets {missing}, which the tasks of"
                f" micro-batch {batch} have written: nothing of it is published",
                hint=(
                    "another driver of this query removes them as it starts; else: who deletes files there?"
                    " Nothing is lost: started again, the application repeats the micro-batch"
                ),
            )
        return sorted((source, file_name(self.owner.query, batch, bucket)) for source, bucket in bucket_files)

    def _remove_surplus(self, batch: int, targets: set[str]) -> None:
        """Remove files that an earlier attempt at this micro-batch has left and this one does not replace.

        Only the first micro-batch after a start can be a repetition, so only then is there anything to
        remove.
        """
        for name in self.folder.names():
            if batch_of(name) == batch and name not in targets:
                self.folder.delete(name)


def _counted(rows: DataFrame) -> tuple[DataFrame, Callable[[], list[int]]]:
    """The same rows, and a function that says which partitions had some, once they were written."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import array_join, collect_set, spark_partition_id

    observation: Any = Observation()
    partitions = array_join(collect_set(_PARTITION), ",").alias("partitions")
    counted = (
        rows.withColumn(_PARTITION, spark_partition_id()).observe(observation, partitions).drop(_PARTITION)
    )

    def buckets() -> list[int]:
        deadline = time.monotonic() + _PATIENCE
        # Spark's own wait has no end, although its bus may drop the event that it waits for.
        while not observation._jo.future().isCompleted():
            if time.monotonic() >= deadline:
                raise ServiceError(
                    f"Spark has not said within {_PATIENCE:g} s which partitions it has written",
                    hint="start the application again: it repeats the micro-batch",
                )
            time.sleep(_LOOK_SECONDS)
        return [int(number) for number in str(observation.get["partitions"]).split(",") if number]

    return counted, buckets


def with_times(rows: DataFrame) -> DataFrame:
    """The rows with the bounds of their windows as timestamps, and not as milliseconds since 1970."""
    from pyspark.sql.functions import timestamp_millis  # here, as readers of results may have no pyspark

    bounds: dict[str, Any] = {name: timestamp_millis(rows[name]) for name in ("window_start", "window_end")}
    return rows.withColumns(bounds)
