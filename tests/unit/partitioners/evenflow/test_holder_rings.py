"""Rings against lists: order of adoption, membership, dropping, and a pool that neither leaks nor
overflows.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.partitioners.evenflow.holder_rings import (
    Rings,
    adopt,
    drop_after,
    drop_all,
    edge_to,
    rings,
)
from tests.examples import examples

OWNERS, WORKERS, POOL = 4, 6, 12


def workers_of(r: Rings, owner: int) -> list[int]:
    at, result = int(r.ring[owner]["first"]), []
    for _ in range(r.ring[owner]["size"]):
        result.append(int(r.edge[at]["worker"]))
        at = int(r.edge[at]["next"])
    assert not result or at == r.ring[owner]["first"]
    return result


def edges_of(r: Rings, owner: int) -> list[int]:
    at, result = int(r.ring[owner]["first"]), []
    for _ in range(r.ring[owner]["size"]):
        result.append(at)
        at = int(r.edge[at]["next"])
    return result


actions = st.tuples(
    st.sampled_from(["adopt", "adopt", "adopt", "drop", "drop all"]),
    st.integers(0, OWNERS - 1),
    st.integers(0, WORKERS - 1),
)


@examples(150)
@given(st.lists(actions, max_size=80))
def test_rings_behave_as_lists(steps: list[tuple[str, int, int]]) -> None:
    r = rings(OWNERS, POOL)
    lists: list[list[int]] = [[] for _ in range(OWNERS)]
    for action, owner, worker in steps:
        mine = lists[owner]
        if action == "adopt" and worker not in mine:
            room = sum(map(len, lists)) < POOL
            assert adopt(r, owner, worker, 7) == room
            if room:
                mine.append(worker)
        elif action == "drop" and mine:
            place = worker % len(mine)
            before = edges_of(r, owner)[place - 1]
            drop_after(r, owner, before)
            del mine[place]
        elif action == "drop all":
            drop_all(r, owner)
            mine.clear()
        for each, expected in enumerate(lists):
            assert workers_of(r, each) == expected
            for other in range(WORKERS):
                at = edge_to(r, each, other)
                assert (at >= 0) == (other in expected)
                assert at < 0 or r.edge[at]["worker"] == other
            if expected:
                assert r.ring[each]["turn"] in edges_of(r, each)
                assert r.ring[each]["last"] == edges_of(r, each)[-1]
        assert r.meta["edges"] == sum(map(len, lists))
        assert r.meta["split"] == sum(map(bool, lists))


def test_an_adopted_edge_counts_as_used_now() -> None:
    r = rings(2, 3)
    assert adopt(r, 1, 5, 42)
    assert r.used[edge_to(r, 1, 5)] == 42
    assert np.count_nonzero(r.table >= 0) == 1
