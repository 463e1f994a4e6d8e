"""The contracts as functions, for the tests of partitioners, policies and aggregates of your own.

    from evenflow.testing import check_partitioner

    def test_mine_meets_every_law() -> None:
        check_partitioner("own:Mine", d=3)

Each law has a name in words. BrokenLawError names the law, an example, what was expected and what came instead.
docs/your-own.md lists the laws. `check_sink` is in `spark_consumers.sinks`, because a sink needs Spark.
"""

from evenflow.aggregates.own.checking import check_aggregate
from evenflow.contracts import BrokenLawError
from evenflow.elasticity.checking import check_policy
from evenflow.partitioners.checking import check_partitioner

__all__ = ["BrokenLawError", "check_aggregate", "check_partitioner", "check_policy"]
