"""Schemas that somebody made so that their records cost much: what they cost grows with their own size, and
the partitioner and verify judge their records alike.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st

from partitioner_service.reading.cells.cells import Block
from partitioner_service.reading.parse import Parser
from partitioner_service.reading.registered import avro_schema, protobuf_schema, records
from partitioner_service.reading.registered.leaves import Leaf
from partitioner_service.reading.registered.newest import Newest
from partitioner_service.reading.registered.schemas import MOST_CHARACTERS, Schemas
from tests.examples import examples
from tests.unit.partitioner_service.reading.registered_records import (
    Both,
    Kept,
    descriptor,
    make,
    prefix,
    record_of,
    text_of,
)

UNREADABLE = "schema ... cannot be read, see docs/formats.md"
KT = (("k", "string"), ("t", "long"))
HEAD = prefix(1) + b"\2a\x0a"
"""A record of schema 1 whose first fields are KT."""
READ = {"key": "a", "time": 5}


def both_of(*texts: str, form: str = "avro", **query: Any) -> Both:
    return Both(make(form, **query), Kept(form, *texts))


def parsed_by(form: str, *texts: str) -> Parser:
    return Parser(make(form), schemas=Schemas(Kept(form, *texts)))


def without_bytes(levels: int) -> list[tuple[str, Any]]:
    """Fields of records without bytes. That of field n has 2 ** (n + 2) - 1 values."""
    fields: list[tuple[str, Any]] = [("z0", record_of(("a", "null"), ("b", "null"), name="Z0"))]
    for level in range(1, levels):
        inner = f"Z{level - 1}"
        fields.append((f"z{level}", record_of(("a", inner), ("b", inner), name=f"Z{level}")))
    return fields


def values_of(number: int) -> Any:
    """A record type without bytes, of so many values, behind the types of `without_bytes`."""
    fields: list[tuple[str, Any]] = []
    left = number - 1
    for level in reversed(range(20)):
        size = 2 ** (level + 2) - 1
        while left >= size:
            fields.append((f"f{len(fields)}", f"Z{level}"))
            left -= size
    fields += [(f"n{place}", "null") for place in range(left)]
    return record_of(*fields, name="Sum")


def test_a_record_has_as_many_values_as_verify_counts_and_no_steps_for_those_without_bytes() -> None:
    types = ("types", ["null", record_of(*without_bytes(17), name="Types")])
    value = HEAD + b"\0"
    left = 100_000 + 100 * len(value) - 5  # the record, k, t, types and its branch
    for values, result in ((left - 1, READ), (left, None)):
        text = json.dumps(record_of(*KT, types, ("sum", values_of(values))))
        assert len(avro_schema.compiled([text], ["k", "t"]).steps.steps) < 60
        assert both_of(text).agree([value]) == [result]


@examples(60)
@given(st.integers(-3, 3), st.integers(1, 40), st.booleans())
def test_both_readers_refuse_a_record_from_the_same_number_of_values_on(
    more: int, items: int, inline: bool
) -> None:
    types = ("types", ["null", record_of(*without_bytes(17), name="Types")])
    length = len(HEAD) + 1 + 1 + items + 1
    left = 100_000 + 100 * length - 6 + more  # root, k, t, types and its branch, the array
    per_item = left // items - 2
    item = record_of(("sum", values_of(per_item)), ("i", "int"), name="Item")
    rest = [(f"r{place}", "null") for place in range(left - items * (per_item + 2))]
    fields = [*KT, types, ("items", {"type": "array", "items": item}), *rest]
    query = {"aggregates": {"r": "last(o.r0)"}, "types": {"o.r0": "int64"}} if inline else {}
    schema = record_of(*fields, *([("o", record_of(("r0", "null"), name="O"))] if inline else []))
    value = HEAD + b"\0" + bytes([2 * items]) + b"\2" * items + b"\0"
    result = both_of(json.dumps(schema), **query).agree([value])
    assert (result[0] is not None) == (more + 2 * inline < 0)


def test_a_type_that_contains_itself_is_refused_wherever_a_record_reaches_it() -> None:
    loop = record_of(("x", "Loop"), name="Loop")
    through = record_of(("y", record_of(("x", "Far"), name="Mid")), name="Far")
    schema = record_of(*KT, ("u", ["null", loop, through, record_of(("x", "Own"), ("i", "int"), name="Own")]))
    values = [HEAD + branch + b"\2" * 600 for branch in (b"\2", b"\4", b"\6")]
    assert both_of(json.dumps(schema)).agree([HEAD + b"\0", HEAD + b"\2", HEAD + b"\4", *values]) == [
        READ, *[None] * 5
    ]  # fmt: skip


def test_both_readers_read_as_many_levels_whatever_they_are_made_of() -> None:
    chain = [("e0", record_of(name="E0"))]
    chain += [(f"e{n}", record_of(("x", f"E{n - 1}"), name=f"E{n}")) for n in range(1, 255)]
    types = ("types", ["null", record_of(*chain, name="Types")])
    empty = [record_of(*KT, types, ("o", record_of(("x", f"E{n}"), name="O"))) for n in range(240, 255)]
    query = {"aggregates": {"o": "last(o.y)"}, "types": {"o.y": "int64"}}
    for more in ({}, query):
        both = both_of(*map(json.dumps, empty), **more)
        values = [prefix(n) + HEAD[5:] + b"\0" for n in range(1, len(empty) + 1)]
        read = [one is not None for one in both.agree(values)]
        assert read == sorted(read, reverse=True)
        assert 0 < sum(read) < len(read)
    linked = record_of(("x", ["null", "Link"]), name="Link")
    listed = record_of(("x", {"type": "array", "items": "List"}), name="List")
    for kind, more in ((linked, b"\2"), (listed, b"\2")):
        both = both_of(json.dumps(record_of(*KT, ("u", ["null", kind]))))
        values = [HEAD + b"\2" + more * levels + b"\0" * 1 for levels in range(240, 256)]
        values += [HEAD + b"\2" + more * n + b"\0" * (n + 1) for n in range(118, 130)]
        read = [one is not None for one in both.agree(values)]
        assert 0 < sum(read) < len(read)


def test_records_without_bytes_beside_needed_fields_take_a_step_between_two_others_at_most() -> None:
    empty = [(f"e{n}", record_of(("n", "null"), name=f"E{n}")) for n in range(3_000)]
    schema = record_of(("k", "string"), *empty, ("t", "long"), *[(f"f{n}", "E7") for n in range(3_000)])
    program = avro_schema.compiled([json.dumps(schema)], ["k", "t"])
    assert len(program.steps.steps) == 5
    assert program.steps.steps["values"].sum() == 3 + 2 * 6_000
    assert both_of(json.dumps(schema)).agree([HEAD, HEAD + b"\0"]) == [READ, None]


def test_a_needed_record_without_bytes_is_there_and_its_fields_are_null() -> None:
    schema = record_of(*KT, ("v", record_of(("a", "null"), ("b", record_of(name="B")), name="V")))
    nulls = both_of(json.dumps(schema), aggregates={"a": "last(v.a)"}, types={"v.a": "int64"})
    assert nulls.agree([HEAD]) == [READ | {"v.a": None}]
    for name in ("v", "v.b"):
        assert both_of(json.dumps(schema), aggregates={"a": f"last({name})"}).agree([HEAD]) == [None]


def test_the_symbols_of_an_enum_are_read_once_however_often_it_is_mentioned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    def leaf(holds: str, *more: Any, **words: Any) -> Leaf:
        made.append(holds)
        return Leaf(holds, *more, **words)

    monkeypatch.setattr(avro_schema, "Leaf", leaf)
    kind = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    schema = record_of(("k", [kind, *["E"] * 500]), ("t", "long"), *[(f"f{n}", "E") for n in range(500)])
    text = json.dumps(schema)
    assert len(avro_schema.compiled([text], ["k", "t"]).leaves) == 2
    assert made.count("enum") == 1
    value = prefix(1) + b"\xc8\1\2" + b"\x0a" + b"\2" * 500
    assert both_of(text).agree([value]) == [READ | {"key": "B"}]


def test_a_record_with_needed_fields_is_not_looked_at_without_end() -> None:
    wide = record_of(("a", "int"), *[(f"n{n}", "null") for n in range(2_000)], name="W")
    schema = record_of(*KT, ("x", [wide, *["W"] * 2_000]))
    with pytest.raises(avro_schema.Unfit, match="too large"):
        avro_schema.compiled([json.dumps(schema)], ["k", "t", "x.a"])


def oneof_file(fields: int) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor(("k", "string"), ("t", "int64"), *((f"f{n}", "int64") for n in range(fields)))
    file.message_type[0].oneof_decl.add(name="which")
    for field in file.message_type[0].field[2:]:
        field.oneof_index = 0
    return file


@examples(60)
@given(
    st.integers(1, 60),
    st.lists(st.tuples(st.integers(1, 64), st.sampled_from([0, 1, 2, 5])), max_size=6),
)
def test_any_field_of_a_oneof_empties_the_others_if_it_has_its_own_wire_type(
    fields: int, tags: list[tuple[int, int]]
) -> None:
    names = [f"f{n}" for n in range(0, fields, 3)]
    query = {name: f"last({name})" for name in names}
    both = both_of(
        text_of(oneof_file(fields)), form="protobuf", aggregates=query, types=dict.fromkeys(names, "int64")
    )
    bytes_of = {0: b"\3", 1: bytes(8), 2: b"\1a", 5: bytes(4)}
    wire = b"".join(
        bytes([tag & 127 | 128, tag >> 7]) + bytes_of[kind]
        for number, kind in tags
        if number > 2
        for tag in (number << 3 | kind,)
    )
    assert both.agree([prefix(1) + b"\0" + b"\x0a\1a\x10\5" + wire])[0] is not None


def test_messages_that_hold_a_large_oneof_share_the_fields_that_nobody_needs() -> None:
    file = descriptor(("t", "int64"))
    large = file.message_type.add(name="T")
    large.oneof_decl.add(name="which")
    for n in range(500):
        large.field.add(name=f"f{n}", number=n + 1, label=1, type=8, oneof_index=0)
    for n in range(10):
        file.message_type.add(name=f"M{n}").field.add(
            name="x", number=1, label=1, type=11, type_name=".shop.T"
        )
    read = protobuf_schema.file_of([text_of(file)], [""])
    programs = [protobuf_schema.compiled(read, number, ["k", "x.f3"]) for number in range(3, 13)]
    assert len({id(program.tables.others) for program in programs}) == 1
    assert len(programs[0].tables.others) == 500


def test_schemas_and_messages_of_which_each_record_has_another_cost_a_copy_of_the_block_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    appended: list[int] = []
    append = Block.append

    def counted(block: Block, text: Any) -> int:
        appended.append(len(text))
        return append(block, text)

    monkeypatch.setattr(Block, "append", counted)
    texts = [
        json.dumps(record_of(("k", {"type": "enum", "name": "E", "symbols": [f"S{n}"]}), ("t", "long")))
        for n in range(300)
    ]
    both = both_of(*texts)
    values = [prefix(n) + b"\0\x0a" for n in range(1, 301)]
    values = values[::-1] + values
    keys = [one and one["key"] for one in both.agree(values)]
    assert keys == [f"S{n}" for n in range(299, -1, -1)] + [f"S{n}" for n in range(300)]
    assert len(appended) == 1


@examples(60)
@given(st.lists(st.integers(-3, 3), max_size=12))
def test_places_are_divided_by_their_keys_in_order(keys: list[int]) -> None:
    divided = [(key, places.tolist()) for key, places in records._divided(np.array(keys, np.int64))]
    assert divided == [
        (key, [place for place, one in enumerate(keys) if one == key]) for key in sorted(set(keys))
    ]


def test_what_is_remembered_has_a_bound_and_the_oldest_goes_first() -> None:
    newest: Newest[str, int] = Newest(10)
    for name in "abc":
        newest.put(name, 1, 3)
    assert newest["a"] == 1
    newest.put("d", 2, 3)
    assert [name in newest for name in "abcd"] == [True, False, True, True]
    assert newest.put("e", 5, 50) == 5
    assert [name in newest for name in "abcde"] == [False] * 4 + [True]
    newest.put("f", 6, 1)
    assert [name in newest for name in "ef"] == [False, True]


def test_protobuf_files_are_remembered_by_their_size_and_their_messages_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    file_of = protobuf_schema.file_of

    def counted(texts: Any, names: Any) -> Any:
        read.append(texts[-1])
        return file_of(texts, names)

    monkeypatch.setattr(protobuf_schema, "file_of", counted)
    file = descriptor(("t", "int64"), ("k", "string"))
    file.message_type[0].field[1].json_name = "x" * 200_000
    parser = parsed_by("protobuf", *[text_of(file)] * 40)
    values = [prefix(n) + b"\0\x08\5\x12\1a" for n in range(1, 41)]
    for _ in range(3):
        assert len(parser.parse(values, timestamps=[5] * 40).rows) == 40
    assert len(read) == 40  # the programs and the numbers of the messages are remembered
    assert parser._registered is not None
    assert len(parser._registered._files._entries) == 4_000_000 // len(text_of(file))


def test_of_large_schemas_only_the_newest_are_remembered() -> None:
    text = json.dumps(record_of(*KT)).ljust(MOST_CHARACTERS)
    kept = Kept("avro", *[text] * 70)
    schemas = Schemas(kept, at_once=1)
    assert len(schemas.of(range(1, 71))) == 70
    schemas.of([70])
    assert sorted(schemas._known) == list(range(7, 71))


@pytest.mark.parametrize("form", ["avro", "protobuf"])
def test_both_readers_read_a_schema_up_to_the_same_size(form: str) -> None:
    if form == "avro":
        texts = [json.dumps(record_of(*KT)).ljust(MOST_CHARACTERS + more) for more in (0, 1)]
        record = HEAD[5:]
    else:
        texts = []
        for size in (MOST_CHARACTERS * 3 // 4 - 60, MOST_CHARACTERS * 3 // 4):
            file = descriptor(("k", "string"), ("t", "int64"))
            file.message_type[0].field[1].json_name = "x" * size
            texts.append(text_of(file))
        assert len(texts[0]) <= MOST_CHARACTERS < len(texts[1])
        record = b"\0\x0a\1a\x10\5"
    assert both_of(*texts, form=form).agree([prefix(1) + record, prefix(2) + record]) == [READ, None]
    assert parsed_by(form, *texts).parse([prefix(2) + record]).bad.counted() == {UNREADABLE: 1}


def test_both_readers_read_names_up_to_the_same_length() -> None:
    for length, result in ((1_000, READ), (1_001, None)):
        fixed = {"type": "fixed", "name": "F", "size": 1, "namespace": "n" * (length - 2)}
        schema = record_of(*KT, ("f", fixed))
        assert both_of(json.dumps(schema)).agree([HEAD + b"a"]) == [result]
        # Each value of a list is a package, a message, and a message within it.
        for package, name, inner in (("p" * length, "", ""), ("p", "m" * (length - 2), ""), (
            "p" * 500, "m" * 400, "i" * (length - 902))):  # fmt: skip
            file = descriptor(("k", "string"), ("t", "int64"))
            file.package = package if name else package[: length - 2]
            if name:
                other = file.message_type.add(name=name)
                if inner:
                    other.nested_type.add(name=inner)
            both = both_of(text_of(file), form="protobuf")
            assert both.agree([prefix(1) + b"\0\x0a\1a\x10\5"]) == [result]


def test_a_long_name_with_many_fields_is_refused_before_the_library_keeps_it_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = descriptor(("k", "string"), ("t", "int64"))
    file.message_type.add(name="m" * 300_000)
    monkeypatch.setattr(protobuf_schema.descriptor_pool, "DescriptorPool", _NoPool)
    with pytest.raises(protobuf_schema.Unfit, match="too long"):
        protobuf_schema.file_of([text_of(file)], [""])


class _NoPool:
    """A pool to which nothing may be added."""

    def Add(self, file: Any) -> None:  # noqa: N802
        raise AssertionError(file.name)
