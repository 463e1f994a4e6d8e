"""How Spark adds up what its Python workers tell: apart from the listener, whose imports no worker needs."""

from __future__ import annotations

from pyspark import AccumulatorParam

from evenflow.twostep import Tally


class Tallies(AccumulatorParam[Tally]):
    """How Spark adds up what its Python workers tell."""

    def zero(self, value: Tally) -> Tally:
        """Nothing yet."""
        return Tally()

    def addInPlace(self, value1: Tally, value2: Tally) -> Tally:  # noqa: N802
        """Their sum. The later one's stands win."""
        return value1 + value2
