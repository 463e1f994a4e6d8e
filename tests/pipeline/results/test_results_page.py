"""The lines that docs/results.md gives to readers, run as they stand on topics with repetitions in them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenflow.grammar.spark_types import spark_types
from evenflow.settings import KafkaSettings, Settings
from evenflow.twostep import readable, readable_schema
from evenflow.wire.result_frames import encode_results
from spark_consumers.checkpoints.folders import Folder
from spark_consumers.checkpoints.result_files import Owner, ResultFiles
from spark_consumers.session import make_session
from spark_consumers.sinks import sink_of
from tests.pipeline.spark_stream import make_settings
from tests.pipeline.written_results import header_of, registry
from topics import clients

pytestmark = pytest.mark.pipeline

PAGE = (Path(__file__).parents[3] / "docs/results.md").read_text(encoding="utf-8")
COLUMNS = "window_start {time}, window_end {time}, key {key}, tuples BIGINT"
KEYS = [b"a", b"\xff", "Zürich".encode(), b'q"uo', b"", b"e"]


def blocks(language: str) -> list[str]:
    """The page's code in this language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def function(name: str) -> Callable[..., Any]:
    """A function that the page defines; each block stands for itself."""
    (code,) = (block for block in blocks("python") if f"def {name}(" in block)
    namespace: dict[str, Any] = {}
    exec(compile(code, "docs/results.md", "exec"), namespace)
    return namespace[name]


def window(end: int, keys: Iterable[bytes]) -> pa.Table:
    """One window's rows: a count of 2 for each key."""
    rows = [{"window_start": end - 4000, "window_end": end, "key": key, "tuples": 2} for key in keys]
    schema = [
        ("window_start", pa.int64()),
        ("window_end", pa.int64()),
        ("key", pa.binary()),
        ("tuples", pa.int64()),
    ]
    return pa.Table.from_pylist(rows, pa.schema(schema))


FIRST, SECOND, THIRD = (window(4000, KEYS), window(5000, KEYS[1:]), window(6000, KEYS[:2]))
EXPECTED = sorted(
    (end, key) for end, keys in ((4000, KEYS), (5000, KEYS[1:]), (6000, KEYS[:2])) for key in keys
)


def written(kafka: KafkaSettings, name: str, folder: Path, sink: str) -> tuple[Settings, int]:
    """A results topic: a micro-batch that was cut off within its second window, then all of it, and the
    next one.
    """
    settings = make_settings(
        kafka,
        name,
        folder,
        query={"aggregates": {"tuples": "count"}, "types": {}},
        results={"sink": sink} | ({"registry": {"url": registry().url}} if sink == "avro" else {}),
        spark={"buckets": 1},
    )
    shape = sink_of(settings).shaper(settings)
    batches = [[FIRST, SECOND.slice(0, 3)], [FIRST, SECOND], [THIRD]]
    records = [record for batch in batches for table in shape(iter(batch), 0) for record in table.to_pylist()]
    if sink == "frames":  # the second time in smaller parts, as another version might cut them
        tables = [readable(table, readable_schema(settings.query)) for table in (FIRST, SECOND)]
        parts = encode_results(tables, fingerprint=settings.fingerprint, bucket=0, part_bytes=60)
        cut = [{"key": b"0", "value": part} for part in parts]
        assert len(cut) > 4
        records = [
            *records[:2],
            *cut[:2],
            *cut[3:],
            *cut,
            *records[-1:],
        ]  # one write of it failed, and was repeated
    before = header_of(settings)
    client = clients.producer(kafka)
    for record in records:
        record["value"] = before + record["value"] if before else record["value"]
        client.produce(settings.topic("results"), record["value"], record["key"], partition=0)
    clients.flush(client, kafka)
    return settings, len(records)


