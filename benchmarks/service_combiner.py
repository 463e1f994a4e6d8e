"""The combiner stage against Spark's bare Kafka scan of the same frames."""

from __future__ import annotations

from benchmarks.spark_stages import frames_and_tuples, routed_stream, stream_seconds
from benchmarks.spread import in_turns, ratios, spread
from spark_consumers import combiner
from spark_consumers.layout import Layout
from spark_consumers.session import make_session
from spark_consumers.sources import records
from topics.admin import describe

ID = "service-combiner"
WHAT = "tuples/s of the combiner (frames to blobs) against Spark's bare scan of the same frames, both to a noop sink"


def run(*, smoke: bool) -> dict[str, object]:
    """Rates of both and their ratio; both are streams with the same source, tasks and trigger."""
    tuples, repetitions = (200_000, 1) if smoke else (4_000_000, 3)
    with routed_stream("bench-combiner", tuples=tuples) as (settings, folder):
        topic = settings.topic("routed")
        layout = Layout.of(settings, describe(settings.kafka, [topic])[topic].topic_id)
        frames, counted = frames_and_tuples(settings)
        spark = make_session(settings)
        try:
            tasks = spark.sparkContext.defaultParallelism

            def scan() -> float:
                source = records(spark, settings, topic).coalesce(tasks)
                return counted / stream_seconds(spark, source, folder, rows=frames)

            def combine() -> float:
                blobs = combiner.combined(records(spark, settings, topic), layout, tasks=tasks)
                return counted / stream_seconds(spark, blobs, folder, rows=frames)

            in_turns({"combiner": combine, "scan": scan}, 1)
            rates = in_turns({"combiner": combine, "scan": scan}, repetitions)
        finally:
            spark.stop()
    return {
        "tuples": counted,
        "frames": frames,
        "combiner_tuples_per_second": spread(rates["combiner"]),
        "scan_tuples_per_second": spread(rates["scan"]),
        "ratio": ratios(rates["combiner"], rates["scan"]),
    }
