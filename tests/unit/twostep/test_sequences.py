"""Numbers of frames in combiner and reducer: gaps, repetitions, totals, and what a bucket remembers.

Rule "a gap is noticed".
"""

from __future__ import annotations

import numpy as np
import pytest

from evenflow.errors import DataLossError, ProtocolError
from evenflow.numeric.arrays import no_rows
from evenflow.twostep.sequences import Sessions
from evenflow.windows import END_MARK
from evenflow.wire import TOTAL, FrameHeader, encode_frame, records_of
from tests.unit.twostep.pipe import (
    INPUTS,
    INVERTIBLE,
    LAYOUT,
    ROUTED,
    SESSION,
    SLIDE,
    Pipe,
    Row,
    direct,
    feed,
    plan_of,
)


def written(pipe: Pipe, blocks: int, *, first: int = 0) -> list[Row]:
    """Blocks of rows to every routed partition. Event time moves on a pane each."""
    rows = []
    for block in range(first, first + blocks):
        made: list[Row] = [(block + 1, b"key%d" % n, block, None) for n in range(4)]
        rows += feed(pipe, [(block % ROUTED, made, block * SLIDE)])
    return rows


def takes_over(pipe: Pipe, routed: int, session: int, totals: list[tuple[int, int]]) -> None:
    """The frame to this worker with which a stint of another session begins."""
    header = FrameHeader(epoch=0, session=session, totals=records_of(totals, TOTAL), **LAYOUT)
    data = encode_frame(no_rows(pipe.plan.frame_schema), header, sequence=0)
    pipe.frames[routed].append((pipe.offsets[routed], data))
    pipe.offsets[routed] += 1


@pytest.mark.parametrize("apart", [False, True], ids=["within a micro-batch", "between two"])
def test_a_frame_that_is_gone_stops_the_job_and_leaves_the_state_as_it_was(apart: bool) -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1))
    written(pipe, 2)
    if apart:
        pipe.step()
    before = [dict(state) for state in pipe.states]
    written(pipe, 2, first=2)
    gone = pipe.frames[1][0 if apart else 1]
    pipe.frames[1].remove(gone)
    with pytest.raises(
        DataLossError, match=rf"routed partition 1, offset.*session {SESSION}.*so 1 frame is gone"
    ):
        pipe.step()
    assert [dict(state) for state in pipe.states] == before


def test_a_frame_that_is_there_twice_stops_the_job() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1))
    written(pipe, 2)
    header = FrameHeader(epoch=0, session=SESSION, **LAYOUT)
    again = encode_frame(no_rows(pipe.plan.frame_schema), header, sequence=1)
    pipe.frames[2].append((pipe.offsets[2], again))
    with pytest.raises(
        ProtocolError, match="frame 1 of session 7 comes where frame 2 must: it was written twice"
    ):
        pipe.step()


@pytest.mark.parametrize("most", [1_000_000, 200], ids=["whole blobs", "blobs in parts"])
def test_blobs_that_are_repeated_or_come_in_parts_change_no_number(most: int) -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), max_bytes=most)
    rows = []
    for block in range(0, 9, 3):
        rows += written(pipe, 3, first=block)
        blobs = pipe.combine()
        torn = [data[: len(data) // 2] for data in blobs]
        pipe.reduce(torn)
        pipe.reduce([data[::-1] for data in blobs])
        pipe.reduce(blobs)
    pipe.end()
    assert pipe.results() == direct(pipe.plan, rows)


def test_the_last_frames_of_a_session_are_missed_once_every_worker_heard_how_many_there_were() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=1)
    written(pipe, 3)
    pipe.frames[1].pop()
    pipe.step()
    total = 3 * ROUTED
    for routed in range(ROUTED):
        takes_over(pipe, routed, 8, [(SESSION, total), (8, ROUTED)])
    with pytest.raises(
        DataLossError, match=f"session 7 had written {total} frames .* but only {total - 1} came"
    ):
        pipe.step()


def test_no_pane_closes_before_every_worker_heard_how_many_frames_there_were() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=1)
    rows = written(pipe, 3)
    for routed in range(ROUTED):
        pipe.write(routed, [], dict.fromkeys(range(INPUTS), END_MARK))
    takes_over(pipe, 0, 8, [(SESSION, 4 * ROUTED), (8, ROUTED)])
    pipe.step()
    assert pipe.found == []
    for routed in (1, 2):
        takes_over(pipe, routed, 8, [(SESSION, 4 * ROUTED), (8, ROUTED)])
    pipe.step()
    assert pipe.results() == direct(pipe.plan, rows)


