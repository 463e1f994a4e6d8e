"""`evenflow verify`: recompute every window from the input topic by other means, and compare every row.

Admission rule: nothing here uses the pipeline's own parsing, progress, partials or merging. DuckDB
aggregates, window functions apply the lateness rule, plain Python judges single records. So a mistake goes
unseen only if it is made twice, in two different ways. `check` is pure (Arrow tables in, Report out). `shell`
reads Kafka.

The steps, one file each: records (parse) -> lost (what retention took) -> rejections, jumps, lateness ->
counters -> windows -> results, reach (what is due and not there) -> report.
"""

from workbench.verify.core import check
from workbench.verify.inputs import INPUT_SCHEMA, REJECTED_SCHEMA, RESULTS_SCHEMA, CommittedInput, LogBegins
from workbench.verify.report import Counters, Difference, Reach, Report

__all__ = [
    "INPUT_SCHEMA",
    "REJECTED_SCHEMA",
    "RESULTS_SCHEMA",
    "CommittedInput",
    "Counters",
    "Difference",
    "LogBegins",
    "Reach",
    "Report",
    "check",
]
