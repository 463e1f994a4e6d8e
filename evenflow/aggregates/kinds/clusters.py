"""clusters(column): groups the similar texts of a key, by correlation clustering over edit distances."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Aggregate, Call, Documentation
from evenflow.aggregates.partials.clustering import MOST_BYTES, clusters_column, clusters_room, improved_alone
from evenflow.aggregates.partials.lists import as_lists, entry_groups_of_rows, lengths, null_if, take_rows
from evenflow.numeric.arrays import one_chunk


def _finish(partials: pa.Table, call: Call) -> pa.Array:
    lists = improved_alone(one_chunk(partials[clusters_column(call).name]), clusters_room(call))
    entries, rows = lists.flatten(), entry_groups_of_rows(lists)
    clusters = entries.field("cluster").to_numpy()
    order = np.lexsort((clusters, rows))
    rows, clusters = rows[order], clusters[order]
    # begins: the first entry of each cluster. `[: len(of)]` removes the leading True if there is no entry at
    # all.
    begins = np.flatnonzero(np.append(True, (np.diff(rows) != 0) | (np.diff(clusters) != 0))[: len(rows)])
    number = np.searchsorted(begins, np.arange(len(rows)), side="right") - 1
    texts = [take_rows(entries.field(name), order) for name in ("value", "count")]
    inner = as_lists(number, pa.StructArray.from_arrays(texts, ["value", "count"]), len(begins))
    return null_if(as_lists(rows[begins], inner, len(lists)), lengths(lists) == 0)


def _unfit(partials: pa.Table, call: Call) -> int:
    return int(partials[clusters_column(call).name].null_count)


CLUSTERS = Aggregate(
    name="clusters",
    forms=("clusters(column)",),
    over=("string",),
    partials=lambda call: (clusters_column(call),),
    result_type=lambda call: pa.list_(pa.list_(pa.struct([("value", call.type), ("count", pa.int64())]))),
    finish=_finish,
    unfit=_unfit,
    documentation=Documentation(
        computes=(
            "clusters of similar texts (correlation clustering, VOTE in combiners, GREEDY in reducers): lists"
            " of the different texts with their `count`. Two texts attract each other where their edit"
            " distance is less than half of the longer one, in bytes"
        ),
        nulls=(
            "left out; null where there is no value, and where the different texts take more than"
            f" {MOST_BYTES:,} bytes, each with 24 more"
        ),
        bound=(
            "every text is in exactly one cluster, and none would be better off in another; which one it is"
            " in may depend on how the tuples were split among workers"
        ),
        state="every different text; work grows with the square of their number",
    ),
)
