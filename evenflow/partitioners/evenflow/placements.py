"""Which worker each cell of keys was given, for as long as one of its keys is in the window.

Keys are hashed into cells. A cell holds its worker and the last tick in which it was touched
(a tick is a slide, or a few when a window has more than a thousand). When no key of a cell has come
for a whole window, the cell is *free*: no worker holds any of its keys, so it may be given to any worker
without splitting a key. The law: between two uses of a cell with different workers lies a whole window.
With many more cells than keys this is a memory per key. With fewer it degrades to hashing, never to
splitting. So when more than half of the cells are in use there are to be four times as many (`crowded`,
Python does it, `grown`): every key keeps its worker, and cells that no key of the window needs are free
a window later. They grow again when those have been swept.

Cost per tuple: one visit. Each tick frees the expired among a share of the cells, all of them in a
window (of 16 ticks at least, 1024 at most: stamps of 12 bits never come round). State: 4 bytes per cell.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.arrays import NEVER, Int64s, Rows, UInt32s, Whole, record
from evenflow.kernels import inlined, kernel
from evenflow.keys import mix64

_STAMPS = 4095
_SLOWEST, _FASTEST = 1024, 16
_BITS = 20
_WORKER = np.uint32((1 << _BITS) - 1)
_FOURFOLD = 4
META = np.dtype(
    [(name, np.int64) for name in ("stamp", "live", "swept", "tick", "life", "span", "sweep", "most", "grew")]
)
"""Stamp of now - 1, cells not free, next cell to sweep, tick of now, ticks that a cell lives, slides per tick, ticks in
which every cell is swept, cells at most, tick of the last growth."""


class Placements(NamedTuple):
    """What kernels take as one argument."""

    cell: UInt32s
    """stamp << 20 | worker. 0: free."""
    meta: Rows
    """One of META."""


def _ticks(slides: int) -> tuple[int, int, int]:
    """Slides per tick, ticks that a cell lives, ticks in which every cell is swept."""
    span = max(1, -(-slides // _SLOWEST))
    life = -(-(slides + span - 1) // span) if slides else _STAMPS
    return span, life, max(_FASTEST, min(_SLOWEST, life))


def placements(cells: int, slides: int, *, most: int = 0) -> Placements:
    """All cells free. `slides` per window, 0 = cells live for ever and never grow. Powers of two.

    There are `cells` at first, and never more than `most`, or `cells` if that is more.
    """
    span, life, sweep = _ticks(slides)
    limit = max(cells, most) if slides else cells
    return Placements(
        np.zeros(cells, np.uint32),
        record(META, tick=NEVER, life=life, span=span, sweep=sweep, most=limit, grew=NEVER),
    )


def bound(keys: int, cells: int, slides: int, most: int) -> int:
    """The most that `cell` can take, in bytes, while a window has no more keys.

    Cells in use are those of the keys of the window and of the ticks that sweeping takes. When these are
    less than half of the cells, cells do not grow, and they grow fourfold.
    """
    _, life, sweep = _ticks(slides)
    windows = 2 + -(-sweep // life)
    grown_to = 2 * _FOURFOLD * windows * keys if slides else 0
    return 4 * max(cells, min(most, 1 << grown_to.bit_length()))


@inlined
def crowded(places: Placements) -> bool:
    """Whether it is time for more cells. Ask after `move_to`."""
    cell, meta = places.cell, places.meta[()]
    return (
        2 * meta["live"] > cell.shape[0]
        and cell.shape[0] < meta["most"]
        and meta["tick"] >= meta["grew"] + meta["life"] + meta["sweep"]
    )


def grown(places: Placements) -> Placements:
    """Four times as many cells, or as many as there may be: a cell's keys are in several now, each with its worker."""
    cell, meta = places.cell, places.meta.copy()
    factor = min(_FOURFOLD, int(meta["most"]) // len(cell))
    meta["live"] *= factor
    meta["grew"] = meta["tick"]
    return Placements(np.tile(cell, factor), meta)


@inlined
def _expired(held: Whole, places: Placements) -> bool:
    meta = places.meta[()]
    age = meta["stamp"] + 1 - np.int64(held >> np.uint32(_BITS))
    return bool((age if age >= 0 else age + _STAMPS) >= meta["life"])


@kernel
def move_to(places: Placements, slide: Whole) -> None:
    """The clock shows this slide."""
    cell, meta = places.cell, places.meta[()]
    tick = slide // meta["span"]
    if meta["tick"] == NEVER:
        meta["tick"] = tick
    # More than the longest sweep changes nothing more.
    passed = min(tick - meta["tick"], _SLOWEST)
    meta["tick"] = tick
    if passed == 0:
        return
    # A leap of more than a life counts as one life: whatever is older than that is free.
    meta["stamp"] = (meta["stamp"] + min(passed, meta["life"])) % _STAMPS
    cells = cell.shape[0]
    at: Any = meta["swept"]
    for _ in range(min(cells, passed * (cells // meta["sweep"] + 1))):
        if cell[at] != 0 and _expired(cell[at], places):
            cell[at] = 0
            meta["live"] -= 1
        at += 1
        if at == cells:
            at = 0
    meta["swept"] = at


@inlined
def worker_of(places: Placements, at: Whole) -> np.int64:
    """The cell's worker, or -1 when it is free."""
    cell = places.cell
    held = cell[at]
    worker = np.int64(held & _WORKER)
    if held == 0:
        worker = np.int64(-1)
    elif _expired(held, places):
        cell[at] = 0
        places.meta[()]["live"] -= 1
        worker = np.int64(-1)
    return worker


@inlined
def put(places: Placements, at: Whole, worker: Whole) -> None:
    """A tuple of this cell went to this worker now."""
    cell, meta = places.cell, places.meta[()]
    if cell[at] == 0:
        meta["live"] += 1
    # Stamps count from 1, so that a cell in use is never 0.
    cell[at] = (np.uint32(meta["stamp"] + 1) << np.uint32(_BITS)) | np.uint32(worker)


def release(share: float, mark: np.uint64, places: Placements) -> None:
    """Free this share of the live cells of each worker, so that they are placed anew.

    Which ones, a hash of cell and `mark` says: no randomness, and another mark frees others.
    """
    cell = places.cell
    _drop_expired(places)
    live = np.flatnonzero(cell)
    rank = np.empty(len(live), np.uint64)
    _ranks(live, mark, rank)
    # By worker, and by rank within each: the first ones of each worker go.
    live = live[np.lexsort((rank, cell[live] & _WORKER))]
    _, first, held = np.unique(cell[live] & _WORKER, return_index=True, return_counts=True)
    within = np.arange(len(live)) - np.repeat(first, held)
    cell[live[within < np.repeat(np.rint(share * held), held)]] = 0
    places.meta["live"] = np.count_nonzero(cell)


def cells_of(workers: int, places: Placements) -> Int64s:
    """How many cells each worker has."""
    held = places.cell[places.cell != 0] & _WORKER
    counts: Int64s = np.bincount(held, minlength=workers).astype(np.int64)
    return counts


@kernel
def _drop_expired(places: Placements) -> None:
    cell = places.cell
    for at in range(cell.shape[0]):
        if cell[at] != 0 and _expired(cell[at], places):
            cell[at] = 0


@kernel
def _ranks(cells: Int64s, mark: np.uint64, ranks: npt.NDArray[np.uint64]) -> None:
    for at in range(cells.shape[0]):
        ranks[at] = mix64(np.uint64(cells[at]) ^ mark)


def without_workers_from(workers: int, places: Placements) -> None:
    """Free the cells of workers that are gone: those numbered `workers` and above."""
    places.cell[(places.cell & _WORKER) >= workers] = 0
    places.meta["live"] = np.count_nonzero(places.cell)
