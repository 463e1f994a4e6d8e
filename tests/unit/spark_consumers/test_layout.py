"""What travels to Spark's Python workers, and what they say if they cannot read it."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ConfigError
from evenflow.settings import Settings
from evenflow.settings.views import queries
from spark_consumers.layout import Layout
from spark_consumers.reports.failures import translated


def test_a_worker_that_lacks_a_module_of_the_users_says_so_through_spark() -> None:
    own = "tests.unit.aggregates.own_aggregates_for_tests"
    layout = Layout.from_settings(
        Settings(query={"aggregates": {"a": f"{own}:TableSum(v)"}}, input={"partitions": 1}), "topic"
    )
    assert layout.plan.outputs[0].label == "a"
    elsewhere = replace(layout, query=layout.query.replace(own, "no_such_module"))
    with pytest.raises(ConfigError) as raised:
        _ = elsewhere.plan
    error = translated("aggregate", f"Traceback\nevenflow.errors.ConfigError: {raised.value}\n\n\tat java")
    assert "cannot read the query" in error.message
    assert "Python knows no module no_such_module" in error.message
    assert error.hint is not None
    assert "executors need every module" in error.hint


@pytest.mark.parametrize("begun", [None, (), ("u",), ("u", "v")])
def test_a_worker_makes_the_plan_of_the_columns_with_which_the_query_began(
    begun: tuple[str, ...] | None,
) -> None:
    settings = Settings(
        query={
            "aggregates": {"d": "count_distinct(v)"},
            "views": {"x": {"aggregates": {"d": "count_distinct(u)"}}},
        },
        input={"partitions": 1},
    ).with_any_columns(begun)
    for one in queries(settings):
        sent: Layout = pickle.loads(pickle.dumps(Layout.from_settings(one, "t")))
        assert sent.plan == AggregatePlan.of(one.query)
        assert sent.plan.frame_schema == AggregatePlan.of(settings.query).frame_schema
