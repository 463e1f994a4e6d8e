"""A sample of a topic has the costs of its tuples, as `partitioner.cost` computes them."""

import json
from types import SimpleNamespace

import pytest

from evenflow.settings import Settings
from workbench.assist import samples


class Record:
    def __init__(self, offset: int, body: bytes) -> None:
        self._offset, self._body = offset, body

    def value(self) -> bytes:
        return self._body

    def key(self) -> None:
        return None

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 0

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset


@pytest.mark.parametrize(
    ("cost", "expected"), [("ms", [1, 1, 30, 7]), ("ms * 2", [1, 1, 60, 14]), (None, None)]
)
def test_a_sample_of_a_topic_has_the_costs_of_its_tuples_in_order_of_time(
    monkeypatch: pytest.MonkeyPatch, cost: str | None, expected: list[int] | None
) -> None:
    rows = [
        {"who": "a", "at": 9, "ms": 7},
        {"who": "b", "at": 1, "ms": None},
        {"who": "a", "at": 3},
        {"who": "c", "at": 5, "ms": 30},
    ]
    records = [Record(at, json.dumps(row).encode()) for at, row in enumerate(rows)]
    state = SimpleNamespace(records=4, begin={0: 0}, end={0: 4}, partitions=1)
    monkeypatch.setattr(samples, "describe", lambda kafka, topics: dict.fromkeys(topics, state))
    monkeypatch.setattr(samples, "stretch", lambda state, tuples, first: ({0: 0}, {0: 4}))
    monkeypatch.setattr(samples.reader, "read_range", lambda kafka, topic, begin, end: [records])
    monkeypatch.setattr(samples, "by_its_rule", lambda settings: settings)
    settings = Settings.model_validate(
        {
            "query": {"key": "who", "time": "at"},
            "partitioner": {"name": "hashing", **({"cost": cost} if cost else {})},
        }
    )
    result = samples.topic_sample(settings, tuples=9).sample
    assert result.times is not None
    assert result.times.tolist() == [1, 3, 5, 9]
    assert (None if result.costs is None else result.costs.tolist()) == expected
    assert result.cost == cost
