"""What a decision of Dalton takes, by which keys are hot (figures 10c and 11 of 000).

docs/reproducing.md judges the paper's claims by these times. They are kept in
docs/reproducing/decisions.json. This scenario writes a file like it into .evenflow/bench, to be copied from
there. Streams and settings are those of the page: windows of 60 slides, a warm partitioner, and event time as
in `routing`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measuring.spread import in_turns
from benchmarks.partitioners.routing import SEED, RoutingSize, Warm
from benchmarks.pictures import PLOTS, keep_rows
from evenflow.generation.rank_laws import RANKS, Zipf
from evenflow.numeric.arrays import UInt64s
from evenflow.simulation.streams import rank_hashes
from papers.cells.run_plan import Cell
from papers.paper_000.grid import SLIDES
from papers.paper_000.overhead import heavy_hitters, optimisations

ID = "partitioners-hot-keys"
WHAT = "ns per tuple of dalton by which keys are hot: none, those of its definition, more, and all"
_PER_MS = 10
"""Tuples per ms of event time (`routing`)."""


def run(*, smoke: bool) -> dict[str, Any]:
    """A row for each setting, with the ns per tuple of each turn. Rules on one stream take turns."""
    rows: list[dict[str, Any]] = []
    for slide, settings in (
        (heavy_hitters.SLIDE, heavy_hitters.deciding_cells()),
        (optimisations.SLIDE, optimisations.deciding_cells()),
    ):
        for group in _groups(settings):
            rows += _rows(group, slide, smoke=smoke)
    keep_rows(rows, PLOTS / "decisions.json")
    return {"rows": rows}


def _groups(settings: list[Cell]) -> list[list[Cell]]:
    """Settings that differ in the rule alone."""
    grouped: dict[tuple[Any, int], list[Cell]] = {}
    for setting in settings:
        grouped.setdefault((setting.stream, setting.workers), []).append(setting)
    return list(grouped.values())


def _rows(group: list[Cell], slide: int, *, smoke: bool) -> list[dict[str, Any]]:
    slide = 200 if smoke else slide
    stream = group[0].stream
    keys = _keys(2 * SLIDES * slide, 1_000 if smoke else stream.keys, stream.zipf)
    how_much = RoutingSize(SLIDES * slide, (20 if smoke else 100) * slide, 2 if smoke else 15)
    window = f"window_ms={SLIDES * slide // _PER_MS},slide_ms={slide // _PER_MS}"
    timed = {
        setting.partitioner: Warm(
            f"{setting.partitioner}{',' if ':' in setting.partitioner else ':'}{window}",
            keys,
            how_much,
            workers=setting.workers,
        )
        for setting in group
    }
    ns_by_rule = in_turns(timed, how_much.repetitions)
    return [
        {
            "keys": stream.keys,
            "zipf": stream.zipf,
            "combiners": setting.workers,
            "rule": setting.partitioner,
            "bytes": timed[setting.partitioner].partitioner.observe().state_bytes,
            "ns": [round(value, 2) for value in ns_by_rule[setting.partitioner]],
        }
        for setting in group
    ]


def _keys(tuples: int, count: int, exponent: float) -> UInt64s:
    """Key hashes of a stream, shape (tuples,)."""
    ranks = Zipf(count, exponent).ranks(np.random.default_rng([SEED, RANKS]).random(tuples), 0)
    return rank_hashes(count)[ranks]
