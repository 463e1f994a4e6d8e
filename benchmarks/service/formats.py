"""Records a second that the parser reads, by format. The same tuples are written as JSON, CSV, Avro and
Protobuf.
"""

from __future__ import annotations

import base64
import time
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pb2

from benchmarks.measuring.spread import spread
from benchmarks.measuring.step_lines import step
from evenflow.settings import Settings, load_settings
from partitioner_service.reading.parse import Parser
from partitioner_service.reading.registered.schemas import Schemas
from producers.records import csv_values, json_values
from producers.registered import RegisteredValues
from topics.schemas.registry import RegisteredSchema

SEED = 7
ID = "service-formats"
WHAT = (
    "records/s of the parser alone by input format: a text key, a time, two numbers, two columns nobody reads"
)

_NAMES = ["k", "t", "i", "f", "note", "flag"]
_TYPES = {"k": "string", "t": "int64", "i": "int64", "f": "double", "note": "string", "flag": "bool"}


class _MemoryRegistry:
    """A schema registry in memory that has one schema, that of the writer."""

    def __init__(self, form: str) -> None:
        self._form, self._text = form, ""

    def register(self, subject: str, text: str) -> int:
        self._text = text
        return 1

    def schema(self, number: int) -> RegisteredSchema:
        text = self._text if self._form == "avro" else _descriptor()
        return RegisteredSchema(number, self._form, (text,), ("",))


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each format."""
    rows = []
    columns = _columns(5_000 if smoke else 50_000)
    for form in ("json", "csv", "avro", "protobuf"):
        with step(form):
            rows.append(_row(form, columns, 2 if smoke else 15))
    return {"records": len(columns), "formats": rows}


def _row(form: str, columns: pa.Table, repetitions: int) -> dict[str, Any]:
    settings, registry = _settings(form), _MemoryRegistry(form)
    if form == "json":
        values = json_values(columns).to_pylist()
    elif form == "csv":
        values = csv_values(columns, _NAMES, ",").to_pylist()
    else:
        values = RegisteredValues(settings, registry=registry).values_of(columns).to_pylist()
    parser = Parser(settings, schemas=Schemas(registry) if settings.input.registered else None)
    assert len(parser.parse(values).rows) == len(values)
    rates = []
    for _ in range(repetitions):
        began = time.perf_counter()
        parser.parse(values)
        rates.append(len(values) / (time.perf_counter() - began))
    size = sum(map(len, values)) / len(values)
    return {"format": form, "bytes_per_record": round(size, 1), "records_per_second": spread(rates)}


def _settings(form: str) -> Settings:
    words: dict[str, Any] = {"format": form}
    if form == "csv":
        words["columns"] = _NAMES
    if form in ("avro", "protobuf"):
        words["registry"] = {"url": "http://127.0.0.1:1"}
    query = {"name": "formats", "key": "k", "time": "t", "window": "1s", "types": {"i": "int64"}}
    return load_settings(query=query | {"aggregates": {"i": "sum(i)", "f": "sum(f)"}}, input=words)


def _columns(rows: int) -> pa.Table:
    draw = np.random.default_rng(SEED)
    return pa.table(
        {
            "k": [f"user-{n}" for n in draw.zipf(1.3, rows) % 10_000],
            "t": 1_700_000_000_000 + np.arange(rows),
            "i": draw.integers(-(10**6), 10**6, rows),
            "f": draw.random(rows),
            "note": ["as it was ordered"] * rows,
            "flag": draw.random(rows) < 0.5,
        }
    )


def _descriptor() -> str:
    """The serialized descriptor (base64) of the writer's message, as a registry answers it."""
    file = descriptor_pb2.FileDescriptorProto(name="r.proto", package="evenflow", syntax="proto3")
    message = file.message_type.add(name="Record")
    for place, (name, kind) in enumerate(_TYPES.items()):
        field = message.field.add(
            name=name, number=place + 1, label=1, proto3_optional=True, oneof_index=place
        )
        # `optional` in proto3 is a oneof of its own with this one field.
        field.type = field.Type.Value(f"TYPE_{kind.upper()}")
        message.oneof_decl.add(name=f"_{name}")
    return base64.b64encode(file.SerializeToString()).decode()
