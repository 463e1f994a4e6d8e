"""What evenflow wrote, as data frames of your own Spark job: the routed tuples,
and the results (docs/own-spark.md).

The two functions are for programs that keep their Spark job and take over from evenflow step by step. They
need pyspark, Spark's connector for Kafka (`KAFKA_PACKAGE`), and evenflow on the executors. evenflow's own
stages do not use them.

Admission rule: the only file of the library that knows Spark. It reads, and never writes.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ConfigError, IncompatibleStateError, ProtocolError
from evenflow.grammar.spark_types import spark_types
from evenflow.plugins import own_sink
from evenflow.settings import BUILT_IN_SINKS, Settings, load_settings
from evenflow.settings.beginning import IDENTITY_KEY, as_recorded
from evenflow.settings.delta_place import delta_place
from evenflow.settings.kafka import own_java_tokens, spark_options
from evenflow.settings.sections.result_sinks import ReadElsewhere, RowForm
from evenflow.settings.views import view as view_of
from evenflow.twostep import key_type, never_null, readable_schema, typed_keys
from evenflow.wire import decode_frame
from evenflow.wire.avro_rows import AvroForm, decode_rows, split_header
from evenflow.wire.result_frames import PART_BYTES, decode_results

KAFKA_PACKAGE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
"""Spark's connector for Kafka, as `spark.jars.packages` and `spark-submit --packages` name it."""

Batches: TypeAlias = Iterable[pa.RecordBatch]

_TIME = pa.timestamp("us", "UTC")
_ROWS_CONF = "spark.sql.execution.arrow.maxRecordsPerBatch"
_OTHER_QUERY = "are these the settings with which the query was begun?"
_UNREADABLE_TOPIC = ("UnknownTopicOrPartition", "TopicAuthorization")
"""Errors of Kafka, in Java's words, for a topic that is not there or may not be read."""
_GIVE_THE_FIRST = (
    "these settings have to be those of its beginning, and name its input.partitions (docs/own-spark.md)"
)
_LOG = logging.getLogger("evenflow.spark")
_ADDED = "_evenflow_added"
"""A column that is added to tell rows apart, and dropped again."""
_MOST_BYTES = 2**30
"""Spark hands a Python worker so many rows at once as `_ROWS_CONF` says.
Above 2 GiB the Arrow column overflows.
"""


