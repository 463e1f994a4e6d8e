"""A block gives the same frames and rejections, whichever way its records came."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from partitioner_service.fetch.fetch_result import FetchResult
from partitioner_service.kafka.learned_state import new_partitioner
from partitioner_service.kafka.log_ends import LogEnds
from partitioner_service.kafka.slices import Slicer
from partitioner_service.kafka.unfetchable import UnfetchableBatches
from partitioner_service.routing.router import Router
from partitioner_service.routing.session import Session
from tests.column_fetcher import as_columns
from tests.examples import examples
from tests.unit.partitioner_service.kafka.test_unfetchable import Message

OF_COLUMNS: dict[str, Any] = {"key": "k", "time": "t"}
OF_KAFKA: dict[str, Any] = {"key": "@key", "time": "@timestamp"}
GOOD = st.builds(
    lambda key, time: json.dumps({"k": key, "t": time, "v": 1}).encode(),
    st.text("ab\n", max_size=3),
    st.integers(0, 20_000),
)
RECORDS = st.lists(
    st.tuples(st.integers(0, 1), GOOD | st.none() | st.binary(max_size=8), st.none() | st.binary(max_size=4)),
    max_size=12,
)


def settings_of(query: dict[str, Any]) -> Settings:
    more = {
        "name": "q",
        "types": {"v": "int64"},
        "aggregates": {"s": "sum(v)"},
        "slide": "1s",
        "window": "4s",
    }
    return load_settings(query=more | query, input={"partitions": 2}, partitioner={"workers": 3})


def outcome(settings: Settings, fetched: FetchResult) -> list[Any]:
    """Frames, rejected records and states of what was fetched."""
    session = Session(settings.routed_partitions, number=7)
    router = Router(settings, new_partitioner(settings), session=session)
    slicer = Slicer(
        settings,
        needs_key=router.parser.needs_key,
        needs_timestamp=router.parser.needs_timestamp,
        ends=LogEnds(lambda partitions: {}),
        unfetchable=UnfetchableBatches("in"),
    )
    start = PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=0)
    states = dict.fromkeys(range(2), start)
    result: list[Any] = []
    for block in slicer.blocks(fetched, states):
        routed = router.route(block, states)
        result += [routed.frames, routed.states]
        for piece in routed.pieces:
            for group in piece.rejections:
                records = [piece.slice.records[position] for position in group.positions.tolist()]
                kept = [(one.offset(), one.key(), one.value(), one.timestamp()) for one in records]
                result.append((group.reason, group.details.to_pylist(), kept))
    return result


@pytest.mark.parametrize("query", [OF_COLUMNS, OF_KAFKA], ids=["columns", "kafka"])
@examples(100)
@given(records=RECORDS)
def test_messages_and_columns_give_the_same_frames_rejections_and_states(
    query: dict[str, Any], records: list[tuple[int, bytes | None, bytes | None]]
) -> None:
    settings = settings_of(query)
    messages: list[Any] = [
        Message(at, where=partition, named=key, held=value)
        for at, (partition, value, key) in enumerate(records)
    ]
    fetched = FetchResult.of_messages(messages)
    assert outcome(settings, as_columns(fetched)) == outcome(settings, fetched)
