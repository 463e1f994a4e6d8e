"""What a look says of the costs of tuples."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.workbench.assist.sample_check.samples import NOW, look, named, order, sample, settings
from topics.state import TopicState
from workbench.assist.query_check import of_sample
from workbench.assist.sample_check.report import SampleReport


def looked(
    cost: str, rows: list[dict[str, Any]], *, partitioner: str = "hashing", **query: Any
) -> SampleReport:
    return look(sample(rows), partitioner={"name": partitioner, "cost": cost}, query=query)


def orders(**other: Any) -> list[dict[str, Any]]:
    return [order(number, size=number + 1, **other) for number in range(200)]


@pytest.mark.parametrize(
    ("cost", "status", "words"),
    [
        ("size", "ok", "'size': 1 to 200, 100.5 on average"),
        ("szie", "warning", "none of 200 records has a column 'szie' (the cost)"),
        ("szie", "warning", "no number, for all 200 tuples (100 %), which count as 1"),
        ("size - 100", "warning", "below 1, or no number, for 100 of 200 tuples (50 %)"),
        ("size * 10000", "warning", "above 1,000,000 for 100 of 200 tuples (50 %), which count as that"),
        ("size / 1000", "warning", "is 1 for all 200 tuples, so weighing changes nothing"),
    ],
)
def test_costs_that_say_nothing_are_told(cost: str, status: str, words: str) -> None:
    result = looked(cost, orders())
    assert [one for one in named(result, "the cost") if one.status == status and words in one.what], named(
        result, "the cost"
    )
    assert not result.problems, "a cost never stops a query"


def test_a_misspelt_column_of_the_cost_is_named_rightly() -> None:
    assert "did you mean 'size'?" in [one.do for one in named(looked("szie", orders()), "the cost")]


def test_a_partitioner_that_does_not_weigh_is_a_problem() -> None:
    (problem,) = looked("size", orders(), partitioner="dkg").problems
    assert "partitioner dkg does not weigh tuples" in problem.what
    assert "hashing" in problem.do


def test_costs_of_elements_are_judged_as_those_of_tuples() -> None:
    rows = orders(items=[{"weight": 3}, {"weight": 7}])
    result = looked("items.weight", rows, explode="items")
    assert "'items.weight': 3 to 7, 5.0 on average" in named(result, "the cost")[0].what


def test_sizes_are_judged_as_any_cost() -> None:
    rows = [order(number, items=[0] * (number % 4 + 1), box={"id": 1}) for number in range(200)]
    assert "'size(items)': 1 to 4, 2.5 on average" in named(looked("size(items)", rows), "the cost")[0].what
    assert "'size(items)': 1 to 4" in named(looked("size(items)", rows, explode="items"), "the cost")[0].what
    assert "no number, for all 200 tuples" in named(looked("size(box)", rows), "the cost")[0].what
    absent = named(looked("size(itemz) + 1", rows), "the cost")[0]
    assert ("has a column 'itemz'" in absent.what, absent.do) == (True, "did you mean 'items'?")


def test_a_query_without_cost_has_no_finding_of_it() -> None:
    assert not named(look(sample(orders())), "the cost")


def test_query_check_names_the_column_that_only_the_cost_reads() -> None:
    state = TopicState("orders", "t", 1, {0: 0}, {0: 200}, {})
    weighed = settings(partitioner={"name": "hashing", "cost": "size / 2 + amount"})
    columns = dict(of_sample(weighed, state, sample(orders()), now=NOW).sections["columns"])
    assert columns["size"] == "read as float64: cost; found: whole number in 200"
    assert columns["amount"].startswith("read as float64: s = sum(amount), cost")


def test_query_check_names_the_list_that_the_cost_counts() -> None:
    state = TopicState("orders", "t", 1, {0: 0}, {0: 200}, {})
    weighed = settings(partitioner={"name": "hashing", "cost": "size(items) + amount"})
    looked_at = of_sample(weighed, state, sample(orders(items=[1, 2])), now=NOW)
    columns = dict(looked_at.sections["columns"])
    assert columns["items"] == "read as list: cost; found: nested in 200"
    assert columns["amount"].startswith("read as float64: s = sum(amount), cost")
    assert "size(items)" not in columns
