"""A look takes a bounded time, whatever the records hold, and fields that nobody can name stop none."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from evenflow.grammar.explosion import Explosion
from evenflow.settings import InputSettings
from tests.unit.workbench.assist.sample_check.samples import NOW, look, order, sample, settings
from workbench.assist.sample_check import report
from workbench.assist.sample_check.facts import facts_of
from workbench.assist.sample_check.report import check_sample
from workbench.assist.sample_check.shape import shape_of


def test_columns_are_looked_for_during_ten_seconds() -> None:
    moments = count(0, 2)  # each question of the time is two seconds behind the last
    values = [b'{"a": 1}'] * 100
    shape = shape_of(InputSettings(), values, clock=lambda: next(moments))
    assert 1 <= shape.records < 5
    assert shape.columns["a"].present == shape.rows


def test_a_record_that_is_taken_apart_is_left_in_its_middle() -> None:
    moments = count(0, 1)
    value = json.dumps({"a": [1] * 90}).encode()
    shape = shape_of(InputSettings(), [value], explosion=Explosion("a"), clock=lambda: next(moments))
    assert (shape.records, shape.rows) == (1, 8)


def test_where_no_record_was_looked_at_nothing_is_said_of_their_format() -> None:
    moments = count(0, 100)
    result = check_sample(
        settings(), sample([order(n) for n in range(20)]), now=NOW, clock=lambda: next(moments)
    )
    assert result.facts.shape.records == 0
    assert result.problems == []


def test_no_other_round_begins_after_thirty_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now, rounds = [0.0], []

    def slow(*whole: Any, **more: Any) -> Any:
        rounds.append(now[0])
        facts = facts_of(*whole, **more)
        now[0] += 16.0
        return facts

    monkeypatch.setattr(report, "facts_of", slow)
    monkeypatch.setattr(report, "merged", lambda findings, onto=None: {"query": {"name": f"q{len(rounds)}"}})
    check_sample(settings(), sample([order(n) for n in range(20)]), now=NOW, clock=lambda: now[0])
    assert rounds == [0.0, 16.0]


@pytest.mark.parametrize(
    "strange",
    [{"": 1}, {"a": {"": 1}}, {"": {"a": 1}}, {"x" * 2_000: {"a": 1}}, {"x" * 600: {"y" * 600: 1}}],
    ids=["none", "none within", "none outside", "long", "long together"],
)
def test_fields_that_nobody_can_name_are_left_out(strange: dict[str, Any]) -> None:
    rows = [order(number, items=[strange], **strange) for number in range(40)]
    result = look(sample(rows), query={"explode": "items", "aggregates": {"n": "count"}})
    assert result.problems == []
    assert {"user", "at", "items"} <= set(result.facts.shape.columns)
    assert all(name and len(name) < 1_000 for name in result.facts.shape.columns)


def test_fields_within_elements_are_seen_as_deep_as_settings_name_them() -> None:
    deep: Any = 1
    for name in "hgfedcb":
        deep = {name: deep}
    rows = [order(number, items=[deep]) for number in range(40)]
    columns = look(sample(rows), query={"explode": "items", "aggregates": {"n": "count"}}).facts.shape.columns
    assert "items.b.c.d.e.f.g.h" in columns
    deeper = [order(number, items=[{"a": deep}]) for number in range(40)]
    columns = look(
        sample(deeper), query={"explode": "items", "aggregates": {"n": "count"}}
    ).facts.shape.columns
    assert "items.a.b.c.d.e.f.g" in columns
    assert not any(name.endswith(".h") for name in columns)


def test_the_names_of_columns_have_a_bounded_length_together() -> None:
    rows = [{f"{number:04}" + "x" * 900: 1} for number in range(5_000)]
    columns = shape_of(InputSettings(), [json.dumps(row).encode() for row in rows]).columns
    assert 3_000 < len(columns) < 3_500


def test_the_examples_of_many_columns_have_a_bounded_size_together() -> None:
    value = json.dumps({f"c{number}": [] for number in range(900)}).encode()
    columns = shape_of(InputSettings(), [value] * 400).columns
    assert sum(len(column.examples) for column in columns.values()) <= 10_000_000 // 50


def test_texts_count_as_different_by_what_they_hold() -> None:
    rows = [{"a": f"t{number % 7}", "b": -1 - number % 2} for number in range(100)]
    columns = shape_of(InputSettings(), [json.dumps(row).encode() for row in rows]).columns
    assert (columns["a"].distinct, columns["b"].distinct) == (7, 2)
