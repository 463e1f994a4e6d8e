"""Where results go: one file per sink, and what all of them have in common.

Admission rule: one file per name that `results.sink` may have, exporting one `SINK`. `base.py` says what a
sink is, `topic.py` what those that write to Kafka share, `registry.py` finds them by their names. Nothing here
imports Spark, so that `verify` and `doctor` can use a sink without it.

Delivery: Spark repeats a micro-batch that was cut off with equal rows. A sink must make that harmless: either
what it writes again replaces what was written before, or (window, key) determines the row, so that a repeated one
changes nothing. docs/results.md tells readers how they recognise a repetition.
tests/unit/spark_consumers/test_sinks.py holds every registered sink to the contract.
"""

from spark_consumers.sinks.base import ResultSink
from spark_consumers.sinks.registry import SINKS, sink_of

__all__ = ["SINKS", "ResultSink", "sink_of"]
