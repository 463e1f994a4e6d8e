"""What forwarding would at least add in Spark: a second shuffle with a stage of its own.

Two ways work off the same routed topic, in turns (`benchmarks/spark/triggers.py`). *today*: the partials go
through a shuffle to the buckets, whose state makes windows of them. *homes*: the same shuffle and the same
state, but they are the homes'. A home finishes every window by itself, and a second shuffle takes the rows to
the buckets, which write them.

That is the least that forwarding adds to a micro-batch. Nobody announces anything, no partial is handed on, a
home sends to one bucket only, and a bucket has nothing to remember but that it has heard from its home. The
first shuffle is by bucket and not by worker. With `hashing` both carry the same partials.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StatefulProcessor

from benchmarks.measuring.pipelines import measured_broker
from benchmarks.measuring.stream import EVENT_RATE
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.spark.homes import BucketOfHome, Home
from benchmarks.spark.stages import FOLDER
from benchmarks.spark.triggers import FrameOf, fused, measured_triggers, routed_batches
from evenflow.grammar.spark_types import spark_types
from evenflow.settings import Settings
from spark_consumers.labels import bucket_labels
from spark_consumers.layout import Layout
from spark_consumers.sinks import sink_of
from spark_consumers.stage import stage_frame

ID = "spark-forwarding"
WHAT = (
    "seconds of a Spark trigger as it is, and with the second shuffle that forwarding needs: what forwarding"
    " costs at least, by skew"
)

_SKEWS = (1.0, 1.5)
_TAKEN = (1, 5)
"""Batches a trigger."""


def with_homes(spark: SparkSession, settings: Settings, topic_id: str) -> DataFrame:
    """The rows of the fused application if homes finish all windows: a `FrameOf`."""
    layout, sink = Layout.from_settings(settings, topic_id), sink_of(settings)
    labels = ", ".join(map(str, bucket_labels(layout.buckets)))
    partials = stage_frame(spark, settings, "combine", topic_id, starting="earliest", on_tally=None)
    blobs = partials.selectExpr(f"array({labels})[partition] AS label", "value AS blob")
    rows = _stateful(blobs, Home(layout, None), "label int, blob binary")
    bucket = BucketOfHome(layout, sink.shaper(settings), None)
    return _stateful(rows, bucket, spark_types(sink.schema(settings)))


def _stateful(rows: DataFrame, processor: StatefulProcessor, schema: str) -> DataFrame:
    return rows.groupBy("label").transformWithStateInPandas(
        statefulProcessor=processor, outputStructType=schema, outputMode="Append", timeMode="None"
    )


WAYS: dict[str, FrameOf] = {"today": fused, "homes": with_homes}


def run(*, smoke: bool) -> dict[str, Any]:
    """A row for each skew and each way, with the figures of its triggers. Both ways must write as many
    rows.
    """
    batches, repetitions = (4, 1) if smoke else (10, 5)
    skews, batches_a_trigger = (_SKEWS[:1], (1, 2)) if smoke else (_SKEWS, _TAKEN)
    with measured_broker("driver") as (broker, meter), TemporaryDirectory(prefix=FOLDER) as folder:
        routed = {
            skew: routed_batches(
                broker.settings(),
                f"bench-forwarding-{skew}",
                "hashing",
                Path(folder),
                batches=batches,
                zipf=skew,
            )
            for skew in skews
        }
        measured, machine = measured_triggers(
            {f"{skew}, {way}": routed[skew] for skew, way in product(skews, WAYS)},
            batches_a_trigger,
            batches=batches,
            repetitions=repetitions,
            folder=folder,
            meter=meter,
            frames={f"{skew}, {way}": WAYS[way] for skew, way in product(skews, WAYS)},
        )
    rows: list[dict[str, Any]] = [
        {"zipf": skew, "way": way, **measured[f"{skew}, {way}"]} for skew, way in product(skews, WAYS)
    ]
    for skew in skews:
        counts = {count for row in rows if row["zipf"] == skew for count in row["rows"]}
        if len(counts) > 1:
            raise AssertionError(f"Zipf {skew}: turns wrote {sorted(counts)} rows")
    return {"batch_tuples": EVENT_RATE, "batches": batches, **machine, "rows": rows}
