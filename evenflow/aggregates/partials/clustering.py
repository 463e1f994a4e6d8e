"""Correlation clustering of the texts of each group: combiners vote, reducers merge greedily.

The objective is the sum of (2 similarity - 1) over the pairs of tuples within one cluster. Equal texts count
as one text, whose weight is its number of tuples. So equal texts are never torn apart.

    VOTE     takes the texts in the order of their bytes. Each joins the cluster with the largest sum above 0,
             or begins a cluster.
    GREEDY   begins with the clusters of all partials. As long as a step raises the objective, it joins two
             clusters (the pair that gains most first), or else moves one text to another cluster or into a
             cluster of its own.

A step is taken only if it gains more than 1e-9, or more than that share of the sum of all weights. So GREEDY
ends. The objective never falls below 0, which is its value when every text is alone. Ties go to the first
cluster, and clusters are in the order of their first texts.

The clusters depend on how the tuples were cut into partials. Two things do not: each tuple is in exactly one
cluster, and no step that gains is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn
from evenflow.aggregates.partials.grouping import Grouping
from evenflow.aggregates.partials.lists import (
    ValueCounts,
    as_lists,
    bounds,
    entry_groups,
    entry_groups_of_rows,
    null_if,
    take_rows,
)
from evenflow.aggregates.partials.multisets import counted, lost, present, within
from evenflow.aggregates.partials.similarity import similarities
from evenflow.numeric.arrays import Float64s, Int64s

_STEP = 1e-9
TYPE = pa.large_list(
    pa.struct([("value", pa.large_string()), ("count", pa.int64()), ("cluster", pa.int64())])
)
"""Each text with its count and the number of its cluster, in the order of the texts.

A cluster's number is the place of its first text in the list.
"""


MOST_BYTES = 65_536
"""The most that the texts of a group may take.
Work grows with the square of this: each text is compared with each.
"""


def clusters_column(call: Call) -> PartialColumn:
    """Partial column: the clusters of the texts that are not null. Null if they take more than their room."""
    room = clusters_room(call)
    return PartialColumn(
        name=f"clu_{call.column}", type=TYPE, source=call.column, combine=Vote(room), merge=Improve(room)
    )


def clusters_room(call: Call) -> int:
    """What the texts of a group may take, in bytes."""
    return min(MOST_BYTES, call.room.result)


@dataclass(frozen=True)
class Vote:
    """Reduction from texts to clusters by VOTE. Null where the texts take more than `room` bytes."""

    room: int
    """Bytes that the texts of a group may take."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The clusters of each group."""
        text_counts, large = within(counted(*present(column, groups)), groups.count, self.room)
        labels = [vote(_weights(texts, counts)) for texts, counts in _each(text_counts, groups.count)]
        return null_if(_as_partials(text_counts, labels, groups.count), large)


@dataclass(frozen=True)
class Improve:
    """Reduction from clusters to clusters by GREEDY. Null where the texts take more than `room` bytes."""

    room: int
    """Bytes that the texts of a group may take."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The clusters of each group."""
        assert column is not None
        lost_groups = lost(column, groups)
        entries, group_ids = column.flatten(), entry_groups(column, groups)
        whole = counted(group_ids, entries.field("value"), entries.field("count").to_numpy())
        text_counts, large = within(whole, groups.count, self.room, lost_groups=lost_groups)
        began = _first_labels(column, group_ids, text_counts, groups.count)
        labels = [
            improved(_weights(texts, counts), start)
            for (texts, counts), start in zip(_each(text_counts, groups.count), began, strict=True)
        ]
        return null_if(_as_partials(text_counts, labels, groups.count), large)


def improved_alone(partials: pa.Array, room: int) -> pa.Array:
    """GREEDY on each partial by itself. A partial that was merged with no other has only been through
    VOTE.
    """
    each = np.arange(len(partials))
    if not len(each):
        return partials
    return Improve(room)(partials, Grouping(ids=each.astype(np.int32), first=each))


