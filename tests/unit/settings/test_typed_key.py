"""A key that a person types as results show it is, byte for byte, the key that the parser makes of a
record.
"""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.settings import Settings, load_settings
from evenflow.settings.typed_key import example, key_bytes
from partitioner_service.reading.parse import Parser

VALUES = {
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(),
    "date": st.dates(date(1, 1, 1), date(9999, 12, 31)).map(str),
}


def settings_of(kinds: list[str], **query: Any) -> Settings:
    names = [f"c{number}" for number in range(len(kinds))]
    fields = {"name": "q", "key": names if len(names) > 1 else names[0], "time": "t"}
    return load_settings(
        query=fields | {"types": dict(zip(names, kinds, strict=True))} | query, input={"partitions": 1}
    )


@given(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4), st.data())
def test_the_key_of_any_record_can_be_typed_as_results_show_it(kinds: list[str], data: st.DataObject) -> None:
    settings = settings_of(kinds)
    values = [data.draw(VALUES[kind]) for kind in kinds]
    record = {f"c{number}": value for number, value in enumerate(values)} | {"t": 0}
    parsed = Parser(settings).parse([json.dumps(record).encode()])
    assert not len(parsed.bad)
    key = parsed.keys[0].as_py()
    assert key_bytes(settings.query, key) == key
    if len(kinds) > 1:
        loose = json.dumps(values, indent=1)
        assert key_bytes(settings.query, loose.encode()) == key, "white space and escapes do not matter"


@given(st.binary(max_size=40))
def test_any_bytes_are_a_raw_key(typed: bytes) -> None:
    query = load_settings(query={"name": "q", "key": "@key"}, input={"partitions": 1}).query
    assert key_bytes(query, typed) == typed


@given(
    st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3),
    st.binary(max_size=60) | st.text().map(str.encode),
)
def test_whatever_is_typed_is_a_key_or_refused_with_an_example(kinds: list[str], typed: bytes) -> None:
    query = settings_of(kinds).query
    try:
        made: bytes | str = key_bytes(query, typed)
    except ConfigError as error:
        made = error.hint or ""
    assert isinstance(made, bytes) or example(query) in made


@pytest.mark.parametrize(
    ("kinds", "typed"),
    [
        (["int64"], "1_000"),
        (["int64"], "8.0"),
        (["int64"], str(2**63)),
        (["bool"], "True"),
        (["date"], "2026-02-30"),
        (["string", "int64"], '["DE"]'),
        (["string", "int64"], '["DE","5"]'),
        (["string", "int64"], '["DE",5.0]'),
        (["string", "int64"], '["DE",true]'),
        (["string", "int64"], '["DE",5'),
        (["string", "int64"], "DE"),
        (["string", "int64"], "[" * 100_000),
        (["string", "string"], r'["\ud800","a"]'),
    ],
)
def test_what_is_no_key_of_the_query_is_refused(kinds: list[str], typed: str) -> None:
    with pytest.raises(ConfigError, match="no key of q"):
        key_bytes(settings_of(kinds).query, typed.encode())


@pytest.mark.parametrize(
    "kinds", [["string"], ["int64"], ["bool"], ["date"], ["string", "int64"], ["date", "bool"]]
)
def test_the_example_is_a_key(kinds: list[str]) -> None:
    query = settings_of(kinds).query
    assert key_bytes(query, example(query).encode()) == example(query).encode()


def test_a_key_that_no_record_may_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_key_bytes"):
        key_bytes(settings_of(["string"], max_key_bytes=10).query, b"x" * 11)
