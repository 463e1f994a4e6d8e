"""Prompt's CountTree: keys in descending order of an approximate count, as a balanced search tree.

The tree is a treap: a search tree by (count descending, key ascending), and a heap by the priority `mix64(key)`. That
priority is as good as a random one, different for different keys, and the same in every process. So the shape of the
tree depends on what it holds and not on the order of arrival, and its expected depth is O(log K).

Laws: reading it in order gives every entry once, counts descending, equal counts by key.
Cost: O(log K) to add an entry or to raise its count. O(K) to read all. State: 20 bytes per entry, besides
the keys, which the owner holds.
Paper: Abdelhamid, PhD thesis 2021 (001), section 2.4.1 (there "balanced binary search tree").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.arrays import Int32s, Int64s, UInt64s, Whole
from evenflow.kernels import kernel
from evenflow.keys import mix64

_LEFT, _RIGHT = 0, 1
"""Sides of an entry: columns of `link`. The code computes with them (the other side is 1 - side)."""
_PARENT = 2


class CountTree(NamedTuple):
    """The tree: what kernels take as one argument. An entry is a row number. The tree's owner has the array of keys."""

    counts: Int64s
    """Count of each entry, by which it is placed."""
    link: Int32s
    """(entries, 3): left and right child, parent. -1 is none."""
    root: Int64s
    """(1,): the entry at the top, or -1."""


def count_tree(capacity: int) -> CountTree:
    """An empty tree with room for this many entries."""
    return CountTree(
        np.zeros(capacity, np.int64), np.full((capacity, 3), -1, np.int32), np.array([-1], np.int64)
    )


def widened(tree: CountTree, capacity: int) -> CountTree:
    """The same tree with more room."""
    wide = count_tree(capacity)
    wide.counts[: len(tree.counts)] = tree.counts
    wide.link[: len(tree.link)] = tree.link
    wide.root[:] = tree.root
    return wide


@kernel
def _replace(tree: CountTree, parent: Whole, old: Whole, new: Whole) -> None:
    """Make `new` the child of `parent` in place of `old`. -1 stands for no parent (the top) and for no child."""
    link, root = tree.link, tree.root
    if parent < 0:
        root[0] = new
    elif link[parent, _LEFT] == old:
        link[parent, _LEFT] = new
    else:
        link[parent, _RIGHT] = new
    if new >= 0:
        link[new, _PARENT] = parent


@kernel
def _lift(tree: CountTree, entry: Whole) -> None:
    """Rotate the entry and its parent, so that the entry comes out on top. The order of entries stays."""
    link = tree.link
    parent = np.int64(link[entry, _PARENT])
    side = _LEFT if link[parent, _LEFT] == entry else _RIGHT
    inner = np.int64(link[entry, 1 - side])
    _replace(tree, np.int64(link[parent, _PARENT]), parent, entry)
    link[parent, side] = inner
    if inner >= 0:
        link[inner, _PARENT] = parent
    link[entry, 1 - side] = parent
    link[parent, _PARENT] = entry


@kernel
def add_entry(tree: CountTree, key: UInt64s, entry: Whole, to: Whole) -> None:
    """Place an entry that is not in the tree yet, with count `to`."""
    count, link, root = tree.counts, tree.link, tree.root
    count[entry] = to
    parent, side = np.int64(-1), _LEFT
    at = root[0]
    while at >= 0:
        parent = at
        before = to > count[at] or (to == count[at] and key[entry] < key[at])
        side = _LEFT if before else _RIGHT
        at = np.int64(link[at, side])
    link[entry, _LEFT] = -1
    link[entry, _RIGHT] = -1
    link[entry, _PARENT] = parent
    if parent < 0:
        root[0] = entry
        return
    link[parent, side] = entry
    # As a leaf the entry is in order. Rotations lift it until its parent has the greater priority.
    priority = mix64(key[entry])
    while link[entry, _PARENT] >= 0 and mix64(key[link[entry, _PARENT]]) < priority:
        _lift(tree, entry)


@kernel
def raise_entry(tree: CountTree, key: UInt64s, entry: Whole, to: Whole) -> None:
    """Give an entry of the tree another count: take it out and place it anew."""
    link = tree.link
    # The child of greater priority is lifted over the entry, until the entry has at most one child.
    while link[entry, _LEFT] >= 0 and link[entry, _RIGHT] >= 0:
        left, right = np.int64(link[entry, _LEFT]), np.int64(link[entry, _RIGHT])
        _lift(tree, left if mix64(key[left]) > mix64(key[right]) else right)
    only = np.int64(max(link[entry, _LEFT], link[entry, _RIGHT]))
    _replace(tree, np.int64(link[entry, _PARENT]), np.int64(entry), only)
    add_entry(tree, key, entry, to)


@kernel
def read_entries(tree: CountTree, out: Int64s) -> int:
    """Write the entries in order. Returns how many there are."""
    # By parent links: a kernel has no stack that it could allocate.
    link = tree.link
    written = 0
    at = tree.root[0]
    while at >= 0 and link[at, _LEFT] >= 0:
        at = np.int64(link[at, _LEFT])
    while at >= 0:
        out[written] = at
        written += 1
        if link[at, _RIGHT] >= 0:
            at = np.int64(link[at, _RIGHT])
            while link[at, _LEFT] >= 0:
                at = np.int64(link[at, _LEFT])
        else:
            below = at
            at = np.int64(link[at, _PARENT])
            while at >= 0 and link[at, _RIGHT] == below:
                below = at
                at = np.int64(link[at, _PARENT])
    return written
