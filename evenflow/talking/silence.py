"""When a part counts as silent, and a micro-batch as stuck. `evenflow status`, the live page and the health page share this.

A part that lives says something at least every five seconds, or once per batch interval if that is longer.
"""

from __future__ import annotations

_SILENT = 12.0  # two words that were due have not come
_STUCK = 30.0


def silent_after(interval: float = 0.0) -> float:
    """Seconds without a word after which a part counts as silent.

    interval: its batch interval in s, 0 for a part without one.
    """
    return max(_SILENT, 3 * interval)


def stuck_after(interval: float) -> float:
    """Seconds after which a micro-batch counts as stuck. interval: the batch interval in s."""
    return max(_STUCK, 5 * interval)
