"""Combiner and reducer on a real broker and real Spark: exact in every wiring, through every interruption."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from evenflow import frames
from evenflow.errors import ConfigError, DataLossError, IncompatibleStateError, ProtocolError, ServiceError
from evenflow.settings import KafkaSettings, Settings
from spark_consumers.application import run
from spark_consumers.checkpoints import resume_offsets
from spark_consumers.labels import bucket_labels, shuffle_partition
from spark_consumers.session import make_session, session_conf
from spark_consumers.sinks import SINKS, ResultSink
from spark_consumers.sinks.base import JSON_RECORDS
from spark_consumers.sinks.parquet import committed_files, read_parquet_results
from tests.pipeline.spark_stream import (
    INTEGERS,
    Result,
    Stream,
    make_settings,
    result_row,
    results,
    run_until,
    start,
)
from topics import admin, clients, reader
from workbench.broker import EmbeddedBroker

pytestmark = pytest.mark.pipeline


def consumed(settings: Settings, stage: str, role: str) -> bool:
    """Whether the stage has committed everything that its topic holds now."""
    state = admin.describe(settings.kafka, [settings.topic(role)])[settings.topic(role)]
    return sum(committed(settings, stage).values()) >= sum(state.end.values())


def committed(settings: Settings, stage: str) -> dict[str, int]:
    folder = Path(settings.spark.checkpoint) / settings.query.name / stage
    batches = [int(file.name) for file in (folder / "commits").glob("[0-9]*")]
    if not batches:
        return {}
    offsets = json.loads((folder / "offsets" / str(max(batches))).read_text().splitlines()[2])
    return offsets[settings.topic("partials" if stage == "reduce" else "routed")]


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
    found, records = results(settings)
    assert found == stream.expected()
    assert records == len(found), "each window was emitted once"
    run(settings, until_ended=True)  # all is over already: it returns, and emits nothing
    assert results(settings)[1] == records
    sent = [
        json.loads(m.value())
        for b in reader.read_range(kafka_settings, settings.topic("telemetry"))
        for m in b
    ]
    assert sum(record["rows"] for record in sent) == 32 * 3
    assert all(record["stage"] == "fused" and record["load"] > 0 for record in sent)
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
    found, records = results(settings)
    assert found == stream.expected()
    assert records == len(found)
    with pytest.raises(IncompatibleStateError, match=r"begun with spark\.wiring = 'split'"):
        run(_with(settings, {"wiring": "fused"}))


def test_both_split_stages_run_in_one_application(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings, query_name, tmp_path, query={"slide": "4s"}, spark={"wiring": "split"}
    )
    stream = Stream(settings)
    stream.write(12)
    stream.end()
    run(settings, until_ended=True)
    assert results(settings)[0] == stream.expected()


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


def test_parquet_results_are_read_through_the_commit_log(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    conf = {"spark.sql.streaming.fileSink.log.compactInterval": "3"}
    target = tmp_path / "results"
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        spark={"conf": conf, "max_frames_per_batch": 12},
        results={"sink": "parquet", "path": str(target)},
    )
    stream = Stream(settings)
    stream.write(16)
    stream.end()
    run(settings, until_ended=True)
    assert any(file.name.endswith(".compact") for file in (target / "_spark_metadata").iterdir())
    shutil.copy(committed_files(target)[0], target / "part-of-a-batch-that-never-committed.parquet")
    table = read_parquet_results(target)
    assert table.num_rows == len(stream.expected())
    assert _rows(table) == stream.expected()
    committed_files(target)[0].unlink()
    with pytest.raises(DataLossError, match="1 committed result files are gone"):
        read_parquet_results(target)


@pytest.mark.more
def test_a_folder_of_results_is_one_checkpoints_and_a_checkpoint_keeps_to_its_folder(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    def into(folder: str, checkpoint: str) -> Settings:
        results = settings.results.model_copy(update={"path": str(tmp_path / folder)})
        moved = _with(settings, {"checkpoint": str(tmp_path / checkpoint)})
        return moved.model_copy(update={"results": results})

    settings = make_settings(
        kafka_settings, query_name, tmp_path, results={"sink": "parquet", "path": str(tmp_path / "first")}
    )
    stream = Stream(settings)
    stream.write(8)
    run_until(into("first", "kept"), lambda: consumed(into("first", "kept"), "fused", "routed"))
    stream.write(4)
    stream.end()
    with pytest.raises(IncompatibleStateError, match="would drop the results of micro-batches 0 to"):
        run(into("first", "lost"), until_ended=True)
    with pytest.raises(
        IncompatibleStateError, match=f"writes its results to parquet {tmp_path}/first, not to"
    ):
        run(into("second", "kept"), until_ended=True)
    run(into("second", "lost"), until_ended=True)  # the refusal has left nothing behind
    assert _rows(read_parquet_results(tmp_path / "second")) == stream.expected()
    run(into("first", "kept"), until_ended=True)
    assert _rows(read_parquet_results(tmp_path / "first")) == stream.expected()


@pytest.mark.parametrize("sink", SINKS.values(), ids=SINKS)
def test_what_a_sink_wrote_is_read_back_as_the_direct_results(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, sink: ResultSink
) -> None:
    fields = {name: str(tmp_path / name) for name in sink.needs}
    settings = make_settings(kafka_settings, query_name, tmp_path, results={"sink": sink.name} | fields)
    stream = Stream(settings)
    stream.write(6)
    stream.end()
    run(settings, until_ended=True)
    found = sink.read_back(settings)
    table = found.read_all() if isinstance(found, pa.RecordBatchReader) else found
    if table.schema == JSON_RECORDS:
        rows = [result_row(settings, record["value"]) for record in table.to_pylist()]
        assert dict(rows) == stream.expected()
        assert len(rows) == len(stream.expected())
    else:
        assert table.schema.names == stream.plan.result_schema.names
        assert _rows(table) == stream.expected()


def test_a_combiner_whose_partials_were_deleted_is_refused(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path, spark={"wiring": "split"})
    stream = Stream(settings)
    stream.write(5)
    run_until(settings, lambda: consumed(settings, "combine", "routed"), ("combine",))
    partials = admin.pipeline_topics(settings)["partials"]
    admin.delete_topics(kafka_settings, [partials.name])
    admin.ensure_topics(kafka_settings, [partials])
    stream.write(5)
    stream.end()
    # the reducer is fresh: nothing it has could tell it that its first blob is not the first
    with pytest.raises(DataLossError, match=r"\.partials was deleted and made again"):
        run(settings, until_ended=True)
    assert results(settings) == ({}, 0)


def test_a_changed_query_and_a_recreated_or_trimmed_topic_are_refused(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path)
    stream = Stream(settings)
    stream.write(3)
    run_until(settings, lambda: consumed(settings, "fused", "routed"))
    changed = make_settings(kafka_settings, query_name, tmp_path, query={"window": "8s"})
    with pytest.raises(IncompatibleStateError, match=r"query\.window: '4s' -> '8s'"):
        run(changed)
    routed = admin.pipeline_topics(settings)["routed"]
    state = admin.describe(kafka_settings, [routed.name])[routed.name]
    stream.write(3)
    _trim(settings, dict.fromkeys(range(3), state.end[0] + 2))
    with pytest.raises(DataLossError, match="begins at offset"):
        run(settings)
    fresh = _with(settings, {"checkpoint": str(tmp_path / "fresh")})
    with pytest.raises(DataLossError, match="offsets from 0 are needed"):
        run(fresh)
    admin.delete_topics(kafka_settings, [routed.name])
    admin.ensure_topics(kafka_settings, [routed])
    with pytest.raises(DataLossError, match="was deleted and made again"):
        run(settings)


def test_a_foreign_record_stops_the_application_with_its_error(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path)
    Stream(settings).write(1)
    client = clients.producer(kafka_settings)
    client.produce(settings.topic("routed"), b"not a frame", partition=1)
    clients.flush(client, kafka_settings)
    with pytest.raises(ProtocolError, match="fused stopped: this record is no evenflow frame"):
        run(settings, until_ended=True)


def test_a_combiner_without_checkpoint_refuses_a_torn_micro_batch(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path, spark={"wiring": "split"})

    def resume() -> dict[int, int]:
        names = [settings.topic("routed"), settings.topic("partials")]
        states = admin.describe(kafka_settings, names)
        return resume_offsets(settings, states[names[0]], states[names[1]])

    assert resume() == {0: 0, 1: 0, 2: 0}
    _put_blob(settings, bucket=0, last=9)
    with pytest.raises(IncompatibleStateError, match=r"routed partitions \[1\] that not every bucket got"):
        resume()
    _put_blob(settings, bucket=1, last=9, part=0, parts=2)
    with pytest.raises(IncompatibleStateError, match="ambiguous"):
        resume()
    _put_blob(settings, bucket=1, last=9, part=1, parts=2)
    assert resume() == {0: 0, 1: 10, 2: 0}


def test_a_user_without_the_right_to_write_results_is_told_which_right_is_missing(
    query_name: str, tmp_path: Path
) -> None:
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
        ResourceType,
    )

    with EmbeddedBroker(sasl={"admin": "a", "worker": "w"}) as broker:
        settings = make_settings(broker.settings(), query_name, tmp_path)
        rights = [(ResourceType.TOPIC, query_name, ResourcePatternType.PREFIXED, AclOperation.DESCRIBE)]
        rights += [
            (ResourceType.TOPIC, query_name, ResourcePatternType.PREFIXED, AclOperation.DESCRIBE_CONFIGS),
            (
                ResourceType.TOPIC,
                settings.topic("telemetry"),
                ResourcePatternType.LITERAL,
                AclOperation.WRITE,
            ),
        ]
        acls = [
            AclBinding(kind, name, pattern, "User:worker", "*", operation, AclPermissionType.ALLOW)
            for kind, name, pattern, operation in rights
        ]
        client = clients.admin(settings.kafka)
        for future in client.create_acls(acls).values():
            future.result()
        kafka = broker.settings("worker")
        with pytest.raises(
            ServiceError, match=rf"user worker has no right to write topic {query_name}\.results"
        ):
            run(settings.model_copy(update={"kafka": kafka}))


def test_labels_map_one_to_one_onto_the_shuffle_partitions_of_real_spark(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    spark = make_session(make_settings(kafka_settings, query_name, tmp_path))
    try:
        for buckets in (1, 2, 3, 7, 16):
            labels = [(label,) for label in bucket_labels(buckets)]
            placed = spark.createDataFrame(labels, "label int").repartition(buckets, "label")
            found = placed.selectExpr("label", "spark_partition_id() AS at").collect()
            assert [label for label, _ in sorted(map(tuple, found), key=lambda row: row[1])] == [
                label for (label,) in labels
            ]
        many = spark.range(-500, 500).selectExpr("int(id) AS n", "pmod(hash(int(id)), 64) AS at").collect()
        assert all(shuffle_partition(row.n, 64) == row.at for row in many)
    finally:
        spark.stop()


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.sql.streaming.kafka.minPartitions": "8"},
        {"maxRecordsPerPartition": "5"},
        {"spark.sql.streaming.asyncProgressTrackingEnabled": "true"},
        {"spark.sql.shuffle.partitions": "9"},
    ],
)
def test_options_that_would_cut_a_repeated_micro_batch_otherwise_are_refused(conf: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(conf))):
        session_conf(Settings(spark={"conf": conf}))


def _with(settings: Settings, spark: dict[str, Any]) -> Settings:
    return settings.model_copy(update={"spark": settings.spark.model_copy(update=spark)})


def _rows(table: Any) -> Result:
    found: Result = {}
    for row in table.to_pylist():
        at = (row.pop("window_start"), row.pop("key"))
        row.pop("window_end")
        found[at] = row
    return found


def _commits(settings: Settings) -> list[str]:
    return _numbers(settings, "commits")


def _offsets(settings: Settings) -> list[str]:
    return _numbers(settings, "offsets")


def _numbers(settings: Settings, folder: str) -> list[str]:
    path = Path(settings.spark.checkpoint) / settings.query.name / "fused" / folder
    return sorted((file.name for file in path.glob("[0-9]*")), key=int)


def _wait_for(condition: Any, log: Path, seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, log.read_text()[-5000:] if log.exists() else "no log"
        time.sleep(0.1)


def _group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _trim(settings: Settings, before: dict[int, int]) -> None:
    from confluent_kafka import TopicPartition

    client = clients.admin(settings.kafka)
    parts = [TopicPartition(settings.topic("routed"), number, offset) for number, offset in before.items()]
    for future in client.delete_records(parts).values():
        future.result()


def _put_blob(settings: Settings, *, bucket: int, last: int, part: int = 0, parts: int = 1) -> None:
    routed = admin.describe(settings.kafka, [settings.topic("routed")])[settings.topic("routed")]
    header = frames.BlobHeader(
        fingerprint=settings.fingerprint,
        topic_id=routed.topic_id,
        routed_partition=1,
        first=0,
        last=last,
        part=part,
        parts=parts,
        input_partitions=2,
        routed_partitions=3,
        marks={},
    )
    from spark_consumers.combiner import Layout

    schema = Layout.of(settings, routed.topic_id).plan.partial_schema
    client = clients.producer(settings.kafka)
    batch = schema.empty_table().combine_chunks().to_batches() or [_no_rows(schema)]
    client.produce(settings.topic("partials"), frames.encode(batch[0], header), partition=bucket)
    clients.flush(client, settings.kafka)


def _no_rows(schema: Any) -> Any:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
