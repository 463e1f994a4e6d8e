"""Where the logs of owned input partitions were last seen to end, and since when (for the idle timeout).

What was seen is no more than a reason to ask: a process that was stopped, or whose leader is away, hears of no new
record. Only the brokers' answer at the moment of the decision says that a log has not grown (pipeline rule 18).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

Ask = Callable[[Collection[int]], dict[int, int]]
"""Input partitions -> where their logs end now. Those that no broker answered for are absent."""


@dataclass(frozen=True)
class _End:
    offset: int
    since: float


class LogEnds:
    """Ends of logs by input partition. `ask` is called by `confirmed` only."""

    def __init__(self, ask: Ask, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._ends: dict[int, _End] = {}

    def reached(self, partition: int, offset: int) -> None:
        """Everything below this offset was read. What lies behind the last record are marks of transactions."""
        known = self._ends.get(partition)
        since = self._clock() if known is None else known.since
        self._ends[partition] = _End(offset, since)

    def left(self, partition: int) -> None:
        """A record came."""
        self._ends.pop(partition, None)

    def forget(self) -> None:
        """Positions have changed."""
        self._ends.clear()

    def since(self, partition: int) -> float:
        """For how many seconds no record has come after the end that was seen. 0 if none was seen."""
        end = self._ends.get(partition)
        return 0.0 if end is None else self._clock() - end.since

    def seen(self, partition: int) -> float | None:
        """Seconds since the end of its log was reached. None while there is more to read."""
        return round(self.since(partition), 1) if partition in self._ends else None

    def confirmed(self, partitions: Collection[int]) -> set[int]:
        """Those of them whose log, as the brokers say now, still ends where it was seen to end.

        A log that has grown counts as left. For one without an answer the waiting begins anew.
        """
        wanted = set(partitions) & set(self._ends)
        if not wanted:
            return set()
        answers = self._ask(wanted)
        still = {p for p in wanted if answers.get(p) == self._ends[p].offset}
        for partition in wanted - still:
            if partition in answers:
                self.left(partition)
            else:
                self._ends[partition] = replace(self._ends[partition], since=self._clock())
        return still
