"""What a look says of Avro and Protobuf: the columns of their schemas, as those of JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.partitioner_service.reading.registered_records import (
    Kept,
    avro,
    descriptor,
    message_of,
    prefix,
    text_of,
)
from tests.unit.workbench.assist.sample_check.samples import NOW, sample, settings
from workbench.assist.sample_check.report import SampleReport, check_sample
from workbench.assist.sample_check.shape import shape_of

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {
            "name": "user",
            "type": {"type": "record", "name": "User", "fields": [{"name": "id", "type": "string"}]},
        },
        {"name": "amount", "type": ["null", "double"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
FILE = descriptor(("user", "string"), ("amount", "double"), ("at", "int64"))


def orders() -> list[bytes]:
    return [
        avro(
            ORDER,
            {
                "user": {"id": f"u{n % 3}"},
                "amount": None if n % 4 == 0 else n / 8,
                "at": 1000 * (NOW - 1000 + n),
                "day": 20_000,
                "tags": ["a"],
            },
        )
        for n in range(40)
    ]


def looked(form: str, kept: Kept, values: list[bytes], **query: Any) -> SampleReport:
    made = settings(query=query, input={"format": form, "registry": {"url": "http://127.0.0.1:1"}})
    return check_sample(made, sample(values), now=NOW, registry=kept)


def kept_avro() -> Kept:
    return Kept("avro", json.dumps(ORDER))


def test_the_columns_of_avro_are_those_of_its_schema() -> None:
    result = looked("avro", kept_avro(), orders(), key="user.id")
    assert (result.problems, result.proposal) == ([], {})
    kinds = {name: dict(column.kinds) for name, column in result.facts.shape.columns.items()}
    assert kinds == {
        "user.id": {"text": 40},
        "amount": {"null": 10, "decimal": 30},
        "at": {"whole number": 40},
        "day": {"text": 40},
        "tags": {"nested": 40},
    }


@pytest.mark.parametrize(
    ("query", "problem", "mended"),
    [
        (
            {"key": "user.id", "aggregates": {"s": "sum(amuont)"}},
            "(sum(amuont))",
            {"aggregates": {"s": "sum(amount)"}},
        ),
        ({"key": "id"}, "has a column 'id' (the key)", {"key": "user.id"}),
        ({"key": "user.id", "aggregates": {"s": "sum(day)"}}, "sum(day) needs a number", {}),
    ],
)
def test_what_cannot_be_meant_of_avro_is_a_problem(
    query: dict[str, Any], problem: str, mended: dict[str, Any]
) -> None:
    result = looked("avro", kept_avro(), orders(), **query)
    assert any(problem in one.what for one in result.problems), result.problems
    assert result.proposal.get("query", {}) == mended


def test_the_columns_of_protobuf_are_those_of_its_message() -> None:
    message = message_of(FILE)
    values = [
        prefix(1) + b"\0" + message(user=f"u{n}", amount=n / 8, at=NOW - 1000 + n).SerializeToString()
        for n in range(20)
    ]
    result = looked("protobuf", Kept("protobuf", text_of(FILE)), [*values, b"x", b"\0\0\0\0\x09a"])
    assert result.problems == []
    assert result.facts.rejected == 2
    assert set(result.facts.shape.columns) == {"user", "amount", "at"}
    wrong = looked("protobuf", Kept("protobuf", text_of(FILE)), values, key="usr")
    assert wrong.proposal == {"query": {"key": "user"}}


def test_a_look_ends_in_time_however_long_each_record_takes() -> None:
    made = settings(input={"format": "avro", "registry": {"url": "http://127.0.0.1:1"}})
    now = [0.0]

    def slowly(value: bytes) -> dict[str, Any]:
        now[0] += 4.0
        return {"user": "a"}

    shape = shape_of(made.input, orders(), registered=slowly, clock=lambda: now[0])
    assert (shape.records, now[0]) == (1, 12.0)
