"""`query check` refuses key columns whose names results cannot have, before any record is read."""

from __future__ import annotations

import pytest

from evenflow.errors import ConfigError, ServiceError
from evenflow.settings import KafkaSettings, Settings
from topics.query import input_topic
from topics.state import TopicState
from workbench.assist import query_check


@pytest.mark.parametrize("reachable", [True, False], ids=["not begun", "no broker"])
def test_a_part_with_the_name_of_an_aggregate_is_refused(
    monkeypatch: pytest.MonkeyPatch, reachable: bool
) -> None:
    def read_beginning(settings: Settings) -> None:
        if not reachable:
            raise ServiceError("the broker does not answer")

    def describe(kafka: KafkaSettings, names: list[str]) -> dict[str, TopicState]:
        raise AssertionError("no topic is looked at")

    monkeypatch.setattr(input_topic, "read_beginning", read_beginning)
    monkeypatch.setattr(query_check, "describe", describe)
    settings = Settings(query={"name": "q", "key": ["shop", "n"], "aggregates": {"n": "count"}})
    with pytest.raises(ConfigError, match="key column 'n' cannot be a column of the results of q"):
        query_check.check_query(settings, most=1)
