"""Result rows as Avro: an independent reader reads what they were, and nothing else is taken for a row."""

from __future__ import annotations

import io
import json
import math
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.errors import ProtocolError
from evenflow.settings import Query
from evenflow.twostep import never_null, readable_schema
from evenflow.wire.avro_rows import (
    AvroForm,
    decode_rows,
    encode_rows,
    field_names,
    header,
    split_header,
    window_end_of,
)
from tests.examples import examples

PAIR = pa.struct([("value", pa.decimal128(18, 3)), ("how many", pa.int64())])
KINDS: dict[str, pa.DataType] = {
    "window_start": pa.timestamp("ms", "UTC"),
    "window_end": pa.timestamp("ms", "UTC"),
    "key": pa.string(),
    "raw": pa.binary(),
    "whole": pa.int64(),
    "number": pa.float64(),
    "is": pa.bool_(),
    "day": pa.date32(),
    "small": pa.decimal128(18, 4),
    "large": pa.decimal128(38, 2),
    "tiny": pa.decimal128(2, 1),
    "texts": pa.list_(pa.string()),
    "days": pa.list_(pa.date32()),
    "tops": pa.list_(PAIR),
    "clusters": pa.list_(pa.list_(PAIR)),
    "prüfung €": pa.string(),
}
REQUIRED = frozenset({"window_start", "window_end", "key"})
FORM = AvroForm(pa.schema(list(KINDS.items())), REQUIRED, "my-query.results")
INT64 = st.integers(-(2**63), 2**63 - 1)


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, the smallest and the largest among them."""
    if pa.types.is_list(kind):
        return st.lists(st.none() | values(kind.value_type), max_size=3)
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: st.none() | values(field.type) for field in kind})
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        edges = [number for number in (-most, most, 0, 127, 128, -128, -129) if abs(number) <= most]
        whole = st.integers(-most, most) | st.sampled_from(edges)
        return whole.map(lambda number: Decimal((number < 0, [*map(int, str(abs(number)))], -kind.scale)))
    if pa.types.is_timestamp(kind):
        return st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
            lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000, tzinfo=UTC)
        )
    return {
        pa.int64(): INT64 | st.sampled_from([-(2**63), 2**63 - 1, 63, 64, -64, -65]),
        pa.float64(): st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324]),
        pa.bool_(): st.booleans(),
        pa.date32(): st.dates() | st.sampled_from([date.min, date.max]),
        pa.string(): st.text(max_size=5) | st.sampled_from(["", "Zürich €", "\0", "👍🏽", "x" * 200]),
        pa.binary(): st.binary(max_size=5),
    }[kind]


ROW = st.fixed_dictionaries(
    {name: values(kind) if name in REQUIRED else st.none() | values(kind) for name, kind in KINDS.items()}
)


def read(row: bytes, form: AvroForm = FORM) -> dict[str, Any]:
    """The row as a reader that knows the registered schema alone has it."""
    out = io.BytesIO(row)
    result = fastavro.schemaless_reader(out, fastavro.parse_schema(json.loads(form.text)), None)
    assert out.read() == b""
    assert isinstance(result, dict)
    return result


def as_avro(value: Any) -> Any:
    """A value with the names of fields that Avro has."""
    if isinstance(value, dict):
        return dict(zip(field_names(list(value)), map(as_avro, value.values()), strict=True))
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return [as_avro(one) for one in value] if isinstance(value, list) else value


@given(rows=st.lists(ROW, max_size=4))
@examples(300)
def test_every_column_type_is_read_back_as_it_was_also_by_another_reader(rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows, FORM.schema)
    encoded = encode_rows(table, FORM).to_pylist()
    assert [repr(read(row)) for row in encoded] == [repr(as_avro(row)) for row in table.to_pylist()]
    back, places = decode_rows(encoded, FORM)
    assert places == list(range(len(rows)))
    assert back.schema == FORM.schema
    assert repr(back.to_pylist()) == repr(table.to_pylist())  # not a number is equal to nothing
    assert encode_rows(table, FORM).to_pylist() == encoded
    for begin in range(len(rows)):  # a slice, and each column in chunks
        assert encode_rows(table.slice(begin), FORM).to_pylist() == encoded[begin:]
    parts = [table.slice(at, 1) for at in range(len(rows))]
    assert parts == [] or encode_rows(pa.concat_tables(parts), FORM).to_pylist() == encoded


@given(whole=INT64)
@example(whole=-(2**63))
@example(whole=2**63 - 1)
def test_a_whole_number_is_written_as_fastavro_writes_it(whole: int) -> None:
    form = AvroForm(pa.schema([("n", pa.int64())]), frozenset({"n"}), "t")
    out = io.BytesIO()
    fastavro.schemaless_writer(out, json.loads(form.text), {"n": whole})
    assert encode_rows(pa.table({"n": [whole]}, form.schema), form).to_pylist() == [out.getvalue()]


@given(rows=st.lists(ROW, min_size=1, max_size=3), junk=st.binary(max_size=30), at=st.integers(0, 3))
@examples(100)
def test_what_is_no_row_is_left_out_and_the_others_are_read(
    rows: list[dict[str, Any]], junk: bytes, at: int
) -> None:
    encoded = encode_rows(pa.Table.from_pylist(rows, FORM.schema), FORM).to_pylist()
    bad = [junk, encoded[0] + b"\0", encoded[0][:-1]]
    given_rows = [*encoded[:at], *bad, *encoded[at:]]
    table, places = decode_rows(given_rows, FORM)
    assert {given_rows[place] for place in places} == set(encoded)
    assert encode_rows(table, FORM).to_pylist() == [given_rows[place] for place in places]


@pytest.mark.parametrize(
    "row",
    [
        {"n": 2**70},
        {"day": 2**40},
        {"d": b"\x7f" * 8},
        {"d": b"\0"},
        {"d": b""},
        {"texts": [b"\xff"]},
    ],
)
def test_values_that_no_column_holds_are_no_row(row: dict[str, Any]) -> None:
    schema = pa.schema(
        [
            ("n", pa.int64()),
            ("day", pa.date32()),
            ("d", pa.decimal128(18, 2)),
            ("texts", pa.list_(pa.string())),
        ]
    )
    form = AvroForm(schema, frozenset(), "t")

    def union(value: Any, write: Any) -> bytes:
        return b"\0" if value is None else b"\x02" + write(value)

    def long(value: int) -> bytes:
        value, out = value << 1 ^ value >> 200, b""
        while value > 127:
            value, out = value >> 7, out + bytes([value & 127 | 128])
        return out + bytes([value])

    bad = (
        union(row.get("n"), long)
        + union(row.get("day"), long)
        + union(row.get("d"), lambda value: long(len(value)) + value)
        + union(row.get("texts"), lambda value: b"\x02\x02\x02" + value[0] + b"\0")
    )
    good = encode_rows(pa.Table.from_pylist([{"n": 5}], schema), form)[0].as_py()
    table, places = decode_rows([good, bad, good, b""], form)
    assert places == [0, 2]
    assert table["n"].to_pylist() == [5, 5]


def test_names_that_avro_does_not_allow_are_written_with_underscores_and_told_apart() -> None:
    names = ["user.id", "user_id", "user id", "1st", "é", "ok", "_1st", ""]
    assert field_names(names) == ["user_id_2", "user_id", "user_id_3", "_1st_2", "_", "ok", "_1st", "__2"]
    form = AvroForm(pa.schema([(name, pa.int64()) for name in names]), frozenset(), "a.b-c")
    schema = json.loads(form.text)
    assert (schema["namespace"], schema["name"]) == ("evenflow.results", "a_b_c")
    assert {field["name"]: field.get("doc") for field in schema["fields"]} == {
        "user_id_2": "user.id", "user_id": None, "user_id_3": "user id", "_1st_2": "1st", "_": "é",
        "ok": None,
        "_1st": None, "__2": "",
    }  # fmt: skip
    table = pa.Table.from_pylist([{name: at for at, name in enumerate(names)}], form.schema)
    assert list(read(encode_rows(table, form)[0].as_py(), form).values()) == list(range(len(names)))


def test_records_within_a_record_have_names_of_their_own() -> None:
    pair, nested = pa.struct([("c", pa.int64())]), pa.struct([("b", pa.struct([("c", pa.int64())]))])
    form = AvroForm(pa.schema([("a", pa.list_(nested)), ("a_b", pa.list_(pair))]), frozenset(), "t")
    fastavro.parse_schema(json.loads(form.text))
    table = pa.Table.from_pylist([{"a": [{"b": {"c": 1}}, {"b": None}], "a_b": [{"c": 2}]}], form.schema)
    assert read(encode_rows(table, form)[0].as_py(), form) == table.to_pylist()[0]


def test_only_aggregates_may_be_null_and_the_schema_of_a_query_is_always_the_same() -> None:
    def form() -> AvroForm:
        query = Query(
            key=["shop.id", "n"], types={"n": "int64", "p": "decimal(2)"}, emit="changes",
            aggregates={"most": "max(p)", "Übertrag": "sum(p)"},
        )  # fmt: skip
        return AvroForm(readable_schema(query), never_null(query), "q.results")

    text = form().text
    assert text == form().text
    fields = json.loads(text)["fields"]
    assert [(field["name"], isinstance(field["type"], list), "default" in field) for field in fields] == [
        ("window_start", False, False),
        ("window_end", False, False),
        ("shop_id", False, False),
        ("n", False, False),
        ("revision", False, False),
        ("gone", False, False),
        ("most", True, True),
        ("_bertrag", True, True),
        ("_tuples", False, False),
        ("_tuples_of_all", False, False),
    ]
    assert fields[0]["type"] == {"type": "long", "logicalType": "timestamp-millis"}
    assert fields[6]["type"][1] == {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}
    table = pa.Table.from_pylist([{"most": Decimal("1.00")}], form().schema)
    with pytest.raises(ProtocolError, match="a result row has no window_start"):
        encode_rows(table, form())


def test_the_header_names_the_schema_and_the_end_of_the_window_is_found_without_it() -> None:
    at = datetime(1970, 1, 1, tzinfo=UTC)
    row = {"window_start": at, "window_end": at + timedelta(milliseconds=60_000), "key": "k"}
    value = header(7) + encode_rows(pa.Table.from_pylist([row], FORM.schema), FORM)[0].as_py()
    assert struct.unpack_from(">bI", value) == (0, 7)
    assert split_header(value) == (7, value[5:])
    assert window_end_of(value) == 60_000
    assert split_header(None) is split_header(b"\0\0\0") is split_header(b"{" + value) is None
    for bad in (b"", b"\0\0\0\0\7", value[:6], b"\0\0\0\0\7" + b"\xff" * 30):
        with pytest.raises(ValueError, match="no "):
            window_end_of(bad)
