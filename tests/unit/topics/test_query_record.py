"""The record of how a query began says with which limits and columns of any value it began."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from evenflow.settings.beginning import (
    IDENTITY_KEY,
    Beginning,
    as_begun,
    as_recorded,
    encode_beginning,
    parse_beginning,
)
from evenflow.settings.views import queries
from topics.query import record as query_record
from topics.query.record import refuse_changed

SETTINGS = Settings(query={"name": "q", "where": "v > 1"}, input={"partitions": 1})
BEGINNING = Beginning(identity=SETTINGS.identity(), input_id="in", begin={0: 5}, began_at=7)


@pytest.mark.parametrize("version", [1, 2, 3, 4, 6])
def test_a_record_of_another_version_is_refused(version: int) -> None:
    fields = json.loads(encode_beginning(BEGINNING)) | {"v": version}
    with pytest.raises(IncompatibleStateError, match=f"has version {version}, this evenflow reads 5"):
        parse_beginning(json.dumps(fields).encode(), where="q.snapshots")


@pytest.mark.parametrize("fields", [{}, {"filter_first": True}, {"filter_first": True, "key_columns": True}])
def test_a_query_with_a_key_of_parts_that_began_by_earlier_rules_is_refused_by_its_version(
    fields: dict[str, bool],
) -> None:
    """Without `key_columns` such a record meant one column `key` in the results."""
    identity = with_query(key=("a", "b")).identity()
    written = json.loads(encode_beginning(replace(BEGINNING, identity=identity)))
    del written["any_columns"]
    with pytest.raises(IncompatibleStateError, match="has version 3"):
        parse_beginning(json.dumps(written | fields | {"v": 3}).encode(), where="q.snapshots")


def test_a_record_has_these_fields_whatever_the_query_counts() -> None:
    """Another field, or a field with another meaning, is another version (docs/deploy.md)."""
    assert [
        json.loads(encode_beginning(beginning)) | {"identity": None}
        for beginning in (BEGINNING, replace(BEGINNING, any_columns=("user.id",)))
    ] == [
        {"v": 5, "any_columns": columns, "identity": None, "input_id": "in", "begin": [5], "began_at": 7}
        for columns in ([], ["user.id"])
    ]


COUNTED = {"aggregates": {"d": "count_distinct(user.id)"}}


def test_the_columns_of_any_value_are_read_back() -> None:
    written = encode_beginning(replace(BEGINNING, any_columns=("user.id",)))
    assert parse_beginning(written, where="q.snapshots").any_columns == ("user.id",)
    assert parse_beginning(encode_beginning(BEGINNING), where="q.snapshots").any_columns == ()


@pytest.mark.parametrize("of_view", [True, False])
def test_a_view_that_needs_a_number_is_refused_where_any_value_is_counted(of_view: bool) -> None:
    began = with_query(**COUNTED)
    beginning = replace(BEGINNING, identity=began.identity(), any_columns=("user.id",))
    changed = with_query(**COUNTED, views={"v": {"aggregates": {"s": "sum(user.id)"}}})
    assert changed.query.value_columns == {"user.id": "float64"}, "a query that begins now may have both"
    if of_view:
        (changed,) = queries(changed)[1:]
    with pytest.raises(IncompatibleStateError, match=r"column user\.id: .* any kind.* -> float64"):
        refuse_changed(changed, beginning=beginning)


def test_a_query_that_began_with_a_number_keeps_it_when_the_view_that_needed_it_is_gone() -> None:
    began = with_query(**COUNTED, views={"v": {"aggregates": {"s": "sum(user.id)"}}})
    beginning = replace(BEGINNING, identity=began.identity(), any_columns=tuple(began.query.any_columns))
    settings = with_query(**COUNTED)
    refuse_changed(settings, beginning=beginning)
    assert as_begun(settings, beginning).query.value_columns == {"user.id": "float64"}


def with_query(**query: object) -> Settings:
    return Settings(query={"name": "q", "where": "v > 1", **query}, input={"partitions": 1})


@pytest.mark.parametrize(("before", "now"), [(None, "1m"), ("1m", None), ("1m", "90s"), ("90s", "1m")])
def test_a_query_goes_on_with_another_max_jump_and_stays_the_same_query(
    before: str | None, now: str | None
) -> None:
    began = with_query(max_jump=before, views={"v": {"aggregates": {"n": "count"}}})
    changed = with_query(max_jump=now, views={"v": {"aggregates": {"n": "count"}}})
    beginning = replace(BEGINNING, identity=began.identity())
    refuse_changed(changed, beginning=beginning)
    settings = as_begun(changed, parse_beginning(encode_beginning(beginning), where="q.snapshots"))
    assert settings.query.max_jump == changed.query.max_jump
    assert settings.query.first_max_jump == began.query.max_jump
    assert settings.identity() == began.identity(), "instances that are added or renamed keep it as well"
    assert [one.fingerprint for one in queries(settings)] == [one.fingerprint for one in queries(began)]


def test_a_max_jump_beside_another_change_is_not_named_as_a_change() -> None:
    beginning = replace(BEGINNING, identity=with_query(max_jump="1m").identity())
    with pytest.raises(IncompatibleStateError, match="allowed_lateness") as refused:
        refuse_changed(with_query(allowed_lateness="1s"), beginning=beginning)
    assert "max_jump" not in str(refused.value)


def test_a_query_goes_on_with_a_larger_out_of_orderness_and_stays_the_same_query() -> None:
    began, grown = with_query(out_of_orderness="1s"), with_query(out_of_orderness="90s")
    beginning = replace(BEGINNING, identity=began.identity())
    refuse_changed(grown, beginning=beginning)
    settings = as_begun(grown, parse_beginning(encode_beginning(beginning), where="q.snapshots"))
    assert (settings.query.out_of_orderness, settings.query.first_out_of_orderness) == (90_000, 1_000)
    assert settings.identity() == began.identity()


def test_an_out_of_orderness_that_is_smaller_than_that_of_the_beginning_is_refused_in_words() -> None:
    beginning = replace(BEGINNING, identity=with_query(out_of_orderness="2s").identity())
    with pytest.raises(IncompatibleStateError, match=r'"2s" -> "1s \(it may only grow\)"'):
        refuse_changed(with_query(out_of_orderness="1s"), beginning=beginning)


@pytest.mark.parametrize("identity", [{}, {"query": 1}, {"query": {}}, {"query": {"max_jump": "x"}}])
def test_a_record_whose_identity_has_no_such_limit_changes_nothing(identity: dict[str, object]) -> None:
    assert as_begun(SETTINGS, replace(BEGINNING, identity=identity)).fingerprint == SETTINGS.fingerprint


@pytest.mark.parametrize(
    "beginning",
    [
        BEGINNING,
        replace(BEGINNING, any_columns=("user.id",), begin={0: 5, 1: 0}),
    ],
)
def test_a_spark_job_of_ones_own_takes_the_beginning_from_the_record_as_the_services_do(
    beginning: Beginning,
) -> None:
    query = {"name": "q", "where": "v > 1", "aggregates": {"d": "count_distinct(user.id)"}}
    began = Settings(query=query | {"max_jump": "2h"}, input={"partitions": 1})
    grown = Settings(query=query | {"max_jump": "3h", "out_of_orderness": "1m"})
    beginning = replace(beginning, identity=began.identity())
    assert IDENTITY_KEY == query_record.IDENTITY_KEY
    result = as_recorded(grown, encode_beginning(beginning))
    assert result.fingerprint == began.fingerprint
    expected = as_begun(grown, beginning).with_input_partitions(len(beginning.begin))
    assert result.identity() == expected.identity()
    assert result.query.any_columns == expected.query.any_columns
    with pytest.raises(IncompatibleStateError, match="cannot be read: it has version 4"):
        as_recorded(grown, json.dumps(json.loads(encode_beginning(beginning)) | {"v": 4}).encode())
