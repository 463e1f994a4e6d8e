"""All fields of a registered record are read in little time and memory, whatever the record holds."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from tests.unit.partitioner_service.reading.registered_records import (
    Both,
    Kept,
    avro,
    descriptor,
    make,
    message_of,
    prefix,
    record_of,
    text_of,
)
from workbench.registered.records import RegisteredRecords
from workbench.unreadable import Unreadable

DECIMAL = record_of(("k", "string"), ("d", {"type": "bytes", "logicalType": "decimal", "scale": 2}))
LIST = record_of(("k", "string"), ("a", {"type": "array", "items": "int"}))


def records_of_avro(schema: dict[str, Any]) -> RegisteredRecords:
    return RegisteredRecords(make("avro"), registry=Kept("avro", json.dumps(schema)))


def records_of_protobuf(file: descriptor_pb2.FileDescriptorProto) -> RegisteredRecords:
    return RegisteredRecords(make("protobuf"), registry=Kept("protobuf", text_of(file)))


def with_items(kind: str, *, fields: int = 1) -> descriptor_pb2.FileDescriptorProto:
    """A file whose message R has the text k and repeats W (field 2), a message or a group of numbers."""
    file = descriptor(("k", "string"))
    wide = file.message_type.add(name="W")
    for number in range(1, fields + 1):
        wide.field.add(name=f"f{number}", number=number, label=1, type=3)
    items = file.message_type[0].field.add(name="w", number=2, label=3, type_name=".shop.W")
    items.type = items.Type.Value(f"TYPE_{kind}")
    if kind == "GROUP":
        file.syntax = "proto2"
    return file


def with_map(*fields: tuple[str, str], **more: Any) -> descriptor_pb2.FileDescriptorProto:
    """A file whose message R has the text k, these fields, and the map m of numbers by text."""
    file = descriptor(("k", "string"), *fields, **more)
    entry = file.message_type[0].nested_type.add(name="MEntry", options={"map_entry": True})
    entry.field.add(name="key", number=1, label=1, type=9)
    entry.field.add(name="value", number=2, label=1, type=3)
    file.message_type[0].field.add(name="m", number=9, label=3, type=11, type_name=".shop.R.MEntry")
    return file


@pytest.mark.parametrize(("width", "shown"), [(16, 1.28), (17, []), (20_000, [])])
def test_a_decimal_that_the_partitioner_does_not_read_is_no_number(width: int, shown: object) -> None:
    value = avro(DECIMAL, {"k": "a", "d": (128).to_bytes(width, "big")})
    assert records_of_avro(DECIMAL).row(value) == {"k": "a", "d": shown}


def test_a_record_of_very_many_avro_values_has_no_row_and_can_be_read_all_the_same() -> None:
    records = records_of_avro(LIST)
    value = avro(LIST, {"k": "a", "a": [1] * 100_000})
    with pytest.raises(Unreadable, match="too many values"):
        records.row(value)
    assert records.cells(value)["k"] == "a"
    assert records.row(avro(LIST, {"k": "a", "a": [1] * 90_000})) == {"k": "a", "a": []}


def test_messages_that_repeat_are_nested_and_absent_ones_are_null() -> None:
    file = with_items("MESSAGE")
    records, message = records_of_protobuf(file), message_of(file)
    assert records.row(prefix(1) + b"\0" + message(k="a").SerializeToString()) == {"k": "a", "w": None}
    value = message(k="a", w=[{"f1": 1}, {}]).SerializeToString()
    assert records.row(prefix(1) + b"\0" + value) == {"k": "a", "w": []}


def test_maps_and_googles_own_messages_have_rows() -> None:
    file = with_map(
        ("t", ".google.protobuf.Timestamp"),
        ("s", ".google.protobuf.Struct"),
        dependency=["google/protobuf/timestamp.proto", "google/protobuf/struct.proto"],
    )
    message = message_of(file)(k="a", m={"x": 1})
    message.t.seconds = 5
    message.s.fields["y"].number_value = 1
    value = prefix(1) + b"\0" + message.SerializeToString()
    assert records_of_protobuf(file).row(value) == {"k": "a", "t": 5_000, "m": [], "s.fields": []}


def test_a_record_with_a_map_is_read_whatever_its_keys_are() -> None:
    file = with_map(("t", "int64"))
    value = prefix(1) + b"\0" + message_of(file)(k="a", t=7, m={"x": 1}).SerializeToString()
    both = Both(make("protobuf"), Kept("protobuf", text_of(file)))
    row = {"key": "a", "time": 7}
    assert both.agree([value, value.replace(b"x", b"\xff")]) == [row, row]


def test_groups_that_repeat_are_passed_over() -> None:
    file = with_items("GROUP")
    value = prefix(1) + b"\0" + b"\x0a\x01a" + b"\x13\x08\x01\x14" * 3
    assert records_of_protobuf(file).row(value) == {"k": "a"}


def test_messages_within_their_own_kind_are_read_whatever_the_size_of_the_record() -> None:
    file = descriptor(("k", "string"), ("left", ".shop.R"), ("right", ".shop.R"))
    records, message = records_of_protobuf(file), message_of(file)
    value = prefix(1) + b"\0" + message(k="a" * 70_000, left={"k": "b"}).SerializeToString()
    assert records.row(value) == {
        "k": "a" * 70_000,
        "left.k": "b",
        "left.left": None,
        "left.right": None,
        "right": None,
    }


def test_a_message_that_comes_in_two_parts_has_the_fields_of_both() -> None:
    file = descriptor(("k", "string"), ("x", "int64"), ("in", ".shop.R"), ("a", ".shop.R"), ("b", ".shop.R"))
    file.message_type[0].oneof_decl.add(name="which")
    for field in file.message_type[0].field[3:]:
        field.oneof_index = 0
    message = message_of(file)
    parts = [{"in": {"x": 1}}, {"in": {"k": "b"}}, {"b": {"x": 9}}, {"a": {"x": 2}}, {"a": {"k": "c"}}]
    row = records_of_protobuf(file).row(
        prefix(1) + b"\0" + b"".join(message(**part).SerializeToString() for part in parts)
    )
    assert (row["in.x"], row["in.k"]) == (1, "b")
    assert (row["a.x"], row["a.k"], row["b"]) == (2, "c", None)


def nested_messages() -> tuple[descriptor_pb2.FileDescriptorProto, bytes]:
    """A file whose message R has 100 messages of 100 messages of 1,000 numbers, and a record of 29 kB that
    has them all.
    """
    file = descriptor(("k", "string"))
    inner = file.message_type.add(name="Inner")
    widest = file.message_type.add(name="Widest")
    for outer, kind in ((file.message_type[0], ".shop.Inner"), (inner, ".shop.Widest")):
        for number in range(2, 102):
            outer.field.add(name=f"m{number}", number=number, label=1, type=11, type_name=kind)
    for number in range(1, 1_001):
        widest.field.add(name=f"f{number}", number=number, label=1, type=3)
    record = message_of(file)(k="a")
    for first in range(2, 102):
        for second in range(2, 102):
            getattr(getattr(record, f"m{first}"), f"m{second}").SetInParent()
    return file, prefix(1) + b"\0" + record.SerializeToString()


def test_a_small_record_of_very_many_protobuf_values_has_no_row_and_can_be_read_all_the_same() -> None:
    file, value = nested_messages()
    records = records_of_protobuf(file)
    assert len(value) < 30_000
    with pytest.raises(Unreadable, match="too many values"):
        records.row(value)
    assert records.cells(value)["k"] == "a"


def test_a_message_of_very_many_parts_has_no_row_and_can_be_read_all_the_same() -> None:
    file = descriptor(("k", "string"), ("in", ".shop.R"))
    value = prefix(1) + b"\0\x0a\x01a" + b"\x12\0" * 100_001
    with pytest.raises(Unreadable, match="too many values"):
        records_of_protobuf(file).row(value)
    query = make("protobuf", aggregates={"m": "last(in.k)"}, types={"in.k": "string"})
    records = RegisteredRecords(query, registry=Kept("protobuf", text_of(file)))
    assert records.cells(value)["in.k"] == ""


@pytest.mark.parametrize(("length", "read"), [(501, True), (502, False)])
def test_fields_with_long_names_are_left_out(length: int, read: bool) -> None:
    name, inner = "o" * 499, "i" * length
    names = {"k", f"{name}.x", *([f"{name}.{inner}"] if read else [])}
    schema = record_of(
        ("k", "string"), (name, record_of(("x", "int"), (inner, "int"), name="I")), ("l" * 1_001, "int")
    )
    row = avro(schema, {"k": "a", name: {"x": 1, inner: 2}, "l" * 1_001: 3})
    assert set(records_of_avro(schema).row(row)) == names
    file = descriptor(("k", "string"), (name, ".shop.I"), ("l" * 1_001, "int64"))
    nested = file.message_type.add(name="I")
    for number, field in enumerate(("x", inner), 1):
        nested.field.add(name=field, number=number, label=1, type=3)
    value = message_of(file)(**{"k": "a", name: {"x": 1}}).SerializeToString()
    assert set(records_of_protobuf(file).row(prefix(1) + b"\0" + value)) == names


_CODE = """
import re
from pathlib import Path
from tests.unit.workbench.registered.test_rows import *

