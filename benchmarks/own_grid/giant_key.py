"""The table `giant`: what keeps several sources off level when one key has most of the stream.

From half of the stream on one key has 90 % of the tuples, so that every source can level every worker to a
tuple. What is left is where all sources leave a tuple at the same worker. A source learns such workers (its
*bias*), and sends them less. Beside `evenflow` stands one that does not remember what it has learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.own_grid.hard_streams import generated_once
from benchmarks.own_grid.measuring import Size, scenario_of
from benchmarks.own_grid.seed_ranges import OURS, in_processes, seeds_of
from benchmarks.pages.tables import median_and_range
from evenflow.keys import candidate
from evenflow.numeric.arrays import Int64s
from evenflow.partitioners.evenflow.water_filling import Evenflow
from evenflow.simulation import entrant
from evenflow.simulation.routing import route


class Forgetful(Evenflow):
    """`evenflow` whose bias begins anew with each table: it is a twentieth of the newest overload."""

    def _level(self, own: Int64s, others: Int64s, place: tuple[int, int]) -> None:
        self._bias[:] = 0
        super()._level(own, others, place)


_WAYS = (
    (OURS, 1),
    *((name, count) for name in (OURS, f"{__name__}:{Forgetful.__name__}") for count in (2, 16)),
)


def giant(size: Size) -> Iterator[str]:
    """Sources that hear each other every slide, where one key gets 90 % of the stream, n = 64.

    A figure says how many tuples the fullest worker of a window is above the mean: the mean over the windows
    that end with the 1st to 10th slide of the giant, with the 41st to 50th, and over those of the giant
    alone. `home`: the share of these last windows whose fullest worker is the giant's home. `forgetful`: with
    a bias that begins anew with each table. Medians over the seeds with the range.
    """
    size = size._replace(slides=4 * size.window)
    chosen = seeds_of(size)
    cells = [(size, seed, way) for seed, way in product(chosen, _WAYS)]
    found = in_processes(_measured, cells, at_once=len(_WAYS), size=size).reshape(len(chosen), len(_WAYS), 4)
    yield "| sources | | slides 1 to 10 | 41 to 50 | the giant alone | home |"
    yield "|---" * 6 + "|"
    for (name, count), of_seeds in zip(_WAYS, found.transpose(1, 2, 0), strict=True):
        *over, home = of_seeds
        words = " | ".join(median_and_range(figures, 1) for figures in over)
        kind = "" if name == OURS else "forgetful"
        yield f"| {count} | {kind} | {words} | {median_and_range(home, 2)} |"


def _measured(cell: tuple[Size, int, tuple[str, int]]) -> tuple[float, ...]:
    """The four figures of one routing."""
    size, seed, (name, count) = cell
    stream = generated_once(size, "giant", 1.0, 1, seed)
    scenario = scenario_of(size, seed, count, exchange=count > 1)
    workers, panes = route(stream, entrant(name), scenario).workers, scenario.panes(stream.times)
    sent = np.bincount(panes * scenario.workers + workers, minlength=size.slides * scenario.workers)
    sums = np.cumsum(sent.reshape(size.slides, -1), axis=0)
    # Of the window that ends with each slide of the giant, which has the second half of the stream.
    begin = size.slides // 2
    loads = sums[begin:] - sums[begin - size.window : -size.window]
    over = loads.max(axis=1) - loads.mean(axis=1)
    key = stream.keys[stream.codes == np.bincount(stream.codes).argmax()][:1]
    home = candidate(key, 1, scenario.workers, seed)
    sixth = size.window // 6
    parts = (slice(sixth), slice(4 * sixth, 5 * sixth), slice(size.window - 1, None))
    at_home = (loads.argmax(axis=1) == home)[parts[-1]].mean()
    return tuple(float(figure) for figure in (*(over[part].mean() for part in parts), at_home))
