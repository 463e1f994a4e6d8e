"""`emit = "changes"`: of each window, only the rows that differ from the window one slide before.

From one window to the next, one pane arrives and one pane expires. A key's row can differ only if one of
these two panes has a tuple of the key. The keys of the two panes are the *candidates*. Work and output grow
with the number of candidates, not with the number of keys in the window:

* invertible plan: the candidates' totals are looked up in `Layers`, moved on by one pane, and put back as a
  new layer;
* any other plan: both windows are merged from the nodes that cover them, but only for the candidates' rows.
  These rows are merged in the order in which all rows would be, so float sums are the same as with `all`. A
  pane stays until it expires, even if its parent node exists, because its keys are candidates then. A node
  that a window has left behind goes one window later than with `all`, because the window before is still
  compared.

Only one kind of work still grows with all keys of the window, and it is done at most once a micro-batch: the
layers and nodes in use are read from the state store, and their keys are hashed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.aggregate import ROWS
from evenflow.aggregates.partials.grouping import distinct_keys
from evenflow.numeric.arrays import one_chunk
from evenflow.twostep.key_index import KeyIndex
from evenflow.twostep.reducing.directory import Node
from evenflow.twostep.reducing.equal_values import equal_rows
from evenflow.twostep.reducing.rows_out import result_rows, retracted_rows, sliced
from evenflow.twostep.reducing.sliding import cover, folded, grow_tree, nodes_from
from evenflow.twostep.reducing.state import Bucket

Moved = tuple[pa.Table, pa.Table]
"""The candidates' partials (key_schema) in the window before and in this window. A key without tuples in a
window has no row there."""


class Changes:
    """Compares each window of one bucket with the window before, during one micro-batch."""

    def __init__(self, plan: AggregatePlan, bucket: Bucket) -> None:
        self._plan = plan
        self._bucket = bucket
        self._indices: dict[Node, tuple[pa.Table, KeyIndex]] = {}

    def advance(self, pane: int) -> Moved:
        """Moves on to the window that ends with this pane. Returns the candidates' partials before and now.

        Panes are given in ascending order, each once.
        """
        expires = pane - self._plan.panes_per_window
        arrived, expired = self._bucket.node((0, pane)), self._bucket.node((0, expires))
        self._bucket.meta.tuples += _tuples(arrived) - _tuples(expired)
        if self._by_totals:
            moved = self._totals(arrived, expired)
            self._drop((0, expires))
            return moved
        keys = _keys(arrived, expired)
        # The window before is merged first: the nodes that only it needs are dropped next.
        before = self._window(pane - 1, keys)
        for node in nodes_from(self._plan, expires):
            self._drop(node)
        for left in grow_tree(self._plan, self._bucket, pane):
            if left[0] > 0:  # panes (level 0) stay until they expire: their keys are needed then
                self._drop(left)
        return before, self._window(pane, keys)

    def whole(self, pane: int) -> pa.Table:
        """All rows of the window that `advance` was called for last. O(keys of the window)."""
        if self._by_totals:
            return self._bucket.layers.all()
        tables = (self._bucket.node(node) for node in cover(self._plan, pane))
        return folded(self._plan, [table for table in tables if table is not None])

    @property
    def _by_totals(self) -> bool:
        # A tumbling window is a single pane, so there are no totals to keep.
        return self._plan.invertible and self._plan.panes_per_window > 1

    def _totals(self, arrived: pa.Table | None, expired: pa.Table | None) -> Moved:
        plan, layers = self._plan, self._bucket.layers
        before = layers.find(_keys(arrived, expired))
        # `before` has the candidates only, and `evict` needs no more: panes that arrive and expire hold no
        # other key.
        now = plan.evict(before, [] if expired is None else [expired], [] if arrived is None else [arrived])
        left = before.take(pa.array(_absent(before, now)))
        # A row of 0 tuples hides the rows of its key in the layers below: the key has left the window.
        none = left.set_column(
            left.schema.get_field_index(ROWS), ROWS, pa.array(np.zeros(left.num_rows, np.int64))
        )
        layers.put(pa.concat_tables([now, none]))
        return before, now

    def _window(self, last: int, keys: pa.Array) -> pa.Table:
        """The rows of these keys in the window that ends with this pane, merged in the order in which all
        rows would be.
        """
        picked = []
        for node in cover(self._plan, last):
            table = self._bucket.node(node)
            if table is not None:
                rows = self._index(node, table).find(keys)
                picked.append(table.take(pa.array(rows[rows >= 0])))
        return folded(self._plan, picked)

    def _index(self, node: Node, table: pa.Table) -> KeyIndex:
        # A node's table is replaced when the node grows. An index of the old table would point to wrong rows.
        known = self._indices.get(node)
        if known is None or known[0] is not table:
            known = self._indices[node] = table, KeyIndex(one_chunk(table["key"]))
        return known[1]

    def _drop(self, node: Node) -> None:
        self._indices.pop(node, None)
        self._bucket.drop_node(node)


def changed_rows(
    plan: AggregatePlan, moved: Moved, bounds: tuple[int, int], of_all: int
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """(partials, results) in slices: first the rows that are new or differ, then one retraction for each key
    that is gone.

    bounds: start and end of the window in ms. of_all: tuples that the bucket has in the window. The partials
    of a slice of retractions are an empty table.
    """
    before, now = moved
    revision = bounds[1] // plan.slide
    index = KeyIndex(one_chunk(before["key"]))
    for rows in sliced(now):
        at = index.find(one_chunk(rows["key"]))
        both = np.flatnonzero(at >= 0)
        differ = np.ones(rows.num_rows, np.bool_)
        if len(both):
            later, earlier = rows.take(pa.array(both)), before.take(pa.array(at[both]))
            differ[both] = ~equal_rows(plan.finish(later), plan.finish(earlier))
        for some in sliced(rows.filter(pa.array(differ))):
            yield some, result_rows(plan, some, bounds, revision, False, of_all=of_all)
    for rows in sliced(before.take(pa.array(_absent(before, now)))):
        yield rows.slice(0, 0), retracted_rows(plan, rows, bounds, revision, True, of_all=of_all)


def _tuples(pane: pa.Table | None) -> int:
    return 0 if pane is None else pc.sum(pane[ROWS]).as_py()


def _keys(arrived: pa.Table | None, expired: pa.Table | None) -> pa.Array:
    columns = [table["key"] for table in (arrived, expired) if table is not None]
    return distinct_keys([chunk for keys in columns for chunk in keys.chunks])


def _absent(before: pa.Table, now: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Numbers of the rows of `before` whose keys `now` lacks."""
    return np.flatnonzero(KeyIndex(one_chunk(now["key"])).find(one_chunk(before["key"])) < 0)
