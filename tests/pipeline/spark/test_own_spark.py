"""The routed tuples and the results in a Spark job of one's own (docs/own-spark.md), with real Spark and a
real broker.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from evenflow.errors import ConfigError
from evenflow.settings import KafkaSettings, Settings, save_settings
from evenflow.settings.beginning import Beginning
from evenflow.settings.views import view
from evenflow.spark import results, routed
from spark_consumers.session import make_session
from tests.patience import PATIENCE
from tests.pipeline.spark_stream import Stream, make_settings
from tests.pipeline.written_results import BYTES, NUMBERS, PAIRS, settings_of_results, write_results
from topics import admin, clients, reader
from topics.query.record import write_beginning

pytestmark = [pytest.mark.pipeline, pytest.mark.family]

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/own-spark.md").read_text(encoding="utf-8")
TEXT_KEYS = [b"a", b"b", "Zürich".encode(), b'q"uo\\te']
ONE_AT_A_TIME = "spark.sql.execution.arrow.maxRecordsPerBatch"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with the connector for Kafka. It knows no query."""
    settings = Settings(
        query={"name": "own", "key": "k"}, spark={"checkpoint": str(tmp_path_factory.mktemp("own"))}
    )
    session = make_session(settings)
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()


def streamed(frame: DataFrame, name: str) -> list[Any]:
    """All rows of a stream, read once to its present end."""
    query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    return frame.sparkSession.table(name).collect()


def function(name: str) -> Callable[..., Any]:
    """A function that the page defines."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    namespace: dict[str, Any] = {}
    for code in blocks:
        exec(compile(code, "docs/own-spark.md", "exec"), namespace)
    return namespace[name]


def text_stream(kafka: KafkaSettings, name: str, folder: Path, **parts: Any) -> tuple[Settings, Stream]:
    """A query of text keys, of which four blocks were routed."""
    query = {"key": "k", "types": {"k": "string", "i": "int64"}} | parts.pop("query", {})
    settings = make_settings(kafka, name, folder, query=query, **parts)
    stream = Stream(settings, keys=TEXT_KEYS)
    stream.write(4)
    return settings, stream


def at_ms(time: datetime) -> int:
    """Spark's rows have local times without a zone."""
    return round(time.timestamp() * 1000)


