"""Combiner and reducer on a real broker and real Spark: exact in every wiring, through every interruption."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.settings import KafkaSettings, Settings
from evenflow.twostep import readable_schema
from spark_consumers.application import run
from spark_consumers.labels import bucket_labels, shuffle_partition
from spark_consumers.session import make_session
from spark_consumers.sinks import SINKS, ResultSink
from spark_consumers.sinks.base import JSON_RECORDS
from spark_consumers.sinks.parquet import read_parquet_results
from tests.pipeline.spark_stream import (
    INTEGERS,
    KEYS,
    Result,
    Stream,
    as_bytes,
    consumed,
    make_settings,
    result_row,
    results,
    run_folder,
    run_until,
    start,
    told,
    with_spark,
)
from topics import clients, reader
from workbench.result_rows import export

pytestmark = pytest.mark.pipeline
_STATE_OF_A_BUCKET = 200
"""A change log that says nothing has about 50 bytes, one of a bucket 500 and more."""


def test_the_fused_wiring_gives_exactly_the_direct_results(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path, spark={"buckets": 3})
    stream = Stream(settings)
    stream.write(25, gap=3_000_000)
    stream.write_rows([(0, b"k" * 1_000_000, 1, 0.5), (0, b"k" * 999_999 + b"x", 2, 0.5)])
    stream.write(5)
    stream.end()
    run(settings, until_ended=True)
    result, records = results(settings)
    assert result == stream.expected()
    assert records == len(result), "each window was emitted once"
    assert _empty_shuffle_partitions(settings, "fused") == []
    run(settings, until_ended=True)  # all is over already: it returns, and emits nothing
    assert results(settings)[1] == records
    sent = told(settings)
    assert sum(record.rows for record in sent) == 32 * 3
    assert all(record.stage == "fused" and (record.load or 0) > 0 for record in sent)
    assert [record.parts["combine"].rows for record in sent] == [record.tuples for record in sent]
    assert sum(record.tuples for record in sent) == len(stream.rows)
    assert all(record.parts["reduce"].tasks <= 3 and record.slots == 2 for record in sent)
    assert max(record.parts["reduce"].keys or 0 for record in sent) >= len(KEYS)
    with pytest.raises(ConfigError, match="no reduce stage of its own"):
        run(settings, ("reduce",))


def test_the_split_wiring_survives_a_lost_combiner_checkpoint_and_repeated_blobs(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={"aggregates": INTEGERS},
        spark={"wiring": "split"},
        partitioner={"frame_bytes": 1_000},
    )
    stream = Stream(settings)
    stream.write(20)
    run_until(settings, lambda: consumed(settings, "combine", "routed"), ("combine",))
    shutil.rmtree(Path(settings.spark.checkpoint) / query_name / "combine")
    stream.write(10)
    stream.end()
    run(settings, ("combine",), until_ended=True)
    client = clients.producer(kafka_settings)
    for batch in list(reader.read_range(kafka_settings, settings.topic("partials"))):
        for message in batch:
            client.produce(message.topic(), message.value(), message.key(), partition=message.partition())
    clients.flush(client, kafka_settings)
    run(settings, ("reduce",), until_ended=True)
    result, records = results(settings)
    assert result == stream.expected()
    assert records == len(result)
    with pytest.raises(IncompatibleStateError, match=r"begun with spark\.wiring = 'split'"):
        run(with_spark(settings, {"wiring": "fused"}))


def test_both_split_stages_run_in_one_application(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={"slide": "4s", "aggregates": INTEGERS},
        spark={"wiring": "split"},
    )
    stream = Stream(settings)
    stream.write(12)
    stream.write_rows([(0, b"large", 2**63 - 1, None)] * 2)
    stream.end()
    run(settings, until_ended=True)
    result = results(settings)[0]
    (large,) = [row for (_, key), row in result.items() if key == b"large"]
    assert large == {"n": 2, "total": None, "avg": 2.0**63}, "the sum does not fit int64"
    assert result == stream.expected()
    assert sum(record.unfit for record in told(settings)) == 1
    assert _empty_shuffle_partitions(settings, "reduce") == []


@pytest.mark.long  # test_end_to_end.py kills and stops an application too, and the partitioner with it
@pytest.mark.timeout(900)  # three starts of an application: minutes where other jobs hold the cores
def test_an_application_killed_in_mid_stream_goes_on_exactly_and_stops_between_batches(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path, spark={"max_frames_per_batch": 15})
    stream = Stream(settings)
    stream.write(40)
    log = tmp_path / "application.log"
    application = start(settings, log, "aggregate")
    try:
        _wait_for(lambda: len(_commits(settings)) >= 2, log)
        os.killpg(application.pid, signal.SIGKILL)
        application.wait(10)
        _wait_for(lambda: not _group_alive(application.pid), log)
        batches = len(_commits(settings))
        stream.write(20)
        application = start(settings, log, "aggregate")
        _wait_for(lambda: len(_commits(settings)) >= batches + 2, log)
        application.send_signal(signal.SIGTERM)
        assert application.wait(120) == 0, log.read_text()
        assert _commits(settings) == _offsets(settings), "it stopped between micro-batches"
        stream.end()
        application = start(settings, log, "aggregate", "--until-ended")
        assert application.wait(180) == 0, log.read_text()
    finally:
        if application.poll() is None:
            os.killpg(application.pid, signal.SIGKILL)
    assert results(settings)[0] == stream.expected()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_an_application_killed_while_it_writes_parquet_leaves_each_row_once_for_every_reader(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    target = tmp_path / "results"
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        spark={"max_frames_per_batch": 6, "buckets": 3},
        results={"sink": "parquet", "path": str(target)},
    )
    stream = Stream(settings)
    stream.write(20)
    stream.end()
    log = tmp_path / "application.log"
    for whole in (2, 4):  # files that are there at least when it is killed while others are written
        application = start(settings, log, "aggregate")
        try:
            _wait_for(lambda least=whole: len(_files(target)) >= least and _writes(target), log, every=0.005)
        finally:
            os.killpg(application.pid, signal.SIGKILL)
            application.wait(10)
        _wait_for(lambda killed=application.pid: not _group_alive(killed), log)
        assert _once(target)
    application = start(settings, log, "aggregate", "--until-ended")
    assert application.wait(180) == 0, log.read_text()
    assert not [path for path in (target / "_writing").rglob("*") if path.is_file()]
    assert _rows(read_parquet_results(target).read_all()) == stream.expected()
    assert _once(target) == len(stream.expected()) == len(pd.read_parquet(target))


def _files(target: Path) -> list[Path]:
    return list(target.glob("*.parquet"))


def _writes(target: Path) -> bool:
    return any((target / "_writing").glob("*/**/part-*"))


def _once(target: Path) -> int:
    """How many rows DuckDB finds, none of them twice."""
    with duckdb.connect() as db:
        rows, different = db.execute(
            f"SELECT count(*), count(DISTINCT (window_end, key)) FROM read_parquet('{target}/*.parquet')"
        ).fetchall()[0]
    assert rows == different
    return int(rows)


@pytest.mark.long
def test_a_folder_of_results_is_one_checkpoints_and_a_checkpoint_keeps_to_its_folder(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    def into(folder: str, checkpoint: str) -> Settings:
        results = settings.results.model_copy(update={"path": str(tmp_path / folder)})
        moved = with_spark(settings, {"checkpoint": str(tmp_path / checkpoint)})
        return moved.model_copy(update={"results": results})

    settings = make_settings(
        kafka_settings, query_name, tmp_path, results={"sink": "parquet", "path": str(tmp_path / "first")}
    )
    stream = Stream(settings)
    stream.write(8)
    run_until(into("first", "kept"), lambda: consumed(into("first", "kept"), "fused", "routed"))
    stream.write(4)
    stream.end()
    with pytest.raises(
        IncompatibleStateError, match="already holds the results of this query with another checkpoint"
    ):
        run(into("first", "lost"), until_ended=True)
    with pytest.raises(
        IncompatibleStateError, match=f"writes its results to parquet {tmp_path}/first, not to"
    ):
        run(into("second", "kept"), until_ended=True)
    run(into("second", "lost"), until_ended=True)  # the refusal has left nothing behind
    assert _rows(read_parquet_results(tmp_path / "second").read_all()) == stream.expected()
    run(into("first", "kept"), until_ended=True)
    assert _rows(read_parquet_results(tmp_path / "first").read_all()) == stream.expected()


# test_postgres.py and test_avro_results.py have those that need a server.
@pytest.mark.family
@pytest.mark.parametrize(
    "sink",
    [sink for name, sink in SINKS.items() if name not in ("postgres", "avro")],
    ids=lambda sink: sink.name,
)
def test_what_a_sink_wrote_is_read_back_as_the_direct_results_with_whole_numbers_as_keys(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, sink: ResultSink
) -> None:
    fields = {name: str(tmp_path / name) for name in sink.needs}
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={"key": "k", "types": {"k": "int64", "i": "int64"}},
        results={"sink": sink.name} | fields,
    )
    stream = Stream(settings, keys=[b"%d" % key for key in (8, -5, 0, 2**63 - 1, -(2**63))])
    stream.write(6)
    stream.end()
    run(settings, until_ended=True)
    result = sink.read_back(settings)
    table = result.read_all() if isinstance(result, pa.RecordBatchReader) else result
    if table.schema == JSON_RECORDS:
        rows = [result_row(settings, record["value"]) for record in table.to_pylist()]
        assert dict(rows) == stream.expected()
        assert len(rows) == len(stream.expected())
    else:
        assert table.schema == readable_schema(settings.query)
        assert _rows(table) == stream.expected()
    assert export(settings, tmp_path / "all.parquet") == len(stream.expected())
    exported = read_parquet_results(tmp_path, ["all.parquet"]).read_all()
    assert _rows(exported.cast(readable_schema(settings.query))) == stream.expected()


def test_labels_map_one_to_one_onto_the_shuffle_partitions_of_real_spark(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    spark = make_session(make_settings(kafka_settings, query_name, tmp_path))
    try:
        for buckets in (1, 2, 3, 7, 16):
            labels = [(label,) for label in bucket_labels(buckets)]
            placed = spark.createDataFrame(labels, "label int").repartition(buckets, "label")
            result = placed.selectExpr("label", "spark_partition_id() AS at").collect()
            assert [label for label, _ in sorted(map(tuple, result), key=lambda row: row[1])] == [
                label for (label,) in labels
            ]
        many = spark.range(-500, 500).selectExpr("int(id) AS n", "pmod(hash(int(id)), 64) AS at").collect()
        assert all(shuffle_partition(row.n, 64) == row.at for row in many)
    finally:
        spark.stop()


def _rows(table: Any) -> Result:
    result: Result = {}
    for at, column in enumerate(("window_start", "window_end")):
        table = table.set_column(at, column, table[column].cast(pa.int64()))
    for row in table.to_pylist():
        at = (row.pop("window_start"), as_bytes(row.pop("key")))
        row.pop("window_end")
        result[at] = row
    return result


def _empty_shuffle_partitions(settings: Settings, stage: str) -> list[int]:
    """Shuffle partitions whose state never held a bucket: with bucket numbers for labels, two buckets
    share one.
    """
    state = run_folder(settings, stage) / "state" / "0"
    sizes = {
        number: max(file.stat().st_size for file in (state / str(number)).glob("*.changelog"))
        for number in range(settings.bucket_count)
    }
    return [number for number, size in sizes.items() if size < _STATE_OF_A_BUCKET]


def _commits(settings: Settings) -> list[str]:
    return _numbers(settings, "commits")


def _offsets(settings: Settings) -> list[str]:
    return _numbers(settings, "offsets")


def _numbers(settings: Settings, folder: str) -> list[str]:
    path = run_folder(settings, "fused") / folder
    return sorted((file.name for file in path.glob("[0-9]*")), key=int)


def _wait_for(condition: Any, log: Path, seconds: float = 180, every: float = 0.1) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, log.read_text()[-5000:] if log.exists() else "no log"
        time.sleep(every)


def _group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
