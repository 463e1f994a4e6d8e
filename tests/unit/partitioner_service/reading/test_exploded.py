"""Records that are taken apart: the compiled reader and verify's find the same tuples, those of a stream
of the elements.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.grammar.explosion import MOST_ELEMENTS, Explosion
from evenflow.settings import Settings, load_settings
from partitioner_service.reading.parse import ParsedBlock, Parser, taken_apart
from tests.examples import examples
from tests.unit.workbench.verify.input.test_expressions import by_partitioner, by_verify
from workbench.unreadable import Unreadable
from workbench.verify.input.strict_reader import StrictReader

ITEMS = Settings(
    query={
        "window": 10,
        "key": ["shop", "order.items.sku"],
        "time": "t",
        "explode": "order.items",
        "where": "cost > 1 OR shop = 'b'",
        "columns": {"cost": "order.items.price.net * order.items.quantity"},
        "aggregates": {"n": "count", "c": "sum(cost)", "f": "max(order.items.price.net)", "v": "min(v)"},
        "types": {"order.items.quantity": "int64", "order.items.price.net": "decimal(2)"},
    },
    input={"partitions": 1},
)
TAGS = Settings(
    query={
        "window": 10,
        "key": "shop",
        "time": "t",
        "explode": "tags",
        "aggregates": {"n": "count", "d": "max(tags)"},
    },
    input={"partitions": 1},
)
COUNTED = Settings(
    query={"window": 10, "key": "shop", "time": "t", "explode": "tags"}, input={"partitions": 1}
)
WORDS = Settings(
    query={
        "window": 10,
        "key": "word",
        "time": "@timestamp",
        "explode": "words(value)",
        "columns": {"word": "lower(value)"},
        "where": "length(value) > 1",
    },
    input={"partitions": 1, "format": "text"},
)
PARTS = Settings(
    query={"window": 10, "key": "part", "time": "t", "explode": "split(part, '; ')"},
    input={"partitions": 1, "format": "csv", "columns": ["part", "t"]},
)
_LEAVES = st.sampled_from([None, 1, -7, 2.5, "a", "", True, [], [[1, "]"], {"a": "}"}], {"sku": 1}, 10**20])


@st.composite
def orders(draw: st.DrawFn) -> bytes:
    """Mostly as the queries need them, with anything put in somewhere, and a field twice now and then."""

    def item() -> Any:
        price = {"net": draw(st.sampled_from([1, 2.25, 0, None])), "gross": [1, 2]}
        return {
            "sku": draw(st.sampled_from(["x", 'y"]', "ü", None])),
            "quantity": draw(st.integers(0, 3)),
            "price": price,
        }

    items: Any = [item() for _ in range(draw(st.integers(0, 3)))]
    tags: Any = draw(st.lists(st.sampled_from([1, 2.5, -1e3, None]), max_size=4))
    record: Any = {
        "shop": draw(st.sampled_from(["a", "b"])),
        "t": draw(st.integers(0, 30)),
        "order": {"items": items},
        "tags": tags,
        "v": 1.5,
    }
    if draw(st.booleans()):
        where = draw(st.sampled_from([record, record["order"], *items, *(one["price"] for one in items)]))
        where[draw(st.sampled_from(["items", "sku", "quantity", "price", "net", "tags", "shop", "v"]))] = (
            draw(_LEAVES)
        )
    if items and not draw(st.integers(0, 3)):
        items.insert(draw(st.integers(0, len(items))), draw(_LEAVES))
    text = json.dumps(record, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    if not draw(st.integers(0, 4)):
        text = text.replace('"sku"', '"sku": "c", "sku"', 1)
    if not draw(st.integers(0, 4)):
        place = draw(st.integers(0, len(text) - 1))
        text = (
            text[:place]
            + draw(st.sampled_from(["", "}", "]", "[", ",", " ", '"', "NaN"]))
            + text[place + 1 :]
        )
    return text.encode()


@examples(25)
@given(st.sampled_from([ITEMS, TAGS, COUNTED]), st.lists(orders(), min_size=1, max_size=8))
@example(TAGS, [b'{"shop":"a","t":1,"tags":[1,-NaN]}', b'{"shop":"a","t":1,"tags":[1,2],"x":-Inf}'])
@example(TAGS, [b'{"shop":"a","t":1,"tags":[1,2],"tags":[3]}', b'{"shop":null,"t":1,"tags":[]}'])
@example(COUNTED, [b'{"shop":"a","t":1,"tags":[{"a":[1,"]"]},"\\"]",[[],[]]]}', b'{"shop":"a","t":1}'])
@example(COUNTED, [b'{"shop":"a","t":1,"tags":' + b"[" * 3000 + b"]" * 3000 + b"}"])
@example(COUNTED, [b'{"shop":"a","t":1,"tags":[' + b"0," * MOST_ELEMENTS + b"0]}"])
def test_both_readers_find_the_same(settings: Settings, values: list[bytes]) -> None:
    result = by_partitioner(settings, values)
    assert by_verify(settings, values, None) == result
    assert by_verify(settings, values, "unreadable") == result


@examples(25)
@given(
    st.lists(
        st.text(st.sampled_from("aB ß\t\n\u00a0\x1c;"), max_size=12).map(str.encode), min_size=1, max_size=6
    )
)
@example([b"\xff a", b" ", b"", "Äpfel  und".encode()])
def test_both_readers_find_the_same_words(values: list[bytes]) -> None:
    def parsed() -> list[Any]:
        parser = Parser(WORDS)
        return tuples(parser.parse(values, timestamps=[7] * len(values)), len(values))

    result = parsed()
    assert by_verify(WORDS, values, None) == result


@examples(40)
@given(st.lists(st.text(st.sampled_from('ab; ",'), max_size=9), min_size=1, max_size=6))
def test_both_readers_find_the_same_parts_of_csv(texts: list[str]) -> None:
    values = [f"{text},5".encode() for text in texts]
    assert by_verify(PARTS, values, None) == by_partitioner(PARTS, values)


@pytest.mark.parametrize(
    ("explode", "part", "others"),
    [
        ("split(value, ',')", "x,", 0),
        ("split(value, ',')", ",", 0),
        ("split(value, 'aa')", "baaa", 0),
        ("split(value, 'ü;')", "üü;", 0),
        ("words(value)", " x\u00a0\x1c\t\n", 1),
        ("words(value)", "  x ", 1),
    ],
)
def test_a_text_has_at_most_so_many_parts_and_both_readers_count_them_alike(
    explode: str, part: str, others: int
) -> None:
    settings = Settings(
        query={"window": 10, "key": "value", "time": "@timestamp", "explode": explode},
        input={"partitions": 1, "format": "text"},
    )
    most = part * (MOST_ELEMENTS - 1 + others)
    values = [b"a", most.encode(), (most + part).encode(), b"\xff" + most.encode(), (part * 2).encode()]
    parsed = Parser(settings).parse(values, timestamps=[7] * 5)
    assert dict(parsed.bad) == {
        2: f"column 'value' has {MOST_ELEMENTS + 1} elements, more than 100,000",
        3: "column 'value' is not valid UTF-8",
    }
    assert parsed.counts is not None
    assert parsed.counts.tolist() == [1, MOST_ELEMENTS, 3 - others]
    strict, keys = StrictReader(settings), iter(parsed.keys.to_pylist())
    for place in (0, 1, 4):
        assert [next(keys) for _ in range(strict.read(None, values[place], 7).elements)] == [
            part.encode() for part in strict.read(None, values[place], 7).cells[0]
        ]
    for place in (2, 3):
        with pytest.raises(Unreadable):
            strict.read(None, values[place], 7)


def tuples(parsed: ParsedBlock, records: int) -> list[Any]:
    """Of each record its event time and its tuples; None: it is unreadable."""
    result: list[Any] = [None] * records
    keys = iter(parsed.keys.to_pylist())
    counts = np.ones(len(parsed.rows), int) if parsed.counts is None else parsed.counts
    for row, time, count in zip(parsed.rows.tolist(), parsed.times.tolist(), counts.tolist(), strict=True):
        result[row] = (time, [(next(keys),) for _ in range(count)])
    return result


@given(st.lists(st.lists(st.integers(-9, 9), max_size=5), max_size=6))
@examples(40)
def test_elements_are_what_a_stream_of_elements_would_be(lists: list[list[int]]) -> None:
    records = [json.dumps({"shop": f"s{n}", "t": n, "tags": tags}).encode() for n, tags in enumerate(lists)]
    flat = [
        json.dumps({"shop": f"s{n}", "t": n, "tags": tag}).encode()
        for n, tags in enumerate(lists)
        for tag in tags
    ]
    plain = TAGS.model_copy(update={"query": TAGS.query.model_copy(update={"explode": None})})
    one, other = Parser(TAGS).parse(records), Parser(plain).parse(flat)
    assert one.keys.equals(other.keys)
    assert one.values.equals(other.values)
    assert one.tuple_times.tolist() == other.tuple_times.tolist()
    assert one.empty == lists.count([])
    pieces = taken_apart(one, [1] * len(records))
    assert [key for piece in pieces for key in piece.keys.to_pylist()] == one.keys.to_pylist()
    assert [piece.tuple_times.tolist() for piece in pieces] == [[n] * len(t) for n, t in enumerate(lists)]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (b'{"shop":"a","t":1,"tags":{}}', "column 'tags' holds an object or a list where a list is needed"),
        (b'{"shop":"a","t":1,"tags":"x"}', "column 'tags' holds text where a list is needed (\"x\")"),
        (
            b'{"shop":"a","t":1,"tags":[1,"x"]}',
            "column 'tags' holds text where a number is needed (\"x\") (element 2)",
        ),
        (
            b'{"shop":"a","t":1,"tags":[1,[2]]}',
            "column 'tags' holds an object or a list where a number is needed (element 2)",
        ),
        (b'{"shop":"a","t":1,"tags":[1,NaN,"x"]}', "column 'tags' is not a finite number (NaN) (element 2)"),
        (b'{"shop":null,"t":1,"tags":[1]}', "key column 'shop' is missing or null"),
        (
            b'{"shop":"a","t":1,"tags":[' + b"0," * MOST_ELEMENTS + b"0]}",
            "column 'tags' has 100001 elements, more than 100,000",
        ),
    ],
)
def test_what_cannot_be_taken_apart_is_said_and_rejected_as_a_whole(record: bytes, why: str) -> None:
    good = b'{"shop":"b","t":2,"tags":[3,4]}'
    parsed = Parser(TAGS).parse([good, record, good])
    assert dict(parsed.bad) == {1: why}
    assert parsed.rows.tolist() == [0, 2]
    assert parsed.values.to_pydict() == {"tags": [3.0, 4.0, 3.0, 4.0]}


def test_a_fault_of_an_element_names_its_column_and_counts_as_one_reason() -> None:
    bad = b'{"shop":"a","t":1,"order":{"items":[{"sku":"x"},{"sku":"y","price":3}]}}'
    worse = b'{"shop":"b","t":1,"order":{"items":[{"sku":null}]}}'
    parsed = Parser(ITEMS).parse([bad, worse, bad])
    reason = "a field on the way to column 'order.items.price.net' holds no object (element 2)"
    assert parsed.bad[0] == parsed.bad[2] == reason
    assert parsed.bad[1] == "key column 'order.items.sku' is missing or null (element 1)"
    assert sorted(parsed.bad.counted().values()) == [1, 2]


@pytest.mark.parametrize(
    "text", ["tags", "a.b", '"a.b".c', "split(value, ';')", "split(a.b, '''')", "words(value)"]
)
def test_a_way_to_take_apart_is_written_as_it_is_read(text: str) -> None:
    assert str(Explosion.parse(text)) == text


@pytest.mark.parametrize(
    ("query", "input_", "why"),
    [
        ({"explode": "split(value)"}, {}, "is none of"),
        ({"explode": "@key"}, {}, "is none of"),
        ({"explode": "x", "time": "x.t"}, {}, "the tuples of a record have one event time"),
        (
            {"explode": "x", "key": "x.a", "aggregates": {"m": "max(x)"}},
            {},
            "also the object that holds 'x.a'",
        ),
        (
            {"explode": "x", "columns": {"x": "y + 1"}, "aggregates": {"m": "max(x)"}},
            {},
            "names a derived column",
        ),
        ({"explode": "words(x)", "aggregates": {"m": "max(x)"}}, {}, "makes texts of column 'x'"),
        ({"explode": "x"}, {"format": "csv", "columns": ["key", "time", "x"]}, "takes lists in JSON apart"),
    ],
)
def test_what_cannot_be_meant_is_refused(query: dict[str, Any], input_: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        load_settings(query=query, input=input_)


def test_a_query_that_takes_nothing_apart_keeps_its_fingerprint() -> None:
    plain = load_settings(query={"name": "q"}, input={"partitions": 1})
    assert "explode" not in plain.query.canonical()
    assert load_settings(query={"explode": "x"}, input={"partitions": 1}).fingerprint != plain.fingerprint
