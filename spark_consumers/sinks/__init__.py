"""Where results go: one file per sink, and what all of them have in common.

Admission rule: one file per name that `results.sink` may have, and each such file exports one `SINK`.
`base.py` says what a sink is, `topic.py` holds what the sinks that write to Kafka share, and `registry.py`
finds sinks by name. No module here imports Spark, so `verify` and `doctor` can use a sink without Spark.

Delivery: Spark repeats a micro-batch that was cut off, with equal rows. A sink must make the repetition
harmless. Either the repeated rows replace the rows that were written before, or (window, key) determines the
row, so that a repeated row changes nothing. docs/results.md tells readers how they recognise a repetition.
tests/unit/spark_consumers/test_sinks.py holds every registered sink to the contract.
"""

from spark_consumers.sinks.base import ResultSink
from spark_consumers.sinks.registry import SINKS, sink_of

__all__ = ["SINKS", "ResultSink", "sink_of"]
