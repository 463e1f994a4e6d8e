"""Makes windows of panes: what a bucket does when a pane closes.
Work that windows have in common is done once.

* invertible plan: there are `totals` per key. The new pane is added, and the expired pane is subtracted.
* any other plan: there is a dyadic tree. Node (l, k) covers 2^l panes from pane k * 2^l on, and is made of
  its two children when its last pane closes. A window is merged from O(log panes) nodes. The nodes depend on
  the window alone, so float sums do, too. A left child is dropped when its parent is made, because every
  later window that holds the child holds the parent. Any node is dropped once the next window begins after
  the node's start. So the nodes that stay have at most twice as many rows as the panes of one window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.twostep.reducing.directory import Node
from evenflow.twostep.reducing.state import Bucket


def advance(plan: AggregatePlan, bucket: Bucket, pane: int) -> pa.Table:
    """Moves the bucket on to the window that ends with this pane,
    and returns the window's merged rows (key_schema).
    """
    return (advance_totals if plan.invertible else advance_tree)(plan, bucket, pane)


def advance_totals(plan: AggregatePlan, bucket: Bucket, pane: int) -> pa.Table:
    """Moves `totals` on to the window that ends with this pane, and returns them (key_schema)."""
    arrived = bucket.node((0, pane))
    if plan.panes_per_window == 1:
        bucket.drop_node((0, pane))
        return arrived if arrived is not None else plan.key_schema.empty_table()
    expired = bucket.node((0, pane - plan.panes_per_window))
    totals = bucket.totals
    if arrived is not None or expired is not None:
        totals = bucket.totals = plan.evict(
            totals, [] if expired is None else [expired], [] if arrived is None else [arrived]
        )
        bucket.drop_node((0, pane - plan.panes_per_window))
    return totals


def advance_tree(plan: AggregatePlan, bucket: Bucket, pane: int) -> pa.Table:
    """Moves the tree on to the window that ends with this pane,
    and returns the window's merged rows (key_schema).
    """
    first = pane - plan.panes_per_window + 1
    for left in grow_tree(plan, bucket, pane):
        bucket.drop_node(left)
    # The window is read before its first pane expires: the nodes that begin there belong to this window.
    tables = [table for node in cover(plan, pane) if (table := bucket.node(node)) is not None]
    for node in nodes_from(plan, first):
        bucket.drop_node(node)
    return folded(plan, tables)


def grow_tree(plan: AggregatePlan, bucket: Bucket, pane: int) -> Iterator[Node]:
    """Make the nodes that end with this pane, from the lowest level up. Yields the left child of each node
    once it is made.

    The caller may drop the left child then.
    """
    for level in range(1, _top(plan) + 1):
        if (pane + 1) % (1 << level):
            break  # no node of this level ends here, so none of a higher level does
        number = pane >> level
        left, right = (level - 1, 2 * number), (level - 1, 2 * number + 1)
        children = [table for table in (bucket.node(left), bucket.node(right)) if table is not None]
        if children:
            bucket.append((level, number), children[0] if len(children) == 1 else plan.merge(children))
        yield left


def folded(plan: AggregatePlan, tables: Sequence[pa.Table]) -> pa.Table:
    """The tables of a window's nodes merged into one (key_schema)."""
    if len(tables) == 1:
        return tables[0]
    return plan.merge(tables) if tables else plan.key_schema.empty_table()


def nodes_from(plan: AggregatePlan, pane: int) -> Iterator[Node]:
    """Every node that begins with this pane."""
    for level in range(_top(plan) + 1):
        if pane % (1 << level) == 0:
            yield level, pane >> level


def cover(plan: AggregatePlan, last: int) -> Iterator[Node]:
    """The fewest nodes that cover the window that ends with this pane, from left to right. They depend on
    the pane alone.
    """
    return _cover(last - plan.panes_per_window + 1, last, _top(plan))


def cover_closed(plan: AggregatePlan, first: int, closed: int) -> Iterator[Node]:
    """The fewest nodes that cover the closed panes of a window that is still open:
    from `first` to before `closed`.

    They exist: a node is dropped only when a larger one that begins with the same pane is made, or when no
    later window begins there.
    """
    return _cover(first, closed - 1, _top(plan))


def _top(plan: AggregatePlan) -> int:
    """The highest level of nodes: a node above it would cover more panes than a window."""
    return plan.panes_per_window.bit_length() - 1


def _cover(first: int, last: int, top: int) -> Iterator[Node]:
    """The fewest nodes of levels 0..top that cover panes first..last, from left to right."""
    while first <= last:
        # The lowest bit set in `first` is the size of the largest node that begins there. 0 is a multiple of
        # every size.
        aligned = top if first == 0 else (first & -first).bit_length() - 1
        level = min(aligned, top, (last - first + 1).bit_length() - 1)
        yield level, first >> level
        first += 1 << level
