"""A key of several columns is a column for each part in results: which names are free, and what the record
says.
"""

from __future__ import annotations

import pytest

from evenflow.errors import ConfigError
from evenflow.queries import all_queries
from evenflow.settings import Settings
from topics.query import input_topic, record
from topics.state import TopicState

QUERY = {"name": "q", "key": ["shop", "product"], "aggregates": {"n": "count"}}


def admitted(settings: Settings) -> Settings:
    """The settings with which the query begins, once they are not refused."""
    topic, partitions = settings.topic("input"), settings.input_partitions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            input_topic, "describe", lambda *_: {topic: TopicState(topic, "t", partitions, {}, {}, {})}
        )
        for module in (input_topic, record):
            patch.setattr(module, "read_beginning", lambda settings: None)
        return input_topic.admitted(settings)


def settings_of(**query: object) -> Settings:
    return Settings(query=QUERY | query, input={"partitions": 2})


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
        admitted(settings)
    assert "give the part another name with a derived column" in str(refused.value.hint)


def test_a_part_with_a_taken_name_can_have_another_name_as_a_derived_column() -> None:
    settings = settings_of(key=["shop", "product_n"], columns={"product_n": "n"})
    assert admitted(settings).query.result_keys == ("shop", "product_n")


def test_a_part_may_be_called_rank_where_no_rank_is_written() -> None:
    assert admitted(settings_of(key=["shop", "rank"])).query.result_keys == (
        "shop",
        "rank",
    )


def test_every_builtin_query_can_begin() -> None:
    for query in all_queries():
        settings = Settings(query=dict(query.fields), input={"partitions": 1})
        assert admitted(settings).query.result_keys
