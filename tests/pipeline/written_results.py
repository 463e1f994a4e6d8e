"""Results as a sink writes them, without Spark: two windows, and in a topic the micro-batch of both twice."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evenflow.aggregates import AggregatePlan
from evenflow.settings import KafkaSettings, Settings
from evenflow.settings.delta_place import delta_place
from evenflow.twostep import readable, readable_schema
from spark_consumers.checkpoints.result_files import MARKER, Owner, file_name
from spark_consumers.sinks import avro, sink_of
from spark_consumers.sinks.base import Start
from spark_consumers.sinks.delta import commit, delta_schema
from tests.pipeline.spark_stream import make_settings
from tests.schema_registry import RegistryInMemory, schema_registry
from topics import clients

NUMBERS, BYTES = [b"8", b"-5", b"0"], [b"8", b"\xff\x00", b"b"]
"""Keys of the first window, if keys are whole numbers, and if they are any bytes. The second window has
the first alone.
"""
PAIRS = [b'["DE",8]', b'["q\\"\xc3\xa9",-5]', b'["",0]']
"""The same, if the key is `shop.id`, a text, and `product`, a whole number."""


def settings_of_results(
    kafka: KafkaSettings, name: str, folder: Path, *, sink: str, key: str | list[str] = "k", **query: Any
) -> Settings:
    """A query with the aggregates `n` (2 in every row) and `total` (0.5, but null for the last key)."""
    place: dict[str, Any] = {"path": str(folder / "results")} if sink in ("parquet", "delta") else {}
    place |= {"registry": {"url": registry().url}} if sink == "avro" else {}
    aggregates = {"n": "count", "total": "sum(f)"}
    types = {"k": "int64"} if key == "k" else {"product": "int64"} if "product" in key else {}
    return make_settings(
        kafka,
        name,
        folder,
        query={"key": key, "types": types, "aggregates": aggregates, **query},
        results={"sink": sink, **place},
        spark={"buckets": 1},
    )


@cache
def registry() -> RegistryInMemory:
    """A schema registry that lasts as long as the tests of this process."""
    lasting = ExitStack()
    atexit.register(lasting.close)
    return lasting.enter_context(schema_registry())


def window(settings: Settings, end: int, keys: list[bytes], revision: int = 0) -> pa.Table:
    """Rows of one window as the reducer hands them to a sink."""
    plan = AggregatePlan.of(settings.query)
    lengths = {
        "window_start": [end - settings.query.window],
        "window_end": [end],
        "n": [2],
        "revision": [revision],
    }
    columns = {name: values * len(keys) for name, values in lengths.items()}
    columns |= {"key": keys, "total": [None if number == 2 else 0.5 for number in range(len(keys))]}
    return pa.table({name: columns[name] for name in plan.result_schema.names}, schema=plan.result_schema)


def write_results(settings: Settings, *, later: bool = False, again: int = 0) -> None:
    """Windows that end at 4 s and 5 s, or one that ends at 6 s if `later`, or two rows of 4 s `again`, of
    this revision.
    """
    keys = (
        NUMBERS if settings.query.key_kind == "int64" else PAIRS if settings.query.key_columns[1:] else BYTES
    )
    tables = [window(settings, 4000, keys), window(settings, 5000, keys[:1])]
    tables = [window(settings, 6000, keys[:2])] if later else tables
    tables = [window(settings, 4000, keys[:2], again)] if again else tables
    first = 2 * (later or bool(again))
    if settings.results.sink == "parquet":
        folder = Path(str(settings.results.path))
        folder.mkdir(parents=True, exist_ok=True)
        owner = Owner(query=settings.query.name, fingerprint=settings.fingerprint, run="r")
        (folder / MARKER).write_text(owner.text())
        for number, table in enumerate(tables, first):
            ours = readable(table, readable_schema(settings.query))
            pq.write_table(ours, folder / file_name(settings.query.name, number, 0))
        return
    if settings.results.sink == "delta":
        for _ in range(2):  # the second time as after a crash
            for number, table in enumerate(tables, first):
                rows = readable(table, readable_schema(settings.query)).cast(delta_schema(settings))
                commit_first(settings, rows, number)
        return
    shape = sink_of(settings).shaper(settings)
    before = header_of(settings)
    client = clients.producer(settings.kafka)
    for _ in range(2):
        for table in shape(iter(tables), 0):
            for record in table.to_pylist():
                value = before + record["value"] if before else record["value"]
                client.produce(settings.topic("results"), value, record["key"], partition=0)
    clients.flush(client, settings.kafka)


def header_of(settings: Settings) -> bytes:
    """What the sink's writer puts in front of each row: the number of a schema, which is registered as at
    a start.
    """
    if settings.results.sink != "avro":
        return b""
    avro.SINK.reach(settings)
    return avro.SINK.header(settings)


def commit_first(settings: Settings, rows: pa.Table, number: int) -> None:
    """Commit the rows of a micro-batch to the Delta table of these settings, which is made if it is not
    there.
    """
    nowhere: Any = None  # making the table asks no Spark
    sink_of(settings).writer(settings, Start(spark=nowhere, run="r", epoch=1))
    commit(delta_place(settings), "r", rows, number)
