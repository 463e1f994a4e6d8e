"""Records of many elements beside long texts: what reads the record alone is computed once, the rest is
bounded.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.limits import REPEATED_BYTES
from evenflow.settings import Settings
from partitioner_service.kafka.block_sizes import GROWN_BYTES, Widths, cut
from partitioner_service.reading.cells.payloads import Payloads
from partitioner_service.reading.parse import Parser
from tests.examples import examples

SKUS = {"key": "items.sku", "time": "time", "window": "10s", "explode": "items"}


def settings_of(**query: Any) -> Settings:
    return Settings(query={**SKUS, **query}, input={"partitions": 1})


def record(elements: int, **fields: Any) -> bytes:
    return json.dumps({"time": 1, "items": [{"sku": "a", "n": "b"}] * elements, **fields}).encode()


def test_a_condition_on_the_record_alone_is_not_repeated_for_each_element() -> None:
    parser = Parser(settings_of(where="note <> 'test'"))
    parsed = parser.parse([record(1, note="n"), record(50_000, note="k" * 50_000), record(3, note="test")])
    assert (len(parsed.bad), parsed.counts is not None and parsed.counts.tolist()) == (0, [1, 50_000, 0])


def test_a_derived_column_of_the_record_alone_is_computed_once() -> None:
    columns = {"short": "left(upper(note), 3)", "mine": "short || items.n"}
    parser = Parser(
        settings_of(
            columns=columns, aggregates={"m": "max(mine)"}, types={"items.n": "string", "note": "string"}
        )
    )
    parsed = parser.parse([record(40_000, note="k" * 100_000), record(0, note="k")])
    assert parsed.values["mine"].unique().to_pylist() == ["KKKb"]
    assert parsed.counts is not None
    assert parsed.counts.tolist() == [40_000, 0]


@pytest.mark.parametrize(
    "query",
    [
        {"aggregates": {"m": "max(note)"}, "types": {"note": "string"}},
        {"key": "note"},
        {"key": ["note", "items.sku"]},
        {"where": "note <> items.n", "types": {"note": "string", "items.n": "string"}},
        {"columns": {"long": "note || note"}, "aggregates": {"m": "max(long)"}, "types": {"note": "string"}},
    ],
)
def test_a_record_whose_elements_would_repeat_too_much_is_rejected_as_too_large(
    query: dict[str, Any],
) -> None:
    parser = Parser(settings_of(**query))
    parsed = parser.parse([record(2, note="n"), record(50_000, note="k" * 50_000), record(1, note="m")])
    assert parsed.rows.tolist() == [0, 2]
    assert parsed.bad.too_large.tolist() == [True]
    assert "33,554,432 is the most" in parsed.bad[1]


def test_a_raw_key_is_repeated_too() -> None:
    parser = Parser(settings_of(key="@key"))
    values = [record(50_000), record(2)]
    parsed = parser.parse(values, keys=[b"k" * 50_000, b"k"])
    assert (parsed.rows.tolist(), parsed.bad.too_large.tolist()) == ([1], [True])


def test_an_element_that_cannot_be_read_counts_before_the_size_of_its_record() -> None:
    parser = Parser(settings_of(key="note", aggregates={"m": "max(items.n)"}, types={"items.n": "string"}))
    bad = json.dumps({"time": 1, "note": "k" * 50_000, "items": [*[{"n": "b"}] * 50_000, {"n": 5}]}).encode()
    parsed = parser.parse([bad])
    assert parsed.bad.too_large.tolist() == [False]
    assert "(element 50001)" in parsed.bad[0]


TEXTS = st.text("ab\u00e9", max_size=6)


@examples(60)
@given(
    records=st.lists(
        st.fixed_dictionaries(
            {
                "time": st.just(1),
                "note": TEXTS,
                "items": st.lists(st.fixed_dictionaries({"sku": TEXTS, "n": TEXTS}), max_size=4),
            }
        ),
        max_size=6,
    )
)
def test_conditions_and_derived_columns_mean_the_same_however_they_are_taken_apart(
    records: list[dict[str, Any]],
) -> None:
    """Against plain Python: a part that reads the record alone, one that reads elements, one that reads
    both.
    """
    columns = {"base": "upper(note) || 'x'", "both": "base || items.n"}
    settings = settings_of(
        columns=columns,
        where="note <> 'a' AND (items.n <> 'b' AND both <> 'BXb')",
        aggregates={"m": "max(both)", "o": "max(base)"},
        types={"note": "string", "items.n": "string"},
    )
    parsed = Parser(settings).parse([json.dumps(one).encode() for one in records])
    result = list(
        zip(
            parsed.keys.to_pylist(),
            *(parsed.values[name].to_pylist() for name in ("both", "base")),
            strict=True,
        )
    )
    expected = [
        (item["sku"].encode(), one["note"].upper() + "x" + item["n"], one["note"].upper() + "x")
        for one in records
        for item in one["items"]
        if one["note"] != "a" and item["n"] != "b"
    ]
    assert result == expected


@given(st.lists(st.integers(0, 40_000), min_size=1, max_size=30), st.booleans())
def test_blocks_are_cut_by_what_their_elements_can_repeat(sizes: list[int], repeats: bool) -> None:
    widths = Widths(exploded=True, repeats=repeats)
    blocks = [sizes[first:stop] for first, stop in cut(np.array(sizes, np.int64), widths=widths)]
    assert [one for block in blocks for one in block] == sizes
    for block in blocks:
        # Half of a record can be elements of a byte each, and half of it the text that each of them repeats.
        worst = sum(min((one // 2) ** 2, REPEATED_BYTES) for one in block)
        assert len(block) == 1 or not repeats or worst <= GROWN_BYTES


@given(
    st.lists(st.text(' ,\\"ab\t;é\u2003', max_size=30), min_size=1, max_size=5),
    st.sampled_from(["list", "split", "words"]),
    st.booleans(),
)
def test_no_record_has_more_elements_than_its_bytes_say(texts: list[str], way: str, ascii: bool) -> None:
    explode = {"list": "x", "split": "split(x, ';')", "words": "words(x)"}[way]
    settings = Settings(
        query={"key": ["k", "x"], "time": "t", "explode": explode},
        input={"partitions": 1},
    )
    rows = [{"k": "a", "t": 1, "x": texts if way == "list" else text} for text in texts]
    values = Payloads.of([json.dumps(row, ensure_ascii=ascii).encode() for row in rows])
    parsed = Parser(settings).parse(values)
    most = Widths.of(settings).elements_of(values)
    assert most is not None
    assert parsed.counts is not None
    assert (parsed.counts <= most[parsed.rows]).all()


@pytest.mark.parametrize(
    ("query", "factor"),
    [
        ({}, 1),
        ({"key": ["a", "b"]}, 12),
        ({"key": "long", "columns": {"long": "a || upper(b) || 'xyz'"}}, 4),
        ({"key": "long", "columns": {"one": "replace(a, 'x', 'yyyyy')", "long": "one || one"}}, 10),
        ({"key": ["a", "up"], "columns": {"up": "upper(a)"}}, 24),
    ],
)
def test_how_much_a_column_can_grow_is_known_from_the_settings(query: dict[str, Any], factor: int) -> None:
    settings = Settings(query={"key": "a", "time": "time", **query}, input={"partitions": 1})
    assert Widths.of(settings).growth.factor == factor


def test_a_derived_text_that_could_become_too_long_for_all_elements_is_refused() -> None:
    with pytest.raises(ValueError, match=r"could make a text 27 times as long .* With explode, 20 times"):
        settings_of(
            columns={"long": "upper(upper(upper(items.n)))"},
            aggregates={"m": "max(long)"},
            types={"items.n": "string"},
        )


def test_derived_texts_of_any_length_are_unreadable_and_no_error() -> None:
    long = " || ".join(["s"] * 30)
    settings = Settings(
        query={
            "key": "k",
            "time": "time",
            "columns": {"long": long},
            "aggregates": {"m": "max(long)"},
            "types": {"s": "string"},
        },
        input={"partitions": 1},
    )
    values = [json.dumps({"k": "a", "time": 1, "s": "x" * size}).encode() for size in (10, 3_000_000)]
    parsed = Parser(settings).parse(values)
    assert parsed.rows.tolist() == [0]
    assert "derived column 'long' has a value that text cannot hold" in parsed.bad[1]
    assert pa.types.is_string(parsed.values["long"].type)
