"""How far out of order the tuples of a sample are, by the same rule that the partitioner applies.

Everywhere `times` is the event times (ms) of consecutive records of a partition in offset order, or a list of
such arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenflow.numeric.arrays import Bools, Int64s, UInt8s
from evenflow.progress import PartitionState, Verdict, judge
from evenflow.settings import Query

_S, _M, _H, _D = 1_000, 60_000, 3_600_000, 86_400_000
_ROUND = (
    *(10**power * digit for power in range(3) for digit in (1, 2, 5)),
    *(unit * many for unit in (_S, _M) for many in (1, 2, 5, 10, 15, 30)),
    *(_H * many for many in (1, 2, 3, 6, 12)),
)
_JUMPS = (7 * _D, _D, 6 * _H, _H)
_ACCEPTABLE_WINDOWS = 10
_ALWAYS_ACCEPTABLE = _M
_PATIENT = 2**60
"""An out_of_orderness (ms) with which no tuple is late."""


def late_tuples(query: Query, times: Sequence[Int64s]) -> int:
    """How many tuples come after their pane was closed by the mark. max_jump is left aside."""
    plain = query.model_copy(update={"max_jump": None})
    return sum(
        int((_verdicts(plain, partition_times, begun=False) == Verdict.LATE).sum())
        for partition_times in times
    )


def without_jumps(query: Query, times: Int64s) -> Int64s:
    """The times that max_jump does not reject. All times if max_jump is not set."""
    return times[~jumps(query, times)]


def jumps(query: Query, times: Int64s) -> Bools:
    """Which times max_jump rejects, shape (n,). None of them if max_jump is not set."""
    if query.max_jump is None or not times.size:
        return np.zeros(times.size, bool)
    patient = query.model_copy(update={"out_of_orderness": _PATIENT})
    return _verdicts(patient, times, begun=True) == Verdict.JUMP


def needed_out_of_orderness(query: Query, times: Sequence[Int64s]) -> int:
    """The smallest round out_of_orderness (ms) with which none of these tuples is late."""
    behind = max((_behind(query.slide_ms, partition_times) for partition_times in times), default=0)
    return rounded_up(max(0, behind - query.allowed_lateness))


def acceptable(query: Query) -> int:
    """The longest out_of_orderness (ms) that is ever proposed:
    the largest round one within ten windows or a minute.

    Every result comes later by it, so a longer one costs more than the tuples that it keeps.
    """
    most = max(_ACCEPTABLE_WINDOWS * query.window, _ALWAYS_ACCEPTABLE)
    return max([most // _D * _D, *(duration for duration in _ROUND if duration <= most)])


def rounded_up(milliseconds: int) -> int:
    """The next larger duration (ms) that a person would write, such as 200 ms, 5 s or 1 h."""
    if milliseconds == 0:
        return 0
    return next((duration for duration in _ROUND if duration >= milliseconds), -(-milliseconds // _D) * _D)


def helpful_jump(query: Query, times: Sequence[Int64s]) -> tuple[int, int] | None:
    """A max_jump (ms) with which fewer tuples are lost than without one, and how many jumps it rejects. None
    if none helps.

    One wrong clock moves its partition's watermark ahead, and every right tuple that comes after is late.
    """
    least = late_tuples(query, times)
    best: tuple[int, int] | None = None
    for jump in _JUMPS:
        careful = query.model_copy(update={"max_jump": jump})
        left = [without_jumps(careful, partition_times) for partition_times in times]
        rejected = sum(map(len, times)) - sum(map(len, left))
        lost = rejected + late_tuples(query, left)
        # A max_jump that rejects nothing changes nothing.
        if rejected and lost < least:
            best, least = (jump, rejected), lost
    return best


def furthest_behind(times: Sequence[Int64s]) -> int:
    """How far (ms) any tuple lies at most behind the largest event time before it in its partition."""
    return max(
        (
            int((np.maximum.accumulate(partition_times) - partition_times).max())
            for partition_times in times
            if partition_times.size
        ),
        default=0,
    )


def _verdicts(query: Query, times: Int64s, *, begun: bool) -> UInt8s:
    """The partitioner's verdict about each tuple, from one partition alone.

    begun: whether to act as if the partition had been read before, up to the least time of the first three
    tuples. A sample is from the middle of a stream, and without progress its first tuples would be jumps.
    """
    first = int(times[:3].min()) if begun else None
    state = PartitionState(
        fingerprint="",
        topic_id="",
        offset=0,
        first_time=first,
        max_time=first,
        max_jumps=((0, query.max_jump),),
        disorders=((0, query.out_of_orderness),),
    )
    return judge(query, state, times).verdicts


def _behind(slide: int, times: Int64s) -> int:
    """The least delay (ms) of the mark with which none of these tuples is late."""
    if times.size < 2:
        return 0
    before = np.maximum.accumulate(times)[:-1]
    # A tuple is late if its pane's end is at or before the mark. Hence the + 1 below.
    pane_ends = (times[1:] // slide + 1) * slide
    return max(0, int((before - pane_ends).max()) + 1)
