"""What an instance says about one key: the partitioner's explanation, what was seen lately,
and what would come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.keys import hash_keys
from evenflow.partitioners.preview import MOST_BYTES, TUPLES, preview
from evenflow.reporting.words import shown_bytes
from evenflow.settings import Settings
from evenflow.telemetry import HotKey
from partitioner_service.routing.planned_partitioner import PlannedPartitioner


def key_answer(
    settings: Settings,
    plans: PlannedPartitioner,
    key: bytes,
    *,
    reached: int | None,
    hot_key_of: Callable[[int], HotKey | None],
) -> dict[str, Any]:
    """The answer to a question about this key, as JSON can hold it. It changes nothing.

    reached: largest event time (ms) routed so far, None before the first tuple. hot_key_of: what a sample of
    the recent period has of the key with a hash, None if it has nothing.
    """
    partitioner = plans.partitioner
    hashed = int(hash_keys(pa.array([key], pa.binary()))[0])
    explanation = partitioner.explain(hashed, reached)
    lately = hot_key_of(hashed)
    tried = None if reached is None else preview(partitioner, hashed, reached)
    return {
        "query": settings.query.name,
        "instance": settings.partitioner.instance,
        "partitioner": settings.partitioner.name,
        "key": shown_bytes(key),
        "key_bytes": len(key),
        "plan_epoch": plans.epoch,
        "workers": partitioner.workers,
        "event_time": reached,
        "rule": explanation.rule,
        "home": explanation.home,
        "next_workers": None if explanation.workers is None else list(explanation.workers),
        "holders": [asdict(holder) for holder in explanation.holders],
        "values": None if explanation.values is None else np.round(explanation.values, 6).tolist(),
        "share": explanation.share,
        "recent": (
            None if lately is None else lately.model_dump(include={"share", "holders", "workers", "parts"})
        ),
        "next_tuples": None if tried is None else {str(worker): many for worker, many in tried.items()},
        "next_tuples_note": _note(partitioner.observe().state_bytes, reached, tried),
    }


def _note(state_bytes: int, reached: int | None, tried: dict[int, int] | None) -> str:
    if tried is not None:
        return f"the next {TUPLES} tuples of the key, if no other key came between them, by a copy"
    if reached is None:
        return "not tried: no tuple has been routed yet"
    return (
        f"not tried: the state has {state_bytes:,} bytes, and at most"
        f" {MOST_BYTES:,} are copied for a question"
    )
