"""What the tests of Avro and Protobuf share: schemas in memory, records in the wire format, both readers."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, message_factory

from evenflow.settings import Settings, load_settings
from partitioner_service.reading.parse import Parser
from partitioner_service.reading.registered.protobuf_schema import file_of
from partitioner_service.reading.registered.schemas import Schemas
from topics.schemas.registry import RegisteredSchema
from workbench.registered.records import RegisteredRecords
from workbench.verify.input.strict_reader import StrictReader, Unreadable

URL = {"url": "http://127.0.0.1:1"}


class Kept:
    """Schemas by id; `fail` is raised instead of an answer."""

    def __init__(self, form: str, *texts: str) -> None:
        self.schemas = {n: RegisteredSchema(n, form, (text,), ("",)) for n, text in enumerate(texts, 1)}
        self.asked: list[int] = []
        self.fail: Exception | None = None

    def schema(self, number: int) -> RegisteredSchema | None:
        self.asked.append(number)
        if self.fail is not None:
            raise self.fail
        return self.schemas.get(number)


def make(form: str, **query: Any) -> Settings:
    """Key k, time t, everything of the query else as given."""
    whole: dict[str, Any] = {
        "name": "q",
        "key": "k",
        "time": "t",
        "window": "1s",
        "aggregates": {"n": "count"},
    }
    return load_settings(query=whole | query, input={"format": form, "registry": URL})


def prefix(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big")


def record_of(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    """An Avro record schema."""
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


def avro(schema: Any, row: dict[str, Any], number: int = 1) -> bytes:
    """A record as fastavro writes it, logical types as raw values."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), row)
    return prefix(number) + out.getvalue()


def descriptor(*fields: tuple[str, str], **more: Any) -> descriptor_pb2.FileDescriptorProto:
    """A file of the message R; fields: name and type, for instance "int64", numbered from 1."""
    file = descriptor_pb2.FileDescriptorProto(name="r.proto", package="shop", syntax="proto3", **more)
    message = file.message_type.add(name="R")
    for number, (name, kind) in enumerate(fields, 1):
        field = message.field.add(name=name, number=number, label=1)
        if kind.startswith("."):
            field.type, field.type_name = 11, kind
        else:
            field.type = field.Type.Value(f"TYPE_{kind.upper()}")
    return file


def text_of(file: descriptor_pb2.FileDescriptorProto) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


def message_of(file: descriptor_pb2.FileDescriptorProto, path: tuple[int, ...] = (0,)) -> Any:
    read, number = file_of([text_of(file)], [""]), 0
    for index in path:
        number = int(read.inner[number]) + index
    return message_factory.GetMessageClass(read.message(number))


class Both:
    """The partitioner's parser and verify's strict reader over the same schemas."""

    def __init__(self, settings: Settings, kept: Kept) -> None:
        self.settings = settings
        self.parser = Parser(settings, schemas=Schemas(kept))
        self.strict = StrictReader(settings, registered=RegisteredRecords(settings, registry=kept))  # type: ignore[arg-type]

    def agree(self, values: list[bytes | None]) -> list[dict[str, Any] | None]:
        """The tuples, None where a record is unreadable: what both readers say, which must be the same."""
        parsed = self.parser.parse(values, timestamps=[5] * len(values))
        columns = parsed.values.to_pylist() if parsed.values.num_columns else [{}] * len(parsed.rows)
        result: list[dict[str, Any] | None] = [None] * len(values)
        for place, row in enumerate(parsed.rows.tolist()):
            key = parsed.keys[place].as_py().decode()
            result[row] = columns[place] | {"key": key, "time": int(parsed.times[place])}
        for value, one in zip(values, result, strict=True):
            assert self._strictly(value, set(parsed.values.schema.names)) == one, value
        return result

    def _strictly(self, value: bytes | None, names: set[str]) -> dict[str, Any] | None:
        try:
            read = self.strict.read(None, value, 5)
        except Unreadable:
            return None
        cells = dict(zip(self.strict._types, read.cells, strict=True))
        return {n: cells[n] for n in cells if n in names} | {"key": str(cells["k"]), "time": read.time}
