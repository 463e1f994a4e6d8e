"""`late = "update"`: a window comes out when the watermark has passed its end,
and its rows may come out again.

A window is *due* when the mark of every lane, plus the allowed lateness, has passed its end. Then all its
rows come out, with revision 0. It stays open until the marks themselves have passed its end. Tuples that come
in between change it: at the end of the micro-batch that brought them, the rows of their keys come out again,
with a revision that is higher than any before of this window. So the row of the highest revision of each
window and key is the final one once the window is closed. A tuple only adds to a window, so no row is ever
taken back.

    mark of the slowest lane        mark + allowed lateness
             |                              |
    ---------+------------------------------+--------------> last pane of a window
    closed: final     due: came out once,        open: nothing
                      rows may come again        has come out

An open window is merged from closed and open panes without moving the state on. From closed panes come the
sliding totals, less the panes that this window has left behind, or the nodes of the tree. With `keys` only
their rows are merged.

A window that becomes due and is closed within the same micro-batch comes out once, as it does without
updates.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.partials.grouping import distinct_keys
from evenflow.numeric.arrays import one_chunk
from evenflow.twostep.key_index import KeyIndex
from evenflow.twostep.reducing.rows_out import result_rows, sliced
from evenflow.twostep.reducing.sliding import cover_closed, folded
from evenflow.twostep.reducing.state import Bucket
from evenflow.windows import panes_closed_by


class Updates:
    """What comes out of the windows of one bucket in one micro-batch.

    First `note` is told of all panes that got tuples. Then panes are closed (`of_closed`), then `rows` is
    asked for each of the `open_windows`, and last `end` is called. Windows are known by their last pane.
    """

    def __init__(self, plan: AggregatePlan, bucket: Bucket) -> None:
        self._plan = plan
        self._bucket = bucket
        meta = bucket.meta
        self._out = meta.closed if meta.due is None else meta.due
        # Marks that are known only from now on may be anywhere, but what is due never becomes less.
        passed = int(bucket.marks.min()) + plan.emission.updates
        self._due = max(self._out, int(panes_closed_by(passed, plan.slide)))
        self._panes: list[int] = []
        self._keys: list[pa.ChunkedArray] = []

    def note(self, pane: int, rows: pa.Table) -> None:
        """Note that this pane got these partials (key_schema) in this micro-batch. Panes ascend."""
        if pane < self._out:
            self._panes.append(pane)
            self._keys.append(rows["key"])

    def is_first(self, pane: int) -> bool:
        """Whether the window has not come out before this micro-batch."""
        return pane >= self._out

    def of_closed(
        self, pane: int, table: pa.Table, bounds: tuple[int, int]
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        """(partials, results) in slices, of a window that closes. table: its partials (key_schema)."""
        if self.is_first(pane):
            revision = 0
        else:
            revision = self._bucket.meta.revisions.pop(pane, 0) + 1
            table = _of_keys(table, self._changed(pane))
        return self._results(table, bounds, revision)

    def open_windows(self) -> Iterator[int]:
        """The windows of which something comes out although they are open:
        those that are due first or have changed.
        """
        span, closed = self._plan.panes_per_window, self._bucket.meta.closed
        newest = self._bucket.meta.newest
        panes = [*([] if newest is None else [newest]), *self._bucket.nodes.panes(closed, self._due)]
        after = closed
        for pane in panes:
            # Every window with a tuple, once: from the pane on, as many as a window has panes.
            for last in range(max(pane, after), min(pane + span, self._due)):
                if self.is_first(last) or self._noted(last):
                    yield last
            after = max(after, min(pane + span, self._due))

    def rows(self, pane: int, bounds: tuple[int, int]) -> Iterator[tuple[pa.Table, pa.Table]]:
        """(partials, results) in slices, of a window that is open."""
        if self.is_first(pane):
            return self._results(self._merged(pane, None), bounds, 0)
        revisions = self._bucket.meta.revisions
        revisions[pane] = revisions.get(pane, 0) + 1
        return self._results(self._merged(pane, self._changed(pane)), bounds, revisions[pane])

    def arrival_time(self, pane: int) -> int | None:
        """When (ms) the newest tuple of this open window came into the input topic, None if unknown."""
        first = pane - self._plan.panes_per_window + 1
        panes = self._bucket.nodes.panes(max(first, self._bucket.meta.closed), pane + 1)
        return self._bucket.meta.newest_came(panes, first=first)

    def end(self) -> None:
        """Remember which windows have come out."""
        self._bucket.meta.due = max(self._due, self._bucket.meta.closed)

    def _noted(self, pane: int) -> list[pa.ChunkedArray]:
        """The keys that were noted of each pane of this window.
        Empty if this micro-batch does not change the window.
        """
        first = pane - self._plan.panes_per_window + 1
        return self._keys[bisect_left(self._panes, first) : bisect_right(self._panes, pane)]

    def _changed(self, pane: int) -> pa.Array:
        """The keys of which tuples came into this window in this micro-batch."""
        return distinct_keys([chunk for keys in self._noted(pane) for chunk in keys.chunks])

    def _results(
        self, table: pa.Table, bounds: tuple[int, int], revision: int
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        if table.num_rows:
            for rows in sliced(table):
                yield rows, result_rows(self._plan, rows, bounds, revision)

    def _merged(self, pane: int, keys: pa.Array | None) -> pa.Table:
        """Partials (key_schema) of an open window: of these keys, or of all."""
        plan, bucket, closed = self._plan, self._bucket, self._bucket.meta.closed
        first = pane - plan.panes_per_window + 1

        def panes(begin: int, end: int) -> list[pa.Table]:
            return self._tables([(0, at) for at in bucket.nodes.panes(begin, end)], keys)

        arrived = panes(max(first, closed), pane + 1)
        if first >= closed:
            return folded(plan, arrived)
        if plan.invertible:
            totals = bucket.totals if keys is None else _of_keys(bucket.totals, keys)
            return plan.evict(totals, panes(closed - plan.panes_per_window, first), arrived)
        return folded(plan, self._tables(list(cover_closed(plan, first, closed)), keys) + arrived)

    def _tables(self, nodes: Sequence[tuple[int, int]], keys: pa.Array | None) -> list[pa.Table]:
        tables = [table for node in nodes if (table := self._bucket.node(node)) is not None]
        return tables if keys is None else [_of_keys(table, keys) for table in tables]


def _of_keys(table: pa.Table, keys: pa.Array) -> pa.Table:
    """The rows of these keys, in the order of the table."""
    if not table.num_rows or not len(keys):
        return table.slice(0, 0)
    return table.filter(pa.array(KeyIndex(keys).find(one_chunk(table["key"])) >= 0))
