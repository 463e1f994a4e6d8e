"""Fields within fields: the compiled reader finds what Python finds in the same records."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.settings import Settings
from partitioner_service.reading.parse import Parser
from tests.examples import examples
from tests.unit.workbench.verify.input.test_expressions import by_partitioner, by_verify

PATHS = {
    "key": "user.id",
    "time": "meta.t",
    "sum(order.total)": "order.total",
    "min(order.tax.rate)": "order.tax.rate",
}
NESTED = Settings(
    query={
        "window": 10,
        "key": "user.id",
        "time": "meta.t",
        "where": "user.country IS NULL OR user.country <> 'FR' OR \"a.b\" > 1",
        "aggregates": {"s": "sum(order.total)", "m": "min(order.tax.rate)", "v": "max(v)"},
        "types": {"order.total": "int64", '"a.b"': "int64"},
    },
    input={"partitions": 1},
)
_NAMES = ["user", "id", "meta", "t", "order", "total", "tax", "rate", "v", "country", "a.b", "us\u00e9r"]
_LEAVES = st.sampled_from([None, 1, -7, 2.5, "a", "FR", "", True, [], [{"id": 1}], 10**20])
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4), max_leaves=6
)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """Mostly as the query needs them, with anything put in somewhere, and a field twice now and then."""
    user: Any = {
        "id": draw(st.sampled_from(["a", "b", "ü"])),
        "country": draw(st.sampled_from(["DE", "FR", None])),
    }
    order: Any = {"total": draw(st.integers(-5, 5)), "tax": {"rate": 0.5}, "more": {"user": {"id": 3}}}
    record: Any = {"user": user, "meta": {"t": draw(st.integers(0, 30))}, "order": order, "v": 1.5, "a.b": 2}
    if draw(st.booleans()):
        where = draw(st.sampled_from([record, user, order, order["tax"], record["meta"]]))
        where[draw(st.sampled_from(_NAMES))] = draw(_VALUES)
    text = json.dumps(record, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    if not draw(st.integers(0, 4)):
        text = (
            text.replace('"id"', '"id": "c", "id"', 1)
            if draw(st.booleans())
            else text[:-1] + ', "meta": null}'
        )
    if not draw(st.integers(0, 4)):
        place = draw(st.integers(0, len(text) - 1))
        text = text[:place] + draw(st.sampled_from(["", "}", "{", ",", " ", '"'])) + text[place + 1 :]
    return text.encode()


@examples(25)
@given(st.lists(records(), min_size=1, max_size=8))
@example([b'{"user":{},"meta":{"t":1}}', b'{"user":{"id":"a"},"meta":{"t":1},"user":{"id":"b"}}'])
@example(
    [b'{"user":{"id":"a","x":{"id":"b"}},"meta":{"t":1},"order":null}', b'{"meta":{"t":1},"user":{"id":"a"}}']
)
@example([b'{"user":{"id":"a"},"meta":{"t":1},"order":7}', b'{"user":[{"id":"a"}],"meta":{"t":1}}'])
@example([b'{"user":{"id":"a",},"meta":{"t":1}}', b'{"user":{"id":"a"}},"meta":{"t":1}}'])
@example([b'{"user":{"id":"a"},"meta":{"t":1},"d":' + b"[" * 3000 + b"]" * 3000 + b"}"])
def test_both_readers_find_the_same(values: list[bytes]) -> None:
    result = by_partitioner(NESTED, values)
    assert by_verify(NESTED, values, None) == result
    assert by_verify(NESTED, values, "unreadable") == result


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (b'{"user":3,"meta":{"t":1}}', "a field on the way to column 'user.id' holds no object"),
        (
            b'{"user":{"id":{}},"meta":{"t":1}}',
            "column 'user.id' holds an object or a list where text is needed",
        ),
        (b'{"user":{"id":"a","id":"b"},"meta":{"t":1}}', "column 'user.id' is there twice"),
        (b'{"user":{"id":"a"},"user":null,"meta":{"t":1}}', "column 'user.id' is there twice"),
        (b'{"user":null,"meta":{"t":1}}', "key column 'user.id' is missing or null"),
        (b'{"user":{"id":"a"},"meta":{}}', "time column 'meta.t' is missing or null"),
        (b'{"user":{"id":"a","meta":{"t":1}}', "it ends at byte 33"),
    ],
)
def test_what_is_no_such_field_is_said(record: bytes, why: str) -> None:
    settings = NESTED.model_copy(update={"query": NESTED.query.model_copy(update={"where": None})})
    assert why in Parser(settings).parse([record]).bad[0]
