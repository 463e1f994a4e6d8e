"""The lines that docs/results.md gives to readers, run as they stand on topics with repetitions in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from evenflow.settings import KafkaSettings, Settings
from evenflow.wire.result_frames import encode_results
from spark_consumers.session import make_session
from spark_consumers.sinks import sink_of
from tests.pipeline.spark_stream import make_settings
from topics import clients

pytestmark = pytest.mark.pipeline

PAGE = (Path(__file__).parents[2] / "docs/results.md").read_text(encoding="utf-8")
COLUMNS = "window_start BIGINT, window_end BIGINT, key {}, tuples BIGINT"
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
    """A results topic: a micro-batch that was cut off within its second window, then all of it, and the next one."""
    settings = make_settings(
        kafka,
        name,
        folder,
        query={"aggregates": {"tuples": "count"}},
        results={"sink": sink},
        spark={"buckets": 1},
    )
    shape = sink_of(settings).shaper(settings)
    batches = [[FIRST, SECOND.slice(0, 3)], [FIRST, SECOND], [THIRD]]
    records = [record for batch in batches for table in shape(iter(batch), 0) for record in table.to_pylist()]
    if sink == "frames":  # the second time in smaller parts, as another version might cut them
        parts = encode_results([FIRST, SECOND], fingerprint=settings.fingerprint, bucket=0, part_bytes=60)
        cut = [{"key": b"0", "value": part} for part in parts]
        assert len(cut) > 4
        records = [
            *records[:2],
            *cut[:2],
            *cut[3:],
            *cut,
            *records[-1:],
        ]  # one write of it failed, and was repeated
    client = clients.producer(kafka)
    for record in records:
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


def test_the_lines_for_arrow_frames_give_every_row_once(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings, count = written(kafka_settings, query_name, tmp_path, "frames")
    stream = function("records")(kafka_settings.bootstrap_servers, settings.topic("results"), query_name)
    tables = list(function("new_tables")(islice(stream, count), {}))
    rows = [row for table in tables for row in table.to_pylist()]
    assert sorted((row["window_end"], row["key"]) for row in rows) == EXPECTED


@pytest.mark.more
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
        (query,) = blocks("sql")
        found = {"sql": spark.sql(query)}
        found["batch"] = function("distinct_rows")(records, COLUMNS.format("STRING"))
        streamed = function("distinct_rows")(source(spark.readStream, json), COLUMNS.format("STRING"))
        streamed.writeStream.format("memory").queryName("streamed").trigger(
            availableNow=True
        ).start().awaitTermination()
        found["stream"] = spark.table("streamed")
        for name, frame in found.items():
            rows = sorted((row["window_end"], row["key"] or "", row["tuples"]) for row in frame.collect())
            assert rows == sorted(
                (end, "" if key == b"\xff" else key.decode(), 2) for end, key in EXPECTED
            ), name
        opened = function("rows_of_frames")(source(spark.read, frames), COLUMNS.format("BINARY")).collect()
        assert sorted((row["window_end"], bytes(row["key"])) for row in opened) == EXPECTED
    finally:
        spark.stop()


def test_every_line_of_the_page_is_run_here() -> None:
    known = {"records", "new_rows", "distinct_rows", "new_tables", "opened", "rows_of_frames"}
    assert set(re.findall(r"^def (\w+)\(", "".join(blocks("python")), re.MULTILINE)) == known
    assert (
        reduce(lambda total, language: total + len(blocks(language)), ("python", "sql"), 0)
        == PAGE.count("```") // 2
    )
