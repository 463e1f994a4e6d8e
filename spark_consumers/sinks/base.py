"""What a result sink is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JSON_RECORDS = pa.schema(
    [("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary()), ("key", pa.binary())]
)
"""JSON rows as they are read back: each with the place and the record key it was found with."""

Names = Callable[[str], list[str]]
"""Names of what lies in a folder or URI. None when there is no such folder."""

Text = Callable[[str], str | None]
"""Text of a file. None when there is no such file."""

Shape = Callable[[Iterable[pa.Table], int], Iterator[pa.Table]]
"""(result tables of one bucket in one micro-batch, number of that bucket) -> tables of the sink's `schema`.

Each table holds rows (plan.result_schema) of one window. A large window is several tables, which follow each other.
Windows come in order. So the same windows always come in the same order of rows, however they are cut.
"""

_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a start finds.

    names: what lies in a folder. text: what stands in a file. written: how many records a topic has ever got. planned:
    number of the last micro-batch that the stage's checkpoint has begun, None before the first. begun: the checkpoint
    with which this query began to write to this place before, None if it never did. run: that of `Start`, None when
    the checkpoint is new.
    """

    names: Names
    text: Text
    written: Callable[[str], int]
    planned: int | None
    begun: str | None
    run: str | None


@dataclass(frozen=True, kw_only=True)
class Start:
    """What a sink is given when the stream begins. run: random word of the checkpoint, as old as it."""

    spark: SparkSession
    run: str


_SQL_TYPES = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.binary(): "binary",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.date32(): "date",
}


class ResultSink(ABC):
    """Takes the rows of the stage that emits windows. It has no state: what it needs are the settings.

    name: what `results.sink` says. topics: roles of the query's topics that it writes. They are created and
    their rights checked before the start. needs: fields of `[results]` that it cannot work without. repeats: whether a
    row may be there more than once, after a micro-batch was repeated.
    """

    name: ClassVar[str]
    topics: ClassVar[frozenset[TopicRole]] = frozenset()
    needs: ClassVar[tuple[str, ...]] = ()
    repeats: ClassVar[bool] = True

    def check(self, settings: Settings) -> None:
        """Raise ConfigError for settings that cannot work. Asks nothing of any service."""
        for field in self.needs:
            if getattr(settings.results, field) is None:
                raise ConfigError(f"results.sink = '{self.name}' needs results.{field}")

    @abstractmethod
    def place(self, settings: Settings) -> str:
        """Where the rows go, in words that are equal only for the same place. A checkpoint keeps to one place."""

    @abstractmethod
    def admit(self, settings: Settings, found: Found) -> None:
        """Raise IncompatibleStateError when this start would lose, mix or silently repeat results.

        Results without a checkpoint are never a start (rule 19): a sink whose rows the query has begun to write
        refuses it.
        """

    @abstractmethod
    def schema(self, settings: Settings) -> pa.Schema:
        """Columns that Spark hands to the sink. Types as in `spark_types`."""

    @abstractmethod
    def shaper(self, settings: Settings) -> Shape:
        """What turns result tables into tables of `schema`. It is pickled and runs in Spark's Python workers.

        It holds no more than a few tables at a time, and equal tables give equal ones.
        """

    @abstractmethod
    def attach(self, stream: Any, settings: Settings, start: Start) -> Any:
        """Spark's stream writer (DataStreamWriter), told where its rows go. The start has been admitted."""

    @abstractmethod
    def read_back(self, settings: Settings) -> pa.Table | pa.RecordBatchReader:
        """All results that were committed before this call: JSON_RECORDS, or the columns of `readable_schema`.

        Large results come as a reader. Raises ServiceError when there is nothing to read from, DataLossError when
        committed results are gone.
        """

    def begins(self, settings: Settings) -> Mapping[int, int]:
        """First offset that is left of each partition of the results. Above 0 where retention has deleted some.

        Empty where a sink never loses any.
        """
        return {}


def gathered(tables: Iterable[pa.Table], *, rows: int = _ROWS_AT_ONCE) -> Iterator[pa.Table]:
    """The same rows in tables of at least `rows` rows (the last may have fewer): small windows share one."""
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


def spark_types(schema: pa.Schema) -> str:
    """Spark's words for a schema: "`key` binary, `value` string"."""
    return ", ".join(f"`{field.name.replace('`', '``')}` {_sql_type(field.type)}" for field in schema)


def _sql_type(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_list(type_):
        return f"array<{_sql_type(type_.value_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{','.join(f'`{field.name}`:{_sql_type(field.type)}' for field in type_)}>"
    return _SQL_TYPES[type_]
