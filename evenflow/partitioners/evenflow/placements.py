"""Which worker each cell of keys was given, for as long as one of its keys is in the window.

Keys are hashed into cells. A cell holds its worker and the last tick in which it was touched. (A tick is a
slide, or a few slides when a window has more than a thousand.) When no key of a cell has come for a whole
window, the cell is *free*. Then no worker holds any of its keys, so it may be given to any worker without
splitting a key. The law: between two uses of a cell with different workers lies a whole window.

With many more cells than keys, the cells are a memory per key. With fewer cells they degrade to hashing,
never to splitting. So when more than half of the cells are in use (`crowded`), Python makes four times as
many (`grown`). Every key keeps its worker, and cells that no key of the window needs are free a window later.
The number of cells can grow again when these cells have been swept.

Cost per tuple: one visit. Each tick sweeps a share of the cells and frees the expired ones. A sweep of all
cells takes a window, but at least 16 and at most 1024 ticks, so that stamps of 12 bits never come round.
State: 4 bytes per cell.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.numeric.arrays import NEVER, Int64s, Rows, UInt32s, Whole, record
from evenflow.numeric.kernels import inlined, kernel
from evenflow.numeric.words import mix64

_STAMPS = 4095  # 12 bits, less the 0 that stands for a free cell
_SLOWEST, _FASTEST = 1024, 16
_BITS = 20  # enough for any worker: `base.MAX_WORKERS` is 2^20
_WORKER = np.uint32((1 << _BITS) - 1)
_FOURFOLD = 4
_LEAST_FREE = 0.05
"""Share of the cells. With fewer free ones their number says little about the number of keys."""
META = np.dtype(
    [
        ("stamp", np.int64),  # that of now, less 1
        ("live", np.int64),  # cells that are not free
        ("swept", np.int64),  # next cell to sweep
        ("tick", np.int64),  # that of now
        ("life", np.int64),  # ticks that a cell lives
        ("span", np.int64),  # slides per tick
        ("sweep", np.int64),  # ticks in which every cell is swept
        ("most", np.int64),  # cells at most
        ("grew", np.int64),  # tick of the last growth
    ]
)
"""The clock of the cells."""


class Placements(NamedTuple):
    """The cells and their clock: what kernels take as one argument."""

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
    """Placements with all cells free. `cells` and `most` are powers of two.

    `cells`: how many there are at first. `most`: how many there may be, if that is more. `slides`: slides per
    window. With 0 a cell lives for ever, and the number of cells never grows.
    """
    span, life, sweep = _ticks(slides)
    limit = max(cells, most) if slides else cells
    return Placements(
        np.zeros(cells, np.uint32),
        record(META, tick=NEVER, life=life, span=span, sweep=sweep, most=limit, grew=NEVER),
    )


def bound(keys: int, cells: int, slides: int, most: int) -> int:
    """The most that `cell` can take, in bytes, while no window has more than `keys` keys.

    A cell is in use while a key of it is in the window, and until sweeping has freed it. While less than half
    of the cells are in use, their number does not grow. When it grows, it grows fourfold.
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
    """The same placements in four times as many cells, or in as many as there may be.

    The keys of an old cell are now spread over several cells, which all have its worker. A cell's number is
    the low bits of a hash, so the old cells are repeated as a whole.
    """
    cell, meta = places.cell, places.meta.copy()
    factor = min(_FOURFOLD, int(meta["most"]) // len(cell))
    meta["live"] *= factor
    meta["grew"] = meta["tick"]
    return Placements(np.tile(cell, factor), meta)


@inlined
def _expired(held: Whole, places: Placements) -> bool:
    meta = places.meta[()]
    # Stamps count from 1 to 4095 and begin again, so an age below 0 has passed the end once.
    age = meta["stamp"] + 1 - np.int64(held >> np.uint32(_BITS))
    return bool((age if age >= 0 else age + _STAMPS) >= meta["life"])


@kernel
def move_to(places: Placements, slide: Whole) -> None:
    """Move the clock to this slide, and sweep a share of the cells for each tick that has passed."""
    cell, meta = places.cell, places.meta[()]
    tick = slide // meta["span"]
    if meta["tick"] == NEVER:
        meta["tick"] = tick
    # More ticks than the longest sweep change nothing more.
    passed = min(tick - meta["tick"], _SLOWEST)
    meta["tick"] = tick
    if passed == 0:
        return
    # A leap of more than a life counts as one life: every older cell is free then. So stamps do not come
    # round.
    meta["stamp"] = (meta["stamp"] + min(passed, meta["life"])) % _STAMPS
    cells = cell.shape[0]
    at = np.int64(meta["swept"])
    for _ in range(min(cells, passed * (cells // meta["sweep"] + 1))):
        if cell[at] != 0 and _expired(cell[at], places):
            cell[at] = 0
            meta["live"] -= 1
        at += 1
        if at == cells:
            at = np.int64(0)
    meta["swept"] = at


@inlined
def cell_of(places: Placements, high: Whole) -> np.int64:
    """The cell of a key. high: the high half of the key's hash."""
    return np.int64(high) & np.int64(places.cell.shape[0] - 1)


@inlined
def worker_of(places: Placements, at: Whole) -> np.int64:
    """The cell's worker, or -1 if the cell is free. An expired cell is freed here, swept or not."""
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


def home_of(places: Placements, at: int, slide: int | None = None) -> int | None:
    """The cell's worker, as `worker_of` reads it, but without freeing it. None if the cell is free.

    slide: if the clock has moved on to that slide by then. It may be too late a slide: then a cell may count
    as free.
    """
    meta, cell = places.meta, int(places.cell[at])
    if cell == 0:
        return None
    age = (int(meta["stamp"]) + 1 - (cell >> _BITS)) % _STAMPS
    if slide is not None and int(meta["tick"]) != NEVER:
        age += slide // int(meta["span"]) - int(meta["tick"])
    return None if age >= int(meta["life"]) else cell & int(_WORKER)


@inlined
def put(places: Placements, at: Whole, worker: Whole) -> None:
    """Note that a tuple of this cell went to this worker now."""
    cell, meta = places.cell, places.meta[()]
    if cell[at] == 0:
        meta["live"] += 1
    # Stamps count from 1, so that a cell in use is never 0.
    cell[at] = (np.uint32(meta["stamp"] + 1) << np.uint32(_BITS)) | np.uint32(worker)


@inlined
def is_of_now(places: Placements, at: Whole) -> bool:
    """Whether the cell was touched in this tick."""
    return bool(places.cell[at] >> np.uint32(_BITS) == np.uint32(places.meta[()]["stamp"] + 1))


@inlined
def keys_of(places: Placements) -> float:
    """About how many keys the window has: so many keys leave as many of the cells free
    as there are (linear counting).
    """
    cells = places.cell.shape[0]
    free = max(cells - places.meta[()]["live"], cells * _LEAST_FREE)
    return cells * math.log(cells / free)


def release(share: float, mark: np.uint64, places: Placements) -> None:
    """Free this share of the live cells of each worker, so that they are placed anew.

    A hash of the cell and `mark` says which cells are freed. So nothing is random, and another mark frees
    other cells.
    """
    cell = places.cell
    _drop_expired(places)
    live = np.flatnonzero(cell)
    rank = np.empty(len(live), np.uint64)
    _ranks(live, mark, rank)
    # Sorted by worker, and by rank within a worker. The first cells of each worker go.
    live = live[np.lexsort((rank, cell[live] & _WORKER))]
    _, first, held = np.unique(cell[live] & _WORKER, return_index=True, return_counts=True)
    within = np.arange(len(live)) - np.repeat(first, held)
    cell[live[within < np.repeat(np.rint(share * held), held)]] = 0
    places.meta["live"] = np.count_nonzero(cell)


def cells_of(workers: int, places: Placements) -> Int64s:
    """How many cells each worker has, shape (workers,)."""
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
