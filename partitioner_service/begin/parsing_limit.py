"""How much a look at some records parses: as tuples they may take a thousand times their bytes."""

from __future__ import annotations

import time
from collections.abc import Callable

from partitioner_service.reading.parse import ParsedBlock

_MOST_BYTES = 1_000_000_000
_MOST_TUPLES = 5_000_000
_MOST_SECONDS = 20.0


class ParsingLimit:
    """Reached after 1 GB of keys and values, 5 million tuples or 20 s, over all batches together."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._deadline = clock, clock() + _MOST_SECONDS
        self._bytes = self._tuples = 0

    def add(self, parsed: ParsedBlock) -> None:
        """Count what was parsed."""
        self._bytes += parsed.keys.nbytes + parsed.values.nbytes
        self._tuples += len(parsed.keys)

    @property
    def reached(self) -> bool:
        """Whether nothing more is to be parsed."""
        over = self._bytes > _MOST_BYTES or self._tuples > _MOST_TUPLES
        return over or self._clock() > self._deadline
