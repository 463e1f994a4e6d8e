"""Within a block tuples are assigned in order of event time, whatever order the input partitions come in."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.partitioners import create
from evenflow.settings import Settings
from partitioner_service.routing.router import Router


class Watched:
    """A partitioner that shows what it was given; each tuple's worker is its key."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.costs: list[int] = []

    def assign(self, keys: Any, times: Any, costs: Any) -> Any:
        self.times += times.tolist()
        self.costs += [] if costs is None else costs.tolist()
        return keys.astype(np.int32)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=200), st.booleans())
def test_times_do_not_fall_and_each_tuple_keeps_its_own_worker_and_cost(
    times: list[int], weighed: bool
) -> None:
    watched = Watched()
    router = Router(Settings(input={"partitions": 4}), create("hashing", workers=8))
    router.plans.partitioner = watched  # type: ignore[assignment]
    keys = np.arange(len(times), dtype=np.uint64)
    of_tuples = np.array(times, np.int64)
    # The cost tells the time, so that the order shows.
    cells, stretches = router._assigned(keys, of_tuples, of_tuples + 1 if weighed else None)
    assert (cells.tolist(), [stretch.epoch for stretch in stretches]) == (keys.tolist(), [0])
    assert watched.times == sorted(times)
    assert watched.costs == ([time + 1 for time in sorted(times)] if weighed else [])
