"""The state of an input partition is found again from its records and rejections, whatever was in them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.errors import DataLossError
from evenflow.partitioners import create
from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from evenflow.wire.markers import EndOfStream
from partitioner_service.begin.rebuild import Fold
from partitioner_service.begin.traces import Ruling, Rulings
from partitioner_service.block import Slice
from partitioner_service.routing.ahead import LiveClock
from partitioner_service.routing.router import Router

NOW = 1_000_000


class Record:
    """A record of partition 0."""

    def __init__(self, offset: int, value: bytes | None, headers: Any = ()) -> None:
        self._offset, self._value, self._headers = offset, value, list(headers)

    def offset(self) -> int:
        return self._offset

    def partition(self) -> int:
        return 0

    def topic(self) -> str:
        return "t"

    def error(self) -> None:
        return None

    def key(self) -> None:
        return None

    def value(self) -> bytes | None:
        return self._value

    def headers(self) -> Any:
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, 0

    def __len__(self) -> int:
        return len(self._value or b"")


def make_settings(jump: int | None) -> Settings:
    query = {
        "key": "k",
        "time": "t",
        "window": "40ms",
        "slide": "10ms",
        "where": "v > 1",
        "types": {"v": "int64"},
    }
    query |= {
        "out_of_orderness": "5ms",
        "max_jump": jump,
        "jump_confirmations": 2,
        "max_ahead_of_clock": "1s",
    }
    return load_settings(query=query, input={"partitions": 1}, partitioner={"max_skew": "50ms", "workers": 2})


BLOCKS = st.lists(
    st.tuples(
        st.lists(
            st.one_of(
                st.tuples(st.integers(0, 300), st.integers(0, 3)),
                st.tuples(st.just(NOW + 2_000), st.just(3)),
                st.just(b"bad"),
            ),
            min_size=1,
            max_size=8,
        ),
        st.integers(0, 320),
    ),
    min_size=1,
    max_size=8,
)


def read(
    settings: Settings, blocks: Any, *, end: bool
) -> tuple[list[Record], PartitionState, dict[int, Ruling], int, int]:
    """Records, the state after them, rejections, the offset behind the last routed record, the largest
    mark told.
    """
    router = Router(
        settings, create("hashing", workers=2), clock=LiveClock(settings, wall=lambda: NOW / 1000)
    )
    state = PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=3, begin=3)
    records: list[Record] = []
    rulings: dict[int, Ruling] = {}
    routed, told = 0, -(2**62)
    for number, (some, mark) in enumerate(blocks):
        # Offsets have gaps, as transactions leave them.
        first = state.offset + number % 2
        block = [
            Record(first + i, one if isinstance(one, bytes) else _row(*one)) for i, one in enumerate(some)
        ]
        markers = {}
        if end and number == len(blocks) - 1:
            marker = EndOfStream(producer="p", tuples=0)
            markers[len(block)] = marker
            block.append(Record(first + len(block), None, marker.headers()))
        values = [one.value() for one in block]
        piece = Slice(0, first, block[-1].offset(), values, markers=markers, records=block)
        made = router.route([piece], {0: state})
        state, before = made.states[0], state
        if state.routed > before.routed:
            routed = state.offset
        for group in made.rejections:
            marks = group.marks.tolist() or [None] * len(group.positions)
            clocks = group.clocks.tolist() or [None] * len(group.positions)
            for position, held, clock in zip(group.positions.tolist(), marks, clocks, strict=True):
                rulings[block[position].offset()] = Ruling(group.reason, held, clock)
        records += block
        told = max(told, state.mark(settings.query)) if not state.ended else told
        if not state.ended and number + 1 < len(blocks):
            given = max(mark, state.mark(settings.query))
            state = replace(state, asleep=True, idle_mark=given)
            told = max(told, given)
    return records, state, rulings, routed, told


def _row(time: int, value: int) -> bytes:
    return json.dumps({"k": "a", "t": time, "v": value}).encode()


def rebuilt(
    settings: Settings, records: list[Record], rulings: dict[int, Ruling], *, routed: int, step: int = 5
) -> Fold:
    fresh = PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=3, begin=3)
    fold = Fold(settings, fresh, Rulings(rulings.items()), routed=routed)
    for first in range(0, len(records), step):
        fold.read(records[first : first + step])
    return fold


@given(BLOCKS, st.one_of(st.none(), st.integers(20, 100)), st.booleans(), st.integers(1, 9))
@example([([(NOW + 2_000, 3)], 10), ([(0, 0)], 11), ([(16, 0)], 0)], None, False, 1)
def test_the_state_that_was_committed_is_found_again_whatever_was_read_and_given(
    blocks: Any, jump: int | None, end: bool, step: int
) -> None:
    settings = make_settings(jump)
    records, state, rulings, routed, told = read(settings, blocks, end=end)
    result = rebuilt(settings, records, rulings, routed=routed, step=step).finish(
        state.offset, largest_mark=told
    )
    # A mark that was given and neither told nor used is forgotten, if the partition's own is no smaller.
    # A step from where it was may then look like a leap, which makes the others more careful. A first tuple
    # may look as if it had come by a step of its own where others had taken the partition along, which is at
    # most `max_skew`.
    unknown = {"idle_mark": None, "steady_from": None}
    assert replace(result, **unknown) == replace(state, asleep=False, **unknown)
    assert (result.steady_from or 0) >= (state.steady_from or 0) - settings.max_skew
    assert result.mark(settings.query) == state.mark(settings.query)
    idle = [one.mark or 0 for one in rulings.values() if one.reason == "idle"]
    assert (result.idle_mark or 0) >= max(idle, default=0)


def test_a_mark_that_was_only_told_is_found_again() -> None:
    settings = make_settings(None)
    records, state, rulings, routed, told = read(settings, [([(10, 3)], 200), ([b"bad"], 0)], end=False)
    assert told == state.idle_mark == 200
    assert (
        rebuilt(settings, records, rulings, routed=routed).finish(state.offset, largest_mark=told).idle_mark
        == 200
    )


SOME = [([(100, 3), (5, 3), (NOW + 5_000, 3), b"bad", (101, 3)], 0)]


@pytest.mark.parametrize("change", ["missing", "another", "too many"])
def test_a_verdict_that_differs_from_the_rejected_topic_is_refused(change: str) -> None:
    settings = make_settings(None)
    records, _, rulings, routed, _ = read(settings, SOME, end=False)
    if change == "missing":
        del rulings[4]
    elif change == "another":
        rulings[6] = Ruling("late", 1, None)
    else:
        rulings[3] = Ruling("late", 1, None)
    with pytest.raises(DataLossError, match="cannot be computed again: offset"):
        rebuilt(settings, records, rulings, routed=routed)


def test_a_tuple_behind_the_last_frame_is_refused() -> None:
    settings = make_settings(None)
    records, _, rulings, _, _ = read(settings, SOME, end=False)
    with pytest.raises(DataLossError, match="from offset 5 on have a tuple, which no frame holds"):
        rebuilt(settings, records, rulings, routed=5)


def test_what_an_operator_skipped_counts_as_rejected() -> None:
    settings = make_settings(None)
    records, state, rulings, routed, _ = read(settings, SOME, end=False)
    fold = rebuilt(settings, records, rulings, routed=routed)
    fold.skip(8, 10)
    result = fold.finish(12, largest_mark=None)
    assert (result.offset, result.read, result.rejected) == (12, state.read + 3, state.rejected + 3)
