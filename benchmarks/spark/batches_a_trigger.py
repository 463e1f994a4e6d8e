"""Triggers of Spark that take one or several batches of some partitioners (001, fig. 3.7a).

From what a trigger costs whatever its data (as a share of an interval of one second) follows 001's factor:
the data that ten batches a trigger sustain, over the data that one sustains. `benchmarks/spark/triggers.py`
measures the cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measuring.pipelines import measured_broker
from benchmarks.measuring.stream import EVENT_RATE
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.pictures import PLOTS, keep_rows
from benchmarks.spark.stages import FOLDER
from benchmarks.spark.triggers import measured_triggers, routed_batches
from papers.group_ahead.queue import throughput

ID = "spark-batches-a-trigger"
WHAT = "seconds of a Spark trigger that takes 1, 2, 5 or 10 batches, by partitioner, and its fixed cost"

PARTITIONERS = ("hashing", "prompt", "partly", "evenflow")
TAKEN = (1, 2, 5, 10)
"""Batches a trigger."""
_INTERVAL_S = 1.0


def run(*, smoke: bool) -> dict[str, object]:
    """Seconds a trigger for each number of batches, the fixed cost and the factor, by partitioner."""
    batches, repetitions = (4, 1) if smoke else (10, 3)
    names, batches_a_trigger = (PARTITIONERS[1:2], TAKEN[:2]) if smoke else (PARTITIONERS, TAKEN)
    with measured_broker("driver") as (broker, meter), TemporaryDirectory(prefix=FOLDER) as folder:
        streams = {
            name: routed_batches(
                broker.settings(), f"bench-trigger-{name}", name, Path(folder), batches=batches
            )
            for name in names
        }
        measured, machine = measured_triggers(
            streams, batches_a_trigger, batches=batches, repetitions=repetitions, folder=folder, meter=meter
        )
    rows = [row(name, figures) for name, figures in measured.items()]
    if not smoke:
        keep_rows(rows, PLOTS / f"{ID}.json")
    return {"batch_tuples": EVENT_RATE, "batches": batches, **machine, "partitioners": rows}


def row(partitioner: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of a partitioner's triggers with 001's factor for ten batches a trigger."""
    factor = throughput(figures["fixed_s"] / _INTERVAL_S, max(TAKEN))
    return {"partitioner": partitioner, **figures, "factor": round(factor, 2)}
