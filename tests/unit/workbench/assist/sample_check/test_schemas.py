"""The registry is asked for the schemas of a sample once, for the commonest, and for a bounded time."""

from __future__ import annotations

import json
from threading import Lock
from typing import Any

import pytest

from partitioner_service.reading.registered.sample_schemas import MOST_SCHEMAS
from tests.unit.partitioner_service.reading.registered_records import Kept, avro, prefix, record_of
from tests.unit.workbench.assist.sample_check.samples import NOW, sample, settings
from topics.schemas.registry import RegisteredSchema, RegistryAway
from workbench.assist.sample_check.report import SampleReport, check_sample
from workbench.assist.sample_check.sample import Stretch

ORDER = record_of(("user", "string"), ("amount", "double"), ("at", "long"))
REGISTRY = {"format": "avro", "registry": {"url": "http://127.0.0.1:1"}}


class Slow(Kept):
    """A registry of which each answer takes so many seconds. away: it answers only so many questions."""

    def __init__(self, seconds: float, *, away: int = 10**9) -> None:
        super().__init__("avro", json.dumps(ORDER))
        self.now, self._seconds, self._away, self._lock = 0.0, seconds, away, Lock()

    def schema(self, number: int) -> RegisteredSchema | None:
        with self._lock:
            self.now += self._seconds
            if len(self.asked) >= self._away:
                raise RegistryAway("it does not answer")
            return super().schema(number)


def orders(count: int) -> list[bytes]:
    return [avro(ORDER, {"user": f"u{n % 3}", "amount": n / 8, "at": NOW - 1000 + n}) for n in range(count)]


def made_up(count: int, *, first: int = 1_000) -> list[bytes]:
    """Records that name a schema each, none of which is there."""
    return [prefix(number) + b"x" for number in range(first, first + count)]


def looked(registry: Slow, values: list[bytes], **query: Any) -> SampleReport:
    made = settings(query=query, input=REGISTRY)
    return check_sample(made, sample(values), now=NOW, registry=registry, clock=lambda: registry.now)


def test_the_registry_is_asked_for_ten_seconds_and_what_is_not_known_then_is_left_out() -> None:
    registry = Slow(0.2)
    result = looked(registry, made_up(100) + orders(40) + made_up(50, first=1_100))
    assert 50 <= len(registry.asked) <= 50 + 16
    assert result.facts.readable == 40
    assert result.facts.rejected + result.facts.unasked == 150
    assert set(result.facts.shape.columns) == {"user", "amount", "at"}
    words = f"{result.facts.unasked} records of schemas that the registry was not asked for (200 at most, for"
    assert words in result.summary()


def test_no_more_than_the_commonest_schemas_are_asked_for() -> None:
    registry = Slow(0.0)
    result = looked(registry, made_up(20_000) + orders(2))
    assert len(registry.asked) == MOST_SCHEMAS
    assert (result.facts.readable, result.facts.rejected) == (2, MOST_SCHEMAS - 1)
    assert result.facts.unasked == 20_000 - (MOST_SCHEMAS - 1)


def test_records_that_name_no_schema_stay_and_are_rejected() -> None:
    result = looked(Slow(0.0), [*orders(3), b"x", b"\0\0"])
    assert (result.facts.readable, result.facts.rejected, result.facts.unasked) == (3, 2, 0)


def test_the_registry_is_asked_once_however_often_the_sample_is_judged() -> None:
    registry = Slow(0.0)
    result = looked(registry, orders(40), aggregates={"s": "sum(amuont)"})
    assert result.proposal == {"query": {"aggregates": {"s": "sum(amount)"}}}
    assert registry.asked == [1]


def test_what_a_registry_that_stops_answering_has_said_is_looked_at() -> None:
    result = looked(Slow(0.0, away=20), made_up(40) + orders(40))
    assert result.facts.readable == 40
    assert result.facts.unasked == 40 - 15, "it answered for the first 16"
    with pytest.raises(RegistryAway):
        looked(Slow(0.0, away=0), orders(40))


def test_a_stretch_of_some_records_keeps_the_gaps_between_them() -> None:
    whole = Stretch(3, 9, values=[b"0", b"1", b"2", b"3", b"4"], gaps=[1, 3])
    whole.keys, whole.timestamps, whole.offsets = [None] * 5, [0, 1, 2, 3, 4], [10, 11, 20, 30, 31]
    some = whole.of([0, 2, 4])
    assert (some.values, some.timestamps, some.offsets) == ([b"0", b"2", b"4"], [0, 2, 4], [10, 20, 31])
    assert (some.partition, some.length, some.gaps) == (3, 9, [1, 2])
    assert whole.gaps == [1, 3]
