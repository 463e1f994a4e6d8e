"""How late result rows were: append time of the row (LogAppendTime) less the end of its window.

A row could have been known at the end of its window, because the queries here allow no disorder. Where there
are many rows, only those of one partition of the results topic are looked at. They are a fair sample, because
rows are spread by the hash of the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evenflow.settings import Settings
from topics.reader import read_range

SAMPLE = 0
"""The partition whose rows are looked at."""
SLACK_MS = 1_000
"""Growth of latency within a step up to which nothing piles up."""
_EVERY = 8
"""Every eighth row is looked at. A window has thousands of rows in a partition."""
_PAST_THE_END = 2**62
"""An offset that no partition reaches."""
_WINDOW_END = b'"window_end":'


def sampled_rows(
    settings: Settings, begin: Mapping[int, int], end: Mapping[int, int] | None = None
) -> np.ndarray:
    """Triples (append time, window end, rows) of the sample, `int64[n, 3]`, times in ms.

    Read are offsets from `begin` up to `end`, by partition. Without `end`: up to the end of the topic.
    """
    # The other partitions begin behind their end, so nothing of them is read. (Offset 0 may be gone.)
    others = {number: _PAST_THE_END for number in range(settings.bucket_count) if number != SAMPLE}
    first = {SAMPLE: begin.get(SAMPLE, 0), **others}
    return _read(settings, first, None if end is None else {SAMPLE: end[SAMPLE]}, every=_EVERY)


def all_rows(settings: Settings, begin: Mapping[int, int]) -> np.ndarray:
    """As `sampled_rows`, but every row of all partitions, from these offsets on to the end of the topic."""
    return _read(settings, begin, None, every=1)


def _read(
    settings: Settings, begin: Mapping[int, int], end: Mapping[int, int] | None, *, every: int
) -> np.ndarray:
    counts: dict[tuple[int, int], int] = {}
    for messages in read_range(settings.kafka, settings.topic("results"), begin=begin, end=end):
        for message in messages[::every]:
            # The rows are many, so their JSON is searched, not parsed.
            value = message.value() or b""
            at = value.index(_WINDOW_END) + len(_WINDOW_END)
            row = (message.timestamp()[1], int(value[at : value.index(b",", at)]))
            counts[row] = counts.get(row, 0) + 1
    return np.array([(*row, number) for row, number in counts.items()], np.int64).reshape(-1, 3)


def judged(rows: np.ndarray, rate: int, achieved: int, begun: int) -> dict[str, Any]:
    """Latencies of the windows of a step, and whether they grew no more in its second half.

    rows: as `sampled_rows` gives them. rate, achieved: tuples per second that the replay should send, and
    that it sent. begun (ms): the begin of the step. Windows that ended before belong to the pause in front of
    the step. They wait for the next tuple, not for the pipeline, so they are left out. The first quarter of
    the step is left out, too.
    """
    last = int(rows[:, 1].max()) if len(rows) else 0
    live = rows[rows[:, 1] > begun + 0.25 * (last - begun)]
    if last <= begun or not len(live):
        return {"sustained": False, "latency_p50_ms": None, "latency_p99_ms": None, "growth_ms": None}
    # Each row of `live` stands for many result rows: its third column is a weight.
    late = live[:, 0] - live[:, 1]
    middle = np.median(live[:, 1])
    early, end = (live[:, 1] <= middle), (live[:, 1] > middle)
    growth = 0.0
    if end.any():
        growth = percentile(late[end], live[end, 2], 50) - percentile(late[early], live[early, 2], 50)
    return {
        "latency_p50_ms": round(percentile(late, live[:, 2], 50)),
        "latency_p99_ms": round(percentile(late, live[:, 2], 99)),
        "growth_ms": round(growth),
        "sustained": bool(achieved >= 0.97 * rate and growth <= SLACK_MS),
    }


def percentile(values: np.ndarray, weights: np.ndarray, percent: float) -> float:
    """The value below which `percent` percent of the weight lie."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, percent / 100 * reached[-1])])
