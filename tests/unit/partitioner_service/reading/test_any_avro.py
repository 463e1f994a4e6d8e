"""Any Avro schema: the partitioner and verify read what fastavro writes, and both refuse what fastavro
alone would take.
"""

from __future__ import annotations

import io
import json
from itertools import count
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.partitioner_service.reading.registered_records import (
    Both,
    Kept,
    avro,
    make,
    prefix,
    record_of,
)
from topics.schemas.registry import RegisteredSchema
from workbench.registered.avro import AvroReader
from workbench.unreadable import Unreadable

NUMBER = count()
Pair = tuple[Any, st.SearchStrategy[Any]]
"""A schema, and the values that fastavro writes by it."""


def name() -> str:
    return f"N{next(NUMBER)}"


def leaves() -> list[Pair]:
    ints, longs = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
    raw, text = st.binary(max_size=4), st.text(max_size=4)
    return [
        ("null", st.none()), ("boolean", st.booleans()), ("int", ints), ("long", longs), ("bytes", raw),
        ("string", text),
        ("float", st.floats(width=32, allow_nan=False)), ("double", st.floats(allow_nan=False)),
        ({"type": "int", "logicalType": "date"}, ints), ({"type": "long", "logicalType": "timestamp-micros"},
        longs),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, raw),
        ({"type": "string", "logicalType": "nobody-knows"}, text),
    ]  # fmt: skip


def record_pair(inner: list[Pair]) -> Pair:
    fields = [(f"f{place}", schema) for place, (schema, _) in enumerate(inner)]
    values = {f"f{place}": strategy for place, (_, strategy) in enumerate(inner)}
    return record_of(*fields, name=name()), st.fixed_dictionaries(values)


def union_pair(inner: Pair) -> Pair:
    """Of null and the type, but for a union and null, which a union may not hold."""
    schema, values = inner
    return inner if isinstance(schema, list) or schema == "null" else (["null", schema], st.none() | values)


def array_pair(inner: Pair) -> Pair:
    """Behind each item a byte, because items that take none are refused."""
    schema, values = record_pair([inner, ("int", st.just(0))])
    return {"type": "array", "items": schema}, st.lists(values, max_size=3)


PAIRS: st.SearchStrategy[Pair] = st.recursive(
    st.sampled_from(leaves())
    | st.builds(lambda: ({"type": "enum", "name": name(), "symbols": ["A", "B"]}, st.sampled_from("AB")))
    | st.builds(lambda: ({"type": "fixed", "name": name(), "size": 3}, st.binary(min_size=3, max_size=3))),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(record_pair)
        | inner.map(union_pair)
        | inner.map(array_pair)
        | inner.map(
            lambda one: (
                {"type": "map", "values": one[0]},
                st.dictionaries(st.text(max_size=2), one[1], max_size=3),
            )
        )
    ),
    max_leaves=6,
)


def reader_of(schema: Any) -> AvroReader:
    return AvroReader(RegisteredSchema(1, "avro", (json.dumps(schema),), ("",)))


def written(cell: Any, value: Any) -> Any:
    """The value of a cell, those of the cells of a record, or the value that was written for what is not
    kept.
    """
    if isinstance(cell, dict):
        return {name: written(inner, value[name]) for name, inner in cell.items()}
    return cell if cell is None else value if cell.kind == "nested" else cell.value


def refusal(reader: AvroReader, record: bytes) -> str:
    """Why the record is unreadable, empty if it is read."""
    try:
        reader._record(record)
    except Unreadable as error:
        return str(error)
    return ""


def both_of(*texts: str) -> Both:
    query = make("avro", aggregates={"i": "sum(i)"}, types={"i": "int64"})
    return Both(query, Kept("avro", *texts))


@examples(60)
@given(data=st.data())
def test_what_fastavro_writes_by_any_schema_is_read_and_damaged_bytes_are_judged_alike(
    data: st.DataObject,
) -> None:
    inner, values = data.draw(PAIRS)
    schema = record_of(("x", inner), ("k", "string"), ("t", "long"), ("i", ["null", "long"]))
    row = {"x": data.draw(values), "k": "a", "t": 5, "i": data.draw(st.none() | st.integers(-9, 2**40))}
    record = avro(schema, row)
    assert written(reader_of(schema)._record(record), row) == row
    both = both_of(json.dumps(schema))
    assert both.agree([record]) == [{"key": "a", "time": 5, "i": row["i"]}]
    broken = bytearray(record)
    for _ in range(data.draw(st.integers(1, 3))):
        broken[data.draw(st.integers(5, len(broken) - 1))] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(5, len(record)))
    both.agree([bytes(broken), record[:cut], record + b"\0", bytes(broken[:cut])])
    # What the walk lets pass, fastavro reads: it adds no refusal of its own.
    assert not any("fastavro" in refusal(reader_of(schema), one) for one in (bytes(broken), record[:cut]))


