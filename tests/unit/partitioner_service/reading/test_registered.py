"""Avro and Protobuf records: what is written by well-known libraries is read, by the partitioner and by
verify alike.
"""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from partitioner_service.reading.parse import Parser
from partitioner_service.reading.registered.protobuf_schema import compiled, file_of
from partitioner_service.reading.registered.schemas import Schemas
from tests.examples import examples
from tests.hostile import BYTES
from tests.unit.partitioner_service.reading.registered_records import (
    URL,
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
from topics.schemas.registry import RegistryAway

LINKED: dict[str, Any] = record_of(("x", "long"), ("next", ["null", "Link"]), name="Link")
WHOLE = record_of(
    ("junk", {"type": "array", "items": {"type": "map", "values": ["null", "int", LINKED]}}),
    ("k", ["null", "string"]),
    ("t", "long"),
    ("user", ["null", record_of(("id", "int"), ("link", "Link"), name="User")]),
    ("i", ["null", "int", "long", "string"]),
    ("f", ["float", "double", "null"]),
    ("b", ["null", "boolean"]),
    ("e", {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}),
    ("fixed", {"type": "fixed", "name": "F", "size": 3}),
)
TYPES = {"user.id": "int64", "i": "int64", "f": "float64", "b": "bool", "e": "string"}
QUERY = {
    "aggregates": {"u": "max(user.id)", "i": "sum(i)", "f": "sum(f)", "e": "last(e)"},
    "types": {name: type_ for name, type_ in TYPES.items() if name != "b"},
}
LINKS = st.recursive(
    st.builds(lambda x: {"x": x, "next": None}, st.integers(-5, 5)),
    lambda below: st.builds(lambda x, n: {"x": x, "next": n}, st.integers(-5, 5), below),
    max_leaves=4,
)
ROWS = st.fixed_dictionaries(
    {
        "junk": st.lists(
            st.dictionaries(st.text(max_size=3), st.none() | st.integers(-9, 9) | LINKS, max_size=2),
            max_size=3,
        ),
        "k": st.none() | st.text(max_size=5),
        "t": st.integers(-(2**62), 2**62) | st.integers(0, 2**41),
        "user": st.none() | st.fixed_dictionaries({"id": st.integers(-(2**31), 2**31 - 1), "link": LINKS}),
        "i": st.none() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=2),
        "f": st.none() | st.floats(width=32),
        "b": st.none() | st.booleans(),
        "e": st.sampled_from("ABC"),
        "fixed": st.binary(min_size=3, max_size=3),
    }
)
FILE = descriptor(
    ("k", "string"), ("t", "int64"), ("i", "sint32"), ("f", "double"), ("u", "uint64"), ("b", "bool"), ("g",
    "float"),
    ("s", "sfixed64"), ("raw", "bytes"), ("in", ".shop.R"),
)  # fmt: skip
PROTOBUF = {
    "aggregates": {
        "i": "sum(i)",
        "f": "sum(f)",
        "u": "sum(u)",
        "g": "sum(g)",
        "s": "sum(s)",
        "d": "sum(in.in.s)",
    },
    "types": {"i": "int64", "u": "int64", "s": "int64", "in.in.s": "int64"},
}
RECORD = message_of(FILE)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "k": st.text(max_size=5),
        "t": st.integers(-(2**63), 2**63 - 1),
        "i": st.integers(-(2**31), 2**31 - 1),
        "f": st.floats(),
        "u": st.integers(0, 2**64 - 1),
        "b": st.booleans(),
        "g": st.floats(width=32),
        "s": st.integers(-(2**63), 2**63 - 1),
        "raw": st.binary(max_size=5),
        "in": st.just({"in": {"s": 7}}) | st.just({}),
    },
)
AVRO = Both(make("avro", **QUERY), Kept("avro", json.dumps(WHOLE)))
PROTO = Both(make("protobuf", **PROTOBUF), Kept("protobuf", text_of(FILE)))


