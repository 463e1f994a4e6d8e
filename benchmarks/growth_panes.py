"""How the cost of a micro-batch grows with the panes of a window: a minute of them against a day."""

from __future__ import annotations

from statistics import median

from benchmarks.growth import Pipeline

ID = "growth-panes"
WHAT = "CPU seconds of a micro-batch in the reducer with 60 and with 86,400 panes of a second in the window (goal: 1.10)"

_AT_ONCE = 600
KEYS = 1_000
"""Few enough that the same keys are in a minute as in a day: what differs is the number of panes alone."""


def run(*, smoke: bool) -> dict[str, object]:
    """Both filled to a whole window first, then measured in turns. A full micro-batch closes one pane."""
    many = 200 if smoke else 86_400
    pipelines = {panes: filled(panes) for panes in (60, many)}
    seconds: dict[tuple[int, str], list[float]] = {}
    moved: dict[int, float] = {}
    repetitions = 3 if smoke else 30
    for panes, pipeline in pipelines.items():
        moved[panes] = -pipeline.moved
    for _ in range(repetitions):
        for panes, pipeline in pipelines.items():
            for name, tuples in (("full", 2_000), ("empty", 0)):
                blobs, _ = pipeline.combine(pipeline.frames(tuples=tuples, keys=KEYS, close=bool(tuples)))
                seconds.setdefault((panes, name), []).append(pipeline.reduce(blobs)[1])
    found = {f"{name}_{panes}_panes": round(median(values), 5) for (panes, name), values in seconds.items()}
    return {
        "keys": KEYS,
        "cpu_seconds": found,
        "state_bytes_a_batch": {
            f"{panes}_panes": round((moved[panes] + pipeline.moved) / repetitions / 2)
            for panes, pipeline in pipelines.items()
        },
        "ratio_full": round(found[f"full_{many}_panes"] / found["full_60_panes"], 3),
        "ratio_empty": round(found[f"empty_{many}_panes"] / found["empty_60_panes"], 3),
    }


def filled(panes: int) -> Pipeline:
    """A pipeline whose window holds this many panes, each with a few tuples. Many panes a micro-batch."""
    pipeline = Pipeline(panes=panes)
    for _ in range(0, panes, _AT_ONCE):
        frames = pipeline.frames(tuples=40 * _AT_ONCE, keys=KEYS, spread=_AT_ONCE, close=_AT_ONCE)
        pipeline.reduce(pipeline.combine(frames)[0])
    return pipeline