AB = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
BELIEVED = {
    "symbol -1": (AB, b"\1"),
    "branch -1": (["null", "long"], b"\1\2"),
    "a truth of 2": ("boolean", b"\2"),
    "a number of 65 bits": ("long", b"\x80" * 9 + b"\2"),
    "a number of 20 bytes": ("long", b"\xff" * 19 + b"\1"),
    "nought in 20 bytes": ("long", b"\x80" * 19 + b"\0"),
    "fewer than no items": ({"type": "array", "items": "long"}, b"\xff" * 9 + b"\1\0\0"),
}
"""Bytes that fastavro reads without a complaint. If it refuses them some day, the walk can be shorter."""


@pytest.mark.parametrize("case", BELIEVED)
def test_bytes_that_fastavro_believes_are_refused_by_both_readers(case: str) -> None:
    kind, value = BELIEVED[case]
    schema = record_of(("k", "string"), ("t", "long"), ("i", "null"), ("x", kind))
    record = b"\2a\x0a" + value
    fastavro.schemaless_reader(io.BytesIO(record), fastavro.parse_schema(schema), None)
    assert both_of(json.dumps(schema)).agree([prefix(1) + record]) == [None]


def test_ten_thousand_levels_which_would_end_the_process_are_refused_and_a_hundred_are_read() -> None:
    schema = record_of(
        ("k", "string"),
        ("t", "long"),
        ("i", "null"),
        ("x", ["null", record_of(("x", ["null", "L"]), name="L")]),
    )
    deep, flat = (prefix(1) + b"\2a\x0a" + b"\2" * levels + b"\0" for levels in (10_000, 100))
    assert both_of(json.dumps(schema)).agree([deep, flat]) == [None, {"key": "a", "time": 5, "i": None}]


def nothing(levels: int) -> Any:
    """A type without bytes that 2 ** levels others are in."""
    inner: Any = "null"
    for level in range(levels):
        inner = record_of(("a", inner), ("b", f"L{level - 1}" if level else "null"), name=f"L{level}")
    return inner


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"type": "array", "items": "null"}, b"\0"),
        ({"type": "array", "items": nothing(30)}, b"\0"),
        (nothing(30), b""),
        (record_of(("x", "Loop"), name="Loop"), b""),
        ({"type": "fixed", "name": "F", "size": -1}, b""),
        ("Absent", b""),
        ({"type": "record", "name": "X"}, b""),
        ({"type": "int", "logicalType": ["date"]}, b"\0"),
    ],
)
def test_a_schema_that_is_none_or_whose_records_have_no_end_is_refused_by_both_readers(
    kind: Any, value: bytes
) -> None:
    schema = record_of(("k", "string"), ("t", "long"), ("i", "null"), ("x", kind))
    assert both_of(json.dumps(schema)).agree([prefix(1) + b"\2a\x0a" + value]) == [None]


def test_names_and_symbols_that_fastavro_refuses_are_read_as_avro_for_java_reads_them() -> None:
    fixed = {"type": "fixed", "name": "F", "namespace": "", "size": 1}
    fields = [
        ("k", {"type": "enum", "name": "Größe", "symbols": ["klein", "groß"]}), ("t", "long"), ("i", "null"),
        ("later", ["null", "Later"]), ("f", fixed), ("g", "F"), ("now", record_of(("x", "int"),
        name="Later")),
    ]  # fmt: skip
    schema = record_of(*fields) | {"namespace": "shop"}
    record = prefix(1) + b"\2\x0a" + b"\2\4" + b"fg" + b"\6"
    assert both_of(json.dumps(schema)).agree([record]) == [{"key": "groß", "time": 5, "i": None}]
    with pytest.raises(Exception, match="symbol"):
        fastavro.parse_schema(schema)


def test_a_union_at_the_top_is_no_schema_of_records_for_either_reader() -> None:
    schema = [record_of(("k", "string"), ("t", "long"), ("i", "null"))]
    assert both_of(json.dumps(schema)).agree([prefix(1) + b"\0\2a\x0a", prefix(1) + b"\2a\x0a"]) == [
        None,
        None,
    ]
