"""How the cost of a micro-batch grows with the keys of the window, up to ten million."""

from __future__ import annotations

from statistics import median

from benchmarks.cores.growth import SEED as SEED
from benchmarks.cores.growth import Pipeline

ID = "growth-keys"
WHAT = (
    "CPU seconds of a micro-batch into one long open pane that holds 1e5, 1e6, 1e7 keys, and of emitting its"
    " window"
)

TUPLES = 100_000


def run(*, smoke: bool) -> dict[str, object]:
    """Fill a tumbling window micro-batch by micro-batch until it holds the keys. Measure some more, and
    close it.
    """
    rows = []
    for keys in (2_000, 10_000) if smoke else (100_000, 1_000_000, 10_000_000):
        pipeline = Pipeline(panes=1)
        fill = max(1, keys // TUPLES)
        for _ in pipeline.batches(fill, tuples=min(keys, TUPLES), keys=keys, close=0):
            pass
        before = pipeline.moved
        batches = list(pipeline.batches(4 if smoke else 8, tuples=TUPLES // 10, keys=keys, close=0))
        moved = pipeline.moved - before
        (closing,) = pipeline.batches(1, tuples=TUPLES // 10, keys=keys)
        rows.append(
            {
                "keys": keys,
                "micro_batches_before": fill,
                "reduce_median": round(median(reducing for _, reducing, _ in batches), 4),
                "state_bytes_a_batch": moved // len(batches),
                "emit": round(closing[1], 3),
                "rows": closing[2],
            }
        )
    return {"tuples_a_batch": TUPLES // 10, "cpu_seconds": rows}
