"""Result rows of partial tables, in slices.
So what leaves a task at once is small, however large a window is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.aggregate import ROWS
from evenflow.wire import cut

RESULT_BYTES = 16_000_000
"""A table of results has about so many bytes. A single row may be larger."""


def sliced(table: pa.Table) -> Iterator[pa.Table]:
    """The same rows in tables of about `RESULT_BYTES`. A text column of a result holds no more than 2 GiB."""
    for batch in table.combine_chunks().to_batches():
        for rows in cut(batch, RESULT_BYTES):
            yield pa.Table.from_batches([rows])


def result_rows(
    plan: AggregatePlan, table: pa.Table, bounds: tuple[int, int], *said: Any, of_all: int | None = None
) -> pa.Table:
    """Results (plan.result_schema) of a slice of partials.

    bounds: start and end of the window in ms. said: one value for each column of `plan.emission_schema`, the
    same in all rows. of_all: as in `AggregatePlan.tuples`.
    """
    return _result(plan, table, bounds, said, [*plan.finish(table).columns, *plan.tuples(table, of_all)])


def retracted_rows(
    plan: AggregatePlan, table: pa.Table, bounds: tuple[int, int], *said: Any, of_all: int
) -> pa.Table:
    """As `result_rows`, but with null in place of every aggregate: the keys have left, and have 0 tuples."""
    rows = table.num_rows
    nulls = [pa.nulls(rows, field.type) for field in plan.output_schema]
    none = table.set_column(table.schema.get_field_index(ROWS), ROWS, pa.array(np.zeros(rows, np.int64)))
    return _result(plan, table, bounds, said, [*nulls, *plan.tuples(none, of_all)])


def _result(
    plan: AggregatePlan,
    table: pa.Table,
    bounds: tuple[int, int],
    emission_values: Sequence[Any],
    values: Sequence[pa.Array | pa.ChunkedArray],
) -> pa.Table:
    rows = table.num_rows
    times = [pa.array(np.full(rows, bound, np.int64)) for bound in bounds]
    added = [
        pa.repeat(pa.scalar(value, field.type), rows)
        for field, value in zip(plan.emission_schema, emission_values, strict=True)
    ]
    columns = [*times, narrow_keys(table["key"].chunk(0)), *added, *values]
    return pa.Table.from_arrays(columns, schema=plan.result_schema)


def narrow_keys(keys: pa.LargeBinaryArray) -> pa.BinaryArray:
    """The keys of a slice as ordinary binary, with 32-bit offsets.

    Arrow's `cast` refuses a slice that lies more than 2 GiB into its column, even if the slice itself is
    small.
    """
    _, offsets, data = keys.buffers()
    bounds = np.frombuffer(offsets, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    own = pa.py_buffer((bounds - bounds[0]).astype(np.int32))
    used = data.slice(int(bounds[0]), int(bounds[-1] - bounds[0])) if data is not None else pa.py_buffer(b"")
    return pa.Array.from_buffers(pa.binary(), len(keys), [None, own, used])