@examples(60)
@given(st.lists(ROWS, min_size=1, max_size=8))
def test_avro_records_that_fastavro_writes_are_read_as_they_were(rows: list[dict[str, Any]]) -> None:
    result = AVRO.agree([avro(WHOLE, row) for row in rows])
    for row, one in zip(rows, result, strict=True):
        f, finite = row["f"], row["f"] is None or abs(row["f"]) < float("inf")
        readable = (
            row["k"] is not None and abs(row["t"]) <= 8.64e15 and finite and not isinstance(row["i"], str)
        )
        assert (one is not None) == readable
        if one is not None:
            values = {"user.id": row["user"] and row["user"]["id"], "i": row["i"], "f": f, "e": row["e"]}
            assert one == values | {"key": row["k"], "time": row["t"]}


@examples(60)
@given(st.lists(MESSAGES, min_size=1, max_size=8))
def test_protobuf_records_that_its_library_writes_are_read_as_they_were(rows: list[dict[str, Any]]) -> None:
    result = PROTO.agree([prefix(1) + b"\0" + RECORD(**row).SerializeToString() for row in rows])
    for row, one in zip(rows, result, strict=True):
        message = RECORD(**row)
        if one is not None:
            assert (one["key"], one["time"]) == (message.k, message.t)
            assert (one["i"], one["f"], one["u"], one["g"], one["s"]) == (
                message.i, message.f, message.u, message.g, message.s
            )  # fmt: skip
            assert one["in.in.s"] == (7 if row.get("in") else None)


GOOD_AVRO = avro(
    WHOLE,
    {"junk": [{"a": 1}], "k": "k", "t": 1, "user": {"id": 1, "link": {"x": 1, "next": None}}, "i": 5,
    "f": 1.5,
     "b": True, "e": "B", "fixed": b"abc"},
)  # fmt: skip
GOOD_PROTOBUF = (
    prefix(1) + b"\0" + RECORD(k="k", t=1, i=-5, f=1.5, **{"in": {"in": {"s": 3}}}).SerializeToString()
)


@examples(150)
@given(st.binary(max_size=60), st.integers(0, 60), st.integers(0, 60))
@example(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0, 0)
@example(b"\x80" * 40, 0, 0)
@example(b"\x0b" * 200, 0, 0)
def test_both_readers_judge_any_bytes_alike(data: bytes, begin: int, length: int) -> None:
    for both, good, head in ((AVRO, GOOD_AVRO, b""), (PROTO, GOOD_PROTOBUF, b"\0")):
        broken = good[: begin + 5] + data + good[begin + 5 + length :]
        both.agree([data, prefix(1) + head + data, broken, good])


def _knotted(syntax: str) -> descriptor_pb2.FileDescriptorProto:
    """A file of messages in a oneof, in themselves, and that repeat."""
    file = descriptor(
        ("k", "string"), ("t", "int64"), ("in", ".shop.R"), ("unread", ".shop.R"), ("v", "int64"),
        ("a", ".shop.R"), ("b", "int64"), ("c", ".shop.R"), ("e", "enum"), ("s", "string"),
        enum_type=[{"name": "E", "value": [{"name": "X", "number": 0}]}],
    )  # fmt: skip
    file.syntax = syntax
    message = file.message_type[0]
    message.oneof_decl.add(name="which")
    for field in message.field[5:8]:
        field.oneof_index = 0
    message.field[8].type_name = ".shop.E"
    message.field.add(name="items", number=11, label=3, type=11, type_name=".shop.R")
    return file


_NUMBERS = ("in.v", "in.in.v", "a.v", "b", "in.c.a.v")
_TEXTS = ("e", "in.s", "items")
_QUERY = make(
    "protobuf",
    aggregates={
        **{f"n{place}": f"sum({name})" for place, name in enumerate(_NUMBERS)},
        **{f"t{place}": f"last({name})" for place, name in enumerate(_TEXTS)},
    },
    types=dict.fromkeys(_NUMBERS, "int64") | dict.fromkeys(_TEXTS, "string"),
)
KNOTTED = [Both(_QUERY, Kept("protobuf", text_of(_knotted(syntax)))) for syntax in ("proto2", "proto3")]


