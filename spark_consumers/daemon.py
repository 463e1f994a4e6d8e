"""The parent of Spark's Python workers, with everything heavy imported and compiled before it forks.

Spark forks a fresh worker whenever no idle one fits (stateful tasks never give theirs back), and importing
pandas, pyarrow and numba then costs a second of every micro-batch. Named by `spark.python.daemon.module`.
"""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyspark.sql.streaming.proto.StateMessage_pb2
import pyspark.sql.streaming.stateful_processor_util
import pyspark.testing.utils
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

from evenflow.aggregates import AGGREGATES, AggregatePlan
from evenflow.settings import Query
from spark_consumers import combiner, reducer, sinks  # noqa: F401


def warm() -> None:
    """Load the compiled kernels. One row is enough, and starts no thread that a fork would lose."""
    aggregates = {
        f"{name}_{column}": f"{name}({column})" if aggregate.takes_column else name
        for name, aggregate in AGGREGATES.items()
        for column in ("i", "f")
    }
    plan = AggregatePlan.of(Query(aggregates=aggregates, types={"i": "int64"}))
    rows = pa.table(
        [
            pa.array([value], field.type)
            for field, value in zip(plan.frame_schema, (0, b"", 1.0, 1), strict=True)
        ],
        schema=plan.frame_schema,
    )
    partials = plan.combine(rows)
    plan.merge([partials, partials])
    plan.merge([partials.drop_columns(["pane"])] * 2)
    pd.DataFrame({"warm": [1]})


if __name__ == "__main__":
    warm()
    manager()
