"""What the modes of emission cost the reducer, side by side: all rows, changes, the first 100."""

from __future__ import annotations

import time
from statistics import median

from benchmarks.growth import Pipeline
from evenflow.twostep import json_rows, typed_keys

ID = "reducer-emit"
WHAT = "CPU seconds of the reducer (its core; with JSON rows), rows, bytes a window: emit = all, changes, top(100); 1e5 keys"


def run(*, smoke: bool) -> dict[str, object]:
    """A pane has tuples of 1 % or 30 % of the keys; 1 or 10 windows a micro-batch, each of which reads and writes state."""
    keys, panes, windows = (1_000, 4, 2) if smoke else (100_000, 60, 20)
    rows = []
    for total in ("sum(x)", "max(x)"):
        for share in (0.01, 0.3):
            for emit in ("all", "changes", "top(100, n)"):
                pipeline = Pipeline(panes=panes, emit=emit, total=total)
                tuples = int(keys * share)
                for _ in pipeline.batches(panes, tuples=tuples, keys=keys):
                    pass
                for at_once in (1, 10):
                    rows.append(
                        {"total": total, "keys_a_slide": share, "emit": emit, "windows_a_batch": at_once}
                        | measured(pipeline, windows, at_once, tuples=tuples, keys=keys)
                    )
    return {"keys": keys, "panes": panes, "windows": rows}


def measured(pipeline: Pipeline, windows: int, at_once: int, *, tuples: int, keys: int) -> dict[str, object]:
    """Medians over about so many windows, of which each micro-batch has `at_once`; all figures are of one window."""
    found = []
    moved, batches = pipeline.moved, max(3, windows // at_once)
    for _ in range(batches):
        frames = pipeline.frames(tuples=tuples * at_once, keys=keys, close=at_once, spread=at_once)
        blobs, _ = pipeline.combine(frames)
        tables, seconds = pipeline.results(blobs)
        began = time.process_time()
        text = [json_rows(typed_keys(table, table["key"].type)) for table in tables]
        writing = time.process_time() - began
        size = sum(len(row.as_buffer()) for rows in text for row in rows)
        found.append((seconds, seconds + writing, sum(table.num_rows for table in tables), size))
    core, written, rows, sizes = (median(column) / at_once for column in zip(*found, strict=True))
    return {
        "cpu_seconds": round(core, 4),
        "with_json_cpu_seconds": round(written, 4),
        "rows": round(rows),
        "json_bytes": round(sizes),
        "state_bytes": (pipeline.moved - moved) // (batches * at_once),
    }
