"""Numbers of frames: within each session they follow each other without gaps in a routed partition.

Rule "a gap is noticed".

`partitioner_service/routing/session.py` says what a session is. `RangeSequences` is what the frames of one
range say, which travels in blobs. `Sessions` is what a bucket remembers of all ranges. Every bucket gets a
blob of every range, so every bucket notices a loss by itself, before it closes a pane.

The numbers show a frame that is gone once a later frame of the session comes to the same routed partition.
They do not show that the last frames of a session are gone. The totals show that: who takes over tells every
routed partition how many frames the session had written. When each of them has brought that total, as many
frames must have been read. Until then the bucket closes no pane.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evenflow.errors import DataLossError, ProtocolError
from evenflow.numeric.arrays import Int64s, Rows
from evenflow.wire import SEQUENCE, records_of
from evenflow.wire.blob import MOST_SESSIONS
from evenflow.wire.frame import Frame

REBUILD = (
    "no result from here on could be right: rebuild the query under a new name (docs/operations/data-loss.md,"
    " frames that are gone), and look for the cause in Kafka: a disk that was lost, an unclean election,"
    " records that were deleted"
)


def frames_gone(routed: int, session: int, where: str, *, first: int, expected: int) -> DataLossError:
    """The error for frames that are missing before number `first`. where: the offset that shows it, in
    words.
    """
    count = first - expected
    return DataLossError(
        f"routed partition {routed}, {where}: frame {first} of session {session} comes where frame {expected}"
        f" must, so {count} frame{'s are' if count > 1 else ' is'} gone",
        hint=REBUILD,
    )


def frame_again(routed: int, session: int, where: str, *, first: int, expected: int) -> ProtocolError:
    """The error for a frame with a number that an earlier frame had. where: as in `frames_gone`."""
    return ProtocolError(
        f"routed partition {routed}, {where}: frame {first} of session {session} comes where frame {expected}"
        " must: it was written twice, or by something else than a partitioner",
        hint=(
            "find who wrote to the routed topic besides the partitioners, then rebuild the query under a new"
            " name (docs/operations/data-loss.md)"
        ),
    )


def check_next(routed: int, session: int, where: str, *, first: int, expected: int) -> None:
    """Raise unless the number `first` is the expected one."""
    if first > expected:
        raise frames_gone(routed, session, where, first=first, expected=expected)
    if first < expected:
        raise frame_again(routed, session, where, first=first, expected=expected)


class RangeSequences:
    """What a range of frames of one routed partition says of each session.
    The frames come in ascending offsets.
    """

    def __init__(self, routed: int) -> None:
        self._routed = routed
        self._first: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self._totals: dict[int, int] = {}
        # Sessions in the order in which they were named, the last one at the end.
        self._named: dict[int, None] = {}
        self._newest = 0

    def add(self, frame: Frame, offset: int) -> None:
        """Take in the next frame. Raises DataLossError for a gap,
        ProtocolError for a number that came before.
        """
        session, number = frame.header.session, frame.sequence
        if session != self._newest:
            self._name(session)
        last = self._last.get(session)
        if last is None:
            self._first[session] = number
        elif number != last + 1:
            check_next(self._routed, session, f"offset {offset}", first=number, expected=last + 1)
        self._last[session] = number
        if len(frame.header.totals):
            for known, frames in frame.header.totals.tolist():
                self._totals[known] = max(frames, self._totals.get(known, 0))
                self._name(known)

    def _name(self, session: int) -> None:
        self._named.pop(session, None)
        self._named[session] = None
        self._newest = session

    def rows(self) -> Rows:
        """A record `SEQUENCE` for each session, in the order in which the sessions were last named.

        A blob names the last `MOST_SESSIONS` of them. Every stint names all sessions that may still write, so
        those that are left out have ended.
        """
        sessions = list(self._named)[-MOST_SESSIONS:]
        return records_of(
            [
                (
                    self._routed,
                    session,
                    self._first.get(session, -1),
                    self._last.get(session, -1),
                    self._totals.get(session, 0),
                )
                for session in sessions
            ],
            SEQUENCE,
        )


class Sessions:
    """What a bucket knows of sessions.

    Of each session it knows two numbers by routed partition: `seen`, the number of the next frame, and
    `told`, the largest total that was told there. It keeps the `most` sessions that were named last. A stint
    of every partitioner begins after each rebalance, and every stint names its session. So `most` must be
    more than twice the number of instances that can own an input partition.

    partial: whether frames may be gone from the beginning of a routed partition, as in the documented rebuild
    with `query.emit_from`. Then the first frame of a session may have any number, and a total is compared
    only for sessions of which every routed partition holds the beginning.
    """

    def __init__(self, saved: Int64s | None, *, routed: int, most: int, partial: bool) -> None:
        """saved: what `saved` returned, None for nothing."""
        self._routed = routed
        self._most = most
        self._partial = partial
        # A row: the session, whether its beginning is missing, and by routed partition the frames read and
        # the total told.
        width = 2 + 2 * routed
        rows = np.empty((0, width), np.int64) if saved is None else saved.reshape(-1, width)
        # How many sessions were named after it in the same range: the least of all ranges that were added.
        self._ages: dict[int, int] = {}
        # The order is that in which sessions were named, the last one at the end.
        self._rows = {int(row[0]): row[1:].copy() for row in rows}
        totals = rows[:, 2 + routed :]
        self._unsettled = set(rows[totals.min(axis=1) != totals.max(axis=1), 0].tolist())

    def add(self, sequences: Iterable[tuple[int, ...]], where: str) -> None:
        """Take in what a range of one routed partition says of its sessions, records `SEQUENCE` as tuples.

        where: its offsets, in words.

        Raises as `RangeSequences.add` does, and ProtocolError if no session wrote the range.
        """
        wrote = False
        listed = list(sequences)
        for younger, (routed, session, first, last, frames) in zip(
            range(len(listed) - 1, -1, -1), listed, strict=True
        ):
            self._ages[session] = min(younger, self._ages.get(session, younger))
            wrote |= first >= 0
            row = self._rows.pop(session, None)
            fresh = row is None
            if row is None:
                row = np.zeros(1 + 2 * self._routed, np.int64)
            self._rows[session] = row
            self._unsettled.add(session)
            at = 1 + routed
            if first >= 0:
                expected = int(row[at])
                if self._partial and expected == 0 and first > 0:
                    row[0] = 1  # its beginning is missing
                else:
                    check_next(routed, session, where, first=first, expected=expected)
                row[at] = last + 1
            total_at = at + self._routed
            row[total_at] = max(int(row[total_at]), frames)
            if fresh and self._partial and first != 0:
                row[0] = 1
        if not wrote:
            raise ProtocolError(f"a blob does not say which session wrote {where}")

    def settled(self) -> bool:
        """Whether every total has been told to every routed partition, so that panes may close.

        Raises DataLossError if fewer frames than such a total were read.
        """
        open_ = set()
        for session in self._unsettled:
            row = self._rows[session]
            counts, totals = row[1 : 1 + self._routed], row[1 + self._routed :]
            if row[0] or (self._partial and not counts.all()):
                continue
            total = int(totals.min())
            if total != int(totals.max()):
                open_.add(session)
            elif int(counts.sum()) < total:
                raise self._loss(session, counts, total)
        self._unsettled = open_
        return not open_

    def frames_read(self, session: int) -> int:
        """How many frames of this session were read, from all routed partitions together."""
        row = self._rows.get(session)
        return 0 if row is None else int(row[1 : 1 + self._routed].sum())

    def saved(self) -> Int64s:
        """The `most` sessions that were named last, as one array."""
        # Those that no range has named since are the oldest. `sorted` leaves them in their order.
        oldest = max(self._ages.values(), default=0) + 1
        newest = sorted(self._rows.items(), key=lambda row: -self._ages.get(row[0], oldest))[-self._most :]
        return np.concatenate([np.empty(0, np.int64), *(part for s, row in newest for part in ([s], row))])

    @staticmethod
    def _loss(session: int, counts: Int64s, total: int) -> DataLossError:
        none = np.flatnonzero(counts == 0)
        least = f", none of them in routed partition {int(none[0])}" if len(none) else ""
        return DataLossError(
            f"session {session} had written {total} frames when another one took over, but only"
            f" {int(counts.sum())} came{least}: its last frames are gone from at least one routed partition",
            hint=REBUILD,
        )
