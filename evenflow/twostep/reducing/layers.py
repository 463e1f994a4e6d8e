"""Totals of many keys of which few change at a time: a large base, and smaller layers of newer rows on top.

A row of a layer hides all rows of its key in the layers below. A row without tuples (`rows` is 0) says that
the key has left. New rows are joined with the layer below if that layer has at most twice as many rows. So
there are O(log keys) layers, and a row that changes is written O(log keys) times on its way down. This is the
idea of a log-structured merge tree.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.aggregate import ROWS
from evenflow.aggregates.partials.grouping import group_rows
from evenflow.keys import hash_keys
from evenflow.numeric.arrays import one_chunk
from evenflow.twostep.key_index import KeyIndex
from evenflow.twostep.reducing.state_blobs import BucketState, needed, packed, table_bytes, table_of, unpacked

_NAMES = "layers"


class RowLayers:
    """Rows by key in a bucket's state.
    A micro-batch reads each layer at most once, and writes new layers only.

    schema: columns of the rows (AggregatePlan.key_schema).
    """

    def __init__(self, state: BucketState, schema: pa.Schema) -> None:
        self._state = state
        self._schema = schema
        saved = state.get(_NAMES)
        self._saved: list[int] = [] if saved is None else unpacked(saved).tolist()
        self._order = list(self._saved)
        """Names of the layers, the lowest layer first. A newer layer has a larger name."""
        self._next = max(self._saved, default=-1) + 1
        self._tables: dict[int, pa.Table] = {}
        self._indices: dict[int, KeyIndex] = {}

    def find(self, keys: pa.Array) -> pa.Table:
        """The rows of those of these keys that are there, in no promised order. `keys` has each key once."""
        tables = []
        hashes = hash_keys(keys)
        for name in reversed(self._order):
            if not len(keys):
                break
            rows = self._index(name).find(keys, hashes)
            hits = rows >= 0
            if hits.any():
                tables.append(self._table(name).take(pa.array(rows[hits])))
                # A key that was found hides the layers below, even if its row says that it has left.
                keys, hashes = keys.filter(pa.array(~hits)), hashes[~hits]
        if not tables:
            return self._schema.empty_table()
        return _present(pa.concat_tables(tables).combine_chunks())

    def put(self, rows: pa.Table) -> None:
        """Make these the rows of their keys. A row of 0 tuples removes its key. `rows` has each key once."""
        if not rows.num_rows:
            return
        while self._order:
            below = self._table(self._order[-1])
            if below.num_rows > 2 * rows.num_rows:
                break
            self._forget(self._order.pop())
            rows = _joined(rows, below)
        if not self._order:  # the lowest layer has nothing to hide
            rows = _present(rows)
            if not rows.num_rows:
                return
        self._tables[self._next] = rows.combine_chunks()
        self._order.append(self._next)
        self._next += 1

    def all(self) -> pa.Table:
        """Every row that is there, each key once. O(all keys)."""
        rows = self._schema.empty_table()
        for name in reversed(self._order):
            rows = _joined(rows, self._table(name))
        return _present(rows)

    def save(self) -> None:
        """Write the new layers and the list of layers, and delete the layers that are gone."""
        if self._order == self._saved:  # a layer never changes: new rows make a new layer
            return
        for name in sorted({*self._saved} - {*self._order}):
            self._state.delete(f"layer/{name}")
        for name in self._order:
            if name not in self._saved:
                self._state.put(f"layer/{name}", table_bytes(self._tables[name]))
        self._state.put(_NAMES, packed(np.array(self._order, np.int64)))

    def _table(self, name: int) -> pa.Table:
        if name not in self._tables:
            self._tables[name] = table_of(needed(self._state, f"layer/{name}"))
        return self._tables[name]

    def _index(self, name: int) -> KeyIndex:
        if name not in self._indices:
            self._indices[name] = KeyIndex(one_chunk(self._table(name)["key"]))
        return self._indices[name]

    def _forget(self, name: int) -> None:
        self._tables.pop(name, None)
        self._indices.pop(name, None)


def _present(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.not_equal(rows[ROWS], 0))


def _joined(above: pa.Table, below: pa.Table) -> pa.Table:
    """The rows of both tables. Of a key that both have, the row above."""
    if not above.num_rows:
        return below
    both = pa.concat_tables([above, below]).combine_chunks()  # `take` is slow on a table of several chunks
    return both.take(pa.array(group_rows(one_chunk(both["key"])).first))
