"""The contract of a sink as laws that a test can call: `check_sink` without Spark, `check_writing` with it.

Each law is a function of a sink and of settings that choose it. A sink that breaks a law raises
AssertionError, which says what was expected of it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ConfigError, ProtocolError
from evenflow.grammar.spark_types import spark_types
from evenflow.settings import Settings
from evenflow.settings.views import view
from evenflow.twostep import readable, readable_schema
from spark_consumers.sinks.base import ResultSink, Start, StartFacts
from topics.admin import pipeline_topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Law = Callable[[ResultSink, Settings], None]

_AGGREGATES = {"n": "count", "total": "sum(i)", "avg": "mean(f)", "lo`w": "min(i)", "hi": "max(f)"}
_KEYS = [b"", b"a", b"\xff\x00", "Zürich".encode(), b'q"uo\\te', b"a"]
_MOST_HELD = 5


class _FixedSettings(Settings):
    reads_environment: ClassVar[bool] = False


def check_sink(sink: ResultSink, **results: Any) -> None:
    """Hold a sink to every law that needs neither Spark nor a place to write to.

    results: values of the fields of `[results]` that the sink needs, where a path below a folder that does
    not exist will not do. Raises AssertionError with the law that the sink breaks, ValueError for a name that
    `results.sink` cannot have.
    """
    for law in LAWS:
        law(sink, settings_for(sink, **results))


def settings_for(sink: ResultSink, **results: Any) -> Settings:
    """Settings of a query that writes to this sink, with a view. They read no file and no environment."""
    fields = {name: f"check-sink/{name}" for name in sink.needs} | results
    return _settings(
        {"sink": sink.name} | fields, {"key": "@key", "types": {"i": "int64"}, "aggregates": _AGGREGATES}
    )


def refuses_settings_that_lack_what_it_needs(sink: ResultSink, settings: Settings) -> None:
    """`check` accepts settings with the fields that `needs` names, and refuses them if one lacks."""
    sink.check(settings)
    for name in sink.needs:
        results = settings.results.model_copy(update={name: None})
        lacking = settings.model_copy(update={"results": results})
        with _refused(ConfigError, f"check raises ConfigError without results.{name}, which `needs` names"):
            sink.check(lacking)


def writes_topics_of_the_query(sink: ResultSink, settings: Settings) -> None:
    """`topics` holds roles of topics that a query has."""
    _must(set(sink.topics) <= set(pipeline_topics(settings)), "topics holds roles that a query has")


def has_a_place_of_its_own(sink: ResultSink, settings: Settings) -> None:
    """`place` is equal for equal settings, and differs for a view and wherever a field differs
    that `needs` names.
    """
    place = sink.place(settings)
    _must(place == sink.place(settings), "place is the same text for the same settings")
    _must(place != sink.place(view(settings, "v")), "place of a view is not that of its query")
    for name in sink.needs:
        results = settings.results.model_copy(update={name: f"{getattr(settings.results, name)}-other"})
        other = settings.model_copy(update={"results": results})
        _must(place != sink.place(other), f"place differs if results.{name} does, which `needs` names")


def admits_a_first_start(sink: ResultSink, settings: Settings) -> None:
    """`admit` accepts the first start of a query at a place where nothing lies."""
    sink.admit(settings, _nothing())


def shapes_every_row_alike_each_time(sink: ResultSink, settings: Settings) -> None:
    """The shape gives tables of `schema`, loses no row, gives equal tables for equal ones,
    and can be pickled.
    """
    schema = sink.schema(settings)
    _must(bool(spark_types(schema)), "schema has columns")
    shape = pickle.loads(pickle.dumps(sink.shaper(settings)))  # as it travels to Spark's Python workers
    plan = AggregatePlan.of(settings.query)
    first, second = sample_rows(plan).slice(0, 5), sample_rows(plan).slice(5)

    def shaped(*windows: pa.Table) -> str:
        tables = list(shape(iter(windows), 1))
        _must(all(table.schema == schema for table in tables), "the shape gives tables of `schema`")
        return repr([table.to_pylist() for table in tables])

    whole = shaped(first, second)
    _must(shaped(first, second) == whole, "the shape gives equal tables for equal tables")
    lacking = [pa.concat_tables([first.slice(0, at), first.slice(at + 1)]) for at in range(5)]
    different = {
        whole,
        shaped(first),
        shaped(second),
        *(shaped(short_window, second) for short_window in lacking),
    }
    _must(len(different) == 8, "the shape loses no row and no window")
    _must(list(shape(iter([]), 0)) == [], "the shape gives no table where there are no rows")


def holds_a_few_tables_at_a_time(sink: ResultSink, settings: Settings) -> None:
    """The shape gives rows on after a few tables of 50,000 rows, and not only at the end."""
    window = _large_window(AggregatePlan.of(settings.query))
    table_count = 0

    def windows() -> Iterator[pa.Table]:
        nonlocal table_count
        for _ in range(12):
            table_count += 1
            yield window

    taken_at = [0, *(table_count for _ in sink.shaper(settings)(windows(), 0))]
    _must(table_count == 12, "the shape takes every table")
    _must(
        int(np.diff(taken_at).max()) <= _MOST_HELD,
        f"the shape holds at most {_MOST_HELD} tables of a large window",
    )


def refuses_keys_of_another_type(sink: ResultSink, settings: Settings) -> None:
    """The shape raises ProtocolError for bytes that are no key of the query's type."""
    results = settings.results.model_dump(exclude_unset=True)
    for kind, key in {"int64": b"8.5", "string": b"\xff"}.items():
        typed = _settings(results, {"key": "k", "types": {"k": kind}, "aggregates": {"n": "count"}})
        schema = AggregatePlan.of(typed.query).result_schema
        table = pa.table([[0], [1], pa.array([key], pa.binary()), [1]], schema)
        with _refused(ProtocolError, f"the shape raises ProtocolError for {key!r} where keys are {kind}"):
            list(sink.shaper(typed)(iter([table]), 0))


