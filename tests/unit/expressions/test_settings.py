"""What is wrong with an expression is said when settings are read, before a topic is touched."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from evenflow.settings import Query, Settings


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"where": "price > "}, "where = 'price > ' is no SQL expression"),
        ({"where": "price + 1"}, "is a floating-point number, but a condition is needed"),
        ({"where": "a > 1; DROP TABLE x"}, "is not one SQL expression"),
        ({"where": "(SELECT 1) = 1"}, "is not in the language"),
        ({"where": "lowr(a) = 'x'"}, "did you mean lower?"),
        ({"where": "a = 'x' + 1"}, "it takes numbers, not text"),
        ({"where": "x = y"},
        "does not tell what column 'x' holds: declare it in types, as in types = { x = \"float64\" }"),
        ({"where": "user.id = x"},
        "'user.id' holds: declare it in types, as in types = { \"user.id\" = \"float64\" }"),
        ({"where": "CAST(key AS BIGINT) > 3"}, "text cannot be cast so"),
        ({"where": "right(a, 2) = 'x'"}, "is not in the language"),
        ({"where": "DATE '2026-13-40' < day"}, "there is no such day"),
        ({"where": "DATE '2026-W05-6' < day"}, "there is no such day"),
        ({"where": "key LIKE other", "types": {"other": "string"}}, "the pattern is a text in quotes"),
        ({"where": "a = NULL"}, "ask for null with IS NULL"),
        ({"where": "paid IS TRUE", "types": {"paid": "bool"}}, "behind IS stands NULL or NOT NULL"),
        ({"where": "a IN ()", "types": {"a": "int64"}}, "name the values between the brackets"),
        ({"where": "replace(key, '', 'x') = 'y'"}, "what is replaced cannot be empty"),
        ({"where": "left(key, 99999999999) = 'y'"}, "from 1 to 1,000,000"),
        ({"where": "substr(key, 0) = 'y'"}, "from 1 to 1,000,000"),
        ({"where": "Key = 'a'"}, "columns 'key' and 'Key' are one to SQL"),
        ({"where": " + ".join(["a"] * 600) + " > 1"}, "parts, more than 500"),
        ({"where": " + ".join(["a"] * 20_000) + " > 1"}, "nested too deeply"),
        ({"where": "(" * 100 + "a" + ")" * 100 + " > 1"}, "nested too deeply"),
        ({"where": "(" * 5_000 + "a" + ")" * 5_000 + " > 1"}, "nested too deeply"),
        ({"columns": {"a": "b + 1", "b": "a + 1"}, "aggregates": {"s": "sum(a)"}},
        "in a circle: a -> b -> a"),
        ({"columns": {"a": "c + 1"}}, "columns defines a, which nothing uses"),
        ({"columns": {"t": "a + 1"}, "time": "t"}, "the event time is a column of the record"),
        ({"columns": {"k": "a + 1"}, "key": "k"}, "key column 'k' cannot be float64"),
        ({"columns": {"s": "key || 'x'"}, "aggregates": {"s": "sum(s)"}},
        "column 's' is a string, but sum needs a number"),
        (
            {"columns": {"a": "n * n * n"}, "types": {"n": "int64"}, "aggregates": {"s": "sum(a)"}},
            "can have more than 38 digits: CAST one of its numbers AS DOUBLE",
        ),
        (
            {"columns": {"a": "p * p"}, "types": {"p": "decimal(7)"}, "aggregates": {"s": "sum(a)"}},
            "columns.a has 14 digits behind the point, more than 12",
        ),
        ({"where": "a > 1", "types": {"b": "int64"}}, "types names b"),
    ],
)  # fmt: skip
def test_a_mistake_is_refused_with_what_to_do(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        Query(**fields)


def test_types_that_are_not_declared_follow_from_the_use() -> None:
    query = Query(
        where="country = 'DE' AND amount > 10 AND paid AND year(day) = 2026 AND n % 2 = 0",
        columns={"revenue": "price * quantity"},
        aggregates={"revenue": "sum(revenue)"},
    )
    assert query.read_as == {
        "key": "string", "time": "int64", "price": "float64", "quantity": "float64", "country": "string",
        "amount": "float64", "paid": "bool", "day": "date", "n": "int64",
    }  # fmt: skip
    assert query.value_columns == {"revenue": "float64"}


def test_a_query_without_expressions_keeps_the_fingerprint_that_it_had() -> None:
    assert {"columns", "where"}.isdisjoint(Query().canonical())
    plain, filtered = (
        Settings(query=fields, input={"partitions": 1}).fingerprint for fields in ({}, {"where": "a > 1"})
    )
    assert plain != filtered
