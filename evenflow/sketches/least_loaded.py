"""The least loaded of all workers, as a tournament over the load array; the lowest number on a tie.

Reading it is O(1); after a load grew, `raised` replays that worker's matches from the leaf up and stops
at the first one it had not won, so O(log n) at worst. After any other change, `rebuild` (O(n)).
State: 8 bytes per worker. `tree[1]` is the winner; node i plays the winners of 2i and 2i+1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenflow.kernels import kernel

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


def tournament(workers: int) -> Int32s:
    """A tree for this many workers; `rebuild` it before use."""
    return np.zeros(2 << (workers - 1).bit_length(), np.int32)


@kernel
def _play(tree: Int32s, loads: Int64s, node: Any) -> np.int32:
    left, right = tree[2 * node], tree[2 * node + 1]
    if right < 0 or (left >= 0 and loads[left] <= loads[right]):
        return left
    return right


@kernel
def rebuild(tree: Int32s, loads: Int64s) -> None:
    """Play every match again."""
    leaves = tree.shape[0] // 2
    for leaf in range(leaves):
        tree[leaves + leaf] = leaf if leaf < loads.shape[0] else -1
    for node in range(leaves - 1, 0, -1):
        tree[node] = _play(tree, loads, node)


@kernel
def raised(tree: Int32s, loads: Int64s, worker: Any) -> None:
    """This worker's load has grown."""
    node = (tree.shape[0] // 2 + worker) // 2
    while node >= 1 and tree[node] == worker:
        tree[node] = _play(tree, loads, node)
        node //= 2