def routed(
    spark: SparkSession,
    settings: Settings | Path | str,
    *,
    stream: bool = True,
    starting: str = "earliest",
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The routed tuples of a query, one row for each. A Spark partition holds the tuples of a routed
    partition: those of one worker, or of several if they share it.

    Columns: `worker` (int), `pane_start` (timestamp: where the tuple's slide begins), `key` (bigint, string,
    or binary for `key = "@key"`), `time` (timestamp, only if an aggregate asks for event times), then each
    column that an aggregate reads, under its own name, unless that is one of these. Then it is called
    `value_NAME`.

    Every tuple comes once: the frames of a transaction that was given up are not read. Order within a worker
    is that of the topic.

    settings: or the file that holds them. How the query began (`max_jump`, `out_of_orderness`,
    `input.partitions`) is read from its record in `<query>.snapshots`, so these may have changed since.
    stream: whether the frame is a stream or a batch. starting: Spark's `startingOffsets`. options: further
    options of Spark's Kafka source, such as `maxOffsetsPerTrigger`. An offset is a whole frame of tuples.

    Raises ConfigError for settings that are not valid, for a record of the beginning that cannot be read if
    they do not say `input.partitions`, and for a session that would hand over too many frames at once. The
    job ends with ProtocolError at a record that is no frame, and with IncompatibleStateError at a frame of
    another query.
    """
    settings = _as_begun(spark, _settings_of(settings).origin, options or {})
    plan = AggregatePlan.of(settings.query)
    _refuse_large_batches(spark, settings.partitioner.frame_bytes)
    schema = _routed_schema(plan, key_type(settings.query))
    read = _frames_of(settings.fingerprint, settings.query.slide_ms, key_type(settings.query), schema)
    source = _records(spark, settings, settings.topic("routed"), stream, starting, options)
    return source.select("partition", "offset", "value").mapInArrow(read, spark_types(schema))


def results(
    spark: SparkSession,
    settings: Settings | Path | str,
    *,
    view: str | None = None,
    stream: bool = False,
    patience: str = "1 hour",
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The results of a query or of one of its views, each row once, from any `results.sink`.

    Columns: `window_start`, `window_end` (timestamps), `key` (bigint, string, or binary for `key = "@key"`)
    or a column for each part of a key of several columns, what `emit` adds, the aggregates, and the columns
    that count tuples (docs/results.md).

    settings: or the file that holds them. view: name of the view, None for the query itself. stream: whether
    the frame is a stream or a batch. With `late = "update"` a batch has only the row of the highest revision
    of each window and key, and a stream has them all. patience: a stream forgets a window so much event time
    after its end. A row that is repeated still later comes twice. The sinks `parquet` and `delta` repeat
    nothing. options: further options of Spark's source.

    Raises ConfigError for settings that are not valid, for a view that does not exist, for a sink of your own
    that does not say how its rows are read, for `postgres`, for a stream of a Delta table, for frames if
    neither the settings nor the query's record say `input.partitions`, and for a session that would hand over
    too many frames at once. The job ends with ProtocolError or IncompatibleStateError at a record that is not
    this query's.
    """
    settings = _settings_of(settings)
    reader = _reader_of(settings)
    if reader.name_the_query:
        settings = _as_begun(spark, settings, options or {})
    if view is not None:
        settings = view_of(settings, view)
    reading = _ResultReader(
        spark=spark, settings=settings, stream=stream, patience=patience, options=options or {}
    )
    return reader.rows(reading)


@dataclass(frozen=True, kw_only=True)
class _ResultReader:
    """A call of `results`: what is read, and how."""

    spark: SparkSession
    """Session of the caller."""
    settings: Settings
    """Of the query, or of its view."""
    stream: bool
    """Whether the frame is a stream or a batch."""
    patience: str
    """How long a stream remembers rows."""
    options: Mapping[str, str]
    """Options of Spark's source."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the frame."""
        return _with_times(readable_schema(self.settings.query))

    @property
    def same(self) -> list[str]:
        """The columns of window and key, in which repeated rows are the same."""
        return ["window_end", *self.settings.query.result_keys]

    @property
    def revision(self) -> Column | None:
        """The column with the revisions of rows. None if rows come out once."""
        return _revision(self.settings, "revision")

    def records(self) -> DataFrame:
        """The records of the topic of results."""
        topic = self.settings.topic("results")
        return _records(self.spark, self.settings, topic, self.stream, "earliest", self.options)

    def once(self, rows: DataFrame) -> DataFrame:
        """The rows without repetitions. Of a batch, the newest of each window and key."""
        return _once(rows, self.same, self.revision, self.patience if self.stream else None)

    def newest(self, rows: DataFrame) -> DataFrame:
        """Rows that are there once. Of a batch, the newest of each window and key."""
        revision = self.revision
        return rows if self.stream or revision is None else _newest(rows, self.same, revision)


class _Reader(ABC):
    """How the rows of one form are read."""

    name_the_query: ClassVar[bool] = False
    """Whether the rows name the query by how it began."""

    @abstractmethod
    def rows(self, reading: _ResultReader) -> DataFrame:
        """The rows, each once. Raises ConfigError if they cannot be read so."""


class _ParquetFiles(_Reader):
    """Parquet files of a folder. A repeated micro-batch replaces its files."""

    def rows(self, reading: _ResultReader) -> DataFrame:
        path, options = str(reading.settings.results.path), dict(reading.options)
        if reading.stream:
            return (
                reading.spark.readStream.schema(spark_types(reading.schema)).options(**options).parquet(path)
            )
        return reading.newest(reading.spark.read.options(**options).parquet(path))


class _DeltaTable(_Reader):
    """A Delta table, by the files that it has now. Spark needs no jars of Delta for them."""

    def rows(self, reading: _ResultReader) -> DataFrame:
        settings = reading.settings
        if reading.stream:
            sink = settings.results.sink
            raise ConfigError(
                f"results.sink is {sink!r}, and a stream of a Delta table needs Delta's own source for Spark",
                hint=(
                    f'spark.readStream.format("delta").load("{settings.results.path}"), with the package'
                    " delta-spark"
                ),
            )
        # The library calls an object store s3://, and Spark s3a://.
        files = [file.replace("s3://", "s3a://", 1) for file in _delta_table(settings).file_uris()]
        source = reading.spark.read.schema(spark_types(reading.schema)).options(**dict(reading.options))
        return reading.newest(source.parquet(*files))


class _JsonRecords(_Reader):
    """A row is a JSON object."""

    def rows(self, reading: _ResultReader) -> DataFrame:
        patience = reading.patience if reading.stream else None
        return _json_rows(reading.records(), reading.schema, reading.settings, patience)


class _Frames(_Reader):
    """A record holds the rows of a bucket and window."""

    name_the_query = True

    def rows(self, reading: _ResultReader) -> DataFrame:
        _refuse_large_batches(reading.spark, PART_BYTES)
        query = reading.settings.query
        read = _result_frames_of(reading.settings.fingerprint, readable_schema(query), query.result_keys)
        return reading.once(_mapped(reading, read))


class _AvroRecords(_Reader):
    """A row is an Avro record, which does not say what columns it has."""

    def rows(self, reading: _ResultReader) -> DataFrame:
        return reading.once(_mapped(reading, _avro_rows_of(_avro_form(reading.settings))))


class _OwnRows(_Reader):
    """Rows of a sink of one's own
    that has a method `spark_rows` (`ReadBySpark` in spark_consumers/sinks/base.py).
    """

    def __init__(self, sink: object) -> None:
        self._sink: Any = sink

    def rows(self, reading: _ResultReader) -> DataFrame:
        written: DataFrame = self._sink.spark_rows(
            reading.spark, reading.settings, stream=reading.stream, options=reading.options
        )
        names = reading.schema.names
        if missing := [name for name in names if name not in written.columns]:
            raise ConfigError(
                "the rows that spark_rows of the sink"
                f" {reading.settings.results.sink!r} gives have no {', '.join(missing)}",
                hint="they need the columns of readable_schema (docs/your-own-sinks.md)",
            )
        rows = written.select(*(f.col(_quoted(name)) for name in names))
        return reading.once(rows) if self._sink.repeats else reading.newest(rows)


_READERS: dict[RowForm, _Reader] = {
    "json": _JsonRecords(),
    "avro": _AvroRecords(),
    "frames": _Frames(),
    "parquet": _ParquetFiles(),
    "delta": _DeltaTable(),
}


def _reader_of(settings: Settings) -> _Reader:
    """The reader of these results. Raises ConfigError for a name that no sink has, for what is no sink, and
    for a sink whose rows are read elsewhere.
    """
    name, form = settings.results.sink, settings.results.form
    if form is None:
        sink = own_sink(name, built_in=BUILT_IN_SINKS)
        if not hasattr(sink, "spark_rows"):
            raise ConfigError(
                f"results.sink is {name!r}, a sink of your own, and only it knows how its rows are read",
                hint=(
                    "read them where the sink has written them, or give its class a method spark_rows "
                    "(docs/your-own-sinks.md)"
                ),
            )
        return _OwnRows(sink)
    if isinstance(form.rows, ReadElsewhere):
        raise ConfigError(f"results.sink is {name!r}, and {form.rows.reason}", hint=form.rows.hint)
    return _READERS[form.rows]


def _mapped(reading: _ResultReader, read: Callable[[Batches], Batches]) -> DataFrame:
    """The rows that Spark's Python workers read from the records of the topic."""
    records = reading.records().select("partition", "offset", "value")
    return records.mapInArrow(read, spark_types(reading.schema))


def _as_begun(spark: SparkSession, settings: Settings, options: Mapping[str, str]) -> Settings:
    """These settings as those with which the query began, if its record says how.

    Unchanged, with a warning, if the topic of the record is not there, or may not be read.
    """
    from py4j.protocol import Py4JJavaError

    topic = settings.topic("snapshots")
    records = _records(spark, settings, topic, False, "earliest", _of_kafka(options))
    record = records.where(f.col("key") == f.lit(bytearray(IDENTITY_KEY))).orderBy(f.desc("offset"))
    try:
        newest = record.select("value").limit(1).collect()
    except (PySparkException, Py4JJavaError) as error:
        if not any(words in str(error) for words in _UNREADABLE_TOPIC):
            raise
        _LOG.warning("topic %s cannot be read: %s", topic, _GIVE_THE_FIRST)
        return settings
    value = newest[0]["value"] if newest else None
    return settings if value is None else as_recorded(settings, bytes(value))


def _of_kafka(options: Mapping[str, str]) -> dict[str, str]:
    """The options that belong to Kafka's client, and not to one read."""
    return {name: value for name, value in options.items() if name.startswith("kafka.")}


def _avro_form(settings: Settings) -> AvroForm:
    if find_spec("fastavro") is None:
        raise ConfigError(
            "Avro rows are read with the library fastavro, which is not installed",
            hint="pip install 'evenflow[registry]', here and on the executors",
        )
    query = settings.query
    return AvroForm(readable_schema(query), never_null(query), settings.topic("results"))


def _delta_table(settings: Settings) -> Any:
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise ConfigError(
            "a Delta table is read with the library deltalake, which is not installed",
            hint="pip install 'evenflow[delta]'",
        ) from None
    place = delta_place(settings)
    return DeltaTable(place.uri, storage_options=place.options)


def _settings_of(settings: Settings | Path | str) -> Settings:
    return settings if isinstance(settings, Settings) else load_settings(Path(settings))


def _refuse_large_batches(spark: SparkSession, bytes_each: int) -> None:
    """ConfigError if the rows that Spark hands over at once might be more than an Arrow column holds."""
    rows = int(spark.conf.get(_ROWS_CONF) or 0)
    most = max(1, _MOST_BYTES // bytes_each)
    if not 0 < rows <= most:
        raise ConfigError(
            f"{_ROWS_CONF} is {rows}, and each row may be a frame of"
            f" {bytes_each:,} bytes: too many to hold at once",
            hint=f'set it to {most} or less, for example spark.conf.set("{_ROWS_CONF}", "{min(most, 32)}")',
        )


def _records(
    spark: SparkSession,
    settings: Settings,
    topic: str,
    stream: bool,
    starting: str,
    options: Mapping[str, str] | None,
) -> DataFrame:
    reader: Any = spark.readStream if stream else spark.read
    kafka = settings.kafka
    if kafka.sasl_token_file is not None and not own_java_tokens(kafka):
        master = str(spark.conf.get("spark.master"))
        if not master.startswith("local"):
            raise ConfigError(
                f"spark.master is {master}, and executors on other machines cannot"
                " get the token of kafka.sasl_token_file",
                hint=(
                    "set sasl.oauthbearer.token.endpoint.url in kafka.extras.java"
                    " (docs/security.md#log-in-by-a-token)"
                ),
            )
    ours = {
        "subscribe": topic,
        "startingOffsets": starting,
        "failOnDataLoss": "true",
        "kafka.isolation.level": "read_committed",
        **spark_options(settings.kafka),
        **(options or {}),
    }
    return reader.format("kafka").options(**ours).load()


def _routed_schema(plan: AggregatePlan, key: pa.DataType) -> pa.Schema:
    """Columns of `routed`."""
    fields = [pa.field("worker", pa.int32()), pa.field("pane_start", _TIME), pa.field("key", key)]
    fields += [pa.field("time", _TIME)] if plan.timed else []
    ours = {field.name.lower() for field in fields}
    # Spark does not tell names apart by case.
    fields += [
        pa.field(f"value_{name}" if name.lower() in ours else name, type_) for name, type_ in plan.values
    ]
    return pa.schema(fields)


def _frames_of(
    fingerprint: str, slide: int, kind: pa.DataType, schema: pa.Schema
) -> Callable[[Batches], Batches]:
    """The function of a task: records (partition, offset, value) -> tuples (columns: `schema`)."""

    def read(batches: Batches) -> Batches:
        for partition, offset, value in _each(batches):
            try:
                frame = decode_frame(value, fingerprint=fingerprint)
                rows = frame.batch
                keys = typed_keys(pa.table({"key": rows["key"]}), kind)["key"].combine_chunks()
            except (ProtocolError, IncompatibleStateError) as error:
                raise _at(error, "routed", partition, offset) from None
            if rows.num_rows == 0:
                continue
            panes = rows["pane"].to_numpy() * (slide * 1000)
            columns = [pa.array(frame.row_workers(partition)), pa.array(panes).cast(_TIME), keys]
            rest = rows.columns[2:]
            if "time" in rows.schema.names:
                columns.append(rest.pop(0).cast(pa.timestamp("ms", "UTC")).cast(_TIME))
            yield pa.RecordBatch.from_arrays([*columns, *rest], schema=schema)

    return read


def _result_frames_of(
    fingerprint: str, schema: pa.Schema, keys: Sequence[str]
) -> Callable[[Batches], Batches]:
    """The function of a task: records (partition, offset, value) -> result rows, the times as Spark has
    them.
    """
    ours = _with_times(schema)

    def read(batches: Batches) -> Batches:
        for bucket, offset, value in _each(batches):
            try:
                _, rows = decode_results(
                    value.to_pybytes(), schema=schema, fingerprint=fingerprint, keys=keys
                )
            except (ProtocolError, IncompatibleStateError) as error:
                raise _at(error, "results", bucket, offset) from None
            yield from pa.Table.from_batches([rows]).cast(ours).to_batches()

    return read


def _avro_rows_of(form: AvroForm) -> Callable[[Batches], Batches]:
    """The function of a task: records (partition, offset, value) -> result rows, the times as Spark has
    them.
    """
    ours = _with_times(form.schema)

    def read(batches: Batches) -> Batches:
        for batch in batches:
            split = [split_header(value) for value in batch["value"].to_pylist()]
            table, places = decode_rows([b"" if parts is None else parts[1] for parts in split], form)
            if len(places) < batch.num_rows:
                place = min(set(range(batch.num_rows)).difference(places))
                error = ProtocolError("a record is no Avro row of this query's results")
                raise _at(error, "results", batch["partition"][place].as_py(), batch["offset"][place].as_py())
            try:
                rows = table.cast(ours)
            except pa.ArrowInvalid:  # a time that Spark does not have
                error = ProtocolError("one of the records from here on has a window that cannot be")
                raise _at(
                    error, "results", batch["partition"][0].as_py(), batch["offset"][0].as_py()
                ) from None
            yield from rows.to_batches()

    return read


def _each(batches: Batches) -> Iterable[tuple[int, int, pa.Buffer]]:
    for batch in batches:
        partitions, offsets = batch["partition"].to_pylist(), batch["offset"].to_pylist()
        for partition, offset, value in zip(partitions, offsets, batch["value"], strict=True):
            yield partition, offset, value.as_buffer() or pa.py_buffer(b"")


def _at(
    error: ProtocolError | IncompatibleStateError, topic: str, partition: int, offset: int
) -> ProtocolError | IncompatibleStateError:
    where = f"{topic} partition {partition}, offset {offset}: {error.message}"
    return type(error)(where, hint=error.hint or _OTHER_QUERY)


def _with_times(schema: pa.Schema) -> pa.Schema:
    """The schema with points in time as Spark has them: in microseconds."""
    return pa.schema(
        [
            field.with_type(_TIME).remove_metadata() if pa.types.is_timestamp(field.type) else field
            for field in schema
        ]
    )


def _json_rows(records: DataFrame, schema: pa.Schema, settings: Settings, patience: str | None) -> DataFrame:
    """The rows of JSON records (docs/results.md), each once."""
    keys = settings.query.result_keys
    raw = schema.field(keys[0]).type == pa.binary()
    as_json = pa.schema(
        [
            field.with_type(pa.int64()) if pa.types.is_timestamp(field.type) else field
            for field in schema
            if not (raw and field.name == "key")  # the record's own key has the bytes
        ]
    )
    row = f.from_json(f.col("value").cast("string"), spark_types(as_json), {"mode": "FAILFAST"})
    rows = _once(
        records.select(f.col("key").alias("record key"), row.alias("row")).select(
            "record key",
            f.timestamp_millis(f.col("row.window_end")).alias("window_end"),
            f.col("row"),
        ),
        ["window_end", "record key"],
        _revision(settings, "row.revision"),
        patience,
    )

    def column(name: str) -> Column:
        if name == "window_end":
            return f.col(name)
        if name == "window_start":
            return f.timestamp_millis(f.col("row.window_start")).alias(name)
        if name == "key" and raw:
            return f.col("record key").alias(name)
        value = f.col("row")[name]
        if name in keys:  # Spark reads null where a row has no such field
            lacking = f.raise_error(f.lit(f"a row of results has no {name}: {_OTHER_QUERY}"))
            value = f.when(value.isNull(), lacking).otherwise(value)
        return value.alias(name)

    return rows.select(*(column(name) for name in schema.names))


def _revision(settings: Settings, name: str) -> Column | None:
    """The column with the revisions of rows, of this name. None if rows come out once."""
    return f.col(name) if settings.query.emission.updates else None


def _once(rows: DataFrame, same: Sequence[str], revision: Column | None, patience: str | None) -> DataFrame:
    """The rows without repetitions.
    A repeated row has the same window and key, and with updates the same revision.

    same: the columns of window and key. revision: None if rows come out once. patience: of a stream, None for
    a batch, which has only the row of the highest revision of each window and key.
    """
    if patience is None:
        return rows.dropDuplicates(list(same)) if revision is None else _newest(rows, same, revision)
    rows = rows.withWatermark("window_end", patience)
    if revision is None:
        return rows.dropDuplicatesWithinWatermark(list(same))
    return rows.withColumn(_ADDED, revision).dropDuplicatesWithinWatermark([*same, _ADDED]).drop(_ADDED)


def _newest(rows: DataFrame, same: Sequence[str], revision: Column) -> DataFrame:
    """The row of the highest revision of each window and key.

    A repeated row is equal to the first in every column, so it does not matter which one is taken.
    """
    names = (f.col(_quoted(name)) for name in same)
    order = Window.partitionBy(*names).orderBy(revision.desc())
    return rows.withColumn(_ADDED, f.row_number().over(order)).where(f.col(_ADDED) == 1).drop(_ADDED)


def _quoted(name: str) -> str:
    """The name of a column as Spark takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