def peak():
    # Not ru_maxrss, which begins with what the parent takes.
    return int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])

{make}
records.cells(small)
records.row(small)
before = peak()
try:
    records.{way}(value)
except Unreadable:
    pass
print((peak() - before) // 1024)
"""
_ITEMS = """
records = records_of_protobuf(with_items("MESSAGE", fields=50))
small = prefix(1) + b"\\0\\x0a\\x01a\\x12\\0"
value = small + b"\\x12\\0" * 2_000_000
"""
_NESTED = """
file, value = nested_messages()
records = records_of_protobuf(file)
small = prefix(1) + b"\\0\\x0a\\x01a"
"""
_NAMES = """
inner = record_of(*((f"f{n}", "int") for n in range(4_000)), name="I")
schema = record_of(("k", "string"), ("o" * 100_000, inner))
records = records_of_avro(schema)
small = prefix(1) + b"\\2a" + b"\\0" * 4_000
value = small
"""
_ARRAY = """
schema = record_of(("k", "string"), ("a", {"type": "array", "items": record_of(("x", "int"), name="I")}))
records = records_of_avro(schema)
small = avro(schema, {"k": "a", "a": [{"x": 1}]})
value = avro(schema, {"k": "a", "a": []})[:-1] + b"\\x80\\x89\\x7a" + b"\\0" * 1_000_001
"""


@pytest.mark.family
@pytest.mark.parametrize("way", ["row", "cells"])
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(_ITEMS, id="a million empty messages"),
        pytest.param(_NESTED, id="messages of many fields"),
        pytest.param(_NAMES, id="long names"),
        pytest.param(_ARRAY, id="an array of a million records"),
    ],
)
def test_a_record_takes_little_memory(made: str, way: str) -> None:
    # In a process of its own, because the largest memory of a process never falls.
    code = _CODE.format(make=made, way=way)
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(child.stdout) < 100, "MiB"
