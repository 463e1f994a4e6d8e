"""The position of a bucket as JSON: written as ever, and read back as what it was."""

from __future__ import annotations

from evenflow.twostep.reducing.state import ClosedPane, Meta, PendingSegment

WRITTEN = (
    b'{"v":3,"fingerprint":"f","topic_id":"t","bucket":1,"buckets":2,"input_partitions":2,"routed_partitions":3,'
    b'"closed":9,"newest":8,"tuples":0,"pending":{"2":{"first":3,"last":7,"total":10,"have":4}},"came":{"9":700},'
    b'"came_closed":[[6,800],[7,700]],"came_unknown":8}'
)
"""What a bucket of query f wrote after the steps below. States in use hold such bytes, so they never
change.
"""


def test_a_position_is_written_and_read_as_ever() -> None:
    meta = Meta("f", "t", 1, 2, 2, 3, 5)
    meta.pending[2] = PendingSegment(3, 7, 10, 4)
    meta.note_arrival([4, 5, 6, 7, 9], 700)
    meta.note_arrival([5], 900)
    meta.note_arrival([6], 800)
    newest = []
    for pane in (5, 6, 7, 8):
        meta.newest = pane
        newest.append(meta.closes(pane, span=3))
        meta.closed = pane + 1
    assert newest == [900, 900, 900, None], "of pane 8 it is unknown when its tuples came"
    assert meta.encode() == WRITTEN
    assert Meta.decode(WRITTEN) == meta
    assert meta.came_closed == [ClosedPane(6, 800), ClosedPane(7, 700)]
