"""How the cost of a micro-batch grows with the panes of a window: a day of panes against a minute of
panes.
"""

from __future__ import annotations

from statistics import median

from benchmarks.cores.growth import SEED as SEED
from benchmarks.cores.growth import Pipeline

ID = "growth-panes"
WHAT = (
    "CPU seconds of a micro-batch in the reducer with 60 and with 86,400 panes of a second in the window"
    " (goal: 1.10)"
)

_AT_ONCE = 600
"""Panes that one micro-batch fills before the measurement."""
KEYS = 1_000
"""So few keys that a minute has the same keys as a day. So only the number of panes differs."""


def run(*, smoke: bool) -> dict[str, object]:
    """Fill both pipelines to a whole window, then measure them in turns. A full micro-batch closes one
    pane.
    """
    many = 200 if smoke else 86_400
    pipelines = {panes: filled(panes) for panes in (60, many)}
    seconds: dict[tuple[int, str], list[float]] = {}
    moved: dict[int, float] = {}
    repetitions = 3 if smoke else 30
    # What filling has moved is subtracted at the end.
    for panes, pipeline in pipelines.items():
        moved[panes] = -pipeline.moved
    for _ in range(repetitions):
        for panes, pipeline in pipelines.items():
            for name, tuples in (("full", 2_000), ("empty", 0)):
                blobs, _ = pipeline.combine(pipeline.frames(tuples=tuples, keys=KEYS, close=bool(tuples)))
                seconds.setdefault((panes, name), []).append(pipeline.reduce(blobs)[1])
    medians = {f"{name}_{panes}_panes": round(median(values), 5) for (panes, name), values in seconds.items()}
    return {
        "keys": KEYS,
        "cpu_seconds": medians,
        "state_bytes_a_batch": {
            f"{panes}_panes": round((moved[panes] + pipeline.moved) / repetitions / 2)
            for panes, pipeline in pipelines.items()
        },
        "ratio_full": round(medians[f"full_{many}_panes"] / medians["full_60_panes"], 3),
        "ratio_empty": round(medians[f"empty_{many}_panes"] / medians["empty_60_panes"], 3),
    }


def filled(panes: int) -> Pipeline:
    """A pipeline whose window holds this many panes, each with a few tuples."""
    pipeline = Pipeline(panes=panes)
    for _ in range(0, panes, _AT_ONCE):
        frames = pipeline.frames(tuples=40 * _AT_ONCE, keys=KEYS, spread=_AT_ONCE, close=_AT_ONCE)
        pipeline.reduce(pipeline.combine(frames)[0])
    return pipeline
