"""Two aggregates of one's own: plain Python, and Arrow. docs/your-own-aggregates.md explains them.

[query.aggregates]
spread = "turnstile.aggregates:Spread(amount, 100)"
middle = "turnstile.aggregates:GeometricMean(amount)"
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.own import PlainAggregate, TableAggregate


class Spread(PlainAggregate):
    """The difference of the largest and the least value below a limit, which leaves out what cannot be
    true.
    """

    result = "float64"

    def __init__(self, limit: float = math.inf) -> None:
        self.limit = limit

    def init(self) -> list[float] | None:
        return None

    def add(self, state: list[float] | None, value: Any) -> list[float] | None:
        return self.merge(state, [float(value), float(value)]) if value < self.limit else state

    def merge(self, a: list[float] | None, b: list[float] | None) -> list[float] | None:
        if a is None or b is None:
            return b if a is None else a
        return [min(a[0], b[0]), max(a[1], b[1])]

    def finish(self, state: list[float] | None) -> float | None:
        return None if state is None else state[1] - state[0]

    def oracle(self, values: list[Any]) -> float | None:
        fine = [float(value) for value in values if value < self.limit]
        return max(fine) - min(fine) if fine else None


class GeometricMean(TableAggregate):
    """The geometric mean of the values above 0."""

    result = "float64"
    state = {"logs": pa.float64(), "n": pa.int64()}  # noqa: RUF012 - nobody changes it

    def combine(self, rows: pa.Table) -> pa.Table:
        values = rows["value"].cast(pa.float64())
        positive = pc.greater(values, 0)
        logs = pc.if_else(positive, pc.ln(values), 0.0)
        parts = pa.table({"group": rows["group"], "logs": logs, "n": positive.cast(pa.int64())})
        return self.merge(parts)

    def merge(self, states: pa.Table) -> pa.Table:
        sums = states.group_by("group", use_threads=False).aggregate([("logs", "sum"), ("n", "sum")])
        return sums.select(["group", "logs_sum", "n_sum"]).rename_columns(["group", "logs", "n"])

    def finish(self, states: pa.Table) -> pa.ChunkedArray:
        n = pc.if_else(pc.equal(states["n"], 0), pa.scalar(None, pa.int64()), states["n"])
        return pc.exp(pc.divide(states["logs"], n.cast(pa.float64())))

    def oracle(self, values: list[Any]) -> float | None:
        positive = [float(value) for value in values if value > 0]
        return math.exp(math.fsum(map(math.log, positive)) / len(positive)) if positive else None