def test_routed_tuples_come_once_with_their_types_as_a_batch_and_as_a_stream(
    spark: SparkSession, kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings, stream = text_stream(kafka_settings, query_name, tmp_path)
    slide = settings.query.slide_ms
    expected = Counter((pane * slide, key.decode(), i, value) for pane, key, i, value in stream.rows)
    batch = routed(spark, settings, stream=False)
    assert batch.dtypes == [
        ("worker", "int"),
        ("pane_start", "timestamp"),
        ("key", "string"),
        ("f", "double"),
        ("i", "bigint"),
    ]
    for rows in (
        batch.collect(),
        streamed(routed(spark, settings), f"routed{query_name.replace('-', '_').replace('.', '_')}"),
    ):
        assert Counter((at_ms(row.pane_start), row.key, row.i, row.f) for row in rows) == expected
        assert {row.worker for row in rows} == {0, 1, 2}
    of_partitions = batch.select("worker", "key").rdd.glom().map(lambda rows: {row.worker for row in rows})
    assert sorted(workers.pop() for workers in of_partitions.collect() if len(workers) == 1) == [0, 1, 2]


def test_the_aggregation_of_the_page_counts_every_tuple_and_shuffles_partial_counts_alone(
    spark: SparkSession, kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings, stream = text_stream(kafka_settings, query_name, tmp_path)
    counts = function("counts")(spark, settings)
    result = {(at_ms(row.pane_start), row.key): row.tuples for row in counts.collect()}
    assert result == Counter((pane * settings.query.slide_ms, key.decode()) for pane, key, *_ in stream.rows)
    plan = counts._jdf.queryExecution().executedPlan().toString()
    final, _, partial = plan.partition("Exchange")
    assert "partial_count" in partial
    assert "Exchange" not in partial
    assert "partial_count" not in final


def test_frames_of_another_query_end_the_job_with_what_to_do(
    spark: SparkSession, kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings, _ = text_stream(kafka_settings, query_name, tmp_path)
    query = settings.query.model_copy(update={"window": 8000})
    other = settings.model_copy(update={"query": query})
    with pytest.raises(
        PySparkException, match=r"routed partition \d, offset \d+: a frame was written for query"
    ):
        routed(spark, other, stream=False).collect()


def test_limits_that_have_changed_and_partitions_that_are_not_set_are_taken_from_the_querys_record(
    spark: SparkSession, kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings, stream = text_stream(kafka_settings, query_name, tmp_path)
    query = settings.query.model_copy(update={"out_of_orderness": 60_000})
    unset = settings.input.model_copy(update={"partitions": None})
    changed = settings.model_copy(update={"query": query, "input": unset})
    with pytest.raises(ConfigError, match="the number of input partitions is not known"):
        routed(spark, changed, stream=False)
    begin = dict.fromkeys(range(settings.input_partitions), 0)
    record = Beginning(identity=settings.identity(), input_id="in", begin=begin, began_at=7)
    producer = clients.producer(kafka_settings)
    write_beginning(producer, settings, record)
    clients.flush(producer, kafka_settings)
    assert routed(spark, changed, stream=False).count() == len(stream.rows)


def test_a_session_that_would_hold_thousands_of_frames_at_once_is_refused(
    spark: SparkSession, kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path)
    before = spark.conf.get(ONE_AT_A_TIME)
    try:
        for rows in ("10000", "0", "-1"):
            spark.conf.set(ONE_AT_A_TIME, rows)
            with pytest.raises(ConfigError, match=f"maxRecordsPerBatch is {rows}") as refused:
                routed(spark, settings)
            assert (
                'spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "32")' in refused.value.hint
            )
    finally:
        spark.conf.set(ONE_AT_A_TIME, before)


@pytest.mark.parametrize("sink", ["kafka", "avro", "frames", "parquet", "delta"])
@pytest.mark.parametrize("key", ["k", "@key"])
def test_results_of_every_sink_are_the_same_data_frame_with_each_row_once(
    spark: SparkSession, kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, sink: str, key: str
) -> None:
    settings = settings_of_results(kafka_settings, query_name, tmp_path, sink=sink, key=key)
    write_results(settings)
    frame = results(spark, settings)
    assert frame.dtypes == [
        ("window_start", "timestamp"),
        ("window_end", "timestamp"),
        ("key", "bigint" if key == "k" else "binary"),
        ("n", "bigint"),
        ("total", "double"),
    ]
    keys = NUMBERS if key == "k" else BYTES
    expected = [(4000, each, 2, None if each == keys[2] else 0.5) for each in keys] + [(5000, b"8", 2, 0.5)]
    name = f"results_{sink}_{key.strip('@')}"
    ways = [frame.collect()]
    if sink == "delta":
        with pytest.raises(ConfigError, match="a stream of a Delta table needs Delta's own source"):
            results(spark, settings, stream=True)
    else:
        ways.append(streamed(results(spark, settings, stream=True), name))
    for rows in ways:
        result = [
            (at_ms(row.window_end), str(row.key).encode() if key == "k" else bytes(row.key), row.n, row.total)
            for row in rows
        ]
        assert sorted(result, key=repr) == sorted(expected, key=repr)
        assert all(at_ms(row.window_end) - at_ms(row.window_start) == 4000 for row in rows)


@pytest.mark.parametrize("sink", ["kafka", "avro", "frames", "parquet"])
def test_a_key_of_several_columns_is_a_column_for_each(
    spark: SparkSession, kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, sink: str
) -> None:
    settings = settings_of_results(
        kafka_settings, query_name, tmp_path, sink=sink, key=["shop.id", "product"]
    )
    write_results(settings)
    frame = results(spark, settings)
    own = [("shop.id", "string"), ("product", "bigint")]
    bounds = [("window_start", "timestamp"), ("window_end", "timestamp")]
    assert frame.dtypes == [*bounds, *own, ("n", "bigint"), ("total", "double")]
    pairs = [json.loads(key) for key in PAIRS]
    expected = sorted([*((4, *pair) for pair in pairs), (5, *pairs[0])])
    for rows in (frame.collect(), streamed(results(spark, settings, stream=True), f"several_{sink}")):
        result = [(row["window_end"].second, *(row[name] for name, _ in own)) for row in rows]
        assert sorted(result) == expected


def test_a_row_without_the_columns_of_the_key_ends_the_job(
    spark: SparkSession, kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = settings_of_results(
        kafka_settings, query_name, tmp_path, sink="kafka", key=["shop.id", "product"]
    )
    write_results(settings)
    one_column = settings.query.model_copy(update={"key": "@key"})
    write_results(settings.model_copy(update={"query": one_column}), later=True)
    with pytest.raises(PySparkException, match=r"a row of results has no (shop\.id|product)"):
        results(spark, settings).collect()


@pytest.mark.parametrize("sink", ["kafka", "avro", "frames", "parquet", "delta"])
def test_of_rows_that_were_updated_a_batch_has_the_newest_and_a_stream_all(
    spark: SparkSession, kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, sink: str
) -> None:
    settings = settings_of_results(
        kafka_settings, query_name, tmp_path, sink=sink, late="update", allowed_lateness=2_000
    )
    write_results(settings)
    write_results(settings, again=1)
    whole = [(4000, each, 1 if each in NUMBERS[:2] else 0) for each in NUMBERS] + [(5000, b"8", 0)]
    result = [
        (at_ms(row.window_end), str(row.key).encode(), row.revision)
        for row in results(spark, settings).collect()
    ]
    assert sorted(result) == sorted(whole)
    if sink != "delta":
        rows = streamed(results(spark, settings, stream=True), f"updated_{sink}")
        seen = [(at_ms(row.window_end), str(row.key).encode(), row.revision) for row in rows]
        assert sorted(seen) == sorted({*whole, (4000, NUMBERS[0], 0), (4000, NUMBERS[1], 0)})


def test_the_results_of_a_view_are_read_by_its_name(
    spark: SparkSession, kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={
            "types": {},
            "aggregates": {"n": "count"},
            "views": {"totals": {"aggregates": {"n": "count", "total": "sum(f)"}}},
        },
        spark={"buckets": 1},
    )
    totals = view(settings, "totals")
    admin.ensure_topics(settings.kafka, admin.pipeline_topics(totals).values())
    write_results(totals)
    assert results(spark, settings, view="totals").count() == 4
    assert [at_ms(row.window_end) for row in function("newest")(spark, totals).collect()] == [5000]
    with pytest.raises(ConfigError, match="no view or summary 'total'") as refused:
        results(spark, settings, view="total")
    assert refused.value.hint == "it has: totals"


@pytest.mark.more  # a second session of Spark
def test_the_example_joins_results_with_a_table(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = settings_of_results(kafka_settings, query_name, tmp_path, sink="parquet")
    write_results(settings)
    save_settings(settings, tmp_path / "evenflow.json")
    (tmp_path / "names.csv").write_text("id,name\n8,eight\n-5,minus five\n")
    words = [tmp_path / "evenflow.json", tmp_path / "names.csv", tmp_path / "joined"]
    done = subprocess.run(
        [sys.executable, ROOT / "examples/spark_join.py", *words],
        capture_output=True,
        text=True,
        timeout=200 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert f"4 rows in {words[2]}" in done.stdout
    rows = pq.read_table(words[2]).to_pylist()
    assert {(row["window_end"].second, row["key"], row["name"]) for row in rows} == {
        (4, 8, "eight"),
        (4, -5, "minus five"),
        (4, 0, None),
        (5, 8, "eight"),
    }


@pytest.mark.more
def test_a_program_in_java_reads_a_frame_by_the_lines_of_the_page(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings, stream = text_stream(kafka_settings, query_name, tmp_path)
    (code,) = re.findall(r"^```java\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "ReadFrame.java").write_text(code)
    result: Counter[tuple[int, str]] = Counter()
    records = [
        record for block in reader.read_range(settings.kafka, settings.topic("routed")) for record in block
    ]
    for number, record in enumerate(records[:3]):
        (tmp_path / str(number)).write_bytes(record.value())
        jars = f"{Path(pyspark.__file__).parent}/jars/*"
        done = subprocess.run(
            ["java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", jars, "ReadFrame.java",
            str(number)],
            cwd=tmp_path, capture_output=True, text=True, timeout=120 * PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        for line in done.stdout.splitlines():
            if line[:1].isdigit():
                pane, _, key = line.partition(" ")
                result[int(pane), key] += 1
    of_all = Counter((pane, key.decode()) for pane, key, *_ in stream.rows)
    assert result
    assert not result - of_all
