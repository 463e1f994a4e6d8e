"""A record that becomes several tuples is one record for lateness, counters and the log's place."""

from __future__ import annotations

import json
from typing import Any

from evenflow.partitioners import create
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service.block import Slice
from partitioner_service.routing.pieces import RoutedBlock
from partitioner_service.routing.router import Router

QUERY: dict[str, Any] = {
    "window": 10,
    "key": "k",
    "time": "t",
    "explode": "v",
    "where": "v <> 0",
    "aggregates": {"s": "sum(v)"},
}


def routed(*records: dict[str, Any] | bytes, explode: str | None = "v") -> tuple[RoutedBlock, PartitionState]:
    settings = Settings(query=QUERY | {"explode": explode}, input={"partitions": 1})
    values = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in records]
    state = PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=0)
    router = Router(settings, create("hashing", workers=4))
    done = router.route([Slice(0, 0, len(values) - 1, values)], {0: state})
    return done, done.states[0]


def test_records_are_counted_once_and_their_tuples_are_routed() -> None:
    done, state = routed(
        {"k": "a", "t": 5, "v": [1, 2, 0]},
        {"k": "b", "t": 25, "v": []},
        {"k": "c", "t": 4, "v": [1, 1, 1]},
        {"k": "d", "t": 26, "v": [0, 0]},
        {"k": "e", "t": 27, "v": [1, "x"]},
        {"k": "f", "t": 28, "v": [7]},
    )
    assert (done.tuples, done.read, done.filtered) == (3, 6, 2)
    assert done.sent.keys.to_pylist() == [b"a", b"a", b"f"]
    assert (state.read, state.routed, state.rejected, state.filtered) == (6, 2, 2, 2)
    assert {group.reason: group.positions.tolist() for group in done.rejections} == {
        "unreadable": [4],
        "late": [2],  # the record without elements has moved the mark
    }
    assert int(done.sent.loads.sum()) == 3


def test_frames_are_those_of_a_stream_of_the_elements() -> None:
    lists = [[1, 2], [], [3], [4, 5, 6]]
    exploded, _ = routed(*({"k": f"k{n}", "t": n, "v": some} for n, some in enumerate(lists)))
    flat, _ = routed(
        *({"k": f"k{n}", "t": n, "v": one} for n, some in enumerate(lists) for one in some), explode=None
    )
    assert exploded.sent.keys.equals(flat.sent.keys)
    assert exploded.sent.workers.tolist() == flat.sent.workers.tolist()
    assert exploded.sent.loads.tolist() == flat.sent.loads.tolist()


def test_a_block_of_nothing_but_empty_lists_routes_nothing() -> None:
    done, state = routed(*({"k": "a", "t": n, "v": []} for n in range(3)))
    assert (done.tuples, state.filtered, state.routed) == (0, 3, 0)
