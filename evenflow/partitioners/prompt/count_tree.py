"""Prompt's CountTree: keys in descending order of an approximate count, as a balanced search tree.

The tree is a treap: a search tree by (count descending, key ascending), and a heap by the priority
`mix64(key)`. That priority is as good as a random one, different for different keys, and the same in every
process. So the shape of the tree depends on what it holds and not on the order of arrival, and its expected
depth is O(log K).

Laws: reading it in order gives every entry once, counts descending, equal counts by key.
Cost: O(log K) to add an entry or to raise its count. O(K) to read all. State: 20 bytes per entry, besides
the keys, which the owner holds.
Paper: Abdelhamid, PhD thesis 2021 (001), section 2.4.1 (there "balanced binary search tree").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import Int64s, Rows, UInt64s, Whole, records
from evenflow.numeric.kernels import kernel
from evenflow.numeric.words import mix64

LINK = np.dtype([(name, np.int32) for name in ("left", "right", "parent")])
"""The left and the right child of an entry, and its parent. -1 is none."""


class CountTree(NamedTuple):
    """The tree: what kernels take as one argument. An entry is a row number. The tree's owner has the
    array of keys.
    """

    counts: Int64s
    """Count of each entry, by which it is placed."""
    link: Rows
    """(entries,) of LINK."""
    root: Int64s
    """(1,): the entry at the top, or -1."""


def count_tree(capacity: int) -> CountTree:
    """An empty tree with room for this many entries."""
    return CountTree(np.zeros(capacity, np.int64), records(capacity, LINK), np.array([-1], np.int64))


def widened(tree: CountTree, capacity: int) -> CountTree:
    """The same tree with more room."""
    wide = count_tree(capacity)
    wide.counts[: len(tree.counts)] = tree.counts
    wide.link[: len(tree.link)] = tree.link
    wide.root[:] = tree.root
    return wide


@kernel
def _replace(tree: CountTree, parent: Whole, old: Whole, new: Whole) -> None:
    """Make `new` the child of `parent` in place of `old`. -1 stands for no parent (the top) and for no
    child.
    """
    link, root = tree.link, tree.root
    if parent < 0:
        root[0] = new
    elif link[parent]["left"] == old:
        link[parent]["left"] = new
    else:
        link[parent]["right"] = new
    if new >= 0:
        link[new]["parent"] = parent


@kernel
def _lift(tree: CountTree, entry: Whole) -> None:
    """Rotate the entry and its parent, so that the entry comes out on top. The order of entries stays."""
    link = tree.link
    parent = np.int64(link[entry]["parent"])
    _replace(tree, np.int64(link[parent]["parent"]), parent, entry)
    # The subtree between the two changes sides: it goes from the entry to the parent.
    if link[parent]["left"] == entry:
        inner = np.int64(link[entry]["right"])
        link[parent]["left"] = inner
        link[entry]["right"] = parent
    else:
        inner = np.int64(link[entry]["left"])
        link[parent]["right"] = inner
        link[entry]["left"] = parent
    if inner >= 0:
        link[inner]["parent"] = parent
    link[parent]["parent"] = entry


@kernel
def add_entry(tree: CountTree, key: UInt64s, entry: Whole, to: Whole) -> None:
    """Place an entry that is not in the tree yet, with count `to`."""
    count, link, root = tree.counts, tree.link, tree.root
    count[entry] = to
    parent, before = np.int64(-1), True
    at = root[0]
    while at >= 0:
        parent = at
        before = to > count[at] or (to == count[at] and key[entry] < key[at])
        at = np.int64(link[at]["left"] if before else link[at]["right"])
    link[entry]["left"], link[entry]["right"], link[entry]["parent"] = -1, -1, parent
    if parent < 0:
        root[0] = entry
        return
    if before:
        link[parent]["left"] = entry
    else:
        link[parent]["right"] = entry
    # As a leaf the entry is in order. Rotations lift it until its parent has the greater priority.
    priority = mix64(key[entry])
    while link[entry]["parent"] >= 0 and mix64(key[link[entry]["parent"]]) < priority:
        _lift(tree, entry)


@kernel
def raise_entry(tree: CountTree, key: UInt64s, entry: Whole, to: Whole) -> None:
    """Give an entry of the tree another count: take it out and place it anew."""
    link = tree.link
    # The child of greater priority is lifted over the entry, until the entry has at most one child.
    while link[entry]["left"] >= 0 and link[entry]["right"] >= 0:
        left, right = np.int64(link[entry]["left"]), np.int64(link[entry]["right"])
        _lift(tree, left if mix64(key[left]) > mix64(key[right]) else right)
    only = np.int64(max(link[entry]["left"], link[entry]["right"]))
    _replace(tree, np.int64(link[entry]["parent"]), np.int64(entry), only)
    add_entry(tree, key, entry, to)


@kernel
def read_entries(tree: CountTree, out: Int64s) -> int:
    """Write the entries in order. Returns how many there are."""
    # By parent links: a kernel has no stack that it could allocate.
    link = tree.link
    written = 0
    at = tree.root[0]
    while at >= 0 and link[at]["left"] >= 0:
        at = np.int64(link[at]["left"])
    while at >= 0:
        out[written] = at
        written += 1
        if link[at]["right"] >= 0:
            at = np.int64(link[at]["right"])
            while link[at]["left"] >= 0:
                at = np.int64(link[at]["left"])
        else:
            below = at
            at = np.int64(link[at]["parent"])
            while at >= 0 and link[at]["right"] == below:
                below = at
                at = np.int64(link[at]["parent"])
    return written
