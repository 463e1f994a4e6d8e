"""A cost may count the elements of lists and the parts of texts. Counting rejects no record, and
`json.loads` agrees.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evenflow.grammar.explosion import BLANKS, Explosion
from evenflow.numeric.arrays import Float64s
from evenflow.partitioners.costs import weighed
from evenflow.settings import Settings
from partitioner_service.reading.cells.lists import sizes_of_texts
from partitioner_service.reading.parse import Parser, taken_apart
from partitioner_service.reading.registered.schemas import Schemas
from tests.examples import examples
from tests.unit.partitioner_service.reading.registered_records import URL, Kept, avro, record_of

CSV: dict[str, Any] = {"format": "csv", "columns": ["k", "t", "tags"]}
TEXT: dict[str, Any] = {"format": "text"}
OF_KAFKA: dict[str, Any] = {"key": "@key", "time": "@timestamp"}
ITEMS: dict[str, Any] = {"explode": "items"}
TAGS: dict[str, Any] = {"explode": "split(tags, ';')"}


def settings(cost: str | None, *, form: dict[str, Any] | None = None, **query: Any) -> Settings:
    return Settings(
        query={"name": "q", "key": "k", "time": "t", "window": "10s", "aggregates": {"n": "count"}} | query,
        input={"partitions": 1} | (form or {}),
        partitioner={"name": "hashing", "workers": 4, "cost": cost},
    )


def numbers(found: Float64s | None) -> list[float | None]:
    """The costs, None where one is no number."""
    assert found is not None
    return [None if np.isnan(one) else one for one in found.tolist()]


def costs(cost: str, *rows: dict[str, Any] | bytes, **query: Any) -> list[float | None]:
    """The cost of each tuple, None where it is no number."""
    some = [one if isinstance(one, bytes) else json.dumps({"k": "k", "t": 1} | one).encode() for one in rows]
    return numbers(Parser(settings(cost, **query)).parse(some).costs)


# ---- lists


def test_a_size_is_the_number_of_elements_of_a_list() -> None:
    rows = [
        {"items": [1, [2, 3], {"a": [4, 5]}, "],["]},
        {"items": []},
        {"items": [[]]},
        {"items": [None, True, -1e3]},
    ]
    assert costs("size(items)", *rows) == [4, 0, 1, 3]


def test_what_is_no_list_has_no_size() -> None:
    rows = [{}, *({"items": held} for held in (None, {}, {"a": [1]}, "[1, 2]", 7, True))]
    assert costs("size(items)", *rows) == [None] * 7


def test_an_empty_list_costs_1_like_what_is_no_list() -> None:
    result = Parser(settings("size(items)")).parse(
        [b'{"k":"a","t":1,"items":[]}', b'{"k":"a","t":1}', b'{"k":"a","t":1,"items":[0,0]}']
    )
    assert result.costs is not None
    assert weighed(result.costs).costs.tolist() == [1, 1, 2]


def test_a_size_stands_in_larger_expressions() -> None:
    rows = [{"items": [1, 2], "text": "x" * 250}, {"items": [], "text": ""}, {"text": "xx"}]
    assert costs("size(items) * 3 + length(text) / 100", *rows) == [8.5, 0, None]
    assert costs("coalesce(size(items), 5) + length(text)", *rows) == [252, 0, 7]
    assert costs("CASE WHEN SIZE(items) > 1 THEN 9 ELSE 2 END", *rows) == [9, 2, 2]
    assert costs("size(items) * size(items) * size(items)", *rows) == [8, 0, None]


def test_a_list_is_named_by_its_path() -> None:
    rows = [{"order": {"items": [1, 2]}, "a.b": [1]}, {"order": [1]}, {"order": None}]
    assert costs("size(order.items)", *rows) == [2, None, None]
    assert costs('size("a.b")', *rows) == [1, None, None]


def test_a_list_may_have_more_elements_than_explode_takes_apart() -> None:
    assert costs("size(items)", {"items": [0] * 100_001}) == [100_001]


def test_a_list_that_a_record_holds_twice_has_no_size_and_rejects_nothing() -> None:
    assert costs("size(items)", b'{"k":"a","t":1,"items":[1],"items":[1,2]}', {"items": [1]}) == [None, 1]


def test_a_list_in_an_object_of_which_the_query_reads_another_field_is_counted() -> None:
    assert costs("size(order.items)", {"order": {"who": "a", "items": [1, 2]}}, key="order.who") == [2]


def test_a_list_around_what_the_query_reads_is_no_list_there() -> None:
    rows = [{"order": {"who": "a"}}, {"order": [1, 2]}]
    assert costs("size(order)", *rows, key="order.who") == [None], (
        "the query rejects the second record itself"
    )


SPECIAL = [
    "[",
    "]",
    "{",
    "}",
    ",",
    '"',
    "\\",
    '\\"',
    '"]',
    '","',
    "\\\\",
    "\n",
    "é",
    "\U0001f600",
    "\u2028",
    "",
]
STRINGS = st.lists(st.sampled_from([*SPECIAL, "a"]), max_size=5).map("".join)
SIMPLE = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False,
    allow_infinity=False), STRINGS
)  # fmt: skip
NESTED = st.recursive(
    SIMPLE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=12,
)
LISTS = st.lists(NESTED, max_size=6)
DUMPS: list[Callable[[Any], str]] = [
    json.dumps,
    lambda held: json.dumps(held, separators=(",", ":")),
    lambda held: json.dumps(held, ensure_ascii=False, indent=1),
    lambda held: json.dumps(held, separators=(" ,\t", " :\r")),
]


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """A record with `items` and `user.items`, of any type, absent, or twice."""
    dumped = draw(st.sampled_from(DUMPS))
    fields = [('"k"', '"a"'), ('"t"', "1")]
    for name in draw(st.sampled_from([[], ["items"], ["items"], ["items"], ["items", "items"]])):
        # The name of a field may have escapes too.
        written = draw(st.sampled_from([f'"{name}"', '"it\\u0065ms"']))
        fields.append((written, dumped(draw(LISTS | NESTED))))
    fields.append(('"text"', dumped(draw(STRINGS))))
    user = draw(
        st.dictionaries(st.sampled_from(["items", "other", "itemss"]), LISTS | NESTED, max_size=3) | NESTED
    )
    fields.append(('"user"', dumped(user)))
    fields = draw(st.permutations(fields))
    blank = draw(st.sampled_from(["", " ", "\t"]))
    return ("{" + ",".join(f"{blank}{name}{blank}:{held}{blank}" for name, held in fields) + "}").encode()


def size_by_hand(held: Any) -> int | None:
    return len(held) if isinstance(held, list) else None


def twice(record: bytes) -> bool:
    pairs = json.loads(record, object_pairs_hook=list)
    names = [name for name, _ in pairs]
    return len(set(names)) < len(names)


def of_items(record: bytes) -> float | None:
    return None if twice(record) else size_by_hand(json.loads(record).get("items"))


def of_items_and_text(record: bytes) -> float | None:
    size = of_items(record)
    return None if size is None else size * 3 + len(json.loads(record)["text"]) / 100


def of_user_items(record: bytes) -> float | None:
    user = json.loads(record)["user"]
    return size_by_hand(user.get("items")) if isinstance(user, dict) else None


@examples(150)
@given(
    some=st.lists(st.one_of(records(), records(), st.sampled_from([b"{", b"",
    b'{"k":"a","t":1,"items":[1,']))),
    cuts=st.lists(st.integers(0, 10), max_size=3),
    of=st.sampled_from(
        [
            ("size(items)", of_items),
            ("size(items) * 3 + length(text) / 100", of_items_and_text),
            ("size(user.items)", of_user_items),
        ]
    ),
)  # fmt: skip
def test_sizes_of_random_json_are_those_of_json_loads_however_blocks_are_cut(
    some: list[bytes], cuts: list[int], of: tuple[str, Callable[[bytes], float | None]]
) -> None:
    cost, by_hand = of
    one = settings(cost)
    parser, plain = Parser(one), Parser(one.without_cost()).parse(some)
    whole = parser.parse(some)
    assert dict(whole.bad) == dict(plain.bad)
    assert whole.keys.equals(plain.keys)
    assert numbers(whole.costs) == [
        by_hand(record) for row, record in enumerate(some) if row not in whole.bad
    ]
    bounds = sorted({0, len(some), *(cut for cut in cuts if cut < len(some))})
    pieces = taken_apart(whole, np.diff(bounds).tolist()) if some else []
    for cut, (begin, end) in zip(pieces, pairwise(bounds), strict=True):
        assert numbers(cut.costs) == numbers(parser.parse(some[begin:end]).costs)


# ---- lists of elements, and beside them


def test_what_explode_takes_apart_has_one_size_for_all_of_its_elements() -> None:
    rows = [{"items": [1, 2, 3]}, {"items": []}, {"items": [{}]}]
    assert costs("size(items)", *rows, **ITEMS) == [3, 3, 3, 1]
    weights = [{"items": [{"w": 5}, {"w": 7}]}, {"items": [{"w": 2}]}]
    assert costs("size(items) * items.w", *weights, **ITEMS) == [10, 14, 2]
    assert costs("size(items) + items", *rows[:2], **ITEMS) == [4, 5, 6]
    assert costs("size(items)", {"items": [1, 2]}, key="items", types={"items": "int64"}, **ITEMS) == [2, 2]


@pytest.mark.parametrize("aggregates", [{"n": "count"}, {"s": "sum(items.w)"}])
def test_a_list_within_an_element_is_counted_for_each_element(aggregates: dict[str, str]) -> None:
    rows = [
        {"wide": [1], "items": [{"w": 2, "parts": [1, "]"]}, {"w": 3, "parts": []}, {"w": 4}, {"parts": 7}]},
        {"items": [{"w": 1, "parts": [[1, 2]]}]},
    ]
    query = ITEMS | {"aggregates": aggregates}
    assert costs("size(items.parts)", *rows, **query) == [2, 0, None, None, 1]
    assert costs("size(items.parts) * 10 + size(items)", *rows, **query) == [24, 4, None, None, 11]
    assert costs("size(items.parts) + size(wide)", *rows, **query) == [3, 1, None, None, None]


def test_a_list_of_the_record_beside_what_is_taken_apart_is_counted_once_a_record() -> None:
    rows = [{"wide": [1, 2], "items": [{"w": 2}, {"w": 3}]}, {"items": [{"w": 1}]}]
    assert costs("size(wide)", *rows, **ITEMS) == [2, 2, None]
    assert costs("size(wide) * items.w", *rows, **ITEMS) == [4, 6, None]


ELEMENTS = st.lists(
    st.fixed_dictionaries({}, optional={"parts": LISTS | NESTED, "w": st.integers(0, 9), "other": NESTED}),
    max_size=4
)  # fmt: skip


@examples(80)
@given(
    rows=st.lists(st.fixed_dictionaries({"items": ELEMENTS}, optional={"wide": LISTS | NESTED}), max_size=8),
    dumped=st.sampled_from(DUMPS),
)
def test_sizes_of_elements_are_those_of_json_loads(
    rows: list[dict[str, Any]], dumped: Callable[[Any], str]
) -> None:
    some = [dumped({"k": "a", "t": 1} | one).encode() for one in rows]
    for cost, by_hand in (
        ("size(items)", lambda one, element: len(one["items"])),
        ("size(items.parts)", lambda one, element: size_by_hand(element.get("parts"))),
        ("size(wide)", lambda one, element: size_by_hand(one.get("wide"))),
    ):
        result = Parser(settings(cost, **ITEMS)).parse(some)
        assert not result.bad
        assert numbers(result.costs) == [by_hand(one, element) for one in rows for element in one["items"]]


# ---- parts of texts


def test_parts_of_texts_are_counted() -> None:
    rows = [{"tags": "a;b c;"}, {"tags": ""}, {}, {"tags": [1, 2]}]
    assert costs("size(split(tags, ';'))", *rows) == [3, 1, None, None]
    assert costs("size(words(tags))", *rows) == [2, 0, None, None]
    assert costs("size(split(tags, ''';')) + size(words(tags))", {"tags": "a';b c"}) == [4]


def test_csv_and_text_have_sizes_of_texts() -> None:
    result = Parser(settings("size(split(tags, ';'))", form=CSV)).parse(
        [b"a,1,x;y", b"b,2,", b'c,3,"x;""y;"']
    )
    assert numbers(result.costs) == [2, 1, 3]
    one = settings("size(words(value))", form=TEXT, **OF_KAFKA)
    result = Parser(one).parse(
        [b" two  words ", None, b"\xff", b""], keys=[b"a"] * 4, timestamps=[1, 2, 3, 4]
    )
    assert not result.bad
    assert numbers(result.costs) == [2, None, None, 0]


_PARTS = st.none() | st.text(st.sampled_from("ab;ü\u00a0\x1c\x85" + BLANKS), max_size=12)


@given(st.lists(_PARTS, max_size=6), st.integers(0, 6), st.sampled_from([";", "a", "aa", "ü;", ";;"]))
def test_a_text_has_as_many_parts_as_python_finds(
    texts: list[str | None], start: int, separator: str
) -> None:
    """Also the texts of an array that begins within its buffers."""
    column, rest = pa.array(texts, pa.string())[start:], texts[start:]
    words = [None if text is None else len([w for w in re.split(f"[{BLANKS}]+", text) if w]) for text in rest]
    assert sizes_of_texts(column, Explosion("x", "words")).to_pylist() == words
    parts = [None if text is None else len(text.split(separator)) for text in rest]
    assert sizes_of_texts(column, Explosion("x", "split", separator)).to_pylist() == parts


def test_avro_has_sizes_of_texts() -> None:
    schema = record_of(("k", "string"), ("t", "long"), ("tags", "string"))
    one = settings("size(words(tags))", form={"format": "avro", "registry": URL})
    parser = Parser(one, schemas=Schemas(Kept("avro", json.dumps(schema))))
    assert numbers(parser.parse([avro(schema, {"k": "a", "t": 1, "tags": "x y z"}, 1)]).costs) == [3]


def test_columns_that_the_query_reads_or_derives_are_counted_too() -> None:
    rows = [{"k": "a b", "note": "X;Y;Z"}, {"k": "a", "note": "X"}]
    assert costs("size(words(k))", *rows) == [2, 1]
    derived = {"columns": {"small": "replace(note, ';', ' ')"}, "key": "small"}
    assert costs("size(words(small)) * 10 + size(split(note, ';'))", *rows, **derived) == [33, 11]


def test_what_split_takes_apart_has_one_size_for_all_parts_and_its_parts_have_their_own() -> None:
    rows = [{"tags": "a b;c;"}, {"tags": "d"}]
    assert costs("size(split(tags, ';'))", *rows, **TAGS) == [3, 3, 3, 1]
    assert costs("size(words(tags))", *rows, **TAGS) == [2, 1, 0, 1]
    assert costs("size(split(tags, ';')) * 10 + size(words(tags))", *rows, key="tags", **TAGS) == [
        32,
        31,
        30,
        11,
    ]


def test_texts_of_elements_and_derived_ones_are_counted_for_each_element() -> None:
    rows = [{"note": "n m", "items": [{"tags": "a;b"}, {"tags": "c"}, {}]}]
    assert costs("size(split(items.tags, ';'))", *rows, **ITEMS) == [2, 1, None]
    derived = ITEMS | {"columns": {"whole": "items.tags || ';d'", "of": "note || ' o'"}}
    derived |= {"key": ["whole", "of"], "where": "whole IS NOT NULL"}
    assert costs("size(split(whole, ';')) + size(words(of))", *rows, **derived) == [6, 5]


def test_a_text_of_the_record_that_is_only_counted_may_stand_beside_the_elements() -> None:
    rows = [{"note": "a b c", "items": [{"w": 2}, {"w": 3}]}]
    assert costs("size(words(note)) * items.w", *rows, **ITEMS) == [6, 9]
    with pytest.raises(ValidationError, match="the text 'note' of the record beside"):
        settings("size(words(note)) * items.w + length(note)", **ITEMS)


def test_a_text_that_is_only_counted_is_not_repeated_for_each_element() -> None:
    # Repeated, it would have 3 GB, more than a column of texts holds.
    record = {"note": "a " * 50_000, "items": [{"w": 2}] * 30_000}
    assert set(costs("size(words(note)) * items.w", record, **ITEMS)) == {100_000}


@examples(80)
@given(
    texts=st.lists(st.text("ab; \t\x0b\x0c\r\n\x85\u00a0é", max_size=12), max_size=8),
    counted=st.sampled_from(
        ["split(tags, ';')", "split(tags, 'a')", "split(tags, ';;')", "split(tags, 'aa')", "words(tags)"]
    ),
)
def test_a_text_has_as_many_parts_as_explode_makes_tuples_of_it(texts: list[str], counted: str) -> None:
    some = [json.dumps({"k": "a", "t": 1, "tags": one}).encode() for one in texts]
    tuples = Parser(settings(None, explode=counted)).parse(some).counts
    assert tuples is not None
    assert numbers(Parser(settings(f"size({counted})")).parse(some).costs) == tuples.tolist()


# ---- nothing else changes


HELD: st.SearchStrategy[Any] = st.one_of(NESTED, LISTS, st.just("x y;z"), st.just(2**70), st.just("\ud800"))
HOSTILE = st.lists(
    st.fixed_dictionaries(
        {"k": st.just("a") | HELD, "t": st.integers(0, 9) | HELD},
        optional={"v": HELD, "w": HELD, "items": HELD | ELEMENTS | st.lists(HELD, max_size=3)},
    )
    .map(json.dumps)
    .map(str.encode)
    | st.sampled_from([b"{", b"", b'{"k":"a","t":1,"w":[1],"w":[2]}',
    b'{"k":"a","t":1,"items":[{"w":[1],"w":1}]}'])
    | st.none(),
    max_size=12,
)  # fmt: skip


@examples(100)
@given(
    some=HOSTILE,
    cost=st.sampled_from(["size(w)", "size(w) + v", "size(words(w))", "size(w.a)", "size(items)",
    "size(split(w, ';'))"]),
    exploded=st.booleans(),
    sums=st.booleans(),
)  # fmt: skip
def test_a_size_changes_nothing_else_that_is_parsed(
    some: Sequence[bytes | None], cost: str, exploded: bool, sums: bool
) -> None:
    query: dict[str, Any] = (ITEMS if exploded else {}) | ({"aggregates": {"s": "sum(v)"}} if sums else {})
    inner = re.sub(r"\bw\b", "items.w", cost) if exploded else cost
    for one in (settings(cost, **query), settings(inner, **query)):
        weighing, plain = Parser(one).parse(some), Parser(one.without_cost()).parse(some)
        assert dict(weighing.bad) == dict(plain.bad)
        assert weighing.rows.tolist() == plain.rows.tolist()
        assert weighing.tuple_times.tolist() == plain.tuple_times.tolist()
        assert weighing.keys.equals(plain.keys)
        assert weighing.values.equals(plain.values)
        assert weighing.costs is not None
        assert len(weighing.costs) == len(weighing.keys)


# ---- settings


@pytest.mark.parametrize(
    ("cost", "query", "form", "words"),
    [
        ("size()", {}, {}, "counts nothing: write size(items) of a list"),
        ("size(a, b)", {}, {}, "counts nothing: write size(items) of a list"),
        ("size(a + 1)", {}, {}, "counts nothing: write size(items) of a list"),
        ("size(a[1])", {}, {}, "counts nothing: write size(items) of a list"),
        ("size(*)", {}, {}, "counts nothing: write size(items) of a list"),
        ("size('x')", {}, {}, "size(split(tags, ';')) or size(words(text)) of a text"),
        ("size(size(a))", {}, {}, "counts nothing: write"),
        ("size(lower(a))", {}, {}, "counts nothing: write"),
        ("size(split(a, b))", {}, {}, "counts nothing: write"),
        ("size(split(a, ''))", {}, {}, "counts nothing: write"),
        ("size(split(a, ';', 2))", {}, {}, "counts nothing: write"),
        ("size(words(a, b))", {}, {}, "counts nothing: write"),
        ("size(a) OVER ()", {}, {}, "is not in the language"),
        ("size(items) > 3", {}, {}, "is true or false, but a cost is a number"),
        ("split(a, ';')", {}, {}, "is not in the language but in size(...)"),
        ("words(a)", {}, {}, "is not in the language but in size(...)"),
        ("cardinality(a)", {}, {}, "(did you mean size?)"),
        ("array_length(a)", {}, {}, "(did you mean size?)"),
        ("sizes(a)", {}, {}, "(did you mean size?)"),
        ("items + size(items)", {}, {}, "counts the list 'items', but it also reads this column as float64"),
        ("length(a) + size(a)", {}, {},
        "write size(split(a, ';')) or size(words(a)) to count the parts of a text"),
        ("size(words(a)) + size(a)", {}, {}, "counts the list 'a', but it also reads this column as string"),
        ("size(k)", {}, {}, "counts the list 'k', but the query reads this column as string"),
        ("size(words(n))", {"types": {"n": "int64"}, "aggregates": {"s": "sum(n)"}}, {},
        "the query reads this column as"),
        ("size(items.w)", ITEMS | {"aggregates": {"s": "sum(items.w)"}}, {},
        "the query reads this column as float64"),
        ("size(tags)", TAGS, {}, "makes texts"),
        ("size(a) + a.b", {}, {}, "column 'a' cannot be a value and also the object"),
        ("size(tags)", {}, CSV,
        "which only JSON can hold here, but input.format is 'csv': write size(split(tags, ';'))"),
        ("size(value)", OF_KAFKA, TEXT, "which only JSON can hold here, but input.format is 'text'"),
        ("size(items)", {}, {"format": "avro", "registry": URL},
        "only JSON can hold here, but input.format is 'avro'"),
        ("size(items)", {}, {"format": "protobuf", "registry": URL}, "but input.format is 'protobuf'"),
        ("size(words(tag))", {}, CSV, "lacks; did you mean 'tags'?"),
        ("size(words(tags))", OF_KAFKA, TEXT, "the one column 'value'"),
    ],
)  # fmt: skip
def test_a_size_that_cannot_be_is_refused_in_words(
    cost: str, query: dict[str, Any], form: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        settings(cost, form=form, **query)
    assert words in refused.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    "query", [{"columns": {"n": "size(items)"}, "aggregates": {"s": "sum(n)"}}, {"where": "size(items) > 3"}]
)
def test_only_the_cost_counts(query: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"is not in the language, except in partitioner\.cost"):
        settings(None, **query)


def test_a_size_is_no_part_of_the_querys_identity_nor_of_what_it_reads() -> None:
    counting = settings("size(items) + size(words(text))")
    assert counting.fingerprint == settings(None).fingerprint
    assert counting.needed_columns == settings(None).needed_columns
    assert counting.cost is not None
    assert counting.cost.read == ["items", "text"]
