"""Blocks of JSON records, one object each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenflow.arrays import Int64s
from partitioner_service.reading.cells import Block, Cells
from partitioner_service.reading.json_scan import (
    BEGIN,
    COLUMN,
    END,
    FIRST,
    STOP,
    THROUGH,
    WIDE,
    Columns,
    scan,
)
from partitioner_service.reading.numbers import POWERS, convert_long
from partitioner_service.reading.reasons import Faults
from partitioner_service.reading.strings import JSON


class JsonReader:
    """Finds the cells of the columns at these paths, each the fields on the way to it; kinds: what each needs."""

    written = JSON

    def __init__(self, paths: Sequence[tuple[str, ...]], kinds: Int64s) -> None:
        self._columns = columns_of(paths, kinds)

    def read(self, block: Block, faults: Faults) -> Cells:
        """Cells of the records without a fault; adds the faults of others."""
        columns = self._columns
        cells = Cells.of(columns.kinds, len(faults.codes))
        scratch, noted = (
            np.empty(block.longest + 1, np.uint8),
            np.full((2, len(columns.tree) // WIDE), -1, np.int64),
        )
        scan(block.data, block.begins, columns, cells, faults, scratch, noted)
        convert_long(block.data, cells, columns.kinds)
        return cells


def columns_of(paths: Sequence[tuple[str, ...]], kinds: Int64s) -> Columns:
    """The fields that these paths name, each once and those of one object side by side; no path leads through another."""
    fields: list[tuple[str, ...]] = []
    bounds = []
    level: list[tuple[str, ...]] = [()]
    while level:  # one level of objects after the other
        below: list[tuple[str, ...]] = []
        for outer in level:
            within = (path for path in paths if path[: len(outer)] == outer and path != outer)
            inner = dict.fromkeys(path[: len(outer) + 1] for path in within)
            bounds.append((len(fields), len(fields) + len(inner)))
            fields += inner
            below += inner
        level = below
    names = [field[-1].encode() for field in fields]
    places = {path: place for place, path in enumerate(paths)}
    tree = np.full((len(bounds), WIDE), -1, np.int64)
    tree[:, FIRST], tree[:, STOP] = np.array(bounds).T
    tree[1:, COLUMN] = [places.get(field, -1) for field in fields]
    tree[1:, THROUGH] = [
        next(place for place, path in enumerate(paths) if path[: len(field)] == field) for field in fields
    ]
    ends = np.cumsum([0, *map(len, names)])
    tree[1:, BEGIN], tree[1:, END] = ends[:-1], ends[1:]
    return Columns(np.frombuffer(b"".join(names) or b"\0", np.uint8), tree.ravel(), kinds, POWERS)
