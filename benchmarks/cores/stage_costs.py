"""What a tuple, a partial result and a key of a window cost in the cores of combiner and reducer, in
nanoseconds of CPU.

Each cost is a slope: what a core takes for more of one thing, over how much more that is. So it has no part
of what a call costs anyhow. docs/reproducing.md prices its counts with such costs. They are kept in
docs/reproducing/costs.json, so that the page is the same on every machine. This scenario writes a file like
it into .evenflow/bench, to be copied from there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.cores.forwarding_ways import SEED as SEED
from benchmarks.cores.forwarding_ways import SLIDE, SPAN, ForwardingCase, PaneState, Way
from benchmarks.measuring.spread import in_turns
from benchmarks.pictures import PLOTS
from evenflow.aggregates import AggregatePlan
from evenflow.generation.rank_laws import labels
from evenflow.keys import hash_keys
from evenflow.settings import Query
from evenflow.twostep import json_rows, key_type, typed_keys
from evenflow.twostep.reducing.rows_out import result_rows, sliced

ID = "stage-costs"
WHAT = "ns per tuple, partial result and key of a window in the cores of combiner and reducer"

COSTS = {
    "tuple": "a combiner folds a tuple into the partial results of its slide",
    "make": "a combiner makes the partial result of a key in a slide",
    "send": "a combiner hashes, places and encodes a partial result",
    "receive": "a reducer decodes a partial result and merges it with that of another combiner",
    "hold": "a partial result is added to the state of a window, wherever that is, and the window moves on",
    "emit": "a row of results is made, as JSON",
    "hear": "a combiner takes in an announced key, and looks for it in a window",
}
"""What each cost is the price of."""
_STAGES = {
    "combine": "make",
    "send": "send",
    "receive": "receive",
    "hold": "hold",
    "emit": "emit",
    "hear": "hear",
}
"""Methods of `_Stage` and the costs per key that they show."""


@dataclass(frozen=True)
class StageSize:
    """How much is measured. Costs are slopes, whose other end has twice as many keys or tuples."""

    keys: int
    """Keys of a window."""
    tuples: int
    """Tuples of a slide."""
    repetitions: int
    """How often each stage is timed. The least time counts."""


def run(*, smoke: bool) -> dict[str, Any]:
    """The costs. They are also written as the file that is to be kept."""
    size = StageSize(200, 2_000, 2) if smoke else StageSize(20_000, 200_000, 25)
    ns = costs(size)
    PLOTS.mkdir(parents=True, exist_ok=True)
    (PLOTS / "costs.json").write_text(json.dumps({"ns": ns}, indent=1) + "\n", encoding="utf-8")
    return {"keys": size.keys, "tuples_a_slide": size.tuples, "ns": ns}


def costs(size: StageSize) -> dict[str, float]:
    """Nanoseconds by the names of `COSTS`."""
    few, many = _Stage(size.keys, size.tuples), _Stage(2 * size.keys, size.tuples)
    longer = _Stage(size.keys, 2 * size.tuples)
    ways = {
        f"{stage} {end}": getattr(stages, stage)
        for stage in _STAGES
        for end, stages in (("few", few), ("many", many))
    }
    timed = {
        name: partial(_seconds, work) for name, work in (ways | {"combine longer": longer.combine}).items()
    }
    # The least time is that of a turn which other programs disturbed least.
    least = {name: min(times) for name, times in in_turns(timed, size.repetitions).items()}
    seconds = {
        name: (least[f"{stage} many"] - least[f"{stage} few"]) / size.keys for stage, name in _STAGES.items()
    }
    seconds["tuple"] = (least["combine longer"] - least["combine few"]) / size.tuples
    return {name: round(1e9 * seconds[name], 1) for name in COSTS}


def _seconds(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


class _Stage:
    """One combiner and its reducers, in a slide in which every key has tuples."""

    def __init__(self, keys: int, tuples: int) -> None:
        self._query = Query(
            window=SPAN * SLIDE,
            slide=SLIDE,
            aggregates={"n": "count", "total": "sum(x)"},
            types={"x": "int64"},
        )
        self._plan = AggregatePlan.of(self._query)
        # Only its encoding is used, so a law and an entrant are not needed.
        self._way = Way(self._plan, ForwardingCase(law="", keys=keys, entrant="", workers=1))
        ranks = np.random.default_rng(SEED).permutation(np.arange(tuples) % keys)
        names = labels(np.arange(keys)).cast(pa.binary()).take(pa.array(ranks))
        self._rows = pa.table(
            [pa.array(np.zeros(tuples, np.int64)), names, pa.array(ranks)], schema=self._plan.frame_schema
        )
        self._partials = self._plan.combine(self._rows)
        self._hashes = hash_keys(self._partials["key"])
        self._blobs = self._way.blobs([self._partials], self._hashes)
        self._state, self._slide = PaneState(self._plan), 0
        # A full window, so that every slide that follows takes one away.
        for _ in range(SPAN):
            self.hold()
        self._window = self._state.window(self._slide - 1)

    def combine(self) -> None:
        self._plan.combine(self._rows)

    def send(self) -> None:
        self._way.blobs([self._partials], hash_keys(self._partials["key"]))

    def receive(self) -> None:
        for blobs in self._blobs:
            # Half of each key's partial results come from another combiner, so half of them are merged.
            rows = self._way.decoded(blobs).drop_columns(["pane"])
            self._plan.merge([rows, rows.slice(0, rows.num_rows // 2)])

    def hold(self) -> None:
        self._state.add(self._partials, self._slide)
        self._state.window(self._slide)
        self._state.save()
        self._slide += 1

    def emit(self) -> None:
        for rows in sliced(self._window):
            results = result_rows(self._plan, rows, (0, SPAN * SLIDE))
            json_rows(typed_keys(results, key_type(self._query)))

    def hear(self) -> None:
        # As `Forwarding.close` looks for announced keys in a window.
        np.isin(self._hashes, np.unique(self._hashes))