def test_a_rebuild_may_lack_the_beginning_of_a_routed_partition_and_nothing_else() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1, emit_from=5 * SLIDE), buckets=1)
    rows = written(pipe, 12)
    pipe.frames[1] = pipe.frames[1][3:]
    pipe.step()
    for routed in range(ROUTED):
        takes_over(pipe, routed, 8, [(SESSION, 12 * ROUTED), (8, ROUTED)])
    pipe.step()
    assert pipe.results().items() <= direct(pipe.plan, rows).items()
    assert pipe.results()
    written(pipe, 2, first=12)
    pipe.frames[1].pop(0)
    with pytest.raises(DataLossError, match="so 1 frame is gone"):
        pipe.step()


def test_a_bucket_remembers_the_sessions_that_were_named_last() -> None:
    sessions = Sessions(None, routed=2, most=2, partial=False)
    for session in (1, 2, 3):
        sessions.add([(0, session, 0, 4, 0)], "offsets 0..4")
    sessions.add([(1, 2, 0, 0, 0)], "offsets 0..0")
    sessions = Sessions(sessions.saved(), routed=2, most=2, partial=False)
    sessions.add([(0, 2, 5, 5, 0)], "offsets 5..5")
    sessions.add([(0, 3, 5, 5, 0)], "offsets 5..5")
    with pytest.raises(
        DataLossError, match="frame 5 of session 1 comes where frame 0 must, so 5 frames are gone"
    ):
        sessions.add([(0, 1, 5, 5, 0)], "offsets 6..6")


@pytest.mark.parametrize("seed", range(5))
def test_a_session_that_still_writes_is_remembered_however_many_were_named_before_it(seed: int) -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=1)
    numbers = np.random.default_rng(seed).permutation(np.arange(1, 2**40, 2**31))[:200].tolist()
    for routed in range(ROUTED):
        frames: dict[int, int] = {}
        for session in numbers:
            takes_over(pipe, routed, session, [*frames.items(), (session, ROUTED)])
            frames = {session: ROUTED}
    pipe.step()
    header = FrameHeader(epoch=0, session=numbers[-1], **LAYOUT)
    later = encode_frame(no_rows(pipe.plan.frame_schema), header, sequence=1)
    pipe.frames[1] = [(pipe.offsets[1], later)]
    pipe.offsets[1] += 1
    pipe.step()


def test_a_range_without_a_session_does_not_make_it_older() -> None:
    sessions = Sessions(None, routed=2, most=2, partial=False)
    sessions.add([(0, 1, 0, 0, 0), (0, 9, 0, 0, 0)], "offsets 0..1")
    sessions.add([(1, number, 0, 0, 0) for number in (1, 2, 3)], "offsets 0..2")
    kept = Sessions(sessions.saved(), routed=2, most=2, partial=False)
    kept.add([(0, 9, 1, 1, 0)], "offsets 2..2")


def test_a_segment_that_names_no_session_is_refused() -> None:
    sessions = Sessions(np.empty(0, np.int64), routed=2, most=2, partial=False)
    with pytest.raises(ProtocolError, match="does not say which session wrote offsets"):
        sessions.add([(0, 1, -1, -1, 4)], "offsets 3..4")
