"""The parent of Spark's Python workers, with everything heavy imported and compiled before it forks.

Spark forks a fresh worker whenever no idle worker fits. Without this parent, importing pandas, pyarrow and
numba would then cost a second of the micro-batch. The parent also avoids two costs that pyspark 4.0 has in
every task. First, pyspark makes Python forget what is on `sys.path`, so the directory of each archive there
(pyspark's own zip, Spark's jars) is read again, which takes 0.2 s. Second, pyspark collects garbage.

The setting `spark.python.daemon.module` names this module.
"""

# ruff: noqa: E402 - the path must be right before pyspark is imported

from __future__ import annotations

import gc
import sys
from pathlib import Path


def forget_archives() -> None:
    """Take jars off Python's path, and pyspark's zips where pyspark is installed as a folder as well."""
    folders = [entry for entry in sys.path if not entry.endswith((".jar", ".zip"))]
    installed = any((Path(entry) / "pyspark" / "__init__.py").exists() for entry in folders if entry)
    archives = (".jar", "pyspark.zip", "-src.zip") if installed else (".jar",)
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(archives)]
    for entry in [name for name in sys.path_importer_cache if name.endswith(archives)]:
        del sys.path_importer_cache[entry]


if __name__ == "__main__":
    forget_archives()

import pandas as pd
import pyarrow as pa
import pyspark.sql.streaming.proto.StateMessage_pb2
import pyspark.sql.streaming.stateful_processor_util
import pyspark.testing.utils  # imported by every state call of pyspark 4.0
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

from evenflow.aggregates import AggregatePlan, every_form
from evenflow.keys import hash_keys
from evenflow.settings import Query
from evenflow.twostep.distinct import distinct
from evenflow.twostep.tally import sketch
from spark_consumers.workers import tallies  # noqa: F401


def warm() -> None:
    """Load the compiled kernels. One row is enough for that.

    One row also starts no thread. That matters, as a fork copies no threads: the workers would lack them.
    """
    plan = AggregatePlan.of(Query(aggregates=every_form("i", "f"), types={"i": "int64"}))
    values = {pa.int64(): 1, pa.float64(): 1.0, pa.binary(): b"key"}
    row = [pa.array([values[field.type]], field.type) for field in plan.frame_schema]
    partials = plan.combine(pa.table(row, schema=plan.frame_schema))
    plan.merge([partials, partials])
    plan.merge([partials.drop_columns(["pane"])] * 2)
    hashes = hash_keys(partials["key"])
    sketch(hashes)
    distinct(hashes)
    pd.DataFrame({"warm": [1]})


if __name__ == "__main__":
    warm()
    gc.collect()
    gc.freeze()  # the collection after every task then skips all objects that were imported here
    manager()
