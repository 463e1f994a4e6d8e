"""Where the logs of owned input partitions were last seen to end, and since when (for the idle timeout).

An end that was seen is only a reason to ask again. A process that was suspended hears of no new record, and
neither does one that cannot reach the partition's leader. Only the brokers' answer at the moment of the
decision says whether a log has grown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

Ask = Callable[[Collection[int]], dict[int, int]]
"""Input partitions -> the offsets at which their logs end now. A partition without an answer is absent."""


@dataclass(frozen=True)
class _End:
    """Where a log was seen to end."""

    offset: int
    """The offset behind its last record."""
    since: float
    """When the end was seen first without another record since, in seconds of the clock."""


class LogEnds:
    """Ends of logs by input partition. ask: asks the brokers. Only `confirmed` calls it."""

    def __init__(self, ask: Ask, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._ends: dict[int, _End] = {}

    def reached(self, partition: int, offset: int) -> None:
        """Note that everything below this offset was read.

        The offset moves without records if transactions end there.
        """
        known = self._ends.get(partition)
        since = self._clock() if known is None else known.since
        self._ends[partition] = _End(offset, since)

    def left(self, partition: int) -> None:
        """Note that another record came."""
        self._ends.pop(partition, None)

    def forget(self) -> None:
        """Forget all ends, because the positions have changed."""
        self._ends.clear()

    def since(self, partition: int) -> float:
        """For how many seconds no record has come since the end was seen. 0 if no end was seen."""
        end = self._ends.get(partition)
        return 0.0 if end is None else self._clock() - end.since

    def seconds_at_end(self, partition: int) -> float | None:
        """Seconds since the end of the partition's log was reached. None while there is more to read."""
        return round(self.since(partition), 1) if partition in self._ends else None

    def confirmed(self, partitions: Collection[int]) -> set[int]:
        """The partitions among these whose logs still end where they were seen to end.

        The brokers are asked now. If a log has grown, its end is forgotten. If no broker answers for a log,
        its waiting time begins anew.
        """
        candidates = set(partitions) & set(self._ends)
        if not candidates:
            return set()
        answers = self._ask(candidates)
        still = {p for p in candidates if answers.get(p) == self._ends[p].offset}
        for partition in candidates - still:
            if partition in answers:
                self.left(partition)
            else:
                self._ends[partition] = replace(self._ends[partition], since=self._clock())
        return still
