"""Blocks of JSON records, one object each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenflow.arrays import Int64s
from partitioner_service.reading.cells import Block, Cells
from partitioner_service.reading.json_scan import Columns, scan
from partitioner_service.reading.numbers import POWERS, convert_long
from partitioner_service.reading.reasons import Faults
from partitioner_service.reading.strings import JSON


class JsonReader:
    """Finds the cells of these columns; kinds: what each needs."""

    written = JSON

    def __init__(self, names: Sequence[str], kinds: Int64s) -> None:
        encoded = [name.encode() for name in names]
        self._columns = Columns(
            np.frombuffer(b"".join(encoded) or b"\0", np.uint8),
            np.cumsum([0, *map(len, encoded)]),
            kinds,
            POWERS,
        )

    def read(self, block: Block, faults: Faults) -> Cells:
        """Cells of the records without a fault; adds the faults of others."""
        cells = Cells.of(self._columns.kinds, len(faults.codes))
        scan(block.data, block.begins, self._columns, cells, faults, np.empty(block.longest + 1, np.uint8))
        convert_long(block.data, cells, self._columns.kinds)
        return cells
