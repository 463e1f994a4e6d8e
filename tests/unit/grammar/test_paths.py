"""Names of fields within fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evenflow.grammar.paths import check_together, segments, written
from evenflow.settings import Query, Settings

_FIELDS = st.text(st.sampled_from('ab."é '), min_size=1, max_size=4)


@given(st.lists(_FIELDS, min_size=1, max_size=8))
def test_what_is_written_is_read_back(fields: list[str]) -> None:
    assert segments(written(fields)) == tuple(fields)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("id", ("id",)),
        ("user.id", ("user", "id")),
        ('"user.id"', ("user.id",)),
        ('"a.b".c', ("a.b", "c")),
        ('a."b""c"', ("a", 'b"c')),
        ('say "hi"', ('say "hi"',)),
    ],
)
def test_a_name_is_taken_apart_at_its_dots(name: str, fields: tuple[str, ...]) -> None:
    assert segments(name) == fields


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a..b", "a field without a name"),
        (".a", "a field without a name"),
        ("a.", "a field without a name"),
        ('"a', "a quote that does not end"),
        ('"a"b', "behind the quotes stands a dot or nothing"),
        ("a.b.c.d.e.f.g.h.i", "9 fields deep, more than 8"),
    ],
)
def test_a_name_that_is_no_path_is_refused(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        segments(name)
    with pytest.raises(ValidationError, match=why):
        Query(key=name)


def test_there_is_one_way_to_write_a_name() -> None:
    with pytest.raises(ValidationError, match=r"write column '.*' as 'user\.id'"):
        Query(key='"user".id')


def test_a_field_is_a_value_or_holds_others() -> None:
    check_together(["user.id", "user.name", "user2"])
    with pytest.raises(
        ValueError, match=r"'user' cannot be a value and also the object that holds 'user\.id'"
    ):
        check_together(["user", "user.id"])
    with pytest.raises(ValidationError, match="cannot be a value"):
        Settings(query={"key": "user", "where": "user.age > 3"})


def test_csv_and_text_have_no_fields_within_fields() -> None:
    columns = ["user", "user.id", "time"]
    settings = Settings(
        query={"key": "user.id", "where": "user = 'a'"}, input={"format": "csv", "columns": columns}
    )
    assert set(settings.needed_columns) == {"user", "user.id", "time"}


def test_expressions_name_them_too() -> None:
    query = Query(
        key="user.id",
        where='order.price > 3 and a.b.c.d.e.f = 1 and "x.y" is not null',
        types={'"x.y"': "string"},
    )
    assert set(query.read_as) == {"user.id", "time", "order.price", "a.b.c.d.e.f", '"x.y"'}