def test_the_lines_for_json_rows_give_every_row_once(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings, count = written(kafka_settings, query_name, tmp_path, "kafka")
    stream = function("records")(kafka_settings.bootstrap_servers, settings.topic("results"), query_name)
    messages = list(islice(stream, count))
    rows = list(function("new_rows")(messages, {}))
    assert count > len(rows) == len(EXPECTED)
    assert sorted((row["window_end"], row.get("key")) for row in rows if "key" in row) == [
        (end, key.decode()) for end, key in EXPECTED if key != b"\xff"
    ]
    assert {row["tuples"] for row in rows} == {2}
    frame = function("frame_of")(rows)
    assert sorted(set(frame["window_end"])) == [
        pd.Timestamp(end, unit="ms", tz="UTC") for end in (4000, 5000, 6000)
    ]
    assert duckdb.sql(
        "SELECT count(*) FROM frame WHERE window_start = '1970-01-01 00:00:00+00'"
    ).fetchall() == [(len(KEYS),)]


def test_the_lines_for_avro_rows_give_every_row_once(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings, count = written(kafka_settings, query_name, tmp_path, "avro")
    stream = function("records")(kafka_settings.bootstrap_servers, settings.topic("results"), query_name)
    rows = list(function("new_avro_rows")(islice(stream, count), registry().url, {}))
    assert count > len(rows) == len(EXPECTED)
    assert sorted((ms(row["window_end"]), row["key"]) for row in rows) == EXPECTED
    assert {row["tuples"] for row in rows} == {2}


def test_the_lines_for_arrow_frames_give_every_row_once(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings, count = written(kafka_settings, query_name, tmp_path, "frames")
    stream = function("records")(kafka_settings.bootstrap_servers, settings.topic("results"), query_name)
    tables = list(function("new_tables")(islice(stream, count), {}))
    rows = [row for table in tables for row in table.to_pylist()]
    assert sorted((ms(row["window_end"]), row["key"]) for row in rows) == EXPECTED


def parquet_results(folder: Path) -> tuple[Settings, Any]:
    """Three windows with whole numbers as keys; the second micro-batch was repeated, another one cut off.
    And Spark.
    """
    settings = Settings(
        input={"partitions": 2},
        query={"name": "q", "key": "k", "types": {"k": "int64"}, "aggregates": {"tuples": "count"}},
        results={"sink": "parquet", "path": str(folder / "results")},
        spark={"checkpoint": str(folder), "buckets": 1},
    )
    spark = make_session(settings)
    owner = Owner(query="q", fingerprint=settings.fingerprint, run="r")
    files = ResultFiles(Folder(spark, str(folder / "results")), owner, epoch=1)
    files.prepare()
    shape, schema = sink_of(settings).shaper(settings), spark_types(sink_of(settings).schema(settings))
    for batch, end in ((0, 4000), (1, 5000), (1, 5000), (2, 6000)):
        (table,) = shape(iter([window(end, [b"8", b"-5"])]), 0)
        files.write(spark.createDataFrame(table.to_pandas(), schema).coalesce(1), batch)()
    (folder / "results/_writing/9-cut-off").mkdir()
    for file in (folder / "results").glob("*.parquet"):
        shutil.copy(file, folder / "results/_writing/9-cut-off")
    return settings, spark


@pytest.mark.more
def test_the_lines_for_parquet_give_every_row_once_with_times_and_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, spark = parquet_results(tmp_path)
    monkeypatch.chdir(tmp_path)
    expected = [
        (datetime.fromtimestamp(end / 1000 - 4, UTC), key, 2) for end in (4000, 5000, 6000) for key in (-5, 8)
    ]
    try:
        result = {}
        query = next(query for query in blocks("sql") if "read_parquet" in query and "revision" not in query)
        with duckdb.connect() as db:
            db.execute("SET TimeZone = 'UTC'")
            result["duckdb"] = [
                (start.astimezone(UTC), *rest) for start, *rest in db.execute(query).fetchall()
            ]
        columns = ["window_start", "key", "tuples"]
        frame = function("results_frame")(tmp_path / "results")
        result["pandas"] = [tuple(row) for row in frame[columns].itertuples(index=False)]
        tables = [function("window")(tmp_path / "results", start) for start, *_ in expected[::2]]
        result["pyarrow"] = [tuple(row[name] for name in columns) for t in tables for row in t.to_pylist()]
        rows = function("spark_results")(spark, str(tmp_path / "results")).select(*columns).collect()
        result["spark"] = [(row[0].astimezone(UTC), row[1], row[2]) for row in rows]
        for name, given in result.items():
            assert sorted(given) == expected, name
        assert sink_of(settings).read_back(settings).schema == readable_schema(settings.query)
    finally:
        spark.stop()


def test_the_lines_for_updates_keep_the_highest_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results").mkdir()
    for number, rows in enumerate(([(0, "a", 0), (0, "b", 0)], [(0, "b", 2), (60, "b", 0)], [(0, "b", 5)])):
        table = pa.table(dict(zip(("window_start", "key", "revision"), zip(*rows, strict=True), strict=True)))
        pq.write_table(table, tmp_path / "results" / f"{number}.parquet")
    monkeypatch.chdir(tmp_path)
    query = next(query for query in blocks("sql") if "revision" in query)
    assert sorted(duckdb.sql(query).fetchall()) == [(0, "a", 0), (0, "b", 5), (60, "b", 0)]


def ms(time: datetime) -> int:
    """Milliseconds since 1970."""
    return round(time.timestamp() * 1000)


@pytest.mark.long
def test_the_lines_for_spark_give_every_row_once(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    json, _ = written(kafka_settings, query_name, tmp_path, "kafka")
    frames, _ = written(kafka_settings, f"{query_name}-f", tmp_path, "frames")
    spark = make_session(json)
    options = {"kafka.bootstrap.servers": kafka_settings.bootstrap_servers, "startingOffsets": "earliest"}

    def source(reader: Any, settings: Settings) -> Any:
        return reader.format("kafka").options(subscribe=settings.topic("results"), **options).load()

    try:
        records = source(spark.read, json)
        records.createOrReplaceTempView("records")
        query = next(query for query in blocks("sql") if "records" in query)
        result = {"sql": spark.sql(query)}
        result["batch"] = function("distinct_rows")(records, COLUMNS.format(time="BIGINT", key="STRING"))
        streamed = function("distinct_rows")(
            source(spark.readStream, json), COLUMNS.format(time="BIGINT", key="STRING")
        )
        streamed.writeStream.format("memory").queryName("streamed").trigger(
            availableNow=True
        ).start().awaitTermination()
        result["stream"] = spark.table("streamed")
        for name, frame in result.items():
            rows = sorted((row["window_end"], row["key"] or "", row["tuples"]) for row in frame.collect())
            assert rows == sorted(
                (end, "" if key == b"\xff" else key.decode(), 2) for end, key in EXPECTED
            ), name
        typed = COLUMNS.format(time="TIMESTAMP", key="BINARY")
        opened = function("rows_of_frames")(source(spark.read, frames), typed)
        rows_ = opened.selectExpr("unix_millis(window_end) AS ended", "key").collect()
        assert sorted((row["ended"], bytes(row["key"])) for row in rows_) == EXPECTED
    finally:
        spark.stop()


def test_every_line_of_the_page_is_run_here() -> None:
    known = {"records", "new_rows", "frame_of", "distinct_rows", "new_tables", "opened", "rows_of_frames"}
    known |= {"new_avro_rows", "results_frame", "window", "spark_results", "newest_window"}
    assert set(re.findall(r"^def (\w+)\(", "".join(blocks("python")), re.MULTILINE)) == known
    assert (
        reduce(lambda total, language: total + len(blocks(language)), ("python", "sql"), 0)
        == PAGE.count("```") // 2
    )


def test_the_lines_for_changes_keep_the_newest_window(query_name: str) -> None:
    rows = [
        (61, "a", False),
        (61, "b", False),
        (62, "a", True),
        (62, "c", False),
        (61, "b", False),
        (63, "a", False),
    ]
    messages = [
        Line(key.encode(), json.dumps({"key": key, "revision": revision, "gone": gone}).encode())
        for revision, key, gone in rows
    ]
    kept: dict[bytes, Any] = {}
    newest = function("newest_window")(messages[:5], kept)
    assert [(row["key"], row["revision"]) for row in newest] == [("b", 61), ("c", 62)]
    newest = function("newest_window")([*messages[5:], *messages[:3]], kept)
    assert {(row["key"], row["revision"]) for row in newest} == {("a", 63), ("b", 61), ("c", 62)}


@dataclass(frozen=True)
class Line:
    """A record with no broker behind it."""

    own_key: bytes
    own_value: bytes

    def key(self) -> bytes:
        return self.own_key

    def value(self) -> bytes:
        return self.own_value
