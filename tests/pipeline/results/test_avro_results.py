"""Results as Avro through real Kafka and Spark, read by fastavro with the registered schema, and verified."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest

from evenflow.errors import ConfigError, IncompatibleStateError, ServiceError
from evenflow.settings import Settings
from evenflow.settings.views import view
from spark_consumers.application import run
from spark_consumers.sinks.avro import subject
from tests.pipeline.end_to_end import (
    Pipeline,
    Stream,
    assert_equal,
    assert_exact,
    batches_done,
    committed,
    make_settings,
)
from tests.pipeline.spark_stream import Result, results
from tests.schema_registry import RegistryInMemory, schema_registry
from topics import clients, reader
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(400)]

AGGREGATES = {
    "n": "count", "i_sum": "sum(i)", "i_mean": "mean(i)", "f_min": "min(f)", "top 3": "top_k(i, 3)",
    "few": "collect(f, 4)",
}  # fmt: skip
VIEWS = {"slow": {"slide": "5s", "aggregates": {"n": "count", "i.max": "max(i)"}}}


@pytest.fixture
def registry() -> Iterator[RegistryInMemory]:
    with schema_registry() as kept:
        yield kept


def read(settings: Settings, registry: RegistryInMemory) -> tuple[Result, int]:
    """The rows by (window start, key), of the highest revision, as a foreign reader has them; and how many
    records.

    A field has the name of its column again. Nothing of evenflow decodes them.
    """
    result: dict[tuple[int, bytes], dict[str, Any]] = {}
    records = 0
    for batch in reader.read_range(settings.kafka, settings.topic("results")):
        for message in batch:
            records += 1
            value = message.value() or b""
            assert value[:1] == b"\0"
            number = int.from_bytes(value[1:5], "big")
            assert number in registry.subjects[subject(settings)]
            schema = json.loads(registry.schemas[number - 1]["schema"])
            rest = io.BytesIO(value[5:])
            row = fastavro.schemaless_reader(rest, fastavro.parse_schema(schema), None)
            assert rest.read() == b""
            assert isinstance(row, dict)
            assert row["key"] == message.key()
            named = {field["name"]: field.get("doc", field["name"]) for field in schema["fields"]}
            row = {named[name]: value for name, value in row.items()}
            start, end = (round(row.pop(name).timestamp() * 1000) for name in ("window_start", "window_end"))
            assert end - start == settings.query.window
            at = start, row.pop("key")
            before = result.get(at)
            if before is None or row.get("revision", 0) > before.get("revision", 0):
                result[at] = row
            elif row.get("revision") == before.get("revision"):
                assert row == before, "a repeated row differs"
    return result, records


@pytest.mark.long
def test_the_rows_of_a_query_and_its_view_are_those_of_json_also_when_spark_is_killed(
    kafka_settings: Any, query_name: str, tmp_path: Path, registry: RegistryInMemory
) -> None:
    query = {"aggregates": AGGREGATES, "views": VIEWS}
    spark = {"buckets": 2}
    settings = make_settings(
        kafka_settings, query_name, tmp_path, query=query, spark=spark,
        results={"sink": "avro", "registry": {"url": registry.url}},
    )  # fmt: skip
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        stream.write(1_500)
        pipeline.start("partition")
        pipeline.start("aggregate")
        pipeline.wait_until(lambda: batches_done(settings, "fused"), timeout=150)
        stream.write(1_500)
        pipeline.kill("aggregate")
        registry.read_only = True  # a schema that is registered needs no right to write
        stream.end()
        pipeline.stop("partition")
        pipeline.run_to_the_end()
    slow = view(settings, "slow")
    assert set(registry.subjects) == {subject(settings), subject(slow)}
    assert len(registry.asked) <= 20, "the registry is asked at a start alone"
    as_json = make_settings(
        kafka_settings, f"{query_name}-j", tmp_path / "json", query=query, spark=spark,
        input={"topic": settings.topic("input")},
    )  # fmt: skip
    (tmp_path / "json").mkdir(exist_ok=True)
    with Pipeline(as_json, tmp_path / "json") as pipeline:
        pipeline.run_to_the_end()
    for mine, other in ((settings, as_json), (slow, view(as_json, "slow"))):
        result, _ = read(mine, registry)
        assert len(result) > 100
        assert result == results(other)[0]
        report = verify(mine)
        assert report.exact, report.text()
        assert (report.first, report.ended) == ((), True)
        assert report.rows == len(result)


@pytest.mark.long
def test_updates_and_typed_columns_in_the_split_wiring_are_exact(
    kafka_settings: Any, query_name: str, tmp_path: Path, registry: RegistryInMemory
) -> None:
    settings = make_settings(
        kafka_settings, query_name, tmp_path,
        query={"out_of_orderness": 0, "allowed_lateness": "12s", "late": "update"},
        spark={"buckets": 2, "wiring": "split"},
        results={"sink": "avro", "registry": {"url": registry.url}},
    )  # fmt: skip
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition", "--until-ended")
        pipeline.start("combine", "--until-ended")
        pipeline.start("reduce", "--until-ended")
        for _ in range(3):
            before = read(settings, registry)[1]
            stream.write(700)
            pipeline.wait_until(lambda: committed(settings) >= len(stream.records))
            pipeline.wait_until(lambda before=before: read(settings, registry)[1] > before, timeout=150)
        stream.end()
        pipeline.finish()
    result, records = read(settings, registry)
    newest = {
        at: {name: value for name, value in row.items() if name != "revision"} for at, row in result.items()
    }
    assert records > len(newest)
    assert_equal(newest, stream.expected())
    assert_exact(stream, newest)


@pytest.mark.long
def test_the_rows_of_changes_are_exact(
    kafka_settings: Any, query_name: str, tmp_path: Path, registry: RegistryInMemory
) -> None:
    settings = make_settings(
        kafka_settings, query_name, tmp_path, query={"emit": "changes"}, spark={"buckets": 2},
        results={"sink": "avro", "registry": {"url": registry.url}},
    )  # fmt: skip
    stream = Stream(settings)
    stream.write(2_000)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    report = verify(settings)
    assert report.exact, report.text()
    assert report.rows > 300


@pytest.mark.long
def test_a_start_is_refused_without_a_schema_and_verify_finds_a_record_that_is_no_row_of_it(
    kafka_settings: Any, query_name: str, tmp_path: Path, registry: RegistryInMemory
) -> None:
    settings = make_settings(
        kafka_settings, query_name, tmp_path, results={"sink": "avro", "registry": {"url": registry.url}}
    )

    def changed(**fields: Any) -> Settings:
        return settings.model_copy(update={"results": settings.results.model_copy(update=fields)})

    theirs = {"type": "record", "name": "Theirs", "fields": [{"name": "key", "type": "int"}]}
    registry.register(json.dumps(theirs), subject=subject(settings))
    with pytest.raises(
        IncompatibleStateError, match=r'its field key is "int", and that of results is "bytes"'
    ):
        run(settings, until_ended=True)
    registry.subjects.clear()
    with pytest.raises(ConfigError, match=r"results.register_schema is false"):
        run(changed(register_schema=False), until_ended=True)
    registry.read_only = True
    with pytest.raises(ConfigError, match=r"does not register the schema"):
        run(settings, until_ended=True)
    nowhere = settings.results.registry.model_copy(update={"url": "http://127.0.0.1:1"})  # type: ignore[union-attr]
    with pytest.raises(ServiceError, match=r"127.0.0.1:1 does not answer"):
        run(changed(registry=nowhere), until_ended=True)
    assert registry.subjects == {}
    registry.read_only = False
    stream = Stream(settings)
    stream.write(600)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    result, _ = read(settings, registry)
    assert_exact(stream, result)
    topic = settings.topic("results")
    (first,) = [m for block in reader.read_range(settings.kafka, topic) for m in block][:1]
    value = first.value() or b""
    other = value[:1] + bytes([value[1] ^ 1]) + value[2:]  # a schema that is not that of the query
    client = clients.producer(settings.kafka)
    bad = [other, value + b"\0", value[:-1], value[5:], b"", b"{}"]
    for one in bad:
        client.produce(topic, one, first.key(), partition=first.partition())
    clients.flush(client, settings.kafka)
    report = verify(settings)
    assert not report.exact
    assert {one.kind for one in report.first} == {"malformed"}
    assert len(report.first) == len(bad)
