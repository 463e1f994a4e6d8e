"""How large blocks are, how long they wait to fill, and how often there is a commit,
where the settings do not say.

A frame costs as much as a hundred tuples or more, and a transaction writes a marker into every partition that
it touched (docs/scale.md). So with many routed partitions blocks have to be larger, and transactions longer.
The choice depends on the number of partitions in use and on the rate alone. No result depends on it.

* A block waits until its frames have `FRAME_TUPLES` tuples, or until it has waited as long as `max_delay`
  allows, or until frames are so few that they cost little (`CHEAP_FRAMES`), whichever comes first.
* A transaction is so long that its markers take at most `MARKER_SHARE` of a broker's core, as far as
  `max_delay` allows.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

FRAME_TUPLES = 200
"""Tuples that a frame shall have. Then it costs the partitioner about half of what its tuples do."""
CHEAP_FRAMES = 400
"""Frames a second of one instance that take about 4 % of its core. So few need no waiting."""
MARKER_SHARE = 0.1
LEAST_BLOCK, MOST_BLOCK = 50_000, 204_800
"""Tuples. A block for 1,024 partitions needs the largest."""
LEAST_LINGER, MOST_LINGER = 50, 1_000
"""Milliseconds. Instances tell each other what they know between two blocks, so these must not take long."""
LEAST_COMMIT = 500
"""Milliseconds."""
BLOCK_WORK = 1_000
"""Milliseconds that the work on a block may take in a transaction."""
MOST_RATE = 1_000_000
"""Tuples a second that an instance can take, rounded up."""
_TRANSACTION, _MARKER = 3.25, 0.22
"""Milliseconds of a broker's CPU time: a transaction, and each partition that it wrote to (docs/scale.md)."""
_AGAIN = 1.25
"""How much longer than needed a new linger is, so that a slightly lower rate does not change it again."""


class RhythmSettings(Protocol):
    """What the settings say (`PartitionerSettings`): times in ms, None where they leave the choice."""

    @property
    def block_tuples(self) -> int | None: ...
    @property
    def linger(self) -> int | None: ...
    @property
    def commit_interval(self) -> int | None: ...
    @property
    def max_delay(self) -> int: ...
    @property
    def transaction_timeout(self) -> int: ...


class Rhythm(NamedTuple):
    """How large blocks are, and how long blocks and transactions last."""

    block_tuples: int
    """Most tuples of a block."""
    linger: int
    """How long a block waits to fill, ms."""
    commit_interval: int
    """How long a transaction is, ms."""


def rhythm(
    wishes: RhythmSettings,
    *,
    routed: int,
    rate: float = 0.0,
    before: Rhythm | None = None,
    batches: bool = False,
) -> Rhythm:
    """The rhythm of an instance. What the settings say is taken as it is.

    routed: routed partitions that get tuples. rate: tuples a second that this instance routes. before: the
    rhythm until now, which stays while it is good enough. batches: whether frames are cut for micro-batches.
    Then the length of a block does not matter to them.
    """
    commit = commit_of(wishes, routed)
    linger = wishes.linger
    if linger is None:
        most = _linger_bound(wishes, commit)
        needed = 0.0 if batches else min(_for_full_frames(routed, rate), _for_few_frames(routed))
        low, high = (_within(needed * times, most) for times in (1.0, 2.0))
        keep = before is not None and low <= before.linger <= high
        linger = before.linger if before is not None and keep else _within(needed * _AGAIN, most)
    block = wishes.block_tuples
    if block is None:
        block = min(MOST_BLOCK, max(LEAST_BLOCK, FRAME_TUPLES * routed))
    return Rhythm(block, linger, commit)


def commit_of(wishes: RhythmSettings, routed: int) -> int:
    """The length (ms) of a transaction that writes to this many routed partitions."""
    if wishes.commit_interval is not None:
        return wishes.commit_interval
    delay = _delay(wishes)
    most = delay - (wishes.linger if wishes.linger is not None else delay // 2)
    if wishes.linger is not None:
        # What was set may leave nothing of the delay. A transaction for each block would cost more than it
        # saves.
        most = max(most, min(LEAST_COMMIT, wishes.max_delay))
    length = (_TRANSACTION + _MARKER * (routed + 1)) / MARKER_SHARE
    return max(1, min(most, max(LEAST_COMMIT, math.ceil(length))))


def most_frames(wishes: RhythmSettings, routed: int) -> float:
    """Most frames and markers a second that an instance can write while tuples come as fast
    as it can take them.
    """
    if wishes.linger is not None:
        frames = 1_000 * routed / max(1, wishes.linger)
    else:
        # A linger that may not be longer makes more frames, however few tuples they have.
        shortest = 1_000 * routed / max(1, _linger_bound(wishes, commit_of(wishes, routed)))
        frames = min(1_000 * routed / LEAST_LINGER, max(CHEAP_FRAMES, MOST_RATE / FRAME_TUPLES, shortest))
    return frames + 1_000 * routed / max(1, commit_of(wishes, routed))


def shortest_transaction(wishes: RhythmSettings) -> int:
    """Milliseconds that a transaction takes with what is set,
    and with what may be chosen as short as it may be.
    """
    commit = min(LEAST_COMMIT, wishes.max_delay) if wishes.commit_interval is None else wishes.commit_interval
    linger = min(LEAST_LINGER, wishes.max_delay) if wishes.linger is None else wishes.linger
    return commit + linger + BLOCK_WORK


def _delay(wishes: RhythmSettings) -> int:
    """Milliseconds for linger and commit interval together."""
    return max(2, min(wishes.max_delay, wishes.transaction_timeout - BLOCK_WORK))


def _linger_bound(wishes: RhythmSettings, commit: int) -> int:
    rest = _delay(wishes) - commit
    if wishes.commit_interval is not None:
        # What was set may leave nothing of the delay. A block still has to wait for something.
        rest = max(rest, min(LEAST_LINGER, wishes.max_delay))
    return min(MOST_LINGER, rest)


def _for_full_frames(routed: int, rate: float) -> float:
    return math.inf if rate <= 0 else 1_000 * FRAME_TUPLES * routed / rate


def _for_few_frames(routed: int) -> float:
    return 1_000 * routed / CHEAP_FRAMES


def _within(milliseconds: float, most: int) -> int:
    """The time in whole ms, at least `LEAST_LINGER` and at most `most`."""
    return min(most, max(LEAST_LINGER, math.ceil(min(milliseconds, most))))
