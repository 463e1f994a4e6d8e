"""Loads of other sources, heard by one partitioner `evenflow` as if a merger had sent them."""

from typing import Any

import numpy as np

from evenflow.partitioners.evenflow.shared_loads import to_bytes
from evenflow.partitioners.exchange import Table


def hear_loads(part: Any, others: np.ndarray, now: int | None = None) -> None:
    """A table of all sources, in which the others have sent these tuples to each worker."""
    now = int(part._progress["latest"]) if now is None else now
    own = part.window_tuples(now)
    sources = tuple(range(part.sources))
    assert part.hear(Table(int(part._rounds["round"]), sources, to_bytes(own + others)), now)
