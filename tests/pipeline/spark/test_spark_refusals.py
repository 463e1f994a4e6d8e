"""What combiner and reducer refuse to go on with, on a real broker and real Spark, and what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evenflow.errors import ConfigError, DataLossError, IncompatibleStateError, ProtocolError, ServiceError
from evenflow.numeric.arrays import records
from evenflow.settings import KafkaSettings, Settings
from evenflow.windows import NO_MARK
from evenflow.wire import LANE, BlobHeader, Segment, encode_blob
from spark_consumers.application import run
from spark_consumers.checkpoints.epoch import StageEpoch
from spark_consumers.checkpoints.notes import resume_offsets
from spark_consumers.checkpoints.results_note import begun_at
from spark_consumers.session import session_conf
from tests.pipeline.spark_stream import (
    Stream,
    consumed,
    make_settings,
    results,
    run_until,
    with_spark,
)
from topics import admin, clients
from workbench.local.broker import EmbeddedBroker

pytestmark = pytest.mark.pipeline


@pytest.mark.long
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
    assert (
        begun_at(settings, f"kafka {settings.topic('results')}")
        == f"{settings.spark.checkpoint}/{query_name}/fused"
    )
    at_work = StageEpoch(settings, "fused")
    changed = make_settings(kafka_settings, query_name, tmp_path, query={"window": "8s"})
    with pytest.raises(IncompatibleStateError, match=r'query\.window: "4s" -> "8s"'):
        run(changed)
    routed = admin.pipeline_topics(settings)["routed"]
    state = admin.describe(kafka_settings, [routed.name])[routed.name]
    stream.write(3)
    _trim(settings, dict.fromkeys(range(3), state.end[0] + 2))
    with pytest.raises(DataLossError, match="begins at offset"):
        run(settings)
    fresh = with_spark(settings, {"checkpoint": str(tmp_path / "fresh")})
    with pytest.raises(IncompatibleStateError, match="already holds results of query"):
        run(fresh)
    elsewhere = settings.results.model_copy(update={"topic": f"{query_name}.elsewhere"})
    with pytest.raises(DataLossError, match="offsets from 0 are needed"):
        run(fresh.model_copy(update={"results": elsewhere}))
    admin.delete_topics(kafka_settings, [routed.name])
    admin.ensure_topics(kafka_settings, [routed])
    with pytest.raises(DataLossError, match="was deleted and made again"):
        run(settings)
    at_work.check()  # a start that is refused ends no driver
    at_work.close()


@pytest.mark.more
def test_a_results_topic_that_is_recreated_stops_the_application_and_is_refused_at_the_next_start(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path)
    spec = admin.pipeline_topics(settings)["results"]
    Stream(settings).write(3)

    def recreate() -> bool:
        if consumed(settings, "fused", "routed") and not recreated:
            admin.delete_topics(kafka_settings, [spec.name])
            admin.ensure_topics(kafka_settings, [spec])
            recreated.append(True)
        return False

    recreated: list[bool] = []
    with pytest.raises(DataLossError, match=r"\.results was deleted and created again while the service ran"):
        run_until(settings, recreate)
    with pytest.raises(DataLossError, match=r"\.results was deleted and made again"):
        run(settings)


@pytest.mark.parametrize("sink", ["kafka", "parquet"])
def test_a_foreign_record_stops_the_application_with_its_error(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, sink: str
) -> None:
    target = {"sink": sink, "path": str(tmp_path / "results")}
    settings = make_settings(kafka_settings, query_name, tmp_path, results=target)
    Stream(settings).write(1)
    client = clients.producer(kafka_settings)
    client.produce(settings.topic("routed"), b"not a frame", partition=1)
    clients.flush(client, kafka_settings)
    with pytest.raises(
        ProtocolError,
        match=r"fused stopped: routed partition 1, offset \d+: this record is no evenflow frame",
    ):
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
    _put_blob(settings, bucket=1, last=9, rows=(0, 1))
    with pytest.raises(IncompatibleStateError, match="ambiguous"):
        resume()
    _put_blob(settings, bucket=1, last=9, rows=(1, 2))
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


def _trim(settings: Settings, before: dict[int, int]) -> None:
    from confluent_kafka import TopicPartition

    client = clients.admin(settings.kafka)
    parts = [TopicPartition(settings.topic("routed"), number, offset) for number, offset in before.items()]
    for future in client.delete_records(parts).values():
        future.result()


def _put_blob(settings: Settings, *, bucket: int, last: int, rows: tuple[int, int] = (0, 0)) -> None:
    """Rows begin..end of a segment of two, or one without rows."""
    routed = admin.describe(settings.kafka, [settings.topic("routed")])[settings.topic("routed")]
    header = BlobHeader(
        fingerprint=settings.fingerprint,
        topic_id=routed.topic_id,
        bucket=bucket,
        buckets=settings.bucket_count,
        input_partitions=2,
        routed_partitions=3,
        segments=(Segment(1, 0, last, 2 if rows[1] else 0, rows[0], rows[1] - rows[0], 0),),
        marks=np.full((1, 2), NO_MARK),
        lanes=records(0, LANE),
    )
    from spark_consumers.combiner import Layout

    schema = Layout.from_settings(settings, routed.topic_id).plan.partial_schema
    client = clients.producer(settings.kafka)
    batch = pa.RecordBatch.from_pylist([{"pane": 0, "key": b"k"}] * (rows[1] - rows[0]), schema=schema)
    client.produce(settings.topic("partials"), encode_blob(batch, header), partition=bucket)
    clients.flush(client, settings.kafka)
