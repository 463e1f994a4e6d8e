"""What `spark.reduce = "prompt"` costs in Spark, where its reduce tasks need one more shuffle than `"hash"`.

`prompt` cuts the stream into batches, and the same routed topic is worked off both ways, in turns
(`benchmarks/spark/triggers.py`). `reduce-prompt` measures the cores of both ways without Spark.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measuring.pipelines import measured_broker
from benchmarks.measuring.stream import EVENT_RATE
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.spark.stages import FOLDER
from benchmarks.spark.triggers import measured_triggers, routed_batches
from evenflow.settings import Settings

ID = "spark-reduce-prompt"
WHAT = (
    "seconds of a Spark trigger with spark.reduce = hash and prompt: what the additional shuffle costs, by"
    " skew"
)

REDUCE = ("hash", "prompt")
_SKEWS = (0.5, 1.0, 1.5)
_TAKEN = (1, 5)
"""Batches a trigger."""


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each skew and each way, with the figures of its triggers."""
    batches, repetitions = (4, 1) if smoke else (10, 3)
    skews, batches_a_trigger = (_SKEWS[:1], (1, 2)) if smoke else (_SKEWS, _TAKEN)
    with measured_broker("driver") as (broker, meter), TemporaryDirectory(prefix=FOLDER) as folder:
        streams: dict[str, Settings] = {}
        for skew in skews:
            query = f"bench-reduce-{skew}"
            routed = routed_batches(
                broker.settings(), query, "prompt", Path(folder), batches=batches, zipf=skew
            )
            streams |= {f"{skew}, {reduce}": _reducing(routed, reduce) for reduce in REDUCE}
        measured, machine = measured_triggers(
            streams, batches_a_trigger, batches=batches, repetitions=repetitions, folder=folder, meter=meter
        )
    rows = [
        {"zipf": skew, "reduce": reduce, **measured[f"{skew}, {reduce}"]}
        for skew, reduce in product(skews, REDUCE)
    ]
    return {"batch_tuples": EVENT_RATE, "batches": batches, **machine, "rows": rows}


def _reducing(settings: Settings, reduce: str) -> Settings:
    return settings.model_copy(update={"spark": settings.spark.model_copy(update={"reduce": reduce})})
