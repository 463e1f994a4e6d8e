"""Input that was routed twice is noticed downstream, whatever the cause.

Rule "the beginning is locked before it is read".
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from evenflow.errors import DataLossError, ProtocolError
from evenflow.twostep import combine_task
from evenflow.wire import MARKS, OFFSETS, FrameHeader, FramePacker, decode_frame, encode_frame, records_of
from tests.unit.twostep.pipe import INVERTIBLE, LAYOUT, ROUTED, Pipe, Row, plan_of


def frame(
    pipe: Pipe, rows: list[Row], *, offsets: list[tuple[int, int, int]], told: bool = False, number: int = 0
) -> bytes:
    """A frame of these rows that read these (input partition, first, last) offsets."""
    columns = [[r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows]]
    schema = pipe.plan.frame_schema
    batch = pa.record_batch(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )
    after = records_of([(p, 0, last + 1) for p, _, last in offsets] if told else [], MARKS)
    read = records_of(offsets if not told or rows else [], OFFSETS)
    header = FrameHeader(epoch=0, offsets=read, marks=after, session=1, **LAYOUT)
    return encode_frame(batch, header, sequence=number)


def pipe_of_one_bucket() -> Pipe:
    return Pipe(plan_of(INVERTIBLE, 1), buckets=1)


ROWS: list[Row] = [(0, b"a", 1, None)]


def test_a_block_that_is_routed_again_within_one_micro_batch_stops_the_job() -> None:
    pipe = pipe_of_one_bucket()
    pipe.frames[1] = [
        (0, frame(pipe, ROWS, offsets=[(0, 10, 19)])),
        (2, frame(pipe, ROWS, offsets=[(0, 10, 19)], number=1)),
    ]
    with pytest.raises(
        ProtocolError, match=r"offset 10 of input partition 0 came to routed partition 1.*routed twice"
    ):
        pipe.combine()


def test_a_block_that_is_routed_again_in_a_later_micro_batch_stops_the_job() -> None:
    pipe = pipe_of_one_bucket()
    pipe.frames[1] = [(0, frame(pipe, ROWS, offsets=[(0, 10, 19), (1, 0, 4)]))]
    pipe.step()
    pipe.frames[1] = [(2, frame(pipe, ROWS, offsets=[(0, 20, 29), (1, 4, 8)], number=1))]
    before = dict(pipe.states[0])
    with pytest.raises(ProtocolError, match=r"offset 4 of input partition 1 .* read up to offset 4 before"):
        pipe.step()
    assert dict(pipe.states[0]) == before


def test_it_is_noticed_in_another_routed_partition_too_once_all_were_told_how_far_the_input_was_read() -> (
    None
):
    pipe = pipe_of_one_bucket()
    pipe.frames[0] = [(0, frame(pipe, ROWS, offsets=[(0, 10, 19)], told=True))]
    pipe.frames[2] = [(0, frame(pipe, [], offsets=[(0, 10, 19)], told=True))]
    pipe.step()
    pipe.frames[2] = [(2, frame(pipe, ROWS, offsets=[(0, 10, 19)], number=1))]
    with pytest.raises(ProtocolError, match="came to routed partition 2"):
        pipe.step()


def test_a_repeated_micro_batch_is_not_taken_for_input_that_was_routed_twice() -> None:
    pipe = pipe_of_one_bucket()
    pipe.frames[1] = [(0, frame(pipe, ROWS, offsets=[(0, 10, 19)]))]
    blobs = pipe.combine()
    pipe.reduce(blobs)
    pipe.reduce(blobs)
    pipe.frames[1] = [(2, frame(pipe, ROWS, offsets=[(0, 25, 29)], number=1))]
    pipe.step()
    pipe.offsets = [100] * ROUTED
    pipe.end()
    assert pipe.results() == {(0, b"a"): {"n": 2, "s": 2, "m": 1.0}}


def test_the_parts_of_one_frame_share_their_offsets_also_over_micro_batches() -> None:
    pipe = pipe_of_one_bucket()
    header = FrameHeader(epoch=0, offsets=records_of([(0, 10, 19)], OFFSETS), session=1, **LAYOUT)
    packer = FramePacker(header, pipe.plan.frame_schema)
    whole = frame(pipe, ROWS * 3, offsets=[(0, 10, 19)])
    batch = decode_frame(whole, fingerprint="f").batch
    parts = [packer.pack(batch.slice(n, 1), part=n, parts=3, sequence=n) for n in range(3)]
    pipe.frames[1] = [(0, parts[0]), (1, parts[1])]
    pipe.step()
    pipe.frames[1] = [(2, parts[2])]
    pipe.step()
    with pytest.raises(ProtocolError, match="part 2 of 3 of a frame does not follow"):
        combine_task(pipe.plan, pipe.layout, [(1, [(0, parts[0]), (1, parts[2])])])
    pipe.offsets = [100] * ROUTED
    pipe.end()
    assert pipe.results() == {(0, b"a"): {"n": 3, "s": 3, "m": 1.0}}


def parts_of(pipe: Pipe, partition: int, first: int, *, number: int = 0) -> list[bytes]:
    """A block of one input partition whose frame was cut into two parts."""
    read = records_of([(partition, first, first + 9)], OFFSETS)
    header = FrameHeader(epoch=0, offsets=read, session=partition + 1, **LAYOUT)
    batch = decode_frame(frame(pipe, ROWS, offsets=[(0, 0, 0)]), fingerprint="f").batch
    packer = FramePacker(header, pipe.plan.frame_schema)
    return [packer.pack(batch, part=part, parts=2, sequence=number + part) for part in range(2)]


@pytest.mark.parametrize("order", ["aAbB", "abAB", "abBA", "aA|bB", "a|bAB", "ab|BA", "a|bA|B"])
def test_frames_of_two_instances_may_interleave_in_a_routed_partition(order: str) -> None:
    """Two transactions are open at once and both commit; `|` begins another micro-batch."""
    pipe = pipe_of_one_bucket()
    one, other = parts_of(pipe, 0, 10), parts_of(pipe, 1, 70)
    data = {"a": one[0], "A": one[1], "b": other[0], "B": other[1]}
    offset = 0
    for batch in order.split("|"):
        for letter in batch:
            pipe.frames[1].append((offset, data[letter]))
            offset += 1
        pipe.step()
    pipe.offsets = [100] * ROUTED
    pipe.end()
    assert pipe.results() == {(0, b"a"): {"n": 4, "s": 4, "m": 1.0}}


@pytest.mark.parametrize("order", ["aa", "aAA", "abAA", "aAB", "Aa", "aAa"])
def test_a_part_that_is_there_twice_or_without_the_one_before_it_stops_the_job(order: str) -> None:
    pipe = pipe_of_one_bucket()
    one, other = parts_of(pipe, 0, 10), parts_of(pipe, 0, 70, number=2)
    data = {"a": one[0], "A": one[1], "b": other[0], "B": other[1]}
    pipe.frames[1] = [(offset, data[letter]) for offset, letter in enumerate(order)]
    with pytest.raises((ProtocolError, DataLossError), match=r"routed twice|does not follow|is gone"):
        pipe.combine()
