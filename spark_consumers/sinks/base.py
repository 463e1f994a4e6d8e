"""What a result sink is, and what all sinks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from evenflow.errors import ConfigError, DataLossError
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from evenflow.text.strict_json import read_object
from evenflow.windows import END_MARK, NO_MARK
from evenflow.wire.result_frames import METADATA_KEY
from spark_consumers.stage_output import Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JSON_RECORDS = pa.schema(
    [("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary()), ("key", pa.binary())]
)
"""JSON rows as they are read back: the row (value) with its partition, offset and record key."""

Names = Callable[[str], list[str]]
"""Returns the names of what lies in a folder or URI. Empty if there is no such folder."""

Text = Callable[[str], str | None]
"""Returns the text of a file. None if there is no such file."""

Position: TypeAlias = Mapping[int, int] | frozenset[str]
"""Up to where results were read: the next offset of each partition of the results topic,
or the names of the files.
"""

Shape = Callable[[Iterable[pa.Table], int], Iterator[pa.Table]]
"""(result tables of one bucket in one micro-batch, number of that bucket) -> tables of the sink's `schema`.

Each result table holds rows (plan.result_schema) of one window. A large window is several tables, one after
the other. Windows come in order. So the rows of the same windows always come in the same order, however the
tables are cut.
"""

RESTORE = "restore it from a copy, or see 'Rebuild after data loss' in docs/operations/data-loss.md"
"""What to do about results that are gone, in words."""
_ROWS_AT_ONCE = 20_000
_LARGEST = 10_000_000


@dataclass(frozen=True, kw_only=True)
class StartFacts:
    """What a start finds."""

    names: Names
    """Lists a folder."""
    text: Text
    """Reads a file."""
    written: Callable[[str], int]
    """Returns how many records a topic has ever got."""
    planned: int | None
    """Number of the last micro-batch that the stage's checkpoint has begun. None before the first."""
    begun: str | None
    """The checkpoint with which this query began to write to this place before. None if it never has, or if
    the present checkpoint has begun a micro-batch."""
    run: str | None
    """Random word of the checkpoint, as in `Start`. None if the checkpoint is new."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """What a sink is given when the stream begins."""

    spark: SparkSession
    """Session in which the stage runs."""
    run: str
    """Random word that was drawn when the checkpoint was made."""
    epoch: int
    """Epoch of this driver."""


class ResultSink(ABC):
    """Takes the rows of the stage that emits windows. A sink has no state: every method gets the settings."""

    name: ClassVar[str]
    """The value of `results.sink` that chooses the sink."""
    topics: ClassVar[frozenset[TopicRole]] = frozenset()
    """Roles of the query's topics that the sink writes. A start makes them, and checks the right to write."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Fields of `[results]` that must be set."""
    repeats: ClassVar[bool] = True
    """Whether a row may be there more than once after a micro-batch was repeated."""

    def check(self, settings: Settings) -> None:
        """Raise ConfigError for settings that cannot work. Asks no broker and no file system."""
        for field in self.needs:
            if getattr(settings.results, field) is None:
                raise ConfigError(f"results.sink = '{self.name}' needs results.{field}")

    def reach(self, settings: Settings) -> None:  # noqa: B027
        """Raise an EvenflowError if the place cannot be written.
        Called once at a start, before any topic is made.
        """

    def by_hand(self, settings: Settings) -> str:
        """How a user removes results that lie neither in a topic nor in a folder
        that evenflow knows, in words.
        """
        return f"results of sink {settings.results.sink}: only your sink knows them, delete them by hand"

    def keeps(self, settings: Settings) -> list[str]:
        """What stays elsewhere when a query is removed, each in words with how to remove it."""
        return []

    def loss(self, settings: Settings) -> str | None:
        """What is gone of the results that the query has written, in words with what to do.
        None if the sink misses nothing.

        `evenflow status` asks this of a query that has finished a micro-batch, and the running application
        every few seconds, in a thread of its own. A sink that cannot say it from here, such as one whose
        place only Spark reaches, returns None. Topics are not asked about, because both look at those of
        `topics` themselves. Raises an EvenflowError if the place does not answer.
        """
        return None

    def loss_error(self, settings: Settings, loss: str) -> DataLossError:
        """What ends the running application once `loss` has said this:
        the error that the next micro-batch would raise.
        """
        return DataLossError(loss)

    @abstractmethod
    def place(self, settings: Settings) -> str:
        """Where the rows go, as a text that is equal only for the same place.

        A checkpoint is bound to one place.
        """

    @abstractmethod
    def admit(self, settings: Settings, contents: StartFacts) -> None:
        """Raise IncompatibleStateError if this start would lose, mix or silently repeat results.

        If the query has begun to write its rows here, but there is no checkpoint, the start is refused (rule
        "results without a checkpoint are no start").
        """

    @abstractmethod
    def schema(self, settings: Settings) -> pa.Schema:
        """Columns that Spark hands to the sink. Types as in `spark_types`."""

    @abstractmethod
    def shaper(self, settings: Settings) -> Shape:
        """The function that turns result tables into tables of `schema`.

        The function is pickled and runs in Spark's Python workers. It must hold no more than a few tables at
        a time, and must return equal tables for equal tables.
        """

    @abstractmethod
    def writer(self, settings: Settings, start: Start) -> Write:
        """The function that writes the rows of each micro-batch, and says what makes them visible.

        This is called only after `admit` has accepted the start. Rows that the function writes may be visible
        at once only if a driver that was fenced meanwhile writes none but those that its successor writes,
        too.
        """

    def check_reading(self, settings: Settings) -> None:  # noqa: B027
        """Raise ConfigError if `position` and `read_back` cannot work with this sink. Asks no broker and
        no file system.
        """

    @abstractmethod
    def position(self, settings: Settings) -> Position:
        """Behind the results that are committed now. Raises ServiceError if there is nothing to read from."""

    @abstractmethod
    def read_back(
        self, settings: Settings, *, after: Position | None = None, until: Position | None = None
    ) -> pa.Table | pa.RecordBatchReader:
        """All results that were committed before this call: JSON_RECORDS,
        or the columns of `readable_schema`.

        after, until: read only what lies behind the one position and before the other. Large results come as
        a reader. Raises ServiceError if there is nothing to read from, DataLossError if committed results are
        gone.
        """

    def begins(self, settings: Settings) -> Mapping[int, int]:
        """First offset that is left in each partition of the results (partition -> offset).

        The offset is above 0 if retention has deleted results. Empty for a sink that never loses results.
        """
        return {}

    def end_of(self, value: bytes | None) -> int | None:
        """End of the window (ms) of a record of the results topic.
        None for a record that is no result of this sink.

        Without this method of a sink's own, a record is a JSON object or an Arrow frame. `evenflow status`
        asks it of the newest records.
        """
        return end_of(value)


