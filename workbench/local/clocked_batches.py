"""Micro-batches by processing time, for demos: the event time of a replay has its own pace, and few tuples
to a slide.
"""

from __future__ import annotations

from typing import Any

from evenflow import partitioners


def clocked_batches(partitioner: str, interval_ms: int) -> dict[str, Any]:
    """How this partitioner cuts micro-batches, as settings. Empty for one that routes tuple by tuple.

    Raises ConfigError if there is no partitioner of this name.
    """
    if not partitioners.describe(partitioner).micro_batch:
        return {}
    return {"batch_interval": interval_ms, "batch_clock": "processing"}
