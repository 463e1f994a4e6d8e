"""What it costs to move state: the bytes that travel, and how long the work on them stands still.

One law for a rescale (`environments`) and for a key that moves (`evenflow simulate --state-bytes`):

    pause = fixed + bytes / rate        and no pause where nothing moves

It is the law of stop, copy and go on, in which all that moves stands still until the last byte is there: the
least that systems do. Megaphone (PVLDB 2019) moves state in small parts, Meces (ATC 2022) fetches first the
state of the keys that are needed, and Rhino (SIGMOD 2020) has a protocol for terabytes of it. Their abstracts
state latencies lower by orders of magnitude than before. Here that is a `rate` that is so many times higher:
the bytes stay, and the pause falls.

evenflow itself moves no state of a key: combiners hold the panes of a micro-batch, and a plan begins on a
slide boundary. The model is for comparing with systems that do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenflow.errors import ConfigError

NETWORK = 125e6
"""Bytes/s of a link of 1 Gbit/s."""


@dataclass(frozen=True, kw_only=True)
class Migration:
    """What moving state costs. ConfigError for a value out of range."""

    fixed_s: float = 0.0
    """Seconds that a move takes whatever its size."""
    rate: float = NETWORK
    """Bytes/s that travel."""

    def __post_init__(self) -> None:
        if not 0 <= self.fixed_s < math.inf or not 0 < self.rate < math.inf:
            raise ConfigError(
                "state moves with a fixed cost of 0 s or more and more than 0 bytes/s,"
                f" not {self.fixed_s} s and {self.rate}"
            )

    def pause_s(self, moved: float) -> float:
        """Seconds for which the work stands still while so many bytes move. 0 if none do."""
        return self.fixed_s + moved / self.rate if moved > 0 else 0.0


def moved_by_rescale(state: float, before: int, after: int) -> float:
    """Bytes that move where state of so many bytes is spread evenly over `before` units,
    and then over `after`.

    It is the least that can move: on a scale-out the new units get their share, on a scale-in those that go
    give theirs.
    """
    return state * abs(after - before) / max(after, before)
