"""The contracts as functions, for the tests of things of your own: one for each kind.

    from evenflow.testing import check_partitioner

    def test_mine_meets_every_law() -> None:
        check_partitioner("own:Mine", d=3)

Each law has a name in words. BrokenLawError names the law, an example, what was expected and what came
instead. docs/your-own.md lists the laws.
"""

from __future__ import annotations

from typing import Any

from evenflow.aggregates.own.checking import check_aggregate
from evenflow.contracts import BrokenLawError
from evenflow.elasticity.checking import check_policy
from evenflow.host.services import service_module
from evenflow.partitioners.checking import check_partitioner
from evenflow.sources.checking import check_source
from evenflow.sources.query_checking import check_query

__all__ = [
    "BrokenLawError",
    "check_aggregate",
    "check_partitioner",
    "check_policy",
    "check_query",
    "check_sink",
    "check_source",
]


def check_sink(sink: Any, **results: Any) -> None:
    """Hold a sink to every law that needs neither Spark nor a place to write to.
    It needs a clone or image of evenflow.

    sink: an object of a class derived from `spark_consumers.sinks.ResultSink`. results: values of the fields
    of `[results]` that it needs. Raises AssertionError with the law that the sink breaks. ConfigError where
    only the wheel is installed.
    """
    # The library knows no Spark, so it gets the laws of sinks by name.
    service_module("spark_consumers.sinks.checking", command="check_sink").check_sink(sink, **results)
