"""Times of Dalton that are kept: of counting keys (figures 10a and 10b) and of deciding (figures 10c and 11).

`evenflow bench partitioners-statistics` and `partitioners-hot-keys` measure them. A time is ns of CPU of one
core. A cell has one value for each turn of a measurement, and the ways that are compared took turns. So they
are compared turn by turn, as other figures are seed by seed. The mark of the file is in the names of the
cells.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from papers.cells.run_plan import Cell, Stream
from papers.cells.store import Values
from papers.paper_000.grid import NAME, WORKERS

_FOLDER = Path(__file__).parents[3] / "docs/reproducing"
COUNTING, DECIDING = "counting", "deciding"
_FILES = {COUNTING: _FOLDER / "statistics.json", DECIDING: _FOLDER / "decisions.json"}
WAYS = ("exact", "sketch", "hybrid")
LAWS = {"uniform": 0.0, "Zipf 1.5": 1.5}
"""Exponents of the streams whose keys are counted."""
WINDOWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
"""Tuples of a statistics window."""
COUNTED_KEYS = 1_000_000


def counting_cell(law: str, window: int, way: str) -> Cell:
    """What counting takes with statistics windows of so many tuples."""
    stream = Stream(law, window, COUNTED_KEYS)
    return Cell(NAME, _experiment(COUNTING), stream, WORKERS, f"dalton:heavy_hitters={way}")


def deciding_cell(keys: int, zipf: float, combiners: int, rule: str) -> Cell:
    """What a decision takes on a Zipf stream."""
    return Cell(NAME, _experiment(DECIDING), Stream("zipf", 0, keys, zipf), combiners, rule)


def timed_values(setting: Cell) -> Values:
    """ns: per tuple, one value for each turn. MB: memory of what was timed. KeyError if it is not kept."""
    which = setting.experiment.partition(",")[0]
    rows = {_place(which, row): row for row in _rows(which)}
    row = rows[_sought(which, setting)]
    return {"ns": [float(value) for value in row["ns"]], "MB": [row["bytes"] / 1e6]}


def _place(which: str, row: dict[str, Any]) -> tuple[Any, ...]:
    if which == COUNTING:
        return row["law"], row["tuples"], f"dalton:heavy_hitters={row['way']}"
    return row["keys"], row["zipf"], row["combiners"], row["rule"]


def _sought(which: str, setting: Cell) -> tuple[Any, ...]:
    stream = setting.stream
    if which == COUNTING:
        return stream.kind, stream.tuples, setting.partitioner
    return stream.keys, stream.zipf, setting.workers, setting.partitioner


@cache
def _text(which: str) -> str:
    return _FILES[which].read_text(encoding="utf-8")


def _rows(which: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(_text(which))
    return rows


def _experiment(which: str) -> str:
    return f"{which}, times {hashlib.blake2s(_text(which).encode(), digest_size=3).hexdigest()}"
