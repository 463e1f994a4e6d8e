"""What it would save if a worker finished the windows of a key by itself, and what that costs, by
partitioner.

A worker is the *home* of a key if the first candidate F_1 names it. It may finish a window of the key only if
no tuple of the window went to another worker. So whoever routes a tuple elsewhere announces (pane, key) to
the key's home. Everything else goes to the reducer: what is not at home as partials of a pane, and what home
has of an announced key as one partial of the window.

Both ways run through the cores of combiner and reducer, without any service: the same merges, the same state,
the same blobs. The state of a home is that of a reduce bucket.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.cores.forwarding_ways import SEED as SEED
from benchmarks.cores.forwarding_ways import SLIDE, SPAN, Forwarding, ForwardingCase, Today
from benchmarks.pictures import PLOTS, keep_rows
from evenflow.aggregates import AggregatePlan
from evenflow.generation.laws import LAWS
from evenflow.generation.rank_laws import labels
from evenflow.keys import candidate, hash_keys
from evenflow.numeric.arrays import Int32s, Int64s, UInt64s
from evenflow.partitioners import create
from evenflow.partitioners.fitting import fitted
from evenflow.settings import Query

ID = "forwarding"
WHAT = (
    "Finishing windows at a key's home: results finished, partials and bytes saved, announcements, CPU"
    " seconds"
)

STREAMS: dict[str, tuple[str, dict[str, float]]] = {
    "uniform": ("uniform", {}),
    "zipf 1.0": ("zipf", {"z": 1.0}),
    "zipf 1.5": ("zipf", {"z": 1.5}),
}
ENTRANTS: dict[str, tuple[str, dict[str, str]]] = {
    "hashing": ("hashing", {}),
    "evenflow": ("evenflow", {}),
    "evenflow, tail=hash": ("evenflow", {"tail": "hash"}),
    "dalton": ("dalton", {}),
    "d-choices": ("d-choices", {}),
    "cam": ("cam", {}),
}


_LARGE = ForwardingCase(law="zipf 1.0", keys=100_000, entrant="evenflow, tail=hash", workers=64)
FURTHER = (replace(_LARGE, sources=4), replace(_LARGE, states=64))
"""Several instances that tell each other nothing, and a state for each worker."""


@dataclass(frozen=True, eq=False)
class RoutedStream:
    """The tuples of a case. Arrays of numbers have shape (tuples,)."""

    keys: pa.Array
    """The key of each rank, as binary, shape (keys,)."""
    hashes: UInt64s
    """Hash of each tuple's key."""
    ranks: Int64s
    """Rank of each tuple's key in the law."""
    panes: Int64s
    """Number of each tuple's pane."""
    workers: Int32s
    """The worker to which each tuple was routed."""
    home: Int32s
    """F_1 of each tuple's key."""
    source: Int32s
    """The partitioner instance that routed each tuple."""


CASES = (
    *(
        ForwardingCase(law=law, keys=keys, entrant=entrant, workers=workers)
        for law, keys, workers, entrant in product(STREAMS, (100_000, 1_000_000), (8, 64), ENTRANTS)
    ),
    *FURTHER,
)
"""All that is measured."""


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each case. Those of a full run are also kept in `.evenflow/bench`."""
    small = [replace(case, keys=1_000, tuples=4_000, measured=1) for case in CASES if case.keys < 1_000_000]
    if smoke:
        return {"rows": [row(case) for case in small]}
    row(small[0])  # loads the kernels, and does not count
    rows = [row(case) for case in CASES]
    keep_rows(rows, PLOTS / f"{ID}.json")
    return {"rows": rows}


def row(case: ForwardingCase) -> dict[str, object]:
    """All figures of a case."""
    stream = routed_stream(case)
    columns = {
        name: getattr(case, name)
        for name in ("law", "keys", "entrant", "workers", "sources", "states", "total")
    }
    return columns | _shares(case, stream) | _costs(case, stream) | _announcing(case, stream)


def routed_stream(case: ForwardingCase) -> RoutedStream:
    """The tuples of a case, routed by its partitioner."""
    law, numbers = STREAMS[case.law]
    count = case.panes * case.tuples
    draws = np.random.default_rng(SEED).random(count)
    ranks = LAWS[law].rank_law(case.keys, SEED, **numbers).ranks(draws, 0).astype(np.int64)
    keys = labels(np.arange(case.keys)).cast(pa.binary())
    hashes = hash_keys(keys)[ranks]
    times = np.arange(count) * SLIDE // case.tuples
    workers, source = np.empty(count, np.int32), np.arange(count, dtype=np.int32) % np.int32(case.sources)
    entrant, options = ENTRANTS[case.entrant]
    window_options: dict[str, Any] = fitted(entrant, options, window_ms=SPAN * SLIDE, slide_ms=SLIDE)
    for number in range(case.sources):
        mine = create(
            entrant, workers=case.workers, seed=SEED, source=number, sources=case.sources, **window_options
        )
        at = np.flatnonzero(source == number)
        workers[at] = mine.assign(hashes[at], times[at])
    home = candidate(hashes, 1, case.workers, SEED)
    return RoutedStream(keys, hashes, ranks, times // SLIDE, workers, home, source)


def _shares(case: ForwardingCase, stream: RoutedStream) -> dict[str, object]:
    """How many results could be finished at home, and how many announcements that takes, exactly."""
    # Whether a key is in a pane at all, and whether a source sends it away from home there.
    present = np.zeros((case.panes, case.keys), np.bool_)
    away = np.zeros((case.sources, case.panes, case.keys), np.bool_)
    present[stream.panes, stream.ranks] = True
    out = stream.workers != stream.home
    away[stream.source[out], stream.panes[out], stream.ranks[out]] = True
    results = finished = 0
    for last in range(case.warm, case.panes):
        window = slice(last - SPAN + 1, last + 1)
        window_keys = present[window].any(axis=0)
        results += int(window_keys.sum())
        # Home finishes a key only if no source sent it elsewhere in any pane of the window.
        finished += int((window_keys & ~away[:, window].any(axis=(0, 1))).sum())
    measured = stream.panes >= case.warm
    return {
        "results": results,
        "finished_at_home": round(finished / results, 4),
        "tuples_at_home": round(1 - float(out[measured].mean()), 4),
        "announcements_per_million": _per_million(case, int(away[:, case.warm :].sum())),
        "keys_a_pane": int(present[case.warm :].sum()) // case.measured,
    }


def _costs(case: ForwardingCase, stream: RoutedStream) -> dict[str, object]:
    """CPU seconds and bytes per million tuples, of today's way and with forwarding. Results must be as
    many.
    """
    plan = plan_of(case)
    today, forwarding = Today(plan, case), Forwarding(plan, case)
    run_both(case, stream, today, forwarding)
    if today.rows != forwarding.rows:
        raise AssertionError(f"{forwarding.rows} results with forwarding, {today.rows} without")
    costs: dict[str, object] = {}
    for name, way in (("today", today), ("forwarding", forwarding)):
        cpu = {part: round(_per_million(case, seconds), 3) for part, seconds in way.cpu.items()}
        costs[name] = {
            "cpu": cpu | {"all": round(sum(cpu.values()), 3)},
            "partials": _per_million(case, way.partials),
            "blob_kilobytes": _per_million(case, way.sent / 1e3),
            "state_kilobytes": _per_million(case, way.moved / 1e3),
            "state_held_kilobytes": way.state_bytes // 1000,
        }
    return costs


def plan_of(case: ForwardingCase) -> AggregatePlan:
    """A count and the case's aggregate, in windows of `SPAN` slides."""
    aggregates = {"n": "count", "total": case.total}
    return AggregatePlan.of(
        Query(window=SPAN * SLIDE, slide=SLIDE, aggregates=aggregates, types={"x": "int64"})
    )


