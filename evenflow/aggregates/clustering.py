"""Correlation clustering of the texts of each group: combiners vote, reducers merge greedily.

The objective is the sum of (2 similarity - 1) over the pairs of tuples within one cluster. Equal texts are one text that
weighs as many tuples as it has, so they are never torn apart.

    VOTE     texts in the order of their bytes: each joins the cluster with the largest sum above 0, or begins one
    GREEDY   the clusters of all partials, then while a step raises the objective: two clusters become one (the pair that
             gains most first), or else one text moves to another cluster or out into one of its own

A step counts that gains more than 1e-9, or that share of all weights together: so it ends, and the objective never falls
below 0, that of every text alone. Ties go to the first cluster, clusters being in the order of their first text. What the
clusters are depends on how the tuples were cut into partials. That each tuple is in exactly one, and that no step is left
that gains, does not.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn
from evenflow.aggregates.grouping import Grouping
from evenflow.aggregates.lists import Counted, as_lists, bounds, entry_groups, entry_groups_of_rows, taken
from evenflow.aggregates.multisets import counted, present
from evenflow.aggregates.similarity import similarities
from evenflow.arrays import Float64s, Int64s

_STEP = 1e-9
TYPE = pa.large_list(
    pa.struct([("value", pa.large_string()), ("count", pa.int64()), ("cluster", pa.int64())])
)
"""Each text with its count and the number of its cluster, in the order of the texts. A cluster has that of its first one."""


def clusters_column(call: Call) -> PartialColumn:
    """The clusters of the texts that were not null."""
    return PartialColumn(
        name=f"clu_{call.column}", type=TYPE, source=call.column, combine=_combine, merge=_merge
    )


def _combine(column: pa.Array | None, groups: Grouping) -> pa.Array:
    found = counted(*present(column, groups))
    labels = [vote(_weights(texts, counts)) for texts, counts in _each(found, groups.count)]
    return _as_partials(found, labels, groups.count)


def _merge(column: pa.Array | None, groups: Grouping) -> pa.Array:
    assert column is not None
    entries, of = column.flatten(), entry_groups(column, groups)
    found = counted(of, entries.field("value"), entries.field("count").to_numpy())
    began = _first_labels(column, of, found, groups.count)
    labels = [
        improved(_weights(texts, counts), start)
        for (texts, counts), start in zip(_each(found, groups.count), began, strict=True)
    ]
    return _as_partials(found, labels, groups.count)


def _weights(texts: pa.Array, counts: Int64s) -> Float64s:
    """What each pair of texts adds to the objective when it is in one cluster. 0 on the diagonal."""
    gains = (2 * similarities(texts) - 1) * np.outer(counts, counts)
    np.fill_diagonal(gains, 0)
    return gains


def vote(weights: Float64s) -> Int64s:
    """The cluster of each text: the number of its first text."""
    labels = np.arange(len(weights))
    for text in range(len(weights)):
        sums = np.bincount(labels[:text], weights[text, :text], minlength=1)
        if sums.max() > 0:
            labels[text] = int(sums.argmax())
    return labels


def improved(weights: Float64s, labels: Int64s) -> Int64s:
    """Clusters that no step makes better, from these. Numbered by their first text."""
    step = _STEP * max(1.0, float(np.abs(weights).sum()))
    while True:
        labels = _numbered(labels)
        names = np.unique(labels)
        inside = (labels[:, None] == names).astype(np.float64)
        to_clusters = weights @ inside
        joined = np.triu(inside.T @ to_clusters, 1)
        if joined.size and joined.max() > step:
            one, other = np.unravel_index(joined.argmax(), joined.shape)
            labels[labels == names[other]] = names[one]
            continue
        own = (to_clusters * inside).sum(axis=1, keepdims=True)
        moved = np.hstack([to_clusters, np.zeros((len(labels), 1))]) - own
        if not moved.size or moved.max() <= step:
            return labels
        text, target = np.unravel_index(moved.argmax(), moved.shape)
        labels[text] = -1 if target == len(names) else names[target]


def objective(weights: Float64s, labels: Int64s) -> float:
    """Sum over the pairs of different texts within a cluster."""
    return float(np.triu(weights * (labels[:, None] == labels), 1).sum())


def _numbered(labels: Int64s) -> Int64s:
    """The same clusters, each with the number of its first text."""
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    return first[which]


def _first_labels(column: pa.Array, of: Int64s, found: Counted, count: int) -> list[Int64s]:
    """Clusters of the merged texts of each group before the first step: those of the partial that had a text first."""
    entries = column.flatten()
    partial = entry_groups_of_rows(column).tolist()
    named = zip(partial, entries.field("cluster").to_pylist(), strict=True)
    first: dict[tuple[int, str], tuple[int, int]] = {}
    for at, name in zip(
        zip(of.tolist(), entries.field("value").to_pylist(), strict=True), named, strict=True
    ):
        first.setdefault(at, name)
    numbers: dict[tuple[int, int], int] = {}
    labels = [
        numbers.setdefault(first[at], len(numbers))
        for at in zip(found.of.tolist(), found.values.to_pylist(), strict=True)
    ]
    return np.split(np.array(labels, np.int64), bounds(found.of, count)[1:-1])


def _each(found: Counted, count: int) -> list[tuple[pa.Array, Int64s]]:
    """Texts and counts of each group."""
    ends = bounds(found.of, count).tolist()
    return [(taken(found.values, np.arange(a, b)), found.counts[a:b]) for a, b in pairwise(ends)]


def _as_partials(found: Counted, labels: list[Int64s], count: int) -> pa.Array:
    flat = np.concatenate([np.empty(0, np.int64), *labels])
    entries = pa.StructArray.from_arrays(
        [found.values, pa.array(found.counts), pa.array(flat)], ["value", "count", "cluster"]
    )
    return as_lists(found.of, entries, count)
