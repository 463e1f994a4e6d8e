"""Avro and Protobuf through Kafka and Spark: a schema that changes in mid-stream, a registry that is late,
bad records.
"""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import fastavro
import pytest

from evenflow.settings import KafkaSettings
from evenflow.sources.datasets import open_source
from evenflow.sources.source import SourceOptions
from evenflow.wire.markers import EndOfStream
from producers.replay import replay
from tests.pipeline.end_to_end import BEGIN, Pipeline, make_settings
from tests.pipeline.routed import rejections
from tests.pipeline.spark_stream import results
from tests.schema_registry import RegistryInMemory, schema_registry
from topics import clients
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280)]
TIME = {"type": "long", "logicalType": "timestamp-micros"}
FIRST = [
    ("user", ["null", {"type": "record", "name": "U", "fields": [{"name": "id", "type": "string"}]}]),
    ("t", TIME),
    ("i", "int"),
]
SECOND = [
    ("t", TIME),
    ("note", {"type": "array", "items": "string"}),
    *FIRST[:1],
    ("i", ["null", "long"]),
    ("f", "double"),
]
POISON = [
    b"",
    b"{}",
    b"\0\0\0\0\x63abc",
    b"\0\0\0\0\x01",
    b"\0\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
]


def _schema(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "R",
        "fields": [{"name": name, "type": type_} for name, type_ in fields],
    }


def _written(settings: Any, registry: RegistryInMemory) -> tuple[list[dict[str, Any]], int]:
    """Rows of both versions, the second from the middle on, and how many records are poison."""
    draw, rows, poison = random.Random(3), [], 0
    client = clients.producer(settings.kafka)
    counts = [0] * settings.input_partitions
    for number in range(2_000):
        version = 1 if number < 1_000 else 2
        fields = FIRST if version == 1 else SECOND
        schema = _schema(fields)
        number_of = registry.register(json.dumps(schema), subject="s")
        row: dict[str, Any] = {
            "user": {"id": f"u{draw.randrange(9)}"},
            "t": (BEGIN + number * 10) * 1000 + 7,
            "i": number,
        }
        if version == 2:
            row |= {
                "i": None if number % 7 == 0 else number * 2**31,
                "f": number / 8,
                "note": ["x"] * (number % 3),
            }
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
        value = b"\0" + number_of.to_bytes(4, "big") + out.getvalue()
        if number % 50 == 49:
            value, poison = POISON[poison % len(POISON)], poison + 1
        elif number % 100 == 24 and version == 2:  # by a schema that is registered too late
            value, poison = b"\0" + (3).to_bytes(4, "big") + out.getvalue(), poison + 1
        elif number % 50 != 48:
            rows.append(row)
        else:  # a record that does not end
            value, poison = value[:-1], poison + 1
        partition = number % settings.input_partitions
        client.produce(settings.topic("input"), value=value, partition=partition)
        counts[partition] += 1
    for partition, count in enumerate(counts):
        marker = EndOfStream(producer="t", tuples=count)
        client.produce(settings.topic("input"), partition=partition, headers=marker.headers())
    clients.flush(client, settings.kafka)
    return rows, poison


@pytest.mark.more
def test_avro_whose_schema_changes_in_mid_stream_is_exact_and_bad_records_are_counted(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    with schema_registry() as registry:
        settings = make_settings(
            kafka_settings,
            query_name,
            tmp_path,
            query={
                "key": "user.id", "time_unit": "ms", "slide": "5s", "types": {"i": "int64"},
                "aggregates": {"n": "count", "i": "sum(i)", "f": "sum(f)"},
            },
            input={"format": "avro", "registry": {"url": registry.url}},
        )  # fmt: skip
        rows, poison = _written(settings, registry)
        registry.failures = 3
        with Pipeline(settings, tmp_path) as pipeline:
            pipeline.run_to_the_end()
        report = verify(settings)
        assert registry.register(json.dumps(_schema(SECOND) | {"doc": "later"}), subject="s") == 3
        later = verify(settings)
        refused = [json.loads(json.dumps(str(one))) for one in rejections(settings)]
    assert report.exact, report.text()
    assert (report.differences, report.routed, report.rejected) == (0, len(rows), poison)
    assert sum("schema" in one for one in refused) >= 40
    assert (report.without_schema, later.without_schema) == (0, 10)
    assert (later.exact, later.rejected) == (True, poison), later.text()
    result, _ = results(settings)
    assert sum(row["n"] for row in result.values()) == len(rows)
    assert sum(row["i"] or 0 for row in result.values()) == sum(row["i"] or 0 for row in rows)
    assert sum(row["f"] or 0 for row in result.values()) == sum(row.get("f", 0) for row in rows)


@pytest.mark.long
def test_what_replay_writes_as_protobuf_is_exact(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    lines = [f"k{n % 7},{BEGIN + n * 10},{n},{n / 8}" for n in range(2_000)]
    (tmp_path / "rows.csv").write_text("\n".join(["k,t,i,f", *lines]) + "\n")
    with schema_registry() as registry:
        settings = make_settings(
            kafka_settings,
            query_name,
            tmp_path,
            query={"key": "k", "slide": "5s", "aggregates": {"n": "count", "i": "sum(i)", "f": "sum(f)"}},
            input={"format": "protobuf", "registry": {"url": registry.url}},
        )
        replay(settings, open_source(str(tmp_path / "rows.csv"), SourceOptions.for_settings(settings)))
        with Pipeline(settings, tmp_path) as pipeline:
            pipeline.run_to_the_end()
        report = verify(settings)
    assert report.exact, report.text()
    assert (report.routed, report.rejected) == (2_000, 0)
    result, _ = results(settings)
    assert sum(row["i"] for row in result.values()) == sum(range(2_000))
