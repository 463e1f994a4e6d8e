"""Blocks of records that are text: each record is one cell."""

from __future__ import annotations

import numpy as np

from partitioner_service.reading.cells.cells import TEXT, VALUE, Block, Cells
from partitioner_service.reading.cells.reasons import NOT_UTF8
from partitioner_service.reading.cells.strings import PLAIN, check_utf8


class TextReader:
    """Finds the cells of text records: the whole record is the only column."""

    written = PLAIN

    def read(self, block: Block) -> Cells:
        """Cells of the records without a fault. Notes what is wrong with a record in `block.faults`."""
        cells = Cells.of(np.array([TEXT]), block.rows)
        cells.states[0][block.faults.codes == 0] = VALUE
        cells.begins[0] = block.begins[:-1]
        cells.lengths[0] = np.diff(block.begins) - 1
        block.faults.note(check_utf8(block.data, cells, 0), NOT_UTF8, column=0)
        return cells
