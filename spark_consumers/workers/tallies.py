"""How Spark adds up the tallies of its Python workers.

The Python workers import this module, so it stands apart from the listener.
"""

from __future__ import annotations

from pyspark import AccumulatorParam

from evenflow.twostep import Tally


class Tallies(AccumulatorParam[Tally]):
    """Adds tallies up, for a Spark accumulator."""

    def zero(self, value: Tally) -> Tally:
        """The empty tally."""
        return Tally()

    def addInPlace(self, value1: Tally, value2: Tally) -> Tally:  # noqa: N802
        """The sum of both tallies. For a bucket's stand, the second one wins."""
        return value1 + value2
