"""What a query wrote in its record when it began decides whether its results have a column for each part of the key."""

from __future__ import annotations

import json

import pytest

from evenflow.errors import ConfigError
from evenflow.queries import known
from evenflow.settings import Settings
from evenflow.settings.beginning import Beginning, as_begun, encode_beginning, parse_beginning
from evenflow.settings.views import view
from topics.query import input_topic
from topics.query import record as query_record
from topics.query.record import refuse_taken_key_columns
from topics.state import TopicState

QUERY = {"name": "q", "key": ["shop", "product"], "aggregates": {"n": "count"}}
PARTS = ("shop", "product")


def admitted(settings: Settings, beginning: Beginning | None) -> Settings:
    """The settings of a query that began so, or that begins now (None), once they are not refused."""
    settings = as_begun(settings, beginning)
    refuse_taken_key_columns(settings)
    return settings


def settings_of(**query: object) -> Settings:
    return Settings(query=QUERY | query, input={"partitions": 2})


def beginning(settings: Settings, *, key_columns: bool) -> Beginning:
    return Beginning(
        identity=settings.identity(), input_id="t", begin={0: 0, 1: 0}, began_at=0, key_columns=key_columns
    )


@pytest.mark.parametrize(
    ("mark", "names"),
    [(None, PARTS), (True, PARTS), (False, ("key",))],
    ids=["new", "marked", "begun earlier"],
)
def test_the_record_decides_which_columns_the_key_has(
    monkeypatch: pytest.MonkeyPatch, mark: bool | None, names: tuple[str, ...]
) -> None:
    settings = settings_of(views={"hourly": {"aggregates": {"n": "count"}}})
    begun = None if mark is None else beginning(settings, key_columns=mark)
    monkeypatch.setattr(
        input_topic, "describe", lambda kafka, topics: {"q.input": TopicState("q.input", "t", 2, {}, {}, {})}
    )
    for module in (input_topic, query_record):
        monkeypatch.setattr(module, "read_beginning", lambda settings: begun)
    known = input_topic.admitted(settings)
    of_view = view(known, "hourly")
    for one in (
        known,
        of_view,
        of_view.origin,
        of_view.with_input_partitions(3),
        input_topic.admitted(view(settings, "hourly")),
    ):
        assert one.query.result_keys == one.query.origin.result_keys == names
    assert known.fingerprint == settings.fingerprint, "frames and state are the same either way"


def test_the_mark_is_kept_in_the_record_and_absent_from_records_of_before() -> None:
    marked = beginning(settings_of(), key_columns=True)
    assert parse_beginning(encode_beginning(marked), where="t") == marked
    fields = json.loads(encode_beginning(marked))
    del fields["key_columns"]
    assert not parse_beginning(json.dumps(fields).encode(), where="t").key_columns
    assert "key_columns" not in json.loads(encode_beginning(beginning(settings_of(), key_columns=False)))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"key": ["shop", "window_start"]}, "'window_start' .* result rows have a field window_start"),
        ({"key": ["shop", "Key"]}, "result rows have a field key for something else"),
        ({"key": ["n", "shop"]}, "the aggregate 'n' has that name"),
        ({"key": ["N", "shop"]}, "the aggregate 'n' has that name, and tables do not tell upper from lower"),
        ({"key": ["shop", "SHOP"]}, "the key column 'SHOP' has that name"),
        ({"key": ["shop", "_tuples"]}, "names that begin with _tuples"),
        ({"key": ["shop", "rank"], "emit": "top(3, n)"}, "result rows have a field rank"),
        ({"key": ["shop", "gone"], "emit": "changes"}, "result rows have a field gone"),
        ({"key": ["shop", "a\0b"]}, "a character that no table takes"),
        (
            {"key": ["shop", "m"], "views": {"v": {"aggregates": {"m": "count"}}}},
            "results of q.v: the aggregate 'm'",
        ),
    ],
)
def test_a_part_that_has_the_name_of_another_column_is_refused_when_the_query_begins(
    query: dict[str, object], words: str
) -> None:
    settings = settings_of(**query)
    with pytest.raises(ConfigError, match=words) as refused:
        admitted(settings, None)
    assert "give the part another name with a derived column" in str(refused.value.hint)
    begun = beginning(settings, key_columns=False)
    assert admitted(settings, begun).query.result_keys == ("key",), "one begun earlier goes on"


def test_a_part_with_a_taken_name_can_have_another_name_as_a_derived_column() -> None:
    settings = settings_of(key=["shop", "product_n"], columns={"product_n": "n"})
    assert admitted(settings, None).query.result_keys == ("shop", "product_n")


def test_a_part_may_be_called_rank_where_no_rank_is_written() -> None:
    assert admitted(settings_of(key=["shop", "rank"]), None).query.result_keys == (
        "shop",
        "rank",
    )


def test_every_builtin_query_can_begin() -> None:
    for query in known():
        settings = Settings(query=dict(query.fields), input={"partitions": 1})
        assert admitted(settings, None).query.result_keys
