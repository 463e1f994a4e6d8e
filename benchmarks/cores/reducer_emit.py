"""What the modes of emission cost the reducer, compared: all rows, changes, and the first 100."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.cores.growth import SEED as SEED
from benchmarks.cores.growth import Pipeline
from evenflow.settings import Query
from evenflow.twostep import json_rows, key_type, readable, readable_schema, typed_keys
from evenflow.wire.result_frames import encode_results

ID = "reducer-emit"
WHAT = (
    "CPU seconds and bytes a window of the reducer and of each sink's rows: emit = all, changes, top(100);"
    " 1e5 keys"
)


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each total, share of keys with tuples in a pane (1 % or 30 %), mode, and windows a
    micro-batch (1 or 10).

    Each micro-batch reads and writes state once.
    """
    keys, panes, windows = (1_000, 4, 2) if smoke else (100_000, 60, 20)
    rows = []
    for total in ("sum(x)", "max(x)"):
        for share in (0.01, 0.3):
            for emit in ("all", "changes", "top(100, n)"):
                pipeline = Pipeline(panes=panes, emit=emit, total=total)
                tuples = int(keys * share)
                # A window's worth of panes comes first, so that every window that is measured is full.
                for _ in pipeline.batches(panes, tuples=tuples, keys=keys):
                    pass
                for at_once in (1, 10):
                    rows.append(
                        {"total": total, "keys_a_slide": share, "emit": emit, "windows_a_batch": at_once}
                        | measured(pipeline, windows, at_once, tuples=tuples, keys=keys)
                    )
    return {"keys": keys, "panes": panes, "windows": rows}


def measured(pipeline: Pipeline, windows: int, at_once: int, *, tuples: int, keys: int) -> dict[str, object]:
    """Medians over about `windows` windows, `at_once` of them in each micro-batch. All figures are per
    window.
    """
    samples = []
    moved, batches = pipeline.moved, max(3, windows // at_once)
    for _ in range(batches):
        frames = pipeline.frames(tuples=tuples * at_once, keys=keys, close=at_once, spread=at_once)
        blobs, _ = pipeline.combine(frames)
        tables, seconds = pipeline.results(blobs)
        written = [_written(way, tables, pipeline.query) for way in WAYS.values()]
        figures = [seconds, *(cpu for cpu, _ in written), *(size for _, size in written)]
        samples.append([sum(table.num_rows for table in tables), *figures])
    rows, core, *way_costs = (median(column) / at_once for column in zip(*samples, strict=True))
    # `way_costs` has the CPU seconds of all ways first, then their bytes.
    return {
        "rows": round(rows),
        "cpu_seconds": round(core, 4),
        **{f"{name}_cpu_seconds": round(cpu, 4) for name, cpu in zip(WAYS, way_costs, strict=False)},
        **{f"{name}_bytes": round(size) for name, size in zip(WAYS, way_costs[len(WAYS) :], strict=True)},
        "state_bytes": (pipeline.moved - moved) // (batches * at_once),
    }


def _written(way: Way, tables: list[pa.Table], query: Query) -> tuple[float, int]:
    """CPU seconds and bytes of the rows in the form of one sink."""
    began = time.process_time()
    size = way(tables, query)
    return time.process_time() - began, size


def _json(tables: list[pa.Table], query: Query) -> int:
    text = [json_rows(typed_keys(table, key_type(query))) for table in tables]
    return sum(len(row.as_buffer()) for rows in text for row in rows)


def _frames(tables: list[pa.Table], query: Query) -> int:
    schema = readable_schema(query)
    rows = (readable(table, schema) for table in tables)
    return sum(map(len, encode_results(rows, fingerprint="f", bucket=0)))


def _parquet(tables: list[pa.Table], query: Query) -> int:
    if not tables:
        return 0
    out = pa.BufferOutputStream()
    pq.write_table(pa.concat_tables([typed_keys(table, key_type(query)) for table in tables]), out)
    return int(out.getvalue().size)


Way = Callable[[list[pa.Table], Query], int]
WAYS: dict[str, Way] = {"json": _json, "frames": _frames, "parquet": _parquet}
"""By sink: makes what the sink sends from the rows, without sending it. Returns its bytes."""
