"""Aggregates in plain Python: a state, to which values are added one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn
from evenflow.aggregates.own.base import OwnAggregate, Result, as_result, blamed
from evenflow.aggregates.partials.grouping import Grouping
from evenflow.aggregates.partials.lists import take_rows
from evenflow.numeric.arrays import Bools, Int64s, one_chunk

STATES = pa.large_binary()


class PlainAggregate(OwnAggregate):
    """An aggregate in plain Python: `init`, `add`, `merge`, `finish`.

    The laws: adding values to two states and merging these is the same as adding all of them to one state, in
    any order and for any split. `merge` is associative and commutative. A state that nothing was added to
    changes nothing.

    `add` and `merge` may change the state that they get and return it. `init` must return a new one. A state
    travels as bytes: `dump` and `load` are JSON, in which a tuple becomes a list and a key of a dict a text.
    Override both for anything else. Pickle is no choice, as its bytes depend on versions and may run code.
    """

    def init(self) -> Any:
        """The state of no value."""
        raise NotImplementedError

    def add(self, state: Any, value: Any) -> Any:
        """The state with one more value. The value is never None."""
        raise NotImplementedError

    def merge(self, a: Any, b: Any) -> Any:
        """The state of all values of both states."""
        raise NotImplementedError

    def finish(self, state: Any) -> Any:
        """The result of a state, which may be that of no value. None is null."""
        raise NotImplementedError

    def add_all(self, state: Any, values: pa.Array) -> Any:
        """The state with several values, none of them null.
        Override it where numpy or pandas adds many at once.

        values: one Arrow array, of which `to_numpy()`, `to_pandas()` and `to_pylist()` are the values.
        """
        for value in values.to_pylist():
            state = self.add(state, value)
        return state

    def dump(self, state: Any) -> bytes:
        """The bytes of a state. Equal states must have equal bytes."""
        return json.dumps(state, separators=(",", ":")).encode()

    def load(self, data: bytes) -> Any:
        """The state of these bytes."""
        return json.loads(data)

    def oracle(self, values: list[Any]) -> Any:
        """All values added to one state, one by one. Neither `merge` nor `add_all` is called."""
        return self.finish(reduce(self.add, values, self.init()))


@dataclass(frozen=True)
class PlainValueReduction:
    """Reduction from values to states of at most `room` bytes. A larger one is null. Values that are null
    are left out.
    """

    own: PlainAggregate
    """The aggregate that a user wrote."""
    name: str
    """How messages call the aggregate, where its functions fail."""
    room: int
    """Bytes that a state may have."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The state of each group."""
        assert column is not None
        group_ids = groups.ids.astype(np.int64)
        if column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            column, group_ids = column.filter(pa.array(valid)), group_ids[valid]
        # A stable sort: the values of a group stay in the order of the rows.
        order = np.argsort(group_ids, kind="stable")
        values = take_rows(column, order)
        ends = np.searchsorted(group_ids[order], np.arange(groups.count + 1))
        with blamed(self.name, "adding values"):
            return self._bounded(
                self.own.dump(self.own.add_all(self.own.init(), values.slice(begin, end - begin)))
                for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
            )

    def _bounded(self, states: Iterator[bytes]) -> pa.Array:
        return pa.array([state if len(state) <= self.room else None for state in states], STATES)


@dataclass(frozen=True)
class PlainStateReduction:
    """Reduction from states to states of at most `room` bytes. A state that is null was too large, and
    whatever is merged with it is null."""

    own: PlainAggregate
    """The aggregate that a user wrote."""
    name: str
    """How messages call the aggregate, where its functions fail."""
    room: int
    """Bytes that a state may have."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The state of each group, merged in the order of the rows."""
        assert column is not None
        states: list[Any] = [None] * groups.count
        alone: list[bytes | None] = [None] * groups.count
        """The bytes of a group's only state so far. They need not be loaded if no other state comes."""
        lost = lost_groups(column, groups)
        state_counts = np.zeros(groups.count, np.int64)
        with blamed(self.name, "merge"):
            for group, data in zip(groups.ids.tolist(), column.to_pylist(), strict=True):
                if lost[group]:
                    continue
                if not state_counts[group]:
                    alone[group] = data
                else:
                    first = alone[group]
                    if first is not None:
                        states[group], alone[group] = self.own.load(first), None
                    states[group] = self.own.merge(states[group], self.own.load(data))
                state_counts[group] += 1
            dumped = [
                None if lost[group] else self.own.dump(state) if alone[group] is None else alone[group]
                for group, state in enumerate(states)
            ]
        return pa.array(
            [data if data is not None and len(data) <= self.room else None for data in dumped], STATES
        )


def lost_groups(column: pa.Array, groups: Grouping) -> Bools:
    """Which groups have a state that is null. Shape (groups,)."""
    lost = np.zeros(groups.count, np.bool_)
    if column.null_count:
        lost[groups.ids[column.is_null().to_numpy(zero_copy_only=False)]] = True
    return lost


def state_column(own: PlainAggregate, name: str, label: str, call: Call) -> PartialColumn:
    """Partial column: the states. label: name of the column."""
    return PartialColumn(
        name=label,
        type=STATES,
        source=call.column,
        combine=PlainValueReduction(own, name, call.room.state),
        merge=PlainStateReduction(own, name, call.room.state),
        shares_state=True,
    )


def finished(own: PlainAggregate, name: str, states: pa.Array, type_: pa.DataType, room: int) -> list[Result]:
    """The result of each state. One that was too large does not fit. room: bytes of a text."""
    with blamed(name, "finish"):
        return [
            Result(None, fits=False)
            if data is None
            else as_result(name, own.finish(own.load(data)), type_, room)
            for data in one_chunk(states).to_pylist()
        ]


def not_fitting(results: list[Result]) -> Int64s:
    """Which results do not fit, by number."""
    return np.flatnonzero([not result.fits for result in results])
