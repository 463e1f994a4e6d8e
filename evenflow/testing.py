"""The contracts as functions, for the tests of partitioners and policies of your own.

    from evenflow.testing import check_partitioner

    def test_mine_meets_every_law() -> None:
        check_partitioner("own:Mine", d=3)

Each law has a name in words. BrokenLawError names the law, an example, what was expected and what came instead.
docs/your-own.md lists the laws.
"""

from evenflow.contracts import BrokenLawError
from evenflow.elasticity.checking import check_policy
from evenflow.partitioners.checking import check_partitioner

__all__ = ["BrokenLawError", "check_partitioner", "check_policy"]