def end_of(value: bytes | None) -> int | None:
    """End of the window (ms) of a JSON row or of a frame of results.
    None for a record that is no result of ours.
    """
    try:
        # JSON rows begin with a brace. Anything else can only be a frame, whose schema holds the same field.
        payload = value if value is None or value[:1] == b"{" else _frame_header(value)
        return read_object(payload, most_bytes=_LARGEST).whole("window_end", NO_MARK, END_MARK)
    except (ValueError, OSError, pa.ArrowException):
        return None


def _frame_header(value: bytes) -> bytes | None:
    schema = pa.ipc.read_schema(pa.py_buffer(value))
    return (schema.metadata or {}).get(METADATA_KEY)


@runtime_checkable
class HasSchema(Protocol):
    """A sink that registers the schema of its rows. `evenflow results --schema` shows it."""

    def registered_schema(self, settings: Settings) -> tuple[str, str]:
        """(subject in the schema registry, text of the schema). Asks no registry."""


class ReadBySpark(Protocol):
    """A sink of one's own whose rows `evenflow.spark.results` reads.
    Of evenflow's sinks `BUILT_IN_SINKS` says it.
    """

    def spark_rows(
        self, spark: SparkSession, settings: Settings, *, stream: bool, options: Mapping[str, str]
    ) -> DataFrame:
        """The rows as they were written, and as often. The bounds of windows are timestamps.

        Columns: at least those of `readable_schema`. settings: of the query, or of the view that is read.
        stream: whether the frame is a stream or a batch. options: of Spark's source, from the caller. Raises
        ConfigError for what cannot be read so.
        """


@runtime_checkable
class SaysNewestEnd(Protocol):
    """A sink that can say up to where its results reach. `evenflow status` asks it."""

    def newest_end(self, settings: Settings) -> int | None:
        """End of the newest window with results (ms). None if there is none.

        Raises ServiceError if the place does not answer.
        """


def gathered(tables: Iterable[pa.Table], *, rows: int = _ROWS_AT_ONCE) -> Iterator[pa.Table]:
    """The same rows in tables of at least `rows` rows.

    The last table may have fewer. Small windows share a table.
    """
    waiting: list[pa.Table] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += table.num_rows
        if count >= rows:
            yield pa.concat_tables(waiting).combine_chunks()
            waiting, count = [], 0
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()
