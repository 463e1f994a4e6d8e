"""Blocks of JSON records, one object each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenflow.numeric.arrays import Int64s, records
from partitioner_service.reading.cells.cells import Block, Cells
from partitioner_service.reading.cells.numbers import convert_long
from partitioner_service.reading.cells.strings import JSON
from partitioner_service.reading.json.scan import FIELD, Columns, ScannedBlock, scan


class JsonReader:
    """Finds the cells of columns.

    paths: for each column, the names of the fields on the way to it. kinds: what each column needs.
    """

    written = JSON

    def __init__(self, paths: Sequence[tuple[str, ...]], kinds: Int64s) -> None:
        self._columns = columns_of(paths, kinds)

    def read(self, block: Block) -> Cells:
        """Cells of the records without a fault. Notes what is wrong with a record in `block.faults`."""
        columns = self._columns
        cells = Cells.of(columns.kinds, block.rows)
        objects = len(columns.tree)
        reading = ScannedBlock(
            data=block.data,
            columns=columns,
            cells=cells,
            scratch=np.empty(block.longest + 1, np.uint8),
            last_rows=np.full(objects, -1, np.int64),
            around=np.empty(objects, np.int64),
        )
        scan(reading, block.begins, block.faults)
        convert_long(block.data, cells, columns.kinds)
        return cells


def columns_of(paths: Sequence[tuple[str, ...]], kinds: Int64s) -> Columns:
    """The tree of the fields that these paths name. The fields of one object stand side by side.

    No path may be the beginning of another one. kinds: what each column needs.
    """
    fields: list[tuple[str, ...]] = []
    bounds = []
    level: list[tuple[str, ...]] = [()]
    while level:  # level by level, because only that puts the fields of an object side by side
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
    ends = np.cumsum([0, *map(len, names)])
    tree = records(len(bounds), FIELD)
    tree["first"], tree["stop"] = np.array(bounds).T
    of_fields = tree[1:]
    of_fields["column"] = [places.get(field, -1) for field in fields]
    of_fields["through"] = [
        next(place for place, path in enumerate(paths) if path[: len(field)] == field) for field in fields
    ]
    of_fields["begin"], of_fields["end"] = ends[:-1], ends[1:]
    return Columns(np.frombuffer(b"".join(names) or b"\0", np.uint8), tree, kinds)
