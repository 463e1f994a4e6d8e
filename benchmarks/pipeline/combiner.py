"""The combiner stage, compared with Spark's bare Kafka scan of the same frames, and with Python that drops
the frames.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.measuring.spread import Speed, beside, in_turns, judged
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.spark.stages import frames_and_tuples, routed_stream, stream_speed
from spark_consumers import combiner
from spark_consumers.combiner import Batches
from spark_consumers.layout import Layout
from spark_consumers.session import make_session
from spark_consumers.sources import records
from topics.admin import describe

ID = "service-combiner"
WHAT = (
    "tuples/s of the combiner (frames to blobs) against Spark's bare scan of the same frames, both to a noop"
    " sink (goal: 0.7)"
)
GOAL = 0.7
"""The least ratio of the combiner's speed to that of the scan."""
_TUPLES = 4_000_000
"""Tuples of a turn: one micro-batch, which the default heap still holds."""
_WARM_UPS = 10
"""Turns that do not count. After three of them half of the JVM's time is still that of its compilers."""


def run(*, smoke: bool) -> dict[str, object]:
    """Rates, their ratios and the goal. All three are streams with the same source, tasks and trigger."""
    tuples, repetitions = (200_000, 1) if smoke else (_TUPLES, 5)
    with routed_stream("bench-combiner", tuples=tuples) as (settings, folder, meter):
        topic = settings.topic("routed")
        layout = Layout.from_settings(settings, describe(settings.kafka, [topic])[topic].topic_id)
        frames, counted = frames_and_tuples(settings)
        spark = make_session(settings)
        try:
            tasks = spark.sparkContext.defaultParallelism

            def scan() -> Speed:
                source = records(spark, settings, topic).coalesce(tasks)
                return stream_speed(source, folder, meter, rows=frames, tuples=counted)

            def hand_over() -> Speed:
                source = records(spark, settings, topic).coalesce(tasks)
                dropped = source.mapInArrow(dropping(), combiner.BLOBS)
                return stream_speed(dropped, folder, meter, rows=frames, tuples=counted)

            def combine() -> Speed:
                blobs = combiner.combined(records(spark, settings, topic), layout, tasks=tasks, on_tally=id)
                return stream_speed(blobs, folder, meter, rows=frames, tuples=counted)

            ways = {"combiner": combine, "scan": scan, "handed_over": hand_over}
            with step("warm-up"):
                in_turns(ways, 1 if smoke else _WARM_UPS)
            speeds = in_turns(ways, repetitions, tell=True)
        finally:
            spark.stop()
    return {
        "tuples": counted,
        "frames": frames,
        **beside(speeds["combiner"], speeds["scan"], ("combiner", "scan")),
        **judged(speeds["combiner"], speeds["scan"], GOAL),
        "beside_frames_that_python_drops": beside(
            speeds["combiner"], speeds["handed_over"], ("combiner", "handed_over")
        ),
    }


def dropping() -> Callable[[Batches], Batches]:
    """A task that takes the frames from the JVM and does nothing. Any combiner in Python pays that first."""

    def task(batches: Batches) -> Batches:
        for _ in batches:
            continue
        yield from ()

    return task
