"""CountTree: in order at every moment, shallow, and the same whatever the order of arrival."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.partitioners.prompt.count_tree import (
    CountTree,
    add_entry,
    count_tree,
    raise_entry,
    read_entries,
    widened,
)
from tests.unit.partitioners.streams import SPREAD


def read(tree: CountTree, size: int) -> list[int]:
    out = np.full(size, -1, np.int64)
    assert read_entries(tree, out) == size
    return out.tolist()


def depth(tree: CountTree, size: int) -> int:
    deepest = 0
    for at in range(size):
        steps = 0
        while at >= 0:
            at = int(tree.link[at]["parent"])
            steps += 1
        deepest = max(deepest, steps)
    return deepest


@given(
    keys=st.lists(st.integers(0, 2**64 - 1), unique=True, min_size=1, max_size=30),
    raises=st.lists(st.tuples(st.integers(0, 29), st.integers(0, 5)), max_size=60),
)
@settings(deadline=None)
def test_reading_gives_descending_counts_and_equal_counts_by_key(
    keys: list[int], raises: list[tuple[int, int]]
) -> None:
    key = np.array(keys, np.uint64)
    tree = count_tree(3)
    for entry in range(len(keys)):
        if entry == len(tree.counts):
            tree = widened(tree, 2 * entry)
        add_entry(tree, key, entry, 1)
    counts = [1] * len(keys)
    for which, more in raises:
        entry = which % len(keys)
        counts[entry] += more
        raise_entry(tree, key, entry, counts[entry])
        expected = sorted(range(len(keys)), key=lambda e: (-counts[e], keys[e]))
        assert read(tree, len(keys)) == expected
    assert tree.counts[: len(keys)].tolist() == counts


def test_the_tree_is_shallow_even_when_keys_come_in_order() -> None:
    size = 20_000
    for key in (np.arange(size, dtype=np.uint64), np.arange(size, dtype=np.uint64) * SPREAD):
        tree = count_tree(size)
        for entry in range(size):
            add_entry(tree, key, entry, entry)
        assert depth(tree, size) < 4 * np.log2(size)


def test_the_shape_does_not_depend_on_the_order_of_arrival() -> None:
    rng = np.random.default_rng(4)
    key = np.arange(500, dtype=np.uint64)
    counts = rng.integers(1, 20, 500)
    shapes = []
    for order in (np.arange(500), rng.permutation(500)):
        tree = count_tree(500)
        for entry in order:
            add_entry(tree, key, entry, 1)
        for entry in rng.permutation(500):
            raise_entry(tree, key, entry, counts[entry])
        shapes.append((tree.link.tolist(), tree.root.tolist()))
    assert shapes[0] == shapes[1]


def test_an_empty_tree_reads_as_nothing() -> None:
    tree = count_tree(4)
    assert read(tree, 0) == []
