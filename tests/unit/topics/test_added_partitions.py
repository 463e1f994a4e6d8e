"""Partitions that were added to the input topic since the query began: the true cause, and who may finish."""

from __future__ import annotations

import pytest

from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from topics import settled
from topics.query_record import Beginning
from topics.state import TopicState

SETTINGS = Settings(query={"name": "q"})


@pytest.fixture
def began_with_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topic has three partitions now."""
    topic = TopicState("q.input", "t", 3, {}, {}, {})
    began = SETTINGS.with_input_partitions(2)
    beginning = Beginning(identity=began.identity(), input_id="t", begin={0: 5, 1: 7}, began_at=0)
    monkeypatch.setattr(settled, "describe", lambda kafka, names: {"q.input": topic})
    monkeypatch.setattr(settled, "read_beginning", lambda settings: beginning)


def test_a_service_is_refused_with_the_true_cause(began_with_two: None) -> None:
    with pytest.raises(
        IncompatibleStateError, match=r"partitions were added to q\.input since query q began with 2"
    ):
        settled.admitted(SETTINGS)


def test_who_only_finishes_what_was_routed_goes_on_with_the_partitions_of_the_beginning(
    began_with_two: None,
) -> None:
    known = settled.admitted(SETTINGS, drains=True)
    assert known.input_partitions == 2
    assert known.fingerprint == SETTINGS.with_input_partitions(2).fingerprint
