"""What goes to the rejected topic beside the record itself."""

from __future__ import annotations

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Message

from partitioner_service.kafka.sink import _NOW, _timestamp


@pytest.mark.parametrize(
    ("kind", "stamp", "passed_on"),
    [
        (TIMESTAMP_CREATE_TIME, 1_700_000_000_000, 1_700_000_000_000),
        (TIMESTAMP_CREATE_TIME, 1, 1),
        (TIMESTAMP_CREATE_TIME, 0, 1),
        (TIMESTAMP_CREATE_TIME, -1, _NOW),
        (TIMESTAMP_NOT_AVAILABLE, 0, _NOW),
    ],
)
def test_a_rejected_record_keeps_its_timestamp_and_is_never_dated_now_for_it(
    kind: int, stamp: int, passed_on: int
) -> None:
    assert _timestamp(Message(topic="t", timestamp=(kind, stamp))) == passed_on
