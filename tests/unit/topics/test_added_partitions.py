"""Partitions that were added to the input topic since the query began are no other settings."""

from __future__ import annotations

import pytest

from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from evenflow.settings.beginning import Beginning
from topics.query import input_topic, record
from topics.state import TopicState

SETTINGS = Settings(query={"name": "q"})


def admitted(monkeypatch: pytest.MonkeyPatch, *, recorded: int, partitions: int) -> Settings:
    """The settings for a topic of so many partitions, of which the query has taken in as many as are
    recorded.
    """
    topic = TopicState("q.input", "t", partitions, {}, {}, {})
    began = SETTINGS.with_input_partitions(recorded)
    begin = dict.fromkeys(range(recorded), 5)
    beginning = Beginning(identity=began.identity(), input_id="t", begin=begin, began_at=0)
    monkeypatch.setattr(input_topic, "describe", lambda kafka, names: {"q.input": topic})
    monkeypatch.setattr(input_topic, "read_beginning", lambda settings: beginning)
    return input_topic.admitted(SETTINGS)


def test_everybody_begins_with_the_partitions_that_the_query_has_taken_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = admitted(monkeypatch, recorded=2, partitions=4)
    assert known.input_partitions == 2
    grown = admitted(monkeypatch, recorded=4, partitions=4)
    assert grown.input_partitions == 4
    assert known.fingerprint == grown.fingerprint


def test_a_topic_that_grows_while_it_is_looked_at_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = iter([2, 3])
    began = SETTINGS.with_input_partitions(3)
    beginning = Beginning(identity=began.identity(), input_id="t", begin={0: 0, 1: 0, 2: 0}, began_at=0)
    monkeypatch.setattr(
        input_topic,
        "describe",
        lambda kafka, names: {"q.input": TopicState("q.input", "t", next(seen), {}, {}, {})},
    )
    monkeypatch.setattr(input_topic, "read_beginning", lambda settings: beginning)
    assert input_topic.admitted(SETTINGS).input_partitions == 3


def test_a_query_that_begins_and_grows_while_it_is_looked_at_is_not_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began = SETTINGS.with_input_partitions(3)
    beginning = Beginning(identity=began.identity(), input_id="t", begin={0: 0, 1: 0, 2: 0}, began_at=0)
    topic = TopicState("q.input", "t", 1, {}, {}, {})
    monkeypatch.setattr(input_topic, "describe", lambda kafka, names: {"q.input": topic})
    monkeypatch.setattr(input_topic, "read_beginning", lambda settings: None)
    monkeypatch.setattr(record, "read_beginning", lambda settings: beginning)
    assert input_topic.admitted(SETTINGS).input_partitions == 1


def test_a_topic_with_fewer_partitions_than_were_taken_in_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(IncompatibleStateError, match="partitions"):
        admitted(monkeypatch, recorded=3, partitions=2)
