"""What is fixed for the life of a query, and what differs between then and now."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def fingerprint(identity: dict[str, Any]) -> str:
    """16 hex digits that change when any of the (JSON) fields changes."""
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def changes(before: Any, now: Any, name: str = "") -> list[str]:
    """Which fields differ between two nested dicts: `query.window: '1m' -> '30s'`."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = sorted({*before, *now})
        return [
            line
            for key in keys
            for line in changes(before.get(key), now.get(key), f"{name}.{key}" if name else str(key))
        ]
    return [] if before == now else [f"{name}: {_word(before)} -> {_word(now)}"]


def _word(value: Any) -> str:
    if value is None:
        return "none"
    # Half of a surrogate pair, which anybody may have written there, cannot be printed.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
