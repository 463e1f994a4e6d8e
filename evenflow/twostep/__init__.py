"""Two-step aggregation: the pure cores of combiner and reducer, and the text of results.

Admission rule: Arrow in, Arrow out. No Spark, no Kafka, no clock. The shells in `spark_consumers` read and
write, and the functions here decide. They keep two rules of docs/correctness.md: "blobs count once" and
"merge order is fixed".
"""

from evenflow.twostep.combiner import BlobPart, combine_task
from evenflow.twostep.layout import Layout
from evenflow.twostep.readable import (
    key_schema,
    key_type,
    never_null,
    readable,
    readable_schema,
    typed_keys,
    with_key_columns,
)
from evenflow.twostep.reduce_task import reduce_task
from evenflow.twostep.reducing.reducer import reduce, reduce_leaders, reduce_part, reduce_windows
from evenflow.twostep.reducing.state_blobs import BucketState
from evenflow.twostep.reducing.summary import SummaryPlan, merge_parts
from evenflow.twostep.reducing.top import merge_leaders
from evenflow.twostep.results import json_rows
from evenflow.twostep.tally import BucketPosition, FrameAt, Part, Tally, Work

__all__ = [
    "BlobPart",
    "BucketPosition",
    "BucketState",
    "FrameAt",
    "Layout",
    "Part",
    "SummaryPlan",
    "Tally",
    "Work",
    "combine_task",
    "json_rows",
    "key_schema",
    "key_type",
    "merge_leaders",
    "merge_parts",
    "never_null",
    "readable",
    "readable_schema",
    "reduce",
    "reduce_leaders",
    "reduce_part",
    "reduce_task",
    "reduce_windows",
    "typed_keys",
    "with_key_columns",
]
