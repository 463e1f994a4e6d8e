"""verify recomputes an aggregate of one's own by the function of Python that it brings."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pytest

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from tests.unit.aggregates import own_aggregates_for_tests as own
from tests.unit.workbench.verify.pipeline_model import Record, Topics, end, run

_MODULE = own.__name__
_FORMS = {
    "total": f"{_MODULE}:Total(n)",
    "limited": f"{_MODULE}:Limited(n, 9)",
    "texts": f"{_MODULE}:Seen(s)",
    "cents": f"{_MODULE}:Cents(d)",
    "arrow": f"{_MODULE}:TableSum(v)",
    "count": "count",
}


_TYPES = {"n": "int64", "s": "string", "d": "decimal(2)"}


def _settings(**query: Any) -> Settings:
    aggregates = query.setdefault("aggregates", _FORMS)
    types = {
        name: type_
        for name, type_ in _TYPES.items()
        if any(f"({name}" in form for form in aggregates.values())
    }
    base = {"window": 40, "slide": 10, "types": types, "out_of_orderness": 5}
    return Settings(query={**base, **query}, input={"partitions": 1})


def _record(chance: random.Random, number: int) -> Record:
    values = {
        "n": chance.choice([None, chance.randint(-9, 9)]),
        "s": chance.choice([None, "x", "é", "long " * 19]),
        "d": chance.choice([None, 0.25, 3]),
        "v": chance.choice([None, chance.gauss(0, 1e6)]),
    }
    key, time = chance.choice("aab"), number // 2 + chance.randint(-3, 0)
    exact = None if values["d"] is None else Decimal(str(values["d"]))
    body = json.dumps({"key": key, "time": time, **values}).encode()
    return Record(body, (key.encode(), time, {**values, "d": exact}))


def _stream(tuples: int = 200) -> list[Any]:
    chance = random.Random(3)
    return [*(_record(chance, number) for number in range(tuples)), end(tuples)]


@pytest.fixture(scope="module")
def made() -> Topics:
    return run(_settings(), [_stream()])


@pytest.fixture
def topics(made: Topics) -> Topics:
    return Topics(made.settings, made.inputs, made.rejected, [dict(row) for row in made.rows], made.committed)


@pytest.mark.parametrize("typed", [False, True])
def test_what_the_plan_computes_is_what_the_oracle_does(topics: Topics, typed: bool) -> None:
    if not typed:
        topics.rows = [{**row, "cents": float(row["cents"] or 0)} for row in topics.rows]
    report = topics.check(typed=typed)
    assert report.first == ()
    assert report.rows == len(topics.rows) > 20


@pytest.mark.parametrize(
    ("name", "wrong"), [("total", 424_242), ("texts", "y"), ("arrow", 1e9), ("cents", None)]
)
def test_another_value_is_found(topics: Topics, name: str, wrong: Any) -> None:
    topics.rows[3][name] = wrong
    report = topics.check(typed=True)
    assert report.kinds == {"value": 1}
    assert report.first[0].column == name


def test_a_value_beyond_its_room_is_null_for_verify_as_well() -> None:
    aggregates = {"texts": f"{_MODULE}:Seen(s)", "n": "count"}
    topics = run(_settings(max_state_bytes=100, aggregates=aggregates), [_stream()])
    assert any(row["texts"] is None for row in topics.rows)
    report = topics.check(typed=True)
    assert report.first == ()
    assert report.unfit > 0


def test_an_aggregate_without_an_oracle_is_refused_before_anything_is_read() -> None:
    topics = run(_settings(aggregates={"bare": f"{_MODULE}:NoOracle(v)"}), [_stream(20)])
    with pytest.raises(ConfigError, match=r"verify cannot recompute bare = .*:NoOracle, which has no oracle"):
        topics.check()


def test_an_oracle_that_fails_is_blamed(monkeypatch: pytest.MonkeyPatch, topics: Topics) -> None:
    def fails(self: Any, values: Any) -> Any:
        raise ZeroDivisionError("no values")

    monkeypatch.setattr(own.Total, "oracle", fails)
    with pytest.raises(ConfigError, match=r":Total: oracle raised ZeroDivisionError: no values"):
        topics.check(typed=True)