def _encoded(number: int, wire: int, rest: bytes) -> bytes:
    return bytes([number << 3 | wire]) + rest


def _with_length(data: bytes) -> bytes:
    return bytes([len(data)]) + data


def _fields(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Some fields in a row. A message may be set twice, hold bytes that are none, or be a group."""
    messages = inner.filter(lambda data: len(data) < 128).map(_with_length)
    some = st.one_of(
        st.builds(_encoded, st.sampled_from([3, 4, 6, 8, 11]), st.just(2), messages),
        st.builds(
            _encoded, st.sampled_from([2, 5, 7, 9]), st.just(0), st.sampled_from([b"\0", b"\1", b"\7"])
        ),
        st.builds(_encoded, st.sampled_from([1, 10]), st.just(2), st.binary(max_size=2).map(_with_length)),
        st.sampled_from([b"\x6b\x6c", b"\x6b\x1a\1x\x6c", b"\x6b\x6b\x6c\x6c", b"\x6b\x64"]),
    )
    return st.lists(some, max_size=4).map(b"".join)


@examples(300)
@given(st.recursive(st.just(b"") | st.binary(max_size=3), _fields, max_leaves=12))
@example(b"\x22\x02\x0a\x09")  # an unread message that is broken
@example(b"\x32\x02\x28\x01\x32\x02\x28\x02")  # a message of a oneof in two parts
@example(b"\x5a\x02\x0a\x09")  # a broken message that repeats
def test_both_readers_enter_the_same_messages(data: bytes) -> None:
    for both in KNOTTED:
        both.agree([prefix(1) + b"\0" + head + data for head in (b"", b"\x0a\x01x\x10\x05")])


def _every_type() -> descriptor_pb2.FileDescriptorProto:
    """A file with a number of each type, once by itself and once repeated, and other repeated fields."""
    numbers = (
        "int64", "uint64", "int32", "uint32", "sint32", "sint64", "bool", "fixed64", "sfixed64", "double",
        "fixed32", "sfixed32", "float", "enum",
    )  # fmt: skip
    file = descriptor(
        ("k", "string"), ("t", "int64"), *((f"n{place}", one) for place, one in enumerate(numbers)),
        *((f"r{place}", one) for place, one in enumerate((*numbers, "string", "bytes", ".shop.R"))),
        enum_type=[{"name": "E", "value": [{"name": "X", "number": 0}]}],
    )  # fmt: skip
    for field in file.message_type[0].field:
        if field.name.startswith("r"):
            field.label = field.LABEL_REPEATED
        if field.type == field.TYPE_ENUM:
            field.type_name = ".shop.E"
    return file


def _type_of(field: Any) -> str:
    if not field.name.startswith("n"):
        return "string"
    kinds = {field.TYPE_BOOL: "bool", field.TYPE_ENUM: "string"}
    return kinds.get(
        field.type, "float64" if field.type in (field.TYPE_DOUBLE, field.TYPE_FLOAT) else "int64"
    )


def _reading(types: dict[str, str]) -> Both:
    """Both readers of columns of every type."""
    aggregates = {f"v{place}": f"last({name})" for place, name in enumerate(types)}
    query = make("protobuf", aggregates=aggregates, types=types)
    return Both(query, Kept("protobuf", text_of(_every_type())))


_EVERY = {field.name: _type_of(field) for field in _every_type().message_type[0].field[2:]}
EVERY_TYPE = (
    _reading(_EVERY),
    # A repeated number has nothing within it. Its bytes have to be right all the same.
    _reading({f"{name}.x": "string" for name in _EVERY if name.startswith("r")}),
)


def _loose(value: int, more: int, high: int) -> bytes:
    """A varint as no library writes it: with `more` further bytes, and these bits in its last byte."""
    result = []
    while value >= 128:
        result.append(value & 127 | 128)
        value >>= 7
    result += [value, *[0] * more]
    return bytes([byte | 128 for byte in result[:-1]] + [result[-1] | high])


_VALUES = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**31, 2**32, 2**32 + 3, 2**63, 2**64 - 1])
_LOOSE_VALUES = st.builds(_loose, _VALUES, st.integers(0, 10), st.sampled_from([0, 0, 1, 2, 127]))
_PAYLOADS = st.one_of(
    st.binary(max_size=17), st.lists(_LOOSE_VALUES, max_size=3).map(b"".join), st.just(b"\xff" * 8)
)


@st.composite
def _loose_fields(draw: st.DrawFn) -> bytes:
    """One field of any number and any wire type, whatever its type says, in few or in many bytes."""
    wire = draw(st.sampled_from([0, 0, 1, 2, 2, 5]))
    number = draw(st.integers(1, len(_EVERY) + 4))
    more, high = draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 9])), draw(st.sampled_from([0, 0, 0, 0, 8, 16]))
    tag = _loose(number << 3 | wire, more, high)
    if wire == 0:
        return tag + draw(_LOOSE_VALUES)
    if wire == 2:
        payload = draw(_PAYLOADS)
        return tag + _loose(len(payload), draw(st.sampled_from([0, 0, 0, 1, 3, 4, 5])), 0) + payload
    return tag + draw(st.binary(min_size=8, max_size=8))[: 8 if wire == 1 else 4]


@examples(300)
@given(st.lists(_loose_fields(), max_size=3).map(b"".join))
@example(b"\x38" + b"\x80" * 9 + b"\x02")  # a sint32 of which nothing is left in 32 bits
@example(b"\x90\x80\x80\x80\x80\x00\x05")  # a tag of six bytes
@example(b"\x9a\x01\x00")  # no packed number
@example(b"\x9a\x01\x01\x80")  # a packed number that does not end
@example(b"\x99\x01" + b"\x01" * 8)  # a repeated number of another type
def test_both_readers_take_bytes_that_no_library_writes_alike(data: bytes) -> None:
    for both in EVERY_TYPE:
        both.agree([prefix(1) + b"\0" + b"\x0a\x01x\x10\x05" + data])


def test_hostile_bytes_behind_a_schema_id_are_judged_alike() -> None:
    short = [data for data in BYTES if len(data) < 100_000]
    for both, head in ((AVRO, b""), (PROTO, b"\0")):
        assert not any(both.agree([prefix(1) + head + data for data in short if data]))


def test_an_avro_record_nested_without_end_is_rejected() -> None:
    deep = b"\x02" + b"\x02a" + b"\x04" + (b"\x02\x02" * 5_000)
    assert AVRO.agree([prefix(1) + deep, GOOD_AVRO])[0] is None


def test_versions_of_a_schema_in_one_block_are_read_each_by_its_own() -> None:
    first = record_of(("k", "string"), ("t", "long"), ("v", "int"), ("gone", "string"))
    second = record_of(("k", ["null", "string"]), ("t", "long"), ("v", "long"), ("w", ["null", "double"]))
    kept = Kept("avro", json.dumps(first), json.dumps(second))
    query = make("avro", aggregates={"v": "sum(v)", "w": "sum(w)"}, types={"v": "int64"})
    values = [
        avro(first, {"k": "a", "t": 1, "v": -1, "gone": "x"}, 1),
        avro(second, {"k": "b", "t": 2, "v": 2**40, "w": 0.5}, 2),
        avro(first, {"k": "c", "t": 3, "v": 3, "gone": ""}, 1),
        avro(second, {"k": None, "t": 4, "v": 1, "w": None}, 2),
        avro(second, {"k": "d", "t": 5, "v": 1, "w": None}, 3),
    ]
    result = Both(query, kept).agree(values)
    assert result[:3] == [
        {"key": "a", "time": 1, "v": -1, "w": None},
        {"key": "b", "time": 2, "v": 2**40, "w": 0.5},
        {"key": "c", "time": 3, "v": 3, "w": None},
    ]
    assert result[3:] == [None, None]
    assert dict(Parser(query, schemas=Schemas(kept)).parse(values).bad) == {
        3: "key column 'k' is missing or null",
        4: "the registry has no schema of id 3",
    }


@pytest.mark.parametrize(
    ("kind", "unit", "raw", "time"),
    [
        ("timestamp-millis", "us", 1_700_000_000_123, 1_700_000_000_123),
        ("timestamp-micros", "ms", 1_700_000_000_123_999, 1_700_000_000_123),
        ("timestamp-micros", "s", 1_700_000_000_123_000, 1_700_000_000_123),
        ("timestamp-millis", "iso", 1_700_000_000_123, 1_700_000_000_123),
        ("timestamp-micros", "iso", -1, -1),
        ("timestamp-millis", "ms", 2**62, None),
        ("timestamp-millis", "iso", 2**62, None),
    ],
)
def test_a_timestamp_says_its_own_unit(kind: str, unit: str, raw: int, time: int | None) -> None:
    plain = record_of(("k", "string"), ("t", "long"))
    told = record_of(("k", "string"), ("t", {"type": "long", "logicalType": kind}))
    both = Both(make("avro", time_unit=unit), Kept("avro", json.dumps(told)))
    (result,) = both.agree([avro(plain, {"k": "a", "t": raw})])
    assert result == (None if time is None else {"key": "a", "time": time})


def test_dates_decimals_and_uuids_are_what_their_logical_types_say() -> None:
    plain = record_of(
        ("k", {"type": "fixed", "name": "U", "size": 16}),
        ("t", "long"),
        ("day", "int"),
        ("price", "bytes"),
        ("x", "bytes"),
    )
    told = record_of(
        ("k", {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}),
        ("t", "long"),
        ("day", {"type": "int", "logicalType": "date"}),
        ("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
        ("x", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 4}),
    )
    query = make(
        "avro",
        aggregates={"p": "sum(price)", "x": "sum(x)"},
        types={"price": "decimal(2)", "x": "float64", "day": "date"},
        where="day > DATE '2020-01-01'",
    )
    row = {
        "k": bytes(range(16)),
        "t": 1,
        "day": 20_000,
        "price": (-1234).to_bytes(2, "big", signed=True),
        "x": b"\x05",
    }
    wide = row | {"price": b"\x01" + bytes(16)}
    result = Both(query, Kept("avro", json.dumps(told))).agree([avro(plain, row), avro(plain, wide)])
    assert result == [
        {"price": Decimal("-12.34"), "x": 0.0005, "key": "00010203-0405-0607-0809-0a0b0c0d0e0f", "time": 1},
        None,
    ]


def test_a_floating_point_number_is_the_decimal_of_its_shortest_digits_or_none_if_it_has_more() -> None:
    schema = record_of(("k", "string"), ("t", "long"), ("v", "double"))
    query = make("avro", aggregates={"v": "sum(v)"}, types={"v": "decimal(2)"})
    numbers = [12.34, -0.0, 1e5, 1e15, 1e16, 1e22, 1e300, 0.1 + 0.2, 1e-2, 1e-7, 1e-30, 5e-324, 1.5e-5]
    result = Both(query, Kept("avro", json.dumps(schema))).agree(
        [avro(schema, {"k": "a", "t": 1, "v": number}) for number in numbers]
    )
    assert [one and one["v"] for one in result] == [
        *(Decimal(text) for text in ("12.34", "0", "100000", "1000000000000000")),
        *[None] * 4,
        Decimal("0.01"),
        *[None] * 4,
    ]


def test_another_type_than_the_query_needs_is_a_rejected_record_that_names_its_schema() -> None:
    schema = record_of(("k", "string"), ("t", "long"), ("v", ["null", "string", "double"]))
    query = make("avro", aggregates={"v": "sum(v)"}, types={"v": "int64"})
    kept = Kept(
        "avro",
        json.dumps(schema),
        "no schema",
        json.dumps(record_of(("a", {"type": "array", "items": "null"}))),
    )
    values = [avro(schema, {"k": "a", "t": 1, "v": v}) for v in ("x", 1.5, None)]
    values += [values[0][:-1], values[2] + b"x", b"{}", b"", prefix(2), prefix(3) + b"\x80\x80\x80\x80\x10"]
    parsed = Parser(query, schemas=Schemas(kept)).parse(values)
    assert dict(parsed.bad) == {
        0: "column 'v' does not hold a whole number by schema 1",
        1: "column 'v' does not hold a whole number by schema 1",
        3: "the record does not decode by schema 1",
        4: "the record does not decode by schema 1",
        5: (
            "the record is not in Confluent's wire format: byte 0 and the four bytes of a schema id come"
            " first"
        ),
        6: (
            "the record is not in Confluent's wire format: byte 0 and the four bytes of a schema id come"
            " first"
        ),
        7: "schema 2 cannot be read, see docs/formats.md",
        8: "schema 3 cannot be read, see docs/formats.md",
    }
    assert Both(query, kept).agree(values[:6])[2] == {"v": None, "key": "a", "time": 1}


@pytest.mark.parametrize(
    "schema",
    [
        record_of(("k", {"type": "enum", "name": "E", "symbols": ["A", "\ud800"]}), ("t", "long")),
        record_of(
            ("k", "string"), ("t", "long"), ("e", {"type": "enum", "name": "E", "symbols": ["\udfff"]})
        ),
        record_of(("k", "\ud800"), ("t", "long")),
        record_of(("k", "string"), ("t", "long"), ("\ud800", "\udc00")),
    ],
    ids=["key", "beside the key", "type of the key", "a field's name"],
)
def test_records_of_a_schema_with_half_of_a_surrogate_pair_are_rejected(schema: dict[str, Any]) -> None:
    """No cell and no reason could hold it as UTF-8."""
    parsed = Parser(make("avro"), schemas=Schemas(Kept("avro", json.dumps(schema)))).parse(
        [prefix(1) + b"\2\2\2"]
    )
    assert dict(parsed.bad) == {0: "schema 1 cannot be read, see docs/formats.md"}


def test_both_readers_reject_records_whose_enum_has_half_of_a_surrogate_pair() -> None:
    kind = {"type": "enum", "name": "E", "symbols": ["A", "\ud800"]}
    kept = Kept("avro", json.dumps(record_of(("k", kind), ("t", "long"))))
    values = [prefix(1) + record for record in (b"\0\2", b"\2\2")]
    assert Both(make("avro"), kept).agree(values) == [None, None]


def test_a_column_within_an_enum_is_null_whatever_the_enum_is() -> None:
    file = descriptor(("k", "string"), ("t", "int64"), ("e", "enum"))
    file.enum_type.add(name="E").value.add(name="ZERO", number=0)
    file.message_type[0].field[2].type_name = ".shop.E"
    settings = make("protobuf", aggregates={"a": "last(e.x)"}, types={"e.x": "int64"})
    both = Both(settings, Kept("protobuf", text_of(file)))
    value = prefix(1) + bytes([0, 0x0A, 1, 97, 0x10, 1, 0x18, 7])  # 7 is no symbol
    assert both.agree([value]) != [None]


@pytest.mark.timeout(120)
def test_a_oneof_of_many_fields_is_compiled_in_proportion_to_them() -> None:
    """With tables that grow as the square of the fields this takes hours and all memory."""
    file = descriptor(("k", "string"), ("t", "int64"), *((f"f{place}", "int64") for place in range(20_000)))
    file.message_type[0].oneof_decl.add(name="which")
    for field in file.message_type[0].field[2:]:
        field.oneof_index = 0
    names = ["k", "t", "f0", "f1", "f2"]
    tables = compiled(file_of([text_of(file)], [""]), 1, names).tables
    assert (len(tables.fields), len(tables.others), len(tables.oneofs)) == (5, 20_000, 1)
    assert len(tables.clears) == 3 + 3 * 2
    cleared = [
        tables.clears[row["clears"] : row["clears_stop"]].tolist()
        for rows in (tables.fields, tables.oneofs)
        for row in rows
    ]
    assert cleared == [[], [], [3, 4], [2, 4], [2, 3], [2, 3, 4]]
    assert tables.fields["number"].tolist() == [1, 2, 3, 4, 5]
    assert tables.others["number"].tolist() == list(range(3, 20_003))


def test_the_message_of_a_protobuf_record_is_found_by_its_indexes() -> None:
    file = descriptor(("t", "int64"), ("k", "string"))
    other = file.message_type.add(name="Other")
    other.field.add(name="k", number=1, label=1, type=9)
    inner = other.nested_type.add(name="Inner")
    inner.field.add(name="k", number=3, label=1, type=9)
    inner.field.add(name="t", number=4, label=1, type=3)
    message = message_of(file, (1, 0))
    both = Both(make("protobuf"), Kept("protobuf", text_of(file)))
    behind = message(k="x", t=9).SerializeToString()
    result = both.agree(
        [
            prefix(1) + b"\x04\x02\x00" + behind,
            prefix(1) + b"\x02\x00" + message_of(file)(k="y", t=8).SerializeToString(),
            prefix(1) + b"\x04\x02\x02" + behind,
            prefix(1) + b"\xff\xff\xff\xff\x0f",
        ]
    )
    assert result == [{"key": "x", "time": 9}, {"key": "y", "time": 8}, None, None]


def _zigzag(*numbers: int) -> bytes:
    """Numbers of a message's path."""
    out = bytearray()
    for number in numbers:
        left = number << 1 if number >= 0 else ~(number << 1)
        while left > 127:
            out.append(left & 127 | 128)
            left >>= 7
        out.append(left)
    return bytes(out)


def test_a_protobuf_schema_is_read_once_whatever_paths_its_records_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A schema for each path took a block longer than a transaction may last."""
    texts: list[str] = []

    def decoded(text: str, **more: Any) -> bytes:
        texts.append(text)
        return base64.b64decode(text, **more)

    file = descriptor(("t", "int64"), ("k", "string"))
    for number in range(60):
        file.message_type.add(name=f"M{number}").field.add(name="k", number=1, label=1, type=9)
    text = text_of(file)
    monkeypatch.setattr(
        "partitioner_service.reading.registered.protobuf_schema.base64", SimpleNamespace(b64decode=decoded)
    )
    parser = Parser(make("protobuf"), schemas=Schemas(Kept("protobuf", text, text)))
    values = [prefix(id_) + _zigzag(1, number) for number in range(5_000) for id_ in (1, 2)]
    for _ in range(2):
        assert parser.parse(values).bad.counted() == {
            "schema ... cannot be read, see docs/formats.md": 2 * (5_000 - 61),
            "time column 't' is missing or null": 2 * 60,
        }
    assert texts == [text, text]


_TREE = descriptor(("t", "int64"), ("k", "string"))
_TREE.message_type[0].nested_type.add(name="A").nested_type.add(name="B").field.add(
    name="k", number=1, label=1, type=9
)
for _field in (("k", 2, 9), ("t", 1, 3)):
    _TREE.message_type[0].nested_type[0].field.add(name=_field[0], number=_field[1], label=1, type=_field[2])
_TREE.message_type.add(name="C").nested_type.add(name="D")
_PATHS = Both(make("protobuf"), Kept("protobuf", text_of(_TREE), text_of(descriptor()), "no descriptor"))


@examples(200)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 3),
            st.lists(st.integers(-1, 3), max_size=5).map(lambda path: _zigzag(len(path), *path))
            | st.binary(max_size=6)
            | st.sampled_from(
                [_zigzag(17, *[0] * 17), _zigzag(16, *[0] * 16), _zigzag(1, 2**33), b"\x80" * 5]
            ),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_both_readers_find_the_same_message_by_any_path(records: list[tuple[int, bytes]]) -> None:
    _PATHS.agree([prefix(id_) + path + b"\x08\x05\x12\x01x" for id_, path in records])


def test_a_protobuf_timestamp_is_an_event_time_and_of_a_oneof_the_last_counts() -> None:
    file = descriptor(
        ("k", "string"), ("t", ".google.protobuf.Timestamp"), ("a", "int64"), ("b", "int64"),
        dependency=["google/protobuf/timestamp.proto"],
    )  # fmt: skip
    file.message_type[0].oneof_decl.add(name="which")
    for field in file.message_type[0].field[2:]:
        field.oneof_index = 0
    query = make("protobuf", aggregates={"a": "sum(a)"}, types={"a": "int64"}, time_unit="iso")
    message = message_of(file)
    row = message(k="x", t={"seconds": 1_700_000_000, "nanos": 5_999_999}, a=4).SerializeToString()
    values = [prefix(1) + b"\0" + row + more for more in (b"", message(b=1).SerializeToString())]
    time = 1_700_000_000_005
    assert Both(query, Kept("protobuf", text_of(file))).agree(values) == [
        {"key": "x", "time": time, "a": 4},
        {"key": "x", "time": time, "a": None},
    ]


def test_an_id_is_asked_for_once_and_an_unknown_one_again_only_after_a_while() -> None:
    now = [0.0]
    kept = Kept("avro", json.dumps(WHOLE))
    schemas = Schemas(kept, at_once=1, clock=lambda: now[0])
    for _ in range(3):
        assert {n: result is not None for n, result in schemas.of([1, 9]).items()} == {1: True, 9: False}
    assert kept.asked == [1, 9]
    now[0] = 61.0
    schemas.of([1, 9])
    assert kept.asked == [1, 9, 9]


def test_no_more_made_up_ids_are_remembered_than_is_said() -> None:
    now = [0.0]
    kept = Kept("avro", json.dumps(WHOLE))
    schemas = Schemas(kept, most=10, clock=lambda: now[0])
    schemas.of(range(1, 1_001))
    assert len(kept.asked) == 1_000
    now[0] += 1
    schemas.of([1])
    assert not schemas._without


def test_nothing_is_parsed_while_the_registry_is_away_and_all_of_it_after() -> None:
    kept = Kept("avro", json.dumps(WHOLE))
    parser = Parser(make("avro", **QUERY), schemas=Schemas(kept))
    kept.fail = RegistryAway("away")
    with pytest.raises(RegistryAway):
        parser.parse([GOOD_AVRO])
    kept.fail = ConfigError("refused")
    with pytest.raises(ConfigError):
        parser.parse([GOOD_AVRO])
    kept.fail = None
    assert len(parser.parse([GOOD_AVRO]).rows) == 1


def test_where_the_registry_is_does_not_change_the_query() -> None:
    from evenflow.settings import load_settings

    words = {"format": "avro", "partitions": 4, "registry": URL}
    one = load_settings(query={"name": "q"}, input=words)
    other = load_settings(query={"name": "q"}, input=words | {"registry": {"url": "https://else/where"}})
    assert one.fingerprint == other.fingerprint
    assert "registry" not in str(one.identity())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"format": "avro"}, "needs \\[input.registry\\]"),
        ({"format": "json", "registry": URL}, "registry belongs to avro and protobuf"),
        ({"format": "avro", "registry": URL | {"username": "u"}}, "go together"),
        ({"format": "avro", "registry": {"url": "http://u:p@host"}}, "url"),
    ],
)
def test_a_registry_that_does_not_fit_the_format_is_refused(words: dict[str, Any], why: str) -> None:
    from evenflow.settings import load_settings

    with pytest.raises(ConfigError, match=why):
        load_settings(query={"name": "q"}, input=words)
