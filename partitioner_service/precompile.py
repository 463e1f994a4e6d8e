"""Compile every kernel of the services by running it once: `python -m partitioner_service.precompile`.

This runs while an image is built. The services of the image then find machine code, so that no pod waits for
a compiler when it starts.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pb2

from evenflow.aggregates import AggregatePlan, every_form
from evenflow.numeric.keyed_hashes import keyed_hashes
from evenflow.partitioners import Partitioner
from evenflow.partitioners.exchange import Table
from evenflow.partitioners.registry import names, tells
from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from evenflow.settings.sections.input import REGISTERED
from evenflow.twostep import Layout, combine_task, reduce
from partitioner_service.block import Slice
from partitioner_service.fetch.queues import compile_kernels
from partitioner_service.kafka.learned_state import new_partitioner
from partitioner_service.reading.parse import Parser
from partitioner_service.reading.registered.schemas import Schemas
from partitioner_service.reports.hot_keys import HotKeys
from partitioner_service.reports.key_answer import key_answer
from partitioner_service.routing.batches import gate
from partitioner_service.routing.router import Router
from topics.librdkafka import hand_over
from topics.schemas.registry import RegisteredSchema

_AGGREGATES = every_form("i", "f")
_TUPLES = 3_000
_SPAN_MS = 10_000
"""Event time that the tuples span: several windows, so that the kernels that close panes run too."""


def compile_all() -> int:
    """Compile all kernels. Returns how many tuples were routed for it."""
    routed = 0
    for name in names():
        routed += _routed(_settings(partitioner={"name": name}))
        if tells(name):
            routed += _routed(_settings(partitioner={"name": name, "instances": 2}))
    for unit in ("s", "us", "iso"):
        routed += _routed(_settings(query={"time_unit": unit}))
    counted = {"types": {}, "aggregates": {"n": "count_distinct(i)"}}
    exploded = {"explode": "items", "key": "items.k"}
    for query in ({"types": {"key": "int64", "i": "int64"}}, {"max_jump": "1m"}, counted, exploded):
        routed += _routed(_settings(query=query))
    routed += _routed(_settings(input={"format": "csv", "columns": ["key", "time", "i", "f"]}))
    for form in REGISTERED:
        _read_registered(form)
    compile_kernels()
    hand_over.compile_kernels()
    # Tables take these hashes only when somebody has chosen the keys to make them slow.
    keyed_hashes(np.array([0, 1], np.int64), np.array([97], np.uint8))
    return routed


class _OneSchema:
    """A registry with one schema, of records that hold one text, the key."""

    def __init__(self, form: str) -> None:
        text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "key", "type": "string"}]})
        if form == "protobuf":
            file = descriptor_pb2.FileDescriptorProto(name="r.proto", syntax="proto3")
            field = file.message_type.add(name="R").field.add(name="key", number=1, label=1)
            field.type = field.TYPE_STRING
            text = base64.b64encode(file.SerializeToString()).decode()
        self._schema = RegisteredSchema(1, form, (text,), ("",))

    def schema(self, number: int) -> RegisteredSchema | None:
        """The only schema, whatever the id."""
        return self._schema


def _read_registered(form: str) -> None:
    settings = _settings(input={"format": form, "registry": {"url": "http://127.0.0.1:1"}})
    # A zero byte and schema id 1, then a record with the key "a": once as Avro, once as Protobuf. The record
    # of the other form is unreadable, which does no harm here.
    Parser(settings, schemas=Schemas(_OneSchema(form))).parse([b"\0\0\0\0\1\2a", b"\0\0\0\0\1\0\x0a\1a"])


def _settings(**changed: dict[str, Any]) -> Settings:
    tables: dict[str, dict[str, Any]] = {
        "query": {"name": "precompile", "window": "4s", "slide": "1s", "types": {"i": "int64"}}
        | {"aggregates": _AGGREGATES},
        "input": {"partitions": 2},
        "partitioner": {"workers": 4},
    }
    for table, fields in changed.items():
        tables[table] |= fields
    sections: dict[str, Any] = tables
    return load_settings(**sections)


def _routed(settings: Settings) -> int:
    """Route and aggregate tuples under these settings. Returns how many there were."""
    router, records = Router(settings, new_partitioner(settings)), _records(settings)
    opened, offsets = gate(settings, router), count()
    fresh = PartitionState(fingerprint=settings.fingerprint, topic_id="precompile", offset=0)
    owner = _Partitions(dict.fromkeys(range(settings.input_partitions), fresh))
    half = len(records) // 2
    frames: dict[int, list[tuple[int, bytes]]] = {}
    for number, part in enumerate((records[:half], records[half:])):
        first = number * half
        slices = [Slice(p, first, first + len(part) - 1, part) for p in owner.states]
        for done in (*opened.take(slices, owner), *opened.empty(owner.states, why="end")):
            HotKeys().note(done.sent.keys, done.sent.hashes, done.sent.workers)
            for worker, frame in done.frames:
                frames.setdefault(worker, []).append((next(offsets), frame))
        _hear_own_table(router.plans.partitioner, now=_SPAN_MS // 2 * (number + 1))
    key_answer(settings, router.plans, b"a", reached=_SPAN_MS, hot_key_of=lambda hashed: None)
    _aggregated(settings, frames)
    return 2 * len(records)


class _Partitions(NamedTuple):
    """Input partitions that nobody else has."""

    states: dict[int, PartitionState]
    """How far each partition has been read."""

    def move(self, states: Mapping[int, PartitionState]) -> None:
        """As `Owner.move`."""
        self.states.update(states)


def _hear_own_table(partitioner: Partitioner, *, now: int) -> None:
    """Have a partitioner of several instances hear the table of its own message. now: event time, ms."""
    if partitioner.tells and partitioner.sources > 1:
        message = partitioner.tell(now)
        if message is not None:
            body = partitioner.merger(clock=time.monotonic).merge([message])
            partitioner.hear(Table(message.round, (message.source,), body), now)


def _records(settings: Settings) -> Sequence[bytes]:
    return [_record(settings, number, number * _SPAN_MS // _TUPLES) for number in range(_TUPLES)]


def _record(settings: Settings, number: int, at_ms: int) -> bytes:
    unit = settings.query.time_unit
    time = {"s": f"{at_ms / 1000}", "us": str(at_ms * 1000), "ms": str(at_ms)}.get(unit, "")
    if unit == "iso":
        time = f'"1970-01-01T00:00:{at_ms // 1000:02d}.{at_ms % 1000:03d}Z"'
    key = number * number % 97
    if settings.input.format == "csv":
        return f"{key},{time},{number},{number / 7}".encode()
    text = key if settings.query.types.get("key") == "int64" else f'"k{key}"'
    items = "" if settings.query.explode is None else ',"items":[{"k":"a"}, {"k":"b"}]'
    return f'{{"key":{text},"time":{time},"i":{number},"f":{number / 7}{items}}}'.encode()


def _aggregated(settings: Settings, frames: dict[int, list[tuple[int, bytes]]]) -> None:
    plan = AggregatePlan.of(settings.query)
    layout = Layout(
        topic_id="precompile",
        fingerprint=settings.fingerprint,
        input_partitions=settings.input_partitions,
        routed_partitions=settings.routed_partitions,
        shared_by=settings.workers_per_partition,
        buckets=1,
        max_bytes=1_000_000,
    )
    blobs = combine_task(
        plan, layout, ((w, ((n, pa.py_buffer(f)) for n, f in some)) for w, some in frames.items())
    )
    state = _Forgotten()
    reduce(plan, layout, state, [blob.data for blob in blobs])


class _Forgotten(dict[str, bytes]):
    """A state of a bucket that is thrown away."""

    def put(self, name: str, value: bytes) -> None:
        self[name] = value

    def delete(self, name: str) -> None:
        del self[name]


def main() -> int:
    """Compile all kernels, and say how many tuples were routed for it."""
    print(f"kernels are compiled: {compile_all():,} tuples were routed for it", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