LAWS: tuple[Law, ...] = (
    refuses_settings_that_lack_what_it_needs,
    writes_topics_of_the_query,
    has_a_place_of_its_own,
    admits_a_first_start,
    shapes_every_row_alike_each_time,
    holds_a_few_tables_at_a_time,
    refuses_keys_of_another_type,
)
"""The laws that need neither Spark nor a place to write to."""


def check_writing(sink: ResultSink, spark: SparkSession, settings: Settings) -> None:
    """Write three micro-batches, one of them twice as after a crash,
    and hold what is read back to the contract.

    settings: as `settings_for` makes them, with a place where nothing lies. The topics that the sink writes
    exist. A sink that does not read back is only written to. Raises AssertionError with the law that the sink
    breaks.
    """
    sink.check(settings)
    sink.admit(settings, _nothing())
    plan, schema = AggregatePlan.of(settings.query), readable_schema(settings.query)
    windows = [sample_rows(plan, settings.query.window * number) for number in range(3)]
    for epoch, batches in (
        (1, (0, 1)),
        (2, (1, 2)),
    ):  # the second driver repeats what the first one wrote last
        write = sink.writer(settings, Start(spark=spark, run="check", epoch=epoch))
        for batch in batches:
            tables = list(sink.shaper(settings)(iter([windows[batch]]), 0))
            frame = spark.createDataFrame(pa.concat_tables(tables), spark_types(sink.schema(settings)))
            publish = write(frame.coalesce(1), batch)
            if publish is not None:
                publish()
    try:
        sink.check_reading(settings)
    except ConfigError:
        return
    result = sink.read_back(settings)
    table = result.read_all() if isinstance(result, pa.RecordBatchReader) else result
    if table.schema.names == schema.names:
        expected = _texts([readable(window, schema) for window in windows])
        rows = _texts([table.cast(schema)])
        _must(set(rows) == set(expected), "read_back gives the rows that were written, and no others")
        if not sink.repeats:
            _must(
                len(rows) == len(expected),
                "repeats is False, but rows of a repeated micro-batch are there twice",
            )
    begin = sink.position(settings)
    rest = sink.read_back(settings, after=begin, until=begin)
    left = rest.read_all() if isinstance(rest, pa.RecordBatchReader) else rest
    _must(left.num_rows == 0, "read_back gives nothing behind the position of now")


def sample_rows(plan: AggregatePlan, start: int = 0) -> pa.Table:
    """Results of two windows with every kind of key and value. start: of the first window, ms."""
    values = {
        pa.int64(): [1, None, -(2**62), 0, 5, 6],
        pa.float64(): [0.5, None, float("nan"), float("-inf"), 1e300, 6.0],
    }
    columns = {field.name: pa.array(values[field.type], field.type) for field in plan.output_schema}
    starts, ends = [start] * 5 + [start + 10], [start + 10] * 5 + [start + 20]
    bounds = {"window_start": starts, "window_end": ends, "key": pa.array(_KEYS, pa.binary())}
    return pa.table({**bounds, **columns}, schema=plan.result_schema)


def _large_window(plan: AggregatePlan, size: int = 50_000) -> pa.Table:
    """Rows of one window that no compression makes small."""
    drawn = np.random.default_rng(1).integers(-(2**62), 2**62, size)
    columns = {field.name: pa.array(drawn).cast(field.type, safe=False) for field in plan.output_schema}
    keys = pa.array([b"%d" % number for number in drawn], pa.binary())
    bounds = {"window_start": np.zeros(size, np.int64), "window_end": np.full(size, 10)}
    return pa.table({**bounds, "key": keys, **columns}, schema=plan.result_schema)


def _settings(results: dict[str, Any], query: dict[str, object]) -> Settings:
    fields = {"name": "q", "views": {"v": {"aggregates": {"n": "count"}}}} | query
    return _FixedSettings(query=fields, results=results, input={"partitions": 4})


def _nothing() -> StartFacts:
    """What a start finds where nothing lies."""
    return StartFacts(
        names=lambda place: [],
        text=lambda file: None,
        written=lambda topic: 0,
        planned=None,
        begun=None,
        run=None,
    )


def _texts(tables: Iterable[pa.Table]) -> list[str]:
    # Not a number is equal to nothing, but its text is.
    return [repr(row) for table in tables for row in table.to_pylist()]


def _must(holds: bool, law: str) -> None:
    if not holds:
        raise AssertionError(f"a sink keeps its contract only if {law}")


@contextmanager
def _refused(kind: type[Exception], law: str) -> Iterator[None]:
    """Raise AssertionError unless the block raises this error."""
    try:
        yield
    except kind:
        return
    _must(False, law)
