"""Exact figures of a routing decision, as the papers define them.

Admission rule: pure, vectorised functions over arrays (worker, key hash and pane of each tuple). `loads` has
tuple imbalance, `splitting` the cost of splitting keys (Gamma is `aggregation_cost`), and `data_blocks` the
figures of micro-batches. `moves` counts keys that move between workers. `sliding` computes the imbalance and
the cost of splitting for every sliding window of a long stream, whose keys `key_codes` numbers.
"""

from evenflow.metrics.data_blocks import block_cardinality_imbalance, block_size_imbalance, micro_batch_index
from evenflow.metrics.loads import absolute_imbalance, imbalance, window_imbalance, worker_loads
from evenflow.metrics.moves import key_moves
from evenflow.metrics.sliding import (
    WindowFigures,
    key_codes,
    sampled_imbalance,
    stream_figures,
    window_figures,
)
from evenflow.metrics.splitting import (
    aggregation_cost,
    cardinality_imbalance,
    distinct_keys,
    fragmentation,
    max_holders,
    memory_against,
    replication_factor,
    worker_cardinalities,
)

__all__ = [
    "WindowFigures",
    "absolute_imbalance",
    "aggregation_cost",
    "block_cardinality_imbalance",
    "block_size_imbalance",
    "cardinality_imbalance",
    "distinct_keys",
    "fragmentation",
    "imbalance",
    "key_codes",
    "key_moves",
    "max_holders",
    "memory_against",
    "micro_batch_index",
    "replication_factor",
    "sampled_imbalance",
    "stream_figures",
    "window_figures",
    "window_imbalance",
    "worker_cardinalities",
    "worker_loads",
]