def _weights(texts: pa.Array, counts: Int64s) -> Float64s:
    """What each pair of texts adds to the objective if both are in one cluster.
    Shape (n, n), 0 on the diagonal.
    """
    gains = (2 * similarities(texts) - 1) * np.outer(counts, counts)
    np.fill_diagonal(gains, 0)
    return gains


def vote(weights: Float64s) -> Int64s:
    """VOTE: the cluster of each text, shape (n,). A cluster's number is the place of its first text."""
    labels = np.arange(len(weights))
    for text in range(len(weights)):
        sums = np.bincount(labels[:text], weights[text, :text], minlength=1)
        if sums.max() > 0:
            labels[text] = int(sums.argmax())
    return labels


def improved(weights: Float64s, labels: Int64s) -> Int64s:
    """GREEDY: clusters that no step makes better, beginning with `labels`.
    Shape (n,), numbered by their first texts.
    """
    step = _STEP * max(1.0, float(np.abs(weights).sum()))
    while True:
        labels = _numbered(labels)
        names = np.unique(labels)
        # inside: whether text i is in cluster j. to_clusters: the sum of text i's weights to cluster j.
        inside = (labels[:, None] == names).astype(np.float64)
        to_clusters = weights @ inside
        # joined: what the objective gains if clusters i and j become one. Each pair counts once.
        joined = np.triu(inside.T @ to_clusters, 1)
        if joined.size and joined.max() > step:
            cluster, other = np.unravel_index(joined.argmax(), joined.shape)
            labels[labels == names[other]] = names[cluster]
            continue
        # moved: what the objective gains if text i moves to cluster j. The last column is a new cluster of
        # its own.
        own = (to_clusters * inside).sum(axis=1, keepdims=True)
        moved = np.hstack([to_clusters, np.zeros((len(labels), 1))]) - own
        if not moved.size or moved.max() <= step:
            return labels
        text, target = np.unravel_index(moved.argmax(), moved.shape)
        # -1 is no other cluster's number. `_numbered` gives the new cluster its own.
        labels[text] = -1 if target == len(names) else names[target]


def objective(weights: Float64s, labels: Int64s) -> float:
    """The objective: sum of the weights of the pairs of different texts within a cluster."""
    return float(np.triu(weights * (labels[:, None] == labels), 1).sum())


def _numbered(labels: Int64s) -> Int64s:
    """The same clusters, each with the number of its first text."""
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    return first[which]


def _first_labels(column: pa.Array, group_ids: Int64s, text_counts: ValueCounts, count: int) -> list[Int64s]:
    """Clusters of the merged texts of each group before the first step.

    If several partials have a text, its cluster is that of the first of these partials.
    """
    entries = column.flatten()
    partial = entry_groups_of_rows(column).tolist()
    named = zip(partial, entries.field("cluster").to_pylist(), strict=True)
    first: dict[tuple[int, str], tuple[int, int]] = {}
    for at, name in zip(
        zip(group_ids.tolist(), entries.field("value").to_pylist(), strict=True), named, strict=True
    ):
        first.setdefault(at, name)
    numbers: dict[tuple[int, int], int] = {}
    labels = [
        numbers.setdefault(first[at], len(numbers))
        for at in zip(text_counts.group_ids.tolist(), text_counts.values.to_pylist(), strict=True)
    ]
    return np.split(np.array(labels, np.int64), bounds(text_counts.group_ids, count)[1:-1])


def _each(text_counts: ValueCounts, count: int) -> list[tuple[pa.Array, Int64s]]:
    """(texts, counts) of each group, in group order."""
    ends = bounds(text_counts.group_ids, count).tolist()
    return [
        (take_rows(text_counts.values, np.arange(a, b)), text_counts.counts[a:b]) for a, b in pairwise(ends)
    ]


def _as_partials(text_counts: ValueCounts, labels: list[Int64s], count: int) -> pa.Array:
    flat = np.concatenate([np.empty(0, np.int64), *labels])
    entries = pa.StructArray.from_arrays(
        [text_counts.values, pa.array(text_counts.counts), pa.array(flat)], ["value", "count", "cluster"]
    )
    return as_lists(text_counts.group_ids, entries, count)
