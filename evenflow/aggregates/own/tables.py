"""Aggregates as three functions on Arrow tables, for those that must be fast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn
from evenflow.aggregates.own.base import OwnAggregate, blamed
from evenflow.aggregates.partials.grouping import Grouping
from evenflow.errors import ConfigError
from evenflow.numeric.arrays import one_chunk

GROUP = "group"
_MOST_BYTES = 1_024


class TableAggregate(OwnAggregate):
    """An aggregate of Arrow functions: `combine`, `merge`, `finish`.

    Rows are of many keys and panes at once. The column `group` (int32) says which belong together, and no
    function needs to know more: `table.group_by("group", use_threads=False).aggregate(...)` does it, without
    threads, which would add in any order. The laws are those of `PlainAggregate`, with a row of
    `state` as the state. A state has a fixed size, at most 1,024 bytes. Its columns are never null in what
    `combine` and `merge` get.
    """

    state: Mapping[str, pa.DataType]
    """Columns of a state: numbers, truths, dates, times, decimals, or binary of a fixed size. `__init__`
    may set it.
    """

    def combine(self, rows: pa.Table) -> pa.Table:
        """One row of `group` and the columns of `state` for each group of the rows, in any order.

        rows: `group` and `value`. A value is never null, and a group without a value is not there.
        """
        raise NotImplementedError

    def merge(self, states: pa.Table) -> pa.Table:
        """One row of `group` and the columns of `state` for each group of the states, in any order."""
        raise NotImplementedError

    def finish(self, states: pa.Table) -> pa.Array | pa.ChunkedArray:
        """The result of each row of the states, in their order.

        All columns of a state are null if the window has no value.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class TableValueReduction:
    """Reduction from values to states. A group without a value has a null."""

    own: TableAggregate
    """The aggregate that a user wrote."""
    name: str
    """How messages call the aggregate, where its functions fail."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The state of each group."""
        assert column is not None
        return _stacked(self.own, self.name, "combine", {"value": column}, groups)


@dataclass(frozen=True)
class TableStateReduction:
    """Reduction from states to states. A null is no state."""

    own: TableAggregate
    """The aggregate that a user wrote."""
    name: str
    """How messages call the aggregate, where its functions fail."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The state of each group."""
        assert column is not None
        fields = {name: column.field(name) for name in self.own.state}
        return _stacked(self.own, self.name, "merge", fields, groups, valid=column.is_valid())


def _stacked(
    own: TableAggregate,
    name: str,
    step: str,
    fields: Mapping[str, pa.Array],
    groups: Grouping,
    *,
    valid: pa.Array | None = None,
) -> pa.Array:
    """What `combine` or `merge` makes of the rows that are not null, as structs in the order of the
    groups.
    """
    if valid is None:
        (only,) = fields.values()
        valid = only.is_valid()
    rows = pa.table({GROUP: pa.array(groups.ids), **fields}).filter(valid)
    with blamed(name, step):
        result = getattr(own, step)(rows) if rows.num_rows else None
        return _in_order(name, step, result, struct_type(name, own), groups.count)


def _in_order(name: str, step: str, result: Any, type_: pa.StructType, count: int) -> pa.Array:
    # at[group]: the row of the group's state, -1 if it has none.
    at = np.full(count, -1, np.int64)
    if result is None:
        return pa.nulls(count, type_)
    names = [GROUP, *(field.name for field in type_)]
    if not isinstance(result, pa.Table) or sorted(result.schema.names) != sorted(names):
        description = (
            ", ".join(result.schema.names) if isinstance(result, pa.Table) else type(result).__name__
        )
        raise ConfigError(
            f"aggregate {name}: {step} returned {description}, and not a table of {', '.join(names)}",
            hint="rename and select the columns of what group_by returns",
        )
    group_ids = one_chunk(result[GROUP]).to_numpy(zero_copy_only=False)
    if len(np.unique(group_ids)) < len(group_ids):
        raise ConfigError(
            f"aggregate {name}: {step} returned {len(group_ids)} rows for {len(np.unique(group_ids))} groups",
            hint="group by `group` alone",
        )
    at[group_ids] = np.arange(len(group_ids))
    columns = [one_chunk(result[field.name].cast(field.type)) for field in type_]
    if sum(column.null_count for column in columns):
        raise ConfigError(
            f"aggregate {name}: {step} returned a state with a null",
            hint="a state has a value in each of its columns: say with one more number that there is none",
        )
    return pa.StructArray.from_arrays(columns, fields=list(type_)).take(pa.array(at, mask=at < 0))


def struct_type(name: str, own: TableAggregate) -> pa.StructType:
    """Arrow type of a state. Raises ConfigError for a state without a fixed size, or with too large a one."""
    size = 0
    for column, type_ in own.state.items():
        try:
            size += type_.bit_width // 8 + 1
        except ValueError:
            raise ConfigError(
                f"aggregate {name}: {column} of its state is {type_}, which has no fixed size",
                hint="a state of any size is for a PlainAggregate, whose `dump` may make any bytes of it",
            ) from None
    if not own.state or GROUP in own.state or size > _MOST_BYTES:
        raise ConfigError(
            f"aggregate {name}: a state of the columns {', '.join(own.state) or 'none'} takes {size:,} bytes",
            hint=f"a state has columns, none of them called {GROUP}, and at most {_MOST_BYTES:,} bytes",
        )
    return pa.struct(list(own.state.items()))


def row_column(own: TableAggregate, name: str, label: str, call: Call) -> PartialColumn:
    """Partial column: the states as structs. label: name of the column."""
    return PartialColumn(
        name=label,
        type=struct_type(name, own),
        source=call.column,
        combine=TableValueReduction(own, name),
        merge=TableStateReduction(own, name),
    )


def finished_rows(own: TableAggregate, name: str, states: pa.Array, type_: pa.DataType) -> pa.Array:
    """The result of each state."""
    states = one_chunk(states)
    # `flatten` puts the struct's own nulls into its fields, and `field` does not.
    fields = dict(zip(own.state, states.flatten(), strict=True))
    with blamed(name, "finish"):
        results = own.finish(pa.table(fields))
        if not isinstance(results, pa.Array | pa.ChunkedArray) or len(results) != len(states):
            description = (
                f"{len(results)} values"
                if isinstance(results, pa.Array | pa.ChunkedArray)
                else type(results).__name__
            )
            raise ConfigError(
                f"aggregate {name}: finish returned {description} for {len(states)} states",
                hint="return one Arrow array with a result for each row",
            )
        return one_chunk(results.cast(type_)) if isinstance(results, pa.ChunkedArray) else results.cast(type_)
