"""`emit = "changes"`: of each window the rows that differ from those of the window one slide before.

A key's row can differ only where a tuple of the key is in the pane that arrives or in the one that expires. So these keys
are the candidates, and work and output follow them, not the keys of the window:

* invertible plan: the candidates' totals are looked up in `Layers`, moved on, and put back on top;
* any other: of the nodes that cover the window, and of those that covered the one before, only the candidates' rows are
  merged, in the order in which all rows would be. A pane that is a left child stays until it expires, for its keys, and
  a node goes one window later than with `all`.

What is left that follows all keys of the window, once a micro-batch: layers and nodes that are asked are read from the
state store, and their keys are hashed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.aggregate import ROWS
from evenflow.arrays import one_chunk
from evenflow.twostep.directory import Node
from evenflow.twostep.equal_values import equal_rows
from evenflow.twostep.key_index import KeyIndex
from evenflow.twostep.rows_out import result_rows, retracted_rows, sliced
from evenflow.twostep.sliding import cover, folded, grow_tree, nodes_from
from evenflow.twostep.state import Bucket

Moved = tuple[pa.Table, pa.Table]
"""Partials (key_schema) of the candidates in the window before and in this one. A key is only where it has tuples."""


class Changes:
    """Windows of one bucket in one micro-batch, each beside the one before."""

    def __init__(self, plan: AggregatePlan, bucket: Bucket) -> None:
        self._plan = plan
        self._bucket = bucket
        self._indices: dict[Node, tuple[pa.Table, KeyIndex]] = {}

    def advance(self, pane: int) -> Moved:
        """The pane closes: candidates before and now."""
        expires = pane - self._plan.panes_per_window
        arrived, expired = self._bucket.node((0, pane)), self._bucket.node((0, expires))
        if self._by_totals:
            moved = self._totals(arrived, expired)
            self._drop((0, expires))
            return moved
        keys = _keys(arrived, expired)
        before = self._window(pane - 1, keys)
        for node in nodes_from(self._plan, expires):
            self._drop(node)
        for left in grow_tree(self._plan, self._bucket, pane):
            if left[0] > 0:
                self._drop(left)
        return before, self._window(pane, keys)

    def whole(self, pane: int) -> pa.Table:
        """All rows of the window that `advance` has come to. O(all its keys)."""
        if self._by_totals:
            return self._bucket.layers.all()
        tables = (self._bucket.node(node) for node in cover(self._plan, pane))
        return folded(self._plan, [table for table in tables if table is not None])

    @property
    def _by_totals(self) -> bool:
        return self._plan.invertible and self._plan.panes_per_window > 1

    def _totals(self, arrived: pa.Table | None, expired: pa.Table | None) -> Moved:
        plan, layers = self._plan, self._bucket.layers
        before = layers.find(_keys(arrived, expired))
        now = plan.evict(before, [] if expired is None else [expired], [] if arrived is None else [arrived])
        left = before.take(pa.array(_absent(before, now)))
        none = left.set_column(
            left.schema.get_field_index(ROWS), ROWS, pa.array(np.zeros(left.num_rows, np.int64))
        )
        layers.put(pa.concat_tables([now, none]))
        return before, now

    def _window(self, last: int, keys: pa.Array) -> pa.Table:
        """The rows of these keys in the window that ends with this pane: merged as all of its rows would be."""
        picked = []
        for node in cover(self._plan, last):
            table = self._bucket.node(node)
            if table is not None:
                rows = self._index(node, table).find(keys)
                picked.append(table.take(pa.array(rows[rows >= 0])))
        return folded(self._plan, picked)

    def _index(self, node: Node, table: pa.Table) -> KeyIndex:
        known = self._indices.get(node)
        if known is None or known[0] is not table:
            known = self._indices[node] = table, KeyIndex(one_chunk(table["key"]))
        return known[1]

    def _drop(self, node: Node) -> None:
        self._indices.pop(node, None)
        self._bucket.drop_node(node)


def changed_rows(
    plan: AggregatePlan, moved: Moved, bounds: tuple[int, int]
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """(partials, results) in slices: the rows that are new or differ, then one retraction for each key that is gone.

    A retraction is of no partials.
    """
    before, now = moved
    revision = bounds[1] // plan.slide
    index = KeyIndex(one_chunk(before["key"]))
    for rows in sliced(now):
        at = index.find(one_chunk(rows["key"]))
        both = np.flatnonzero(at >= 0)
        differ = np.ones(rows.num_rows, np.bool_)
        if len(both):
            one, other = rows.take(pa.array(both)), before.take(pa.array(at[both]))
            differ[both] = ~equal_rows(plan.finish(one), plan.finish(other))
        for some in sliced(rows.filter(pa.array(differ))):
            yield some, result_rows(plan, some, bounds, revision, False)
    for rows in sliced(before.take(pa.array(_absent(before, now)))):
        yield rows.slice(0, 0), retracted_rows(plan, rows, bounds, revision, True)


def _keys(arrived: pa.Table | None, expired: pa.Table | None) -> pa.Array:
    there = [table["key"] for table in (arrived, expired) if table is not None]
    return pc.unique(pa.chunked_array([chunk for keys in there for chunk in keys.chunks], pa.large_binary()))


def _absent(before: pa.Table, now: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Which rows of the one have keys that the other lacks."""
    return np.flatnonzero(KeyIndex(one_chunk(now["key"])).find(one_chunk(before["key"])) < 0)
