"""What tuples cost, as `partitioner.cost` says.

Columns that only the cost reads are read beside those of the query, and what is wrong with them is forgotten:
they count as null there. So the cost never decides which records are rejected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from evenflow.expressions.cost import Cost
from evenflow.expressions.engine import Numbers
from evenflow.grammar import paths
from evenflow.numeric.arrays import Bools, Float64s
from evenflow.settings import Settings
from partitioner_service.reading.cells.any_values import numbers_of
from partitioner_service.reading.cells.cells import Block, Cells, kinds_of
from partitioner_service.reading.cells.lists import sizes_of_texts
from partitioner_service.reading.columns import CellColumns, reader_of
from partitioner_service.reading.elements import Elements, Exploder
from partitioner_service.reading.registered.schemas import Schemas

Named = Mapping[str, pa.Array]


class Pricing:
    """Computes the costs of the tuples of a block. The costs are numbers, not yet whole or within the range.

    records, elements: types of the columns that the query reads of a record, and of an element of it.
    schemas: of Avro and Protobuf records, None for others.

    each: whether elements of a record that is taken apart can cost differently. beside_records,
    beside_elements: types of the columns that only the cost reads and that are to be read beside those of the
    query. Others are read alone.
    """

    def __init__(
        self,
        settings: Settings,
        cost: Cost,
        *,
        records: Mapping[str, str],
        elements: Mapping[str, str],
        schemas: Schemas | None,
    ) -> None:
        self.each = cost.each
        self._reads, self._sizes = list(cost.types), cost.sizes
        self._column = cost.column
        self._any_columns = settings.query.origin.any_columns
        self._numbers = None
        if self._column is None:
            self._numbers = Numbers(cost.expression, cost.types, "partitioner.cost")
        form, explosion = settings.input.format, settings.query.explosion
        self._csv = form == "csv"
        self._of_record, self._of_element = dict(cost.of_record), dict(cost.of_element)
        self._records, self._elements = {**records, **cost.of_record}, {**elements, **cost.of_element}
        self.beside_records = _beside(records, cost.of_record, fields=form not in ("csv", "text"))
        of_lists = explosion is not None and explosion.way == "list"
        self.beside_elements = _beside(elements, cost.of_element, fields=True) if of_lists else {}
        self._reader = self._exploder = None
        if self._of_record and not self.beside_records:
            self._reader = reader_of(settings, self._of_record, kinds_of(self._of_record), schemas)
        if self._of_element and not self.beside_elements and explosion is not None:
            self._exploder = Exploder(explosion, self._of_element)

    @property
    def explodes(self) -> bool:
        """Whether records have to be taken apart once more, for columns that only the cost reads."""
        return self._exploder is not None

    def of_records(
        self,
        values: Sequence[bytes | None],
        block: Block | None,
        cells: Cells,
        written: int,
        query_columns: Named,
    ) -> dict[str, pa.Array]:
        """The columns of the records that only the cost reads, and the sizes of what it counts in them.

        block, cells, written: of these records, and how they are written. block: None if the query reads
        nothing of them. query_columns: those that the query reads or derives of them.
        """
        own = self._own_of_records(values, block, cells, written)
        # A text of which the cost needs only the size is not repeated for each element of its record.
        columns = {name: column for name, column in own.items() if name in self._reads}
        return columns | {
            name: self._size(name, own, query_columns) for name, size in self._sizes.items() if not size.each
        }

    def _own_of_records(
        self, values: Sequence[bytes | None], block: Block | None, cells: Cells, written: int
    ) -> dict[str, pa.Array]:
        if self.beside_records:
            assert block is not None
            columns = CellColumns(self._records, block.afresh(), cells, written=written, csv=self._csv)
            return _without_faults(columns, self._of_record)
        if self._reader is None:
            return {}
        block = Block.of(values) if block is None else block.afresh()
        cells = self._reader.read(block)
        columns = CellColumns(self._of_record, block, cells, written=self._reader.written, csv=self._csv)
        return _without_faults(columns, self._of_record)

    def of_elements(self, elements: Elements, written: int) -> dict[str, pa.Array]:
        """The columns of the elements that only the cost reads and that were read beside others."""
        if not self.beside_elements:
            return {}
        columns = CellColumns(
            self._elements, elements.block.afresh(), elements.cells, written=written, csv=False
        )
        return _without_faults(columns, self._of_element)

    def taken_apart(
        self, block: Block, cells: Cells, names: Sequence[str], written: int
    ) -> dict[str, pa.Array]:
        """As `of_elements`, for those that are not read beside others.
        All arguments: as of `Exploder.explode`.
        """
        assert self._exploder is not None
        elements = self._exploder.explode(block, cells, names, written)
        columns = CellColumns(
            self._of_element, elements.block, elements.cells, written=self._exploder.written, csv=False
        )
        return _without_faults(columns, self._of_element)

    def numbers(self, own: Named, query_columns: Named, rows: int) -> Float64s:
        """The cost of each row, NaN where it is no number. Shape (rows,).

        own: the columns that only the cost reads, and sizes that are known. query_columns: those that the
        query reads or derives. Of a column of any value, values that are no numbers are null here.
        """
        columns = {name: self._column_named(name, own, query_columns) for name in self._reads}
        for name in self._any_columns.intersection(columns):
            columns[name] = numbers_of(columns[name])
        if self._numbers is not None:
            return self._numbers.compute(columns, rows)
        assert self._column is not None
        numbers = pc.cast(columns[self._column], pa.float64(), safe=False)
        of_rows: Float64s = pc.fill_null(numbers, float("nan")).to_numpy(zero_copy_only=False)
        return of_rows

    def _column_named(self, name: str, own: Named, query_columns: Named) -> pa.Array:
        if name in own:
            return own[name]
        return self._size(name, own, query_columns) if name in self._sizes else query_columns[name]

    def _size(self, name: str, own: Named, query_columns: Named) -> pa.Array:
        """The sizes that this column of the cost holds."""
        counted = self._sizes[name].source
        column = own[counted.column] if counted.column in own else query_columns[counted.column]
        # A column of lists is read as their sizes (`CellColumns`).
        return column if counted.way == "list" else sizes_of_texts(column, counted)


def _beside(query: Mapping[str, str], own: Mapping[str, str], *, fields: bool) -> dict[str, str]:
    """The columns of `own` if they can be read beside those of the query, or none of them.

    fields: whether columns are fields of objects. Then a column that lies in another one cannot be read
    beside it.
    """
    if not query:
        return {}
    try:
        paths.check_together([*query, *own] if fields else [])
    except ValueError:
        return {}
    return dict(own)


def only(numbers: Float64s | None, keep: Bools) -> Float64s | None:
    """The costs of the tuples for which `keep` is true. keep: shape (tuples,)."""
    return None if numbers is None else numbers[keep]


def _without_faults(cell_columns: CellColumns, names: Mapping[str, str]) -> dict[str, pa.Array]:
    """These columns, null where anything is wrong with their row."""
    columns = {name: cell_columns[name] for name in names}  # reading a column notes its faults
    good = cell_columns.faults.codes == 0
    if good.all():
        return columns
    return {name: pc.if_else(pa.array(good), column, None) for name, column in columns.items()}
