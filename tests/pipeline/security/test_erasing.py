"""A key is erased by the steps of docs/security.md: afterwards no topic, no file of the checkpoint and no
file of the broker holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from spark_consumers.checkpoints.runs import newest_local_run
from tests.pipeline.end_to_end import Pipeline, Stream, as_toml, committed, make_settings
from topics import clients
from topics.admin import describe, pipeline_topics
from topics.reader import DeletedRecordsError, read_range
from workbench.local.broker import EmbeddedBroker

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(580), pytest.mark.more]
KEY = "kq7Zt0Vx2mWc9Rj4LsEy8UbNf3GhDpAo"
"""Text that compression leaves as it is, as no part of it comes twice."""
SOON = {"log.retention.check.interval.ms": "1000", "log.segment.delete.delay.ms": "1000"}
EACH_SECOND = {"spark.sql.streaming.stateStore.maintenanceInterval": "1s"}
"""When Spark deletes files of old states. Its default is a minute."""
COMPACTED = {"spark.sql.streaming.stateStore.rocksdb.compactOnCommit": "true"}
RETENTION_MS = 30_000
MICRO_BATCHES = 40
"""For how many docs/security.md says to wait."""


class KeyedStream(Stream):
    """A stream that also has tuples of one key."""

    def write_key(self, key: str, tuples: int) -> None:
        """So many of this key, at the present time, in all partitions."""
        for number in range(tuples):
            row = {"t": self._clock, "i": number}
            self._send(number % self.settings.input_partitions, key.encode(), self.encoded(row), row)
        clients.flush(self._client, self.settings.kafka)


def topics_with(settings: Settings, key: str) -> set[str]:
    """Roles of the topics whose records hold these bytes."""
    roles = {settings.topic("input"): "input"}
    roles |= {spec.name: role for role, spec in pipeline_topics(settings).items()}
    states = describe(settings.kafka, list(roles))
    return {
        role
        for name, role in roles.items()
        if (state := states[name]) is not None and state.records and holds(settings, name, key)
    }


def holds(settings: Settings, topic: str, key: str) -> bool:
    """Whether a record of the topic holds these bytes."""
    try:
        return any(
            key.encode() in part
            for batch in read_range(settings.kafka, topic)
            for record in batch
            for part in (record.key() or b"", record.value() or b"", repr(record.headers()).encode())
        )
    except DeletedRecordsError:  # the broker removes records meanwhile
        return holds(settings, topic, key)


def files_with(folder: Path, key: str) -> list[Path]:
    """Files of the folder that hold these bytes."""
    held = []
    for file in sorted(folder.rglob("*")):
        try:
            if file.is_file() and key.encode() in file.read_bytes():
                held.append(file.relative_to(folder))
        except FileNotFoundError:  # Spark removes files meanwhile
            continue
    return held


def checkpoint_of(settings: Settings) -> Path:
    """The folder of all checkpoints."""
    assert settings.spark.checkpoint is not None
    return Path(settings.spark.checkpoint)


def newest_batch(settings: Settings) -> int:
    """Number of the last micro-batch that Spark has committed, -1 before the first one."""
    folder = newest_local_run(checkpoint_of(settings) / settings.query.name / "fused")
    return max((int(file.name) for file in (folder / "commits").glob("[0-9]*")), default=-1)


def set_topics(settings: Settings, changes: Mapping[str, str], *roles: TopicRole) -> None:
    """Change the settings of these topics."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in changes.items()
    ]
    resources = [
        ConfigResource(ResourceType.TOPIC, settings.topic(role), incremental_configs=entries)
        for role in roles
    ]
    for future in clients.admin(settings.kafka).incremental_alter_configs(resources).values():
        future.result(20)


def delete_input(settings: Settings) -> None:
    """What `kafka-delete-records` does, up to the present end of each partition of the input."""
    ends = [TopicPartition(settings.topic("input"), p, -1) for p in range(settings.input_partitions)]
    for future in clients.admin(settings.kafka).delete_records(ends).values():
        future.result(20)


def with_conf(settings: Settings, conf: Mapping[str, str]) -> Settings:
    """The settings with other lines in `[spark.conf]`."""
    return settings.model_copy(
        update={"spark": settings.spark.model_copy(update={"conf": {**settings.spark.conf, **conf}})}
    )


def test_after_the_steps_of_the_page_no_topic_and_no_file_holds_a_key(
    query_name: str, tmp_path: Path
) -> None:
    with EmbeddedBroker(properties=SOON) as broker:
        settings = make_settings(broker.settings(), query_name, tmp_path, spark={"conf": EACH_SECOND})
        checkpoint, disk = checkpoint_of(settings), broker.data_dir / "kafka"
        stream = KeyedStream(settings)
        with Pipeline(settings, tmp_path) as pipeline:
            stream.write(200)
            stream.write_key(KEY, 200)
            stream.write(300)
            pipeline.start("partition")
            pipeline.start("aggregate")
            pipeline.wait_until(lambda: files_with(checkpoint, KEY))
            pipeline.wait_until(lambda: "results" in topics_with(settings, KEY))
            assert topics_with(settings, KEY) >= {"input", "routed", "results"}
            assert files_with(disk, KEY)

            # Short segments, and the input.
            set_topics(settings, {"segment.ms": "1000"}, "input", "routed", "results", "telemetry")
            pipeline.wait_until(lambda: committed(settings) >= len(stream.records))
            stream.write(1_000)  # these begin a segment, and close the windows of the key
            pipeline.wait_until(lambda: committed(settings) >= len(stream.records))
            delete_input(settings)

            # The checkpoint.
            pipeline.stop("aggregate")
            pipeline.file.write_text(as_toml(with_conf(settings, COMPACTED)), encoding="utf-8")
            last = newest_batch(settings)
            pipeline.start("aggregate")
            pass_batches(pipeline, stream, until=last + MICRO_BATCHES)
            pipeline.wait_until(lambda: not files_with(checkpoint, KEY), timeout=20)

            # The results and the query's own topics.
            retention = {"retention.ms": str(RETENTION_MS)}
            set_topics(settings, retention, "routed", "results", "telemetry")
            pass_batches(pipeline, stream, until=newest_batch(settings) + 2)
            delete_input(settings)
            pipeline.wait_until(lambda: _is_gone(stream, disk))
            assert files_with(checkpoint, KEY) == []


def pass_batches(pipeline: Pipeline, stream: KeyedStream, *, until: int) -> None:
    """Write other tuples until Spark has committed this micro-batch."""
    while (done := newest_batch(stream.settings)) < until:
        stream.write(20)
        pipeline.wait_until(partial(_is_past, stream.settings, done))


def _is_gone(stream: KeyedStream, disk: Path) -> bool:
    """Whether topics and the broker's files are free of the key. Other tuples are written meanwhile, so that
    segments are closed.
    """
    stream.write(20)
    return not topics_with(stream.settings, KEY) and not files_with(disk, KEY)


def _is_past(settings: Settings, batch: int) -> bool:
    return newest_batch(settings) > batch
