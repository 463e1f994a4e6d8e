"""Where a key's state is large, a split key costs a copy of it: what combiners and reducers do, by placement.

500 keys have a state of 1 MiB each (a histogram with 131,072 bins), and the partial result of a key in a
worker is such a state. So a placement that splits many keys makes many large partials. A placement that
splits none has a worker with most of the tuples.

The cores of combiner and reducer run in this process, worker by worker and bucket by bucket, without Spark.
A worker's time is the CPU time that its states take, measured, and 20 us for each of its tuples, counted: a
user's function would take them. Both parts of the slowest worker's time are reported. Each worker and each
bucket has a core of its own in the model, and a slide takes as long as the slowest worker and then the
slowest bucket. The mark is the time of one worker and one bucket for everything, over the number of workers:
no key is split, and all are equally full.

`evenflow` counts tuples, and not keys: a key that comes anew goes where the fewest tuples are, so one worker
may get half of all keys. With `tail = "hash"` a key's home follows from its hash, so keys are spread as by
hashing, and hot keys are still split.

Each placement first works off a slide that is not measured, so that the memory for so large partials has been
used before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measuring.spread import spread
from benchmarks.spark.costly_work import PLACEMENTS, judged_placements
from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.own import PlainAggregate
from evenflow.generation.laws import LAWS
from evenflow.generation.rank_laws import labels
from evenflow.keys import bucket_of, hash_keys
from evenflow.numeric.arrays import Int32s, Int64s, UInt64s
from evenflow.partitioners import create
from evenflow.partitioners.fitting import fitted
from evenflow.settings import Query

ID = "large-state"
WHAT = (
    "partials, memory and time of the slowest worker and bucket where 500 keys have a state of 1 MiB each"
    " (goal: 0.9 of perfect balance where hashing is more than three times slower)"
)

SEED = 7
SKEWS = (1.0, 1.4, 2.0)
WORKERS = BUCKETS = 8
COST_US = 20
"""What a tuple costs its worker besides."""
_SLIDE = 1_000
_BINS = 131_072
HASHED_HOMES = "evenflow, `tail = hash`"
_OPTIONS: dict[str, dict[str, Any]] = {HASHED_HOMES: {"tail": "hash"}}
"""Options of a placement, besides those that the query suggests."""
_WARM = 3
"""Slides that partitioners see before those that are measured. The last of them is worked off, too."""


class Histogram(PlainAggregate):
    """How many bins have a value. Its state has a count for each bin, 1 MiB with the default of bins."""

    result = "int64"
    over = ("int64",)

    def __init__(self, bins: int = _BINS) -> None:
        self.bins = bins

    def init(self) -> Any:
        return np.zeros(self.bins, np.int64)

    def add(self, state: Any, value: Any) -> Any:
        state[value % self.bins] += 1
        return state

    def add_all(self, state: Any, values: pa.Array) -> Any:
        np.add.at(state, values.to_numpy() % self.bins, 1)
        return state

    def merge(self, a: Any, b: Any) -> Any:
        a += b
        return a

    def finish(self, state: Any) -> int:
        return int(np.count_nonzero(state))

    def dump(self, state: Any) -> bytes:
        return bytes(state.tobytes())

    def load(self, data: bytes) -> Any:
        # A copy, since `merge` changes the state that it gets.
        return np.frombuffer(data, np.int64).copy()


@dataclass(frozen=True, kw_only=True)
class RunSize:
    """How large a run is."""

    keys: int = 500
    """Distinct keys."""
    tuples: int = 100_000
    """Tuples of a slide."""
    slides: int = 5
    """Slides that are measured."""
    bins: int = _BINS
    """Bins of a histogram, 8 bytes each."""


@dataclass(frozen=True, eq=False)
class SlideOfTuples:
    """The tuples of a slide. Arrays have shape (tuples,) but for `names`."""

    names: pa.Array
    """The key of each rank, as binary, shape (keys,)."""
    hashes: UInt64s
    """Hash of each tuple's key."""
    ranks: Int64s
    """Rank of each tuple's key."""
    values: Int64s
    """What the histogram counts."""

    def rows(self, plan: AggregatePlan, at: Int64s) -> pa.Table:
        """The tuples at these places as the combiner gets them."""
        columns = [pa.array(np.zeros(len(at), np.int64)), self.names.take(pa.array(self.ranks[at]))]
        return pa.table([*columns, pa.array(self.values[at])], schema=plan.frame_schema)


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each skew and placement, with the goal at those of `evenflow`."""
    size = RunSize(keys=20, tuples=2_000, slides=1, bins=256) if smoke else RunSize()
    rows = []
    for zipf in SKEWS:
        slides = _stream(size, zipf)
        # The first call loads kernels and warms memory, and does not count.
        ideal = _ideal(size, slides[_WARM - 1 :])[1:]
        rows += [
            {"zipf": zipf, "placement": title, **_figures(size, slides, name, ideal, _OPTIONS.get(title, {}))}
            for title, name in (PLACEMENTS | {HASHED_HOMES: "evenflow"}).items()
        ]
    return {
        "workers": WORKERS,
        "keys": size.keys,
        "state_bytes": 8 * size.bins,
        "cost_us": COST_US,
        "slide_tuples": size.tuples,
        "slides": size.slides,
        "rows": judged_placements(judged_placements(rows), ours=HASHED_HOMES),
    }


def _stream(size: RunSize, zipf: float) -> list[SlideOfTuples]:
    names = labels(np.arange(size.keys)).cast(pa.binary())
    hashes = hash_keys(names)
    generator = np.random.default_rng(SEED)
    law = LAWS["zipf"].rank_law(size.keys, SEED, z=zipf)
    slides = []
    for number in range(_WARM + size.slides):
        ranks = law.ranks(generator.random(size.tuples), number).astype(np.int64)
        values = generator.integers(0, 2**31, size.tuples)
        slides.append(SlideOfTuples(names, hashes[ranks], ranks, values))
    return slides


def _plan(size: RunSize) -> AggregatePlan:
    return AggregatePlan.of(
        Query(
            window=_SLIDE,
            aggregates={"bins": f"{__name__}:Histogram(x, {size.bins})"},
            types={"x": "int64"},
        )
    )


@dataclass(frozen=True)
class _Slide:
    """What a slide took."""

    states_s: Sequence[float]
    """CPU seconds that the states of each worker took, measured."""
    tuples_s: Sequence[float]
    """Seconds that the tuples of each worker cost, counted."""
    bucket_s: Sequence[float]
    """CPU seconds of each bucket."""
    partials: int
    """Partials of all workers."""
    most_bytes: int
    """Bytes of the partials of the worker that has most."""
    results: pa.Table
    """Key and result of each key."""

    @property
    def worker_s(self) -> Sequence[float]:
        """Seconds of each worker."""
        return [measured + counted for measured, counted in zip(self.states_s, self.tuples_s, strict=True)]

    @property
    def slowest(self) -> int:
        """The worker that takes longest."""
        return int(np.argmax(self.worker_s))

    @property
    def slowest_s(self) -> float:
        """Seconds until the last bucket is done."""
        return max(self.worker_s) + max(self.bucket_s)


def _ideal(size: RunSize, slides: Sequence[SlideOfTuples]) -> list[_Slide]:
    """Everything in one worker and one bucket."""
    plan = _plan(size)
    return [_slide(plan, slide, np.zeros(size.tuples, np.int32), workers=1, buckets=1) for slide in slides]


def _figures(
    size: RunSize,
    slides: Sequence[SlideOfTuples],
    placement: str,
    ideal: Sequence[_Slide],
    own: dict[str, Any],
) -> dict[str, object]:
    plan = _plan(size)
    options: dict[str, Any] = fitted(placement, own, window_ms=_SLIDE, slide_ms=_SLIDE)
    partitioner = create(placement, workers=WORKERS, seed=SEED, **options)
    measured: list[_Slide] = []
    for number, slide in enumerate(slides):
        times = number * _SLIDE + np.arange(size.tuples) * _SLIDE // size.tuples
        placed = partitioner.assign(slide.hashes, times)
        if number >= _WARM - 1:
            measured.append(_slide(plan, slide, placed, workers=WORKERS, buckets=BUCKETS))
    del measured[0]
    for slide_costs, alone in zip(measured, ideal, strict=True):
        if not slide_costs.results.equals(alone.results):
            raise AssertionError(f"{placement}: results differ from those of one worker")
    marks = [(alone.worker_s[0] + alone.bucket_s[0]) / WORKERS for alone in ideal]
    figures: dict[str, list[float]] = {
        "of_perfect": [mark / costs.slowest_s for mark, costs in zip(marks, measured, strict=True)],
        "slowest_worker_s": [max(costs.worker_s) for costs in measured],
        "slowest_worker_measured_s": [costs.states_s[costs.slowest] for costs in measured],
        "slowest_worker_counted_s": [costs.tuples_s[costs.slowest] for costs in measured],
        "slowest_bucket_s": [max(costs.bucket_s) for costs in measured],
        "measured_s": [sum(costs.states_s) + sum(costs.bucket_s) for costs in measured],
        "counted_s": [sum(costs.tuples_s) for costs in measured],
        "partials": [costs.partials for costs in measured],
        "partials_mib": [costs.partials * 8 * size.bins / 2**20 for costs in measured],
        "fullest_worker_mib": [costs.most_bytes / 2**20 for costs in measured],
    }
    return {name: spread(values) for name, values in figures.items()}


def _slide(
    plan: AggregatePlan, slide: SlideOfTuples, placed: Int32s, *, workers: int, buckets: int
) -> _Slide:
    """Combine the tuples of a slide worker by worker, and reduce the partials bucket by bucket."""
    order = np.argsort(placed, kind="stable")
    bounds = np.searchsorted(placed[order], np.arange(workers + 1))
    states_s, tables = [], []
    for start, stop in pairwise(bounds.tolist()):
        rows = slide.rows(plan, order[start:stop])
        began = time.process_time()
        tables.append(plan.combine(rows))
        states_s.append(time.process_time() - began)
    bucket_s, results = [], []
    for bucket in range(buckets):
        parts = [table.filter(pa.array(_buckets(table, buckets) == bucket)) for table in tables]
        began = time.process_time()
        merged = plan.merge([part.drop_columns(["pane"]) for part in parts])
        results.append(plan.finish(merged).append_column("key", merged["key"]))
        bucket_s.append(time.process_time() - began)
    return _Slide(
        states_s,
        [float(tuples) * COST_US / 1e6 for tuples in np.diff(bounds)],
        bucket_s,
        sum(table.num_rows for table in tables),
        max(table.nbytes for table in tables),
        pa.concat_tables(results).sort_by("key"),
    )


def _buckets(table: pa.Table, buckets: int) -> Int64s:
    return bucket_of(hash_keys(table.column("key").combine_chunks()), buckets).astype(np.int64)
