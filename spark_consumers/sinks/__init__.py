"""Where results go: one file per sink, and what all of them have in common.

Admission rule: one file per name in `BUILT_IN_SINKS`, and each such file exports one `SINK`. `base.py` says
what a sink is. `topic.py` holds what the sinks that write to Kafka share, `typed_rows.py` what the sinks of
typed rows share, `rows.py` the base of a sink of the user's own, and `checking.py` the laws. `registry.py`
finds sinks by name. No module here imports Spark, so `verify` and `doctor` can use a sink without Spark.

Delivery: Spark repeats a micro-batch that was cut off, with equal rows. A sink must make the repetition
harmless. Either the repeated rows replace the rows that were written before, or (window, key) determines the
row, so that a repeated row changes nothing. docs/results.md tells readers how they recognise a repetition.
`check_sink`, which `evenflow.testing` offers too, holds a sink to the contract, and
tests/unit/spark_consumers/sinks/test_sinks.py every sink of evenflow.
"""

from spark_consumers.sinks.base import ResultSink
from spark_consumers.sinks.checking import check_sink
from spark_consumers.sinks.registry import SINKS, sink_named, sink_of
from spark_consumers.sinks.rows import RowsSink

__all__ = ["SINKS", "ResultSink", "RowsSink", "check_sink", "sink_named", "sink_of"]
