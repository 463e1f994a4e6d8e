"""Prices of tasks from a file: kept costs, or the task times
that executors measured (001, section 4.6, technique 3).

A file is one of two:

* Kept costs: one JSON object `{"ns": {...}}` with the costs tuple, make, send, receive, hold and emit, as
  docs/reproducing/costs.json has them. They have no noise.
* Telemetry: lines of JSON, each a record of `<query>.telemetry`. Records of other kinds are passed over. A
  record of a micro-batch says how long its combine and reduce tasks took, and how many tuples, partial
  results and keys they had.

A batch of the training is on no cluster, so its task times are replayed. From telemetry the prices are the
slopes, not below 0, that fit the measured times best. What the fit leaves is the noise. A task is started for
a time of its own, which is the same for every task and so is no part of a variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Float64s
from evenflow.partitioners.partly.task_times import Prices
from evenflow.telemetry import MOST_BYTES, BatchRecord, Part, PartWork, parse
from evenflow.text.strict_json import read_object

LEAST_RECORDS = 10
"""Micro-batches that a fit needs, of each part."""
_KEPT = ("tuple", "make", "send", "receive", "hold", "emit")
_HINT = "give costs as `evenflow bench stage-costs` writes them, or lines of a query's telemetry"


class _PartTasks(NamedTuple):
    """Tasks of a part in a micro-batch."""

    tasks: float
    """How many tasks there were."""
    many: float
    """Tuples (combine), or partial results (reduce)."""
    few: float
    """Clusters (combine), or keys (reduce)."""
    ms: float
    """Time of all tasks together."""


def read_prices(path: Path) -> Prices:
    """The prices that a file says. ConfigError if it cannot be read, or says none."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the task times {path} cannot be read: {error.strerror}", hint=_HINT) from None
    prices = _stage_costs(content) or _measured(content, path)
    if prices.tuple + prices.make <= 0 or prices.receive + prices.row <= 0:
        raise ConfigError(f"{path}: the time of a task does not rise with what the task gets", hint=_HINT)
    return prices


def _stage_costs(content: bytes) -> Prices | None:
    """Kept costs. None for anything else."""
    try:
        costs = read_object(content, most_bytes=MOST_BYTES).part("ns")
        ns = {name: _amount(costs.fields.get(name)) for name in _KEPT}
    except ValueError:
        return None
    return Prices(ns["tuple"], ns["make"] + ns["send"], ns["receive"], ns["hold"] + ns["emit"], 0.0)


def _amount(value: object) -> float:
    """A number from 0 to 1e12. ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e12:
        raise ValueError(f"{value!r:.100} is no cost")
    return float(value)


def _measured(content: bytes, path: Path) -> Prices:
    records = [record for line in content.splitlines() if (record := _batch(line)) is not None]
    combined, reduced = list(_works(records, "combine")), list(_works(records, "reduce"))
    fewest = min(len(combined), len(reduced))
    if fewest < LEAST_RECORDS:
        raise ConfigError(
            f"{path} has {fewest} micro-batches with work of combine and reduce tasks,"
            f" and {LEAST_RECORDS} are needed",
            hint=_HINT,
        )
    (tuple_price, make), mapped = _fitted(combined)
    (receive, row), rest = _fitted(reduced)
    return Prices(tuple_price, make, receive, row, max(mapped, rest))


def _batch(line: bytes) -> BatchRecord | None:
    """The record of a micro-batch. None for any other line."""
    try:
        record = parse(line)
    except ValueError:
        return None
    return record if isinstance(record, BatchRecord) else None


def _works(records: Sequence[BatchRecord], part: Part) -> Iterator[_PartTasks]:
    for record in records:
        work: PartWork | None = record.parts.get(part)
        if work is None or not (work.tasks and work.rows and work.keys and work.busy_ms > 0):
            continue
        clusters = work.keys * (work.replication or 1.0) if part == "combine" else work.keys
        yield _PartTasks(work.tasks, work.rows, clusters, work.busy_ms)


def _fitted(works: Sequence[_PartTasks]) -> tuple[tuple[float, float], float]:
    """The slopes of `many` and `few`, and the noise of a task."""
    # Without an intercept: the number of tasks is a column, so its slope is the fixed time of a task.
    columns = np.array(works, np.float64)
    counts, times = columns[:, :3], columns[:, 3]
    slopes = _least_squares(counts, times)
    off = (times - counts @ slopes) / times
    # The noise of n tasks together is that of one by the root of n.
    noise = float(np.sqrt(np.mean(counts[:, 0] * off * off)))
    return (float(slopes[1]), float(slopes[2])), noise


def _least_squares(counts: Float64s, times: Float64s) -> Float64s:
    """The slopes of at least 0 with the least sum of squares: of each set of columns the best, if it has
    none below 0.
    """
    best, least = np.zeros(counts.shape[1]), np.inf
    for size in range(1, counts.shape[1] + 1):
        for columns in combinations(range(counts.shape[1]), size):
            some = counts[:, columns]
            slopes = np.linalg.lstsq(some, times, rcond=None)[0]
            left = float(((times - some @ slopes) ** 2).sum())
            if (slopes >= 0).all() and left < least:
                best, least = np.zeros(counts.shape[1]), left
                best[list(columns)] = slopes
    return best
