"""The reducer stage alone, from blobs in the partials topic to JSON rows in the results topic. For
information.
"""

from __future__ import annotations

from benchmarks.measuring.cpu import budget
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.spark.stages import routed_stream
from evenflow.telemetry import BatchRecord, parse
from spark_consumers.application import run as run_stages
from topics.admin import describe
from topics.reader import read_range

ID = "service-reducer"
WHAT = (
    "tuples/s and result rows/s of the reducer (blobs to JSON rows, 60 s windows by 1 s), by its"
    " micro-batches"
)


def run(*, smoke: bool) -> dict[str, object]:
    """Rates and CPU time.

    Rates are over the time of the micro-batches that had rows. CPU time is that of the whole stage, including
    its start.
    """
    tuples = 5_000 if smoke else 2_000_000
    with routed_stream("bench-reducer", tuples=tuples, wiring="split") as (settings, _, meter):
        with step("combiner"):
            run_stages(settings, ("combine",), until_ended=True)
        with step("reducer"):
            began = meter.now()
            run_stages(settings, ("reduce",), until_ended=True)
            used = meter.between(began, meter.now())
        telemetry = [
            parse(message.value())
            for messages in read_range(settings.kafka, settings.topic("telemetry"))
            for message in messages
        ]
        batches = [
            record for record in telemetry if isinstance(record, BatchRecord) and record.stage == "reduce"
        ]
        seconds = sum(batch.duration_ms for batch in batches) / 1000
        results = describe(settings.kafka, [settings.topic("results")])[settings.topic("results")].records
    return {
        "tuples": tuples,
        "result_rows": results,
        "batches": len(batches),
        "seconds": round(seconds, 3),
        "tuples_per_second": round(tuples / seconds),
        "result_rows_per_second": round(results / seconds),
        **budget(used, tuples=tuples, rows=results),
    }
