"""Checks that the pieces of a bucket are complete: one from each reduce task, all of the same segments.

All pieces of a micro-batch come in this micro-batch, because combiner, reduce tasks and buckets are steps of
one Spark query. So a piece that is missing never comes later: it is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenflow.errors import ProtocolError
from evenflow.wire.blob import Blob, BlobHeader


def merge_order(blobs: Sequence[Blob], *, tasks: int) -> list[int]:
    """Positions of these pieces by reduce task and part. There is at least one piece.

    tasks: how many reduce tasks there are. Raises ProtocolError if a piece or a part is missing or came
    twice, and if two pieces are not of the same segments.
    """
    places = {}
    for at, blob in enumerate(blobs):
        piece = blob.header.piece
        if piece is None or piece.pieces != tasks:
            raise ProtocolError(
                f"a blob that is no piece of {tasks} came to a bucket that merges such pieces"
            )
        if (piece.number, blob.part) in places:
            raise ProtocolError(f"part {blob.part} of the piece of reduce task {piece.number} came twice")
        places[piece.number, blob.part] = at
    lead = blobs[0].header
    for blob in blobs:
        _check_same(lead, blob.header)
    for task in range(tasks):
        first = places.get((task, 0))
        parts = 1 if first is None else blobs[first].parts
        missing = [part for part in range(parts) if (task, part) not in places]
        if missing:
            raise ProtocolError(
                f"part {missing[0]} of {parts} of the piece of reduce task {task} did not come"
            )
        if sum(number == task for number, _ in places) != parts:
            raise ProtocolError(
                f"the piece of reduce task {task} has other parts than the {parts} that it names"
            )
    return [places[place] for place in sorted(places)]


def _check_same(first: BlobHeader, second: BlobHeader) -> None:
    if first.segments != second.segments or not np.array_equal(first.marks, second.marks):
        raise ProtocolError(
            "two reduce tasks sent pieces of other segments to one bucket: what a task of the combiner has"
            " did not come to all reduce tasks"
        )
