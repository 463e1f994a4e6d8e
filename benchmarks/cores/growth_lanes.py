"""How the cost of a micro-batch grows with routed partitions, input partitions and buckets."""

from __future__ import annotations

from statistics import median

from benchmarks.cores.growth import SEED as SEED
from benchmarks.cores.growth import Pipeline

ID = "growth-lanes"
WHAT = (
    "CPU seconds of a micro-batch in combiner and reducer over routed partitions R, input partitions I and"
    " buckets B"
)

SHAPES = ((8, 4, 2), (64, 16, 8), (1_000, 100, 2), (1_000, 100, 64))


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each shape: an empty micro-batch that only carries marks, and one of 50,000 tuples in five
    blocks.
    """
    rows = []
    for routed, inputs, buckets in SHAPES[:1] if smoke else SHAPES:
        row: dict[str, object] = {"R": routed, "I": inputs, "B": buckets}
        for name, tuples, blocks in (("empty", 0, 1), ("full", 500 if smoke else 50_000, 5)):
            pipeline = Pipeline(routed=routed, inputs=inputs, buckets=buckets)
            # The first micro-batch is a warm-up and does not count.
            runs = list(pipeline.batches(3 if smoke else 6, tuples=tuples, keys=100_000, blocks=blocks))[1:]
            row[f"{name}_combine"] = round(median(combining for combining, _, _ in runs), 4)
            row[f"{name}_reduce"] = round(median(reducing for _, reducing, _ in runs), 4)
        rows.append(row)
    return {"cpu_seconds": rows}