def run_both(case: ForwardingCase, stream: RoutedStream, today: Today, forwarding: Forwarding) -> None:
    """Take the whole stream through both ways. Both get the same partials, micro-batch by micro-batch."""
    plan = today.plan
    for pane in range(case.panes):
        if pane == case.warm:
            today.begin()
            forwarding.begin()
        for block in range(case.blocks):
            partials = combined(plan, case, stream, pane * case.blocks + block)
            announced = _announced(case, stream, pane * case.blocks + block)
            today.step(partials)
            forwarding.add(announced, pane)
            forwarding.step(partials)
        today.close(pane)
        forwarding.close(pane)


def _block(case: ForwardingCase, number: int) -> slice:
    size = case.tuples // case.blocks
    return slice(number * size, (number + 1) * size)


def combined(plan: AggregatePlan, case: ForwardingCase, stream: RoutedStream, number: int) -> list[pa.Table]:
    """The partials of each worker of one micro-batch. Both ways have the same."""
    some = _block(case, number)
    workers = stream.workers[some]
    order = np.argsort(workers, kind="stable")
    bounds = np.searchsorted(workers[order], np.arange(case.workers + 1))
    keys = stream.keys.take(pa.array(stream.ranks[some][order]))
    rows = pa.table(
        [pa.array(stream.panes[some][order]), keys, pa.array(stream.ranks[some][order] % 1_000)],
        schema=plan.frame_schema,
    )
    return [plan.combine(rows.slice(start, stop - start)) for start, stop in pairwise(bounds.tolist())]


def _announced(case: ForwardingCase, stream: RoutedStream, number: int) -> list[UInt64s]:
    """The announced keys' hashes by home, of one micro-batch."""
    some = _block(case, number)
    out = stream.workers[some] != stream.home[some]
    hashes, at = np.unique(stream.hashes[some][out], return_index=True)
    home = stream.home[some][out][at]
    return [hashes[home == worker] for worker in range(case.workers)]


def _announcing(case: ForwardingCase, stream: RoutedStream) -> dict[str, object]:
    """What the partitioner spends on announcements: CPU seconds and bytes per million tuples, announced
    once per block.
    """
    rows, began = 0, time.process_time()
    for number in range(case.warm * case.blocks, case.panes * case.blocks):
        some = _block(case, number)
        home = candidate(stream.hashes[some], 1, case.workers, SEED)
        out = np.flatnonzero(home != stream.workers[some])
        if len(out):
            hashes, at = np.unique(stream.hashes[some][out], return_index=True)
            where = home[out][at].argsort(kind="stable")
            rows += len(hashes[where])
    return {
        "announcing_cpu": round(_per_million(case, time.process_time() - began), 3),
        "announced_rows_by_block": _per_million(case, rows),
        # An announced row is a hash and a pane, eight bytes each.
        "announced_kilobytes": _per_million(case, rows * 16 / 1e3),
    }


def _per_million(case: ForwardingCase, number: float) -> float:
    return round(number / (case.measured * case.tuples) * 1e6, 4)
