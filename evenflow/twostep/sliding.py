"""Windows of panes: what a bucket does when a pane closes, so that a window costs no more than it must.

* invertible plan: `totals` per key, plus the new pane, minus the expired one;
* any other: a dyadic tree. Node (l, k) covers 2^l panes from k * 2^l. It is made of its two children when
  its last pane closes. A window is O(log) nodes, always the same ones for the same window. The left child
  goes when its parent is made (every later window that holds the child holds the parent), a node goes
  when a window begins behind its start: what stays is at most twice the tuples' keys of one window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.twostep.directory import Node
from evenflow.twostep.state import Bucket


def advance_totals(plan: AggregatePlan, bucket: Bucket, pane: int) -> pa.Table:
    """Totals of the window that ends with this pane."""
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
    """Merged nodes of the window that ends with this pane."""
    first = pane - plan.panes_per_window + 1
    for left in grow_tree(plan, bucket, pane):
        bucket.drop_node(left)
    tables = [table for node in cover(plan, pane) if (table := bucket.node(node)) is not None]
    for node in nodes_from(plan, first):
        bucket.drop_node(node)
    return folded(plan, tables)


def grow_tree(plan: AggregatePlan, bucket: Bucket, pane: int) -> Iterator[Node]:
    """Make the nodes that end with this pane, from low to high. After each, its left child, which may be dropped then."""
    for level in range(1, _top(plan) + 1):
        if (pane + 1) % (1 << level):
            break
        number = pane >> level
        left, right = (level - 1, 2 * number), (level - 1, 2 * number + 1)
        children = [table for table in (bucket.node(left), bucket.node(right)) if table is not None]
        if children:
            bucket.append((level, number), children[0] if len(children) == 1 else plan.merge(children))
        yield left


def folded(plan: AggregatePlan, tables: Sequence[pa.Table]) -> pa.Table:
    """The nodes of a window made one table."""
    if len(tables) == 1:
        return tables[0]
    return plan.merge(tables) if tables else plan.key_schema.empty_table()


def nodes_from(plan: AggregatePlan, pane: int) -> Iterator[Node]:
    """Every node that begins with this pane."""
    for level in range(_top(plan) + 1):
        if pane % (1 << level) == 0:
            yield level, pane >> level


def cover(plan: AggregatePlan, last: int) -> Iterator[Node]:
    """The fewest nodes that cover the window that ends with this pane, from left to right: always the same ones."""
    return _cover(last - plan.panes_per_window + 1, last, _top(plan))


def _top(plan: AggregatePlan) -> int:
    """The highest level of nodes."""
    return plan.panes_per_window.bit_length() - 1


def _cover(first: int, last: int, top: int) -> Iterator[Node]:
    """The fewest nodes of levels 0..top that cover panes first..last, from left to right."""
    while first <= last:
        aligned = top if first == 0 else (first & -first).bit_length() - 1
        level = min(aligned, top, (last - first + 1).bit_length() - 1)
        yield level, first >> level
        first += 1 << level
