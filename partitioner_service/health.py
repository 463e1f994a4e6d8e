"""What the health page says: both halves make progress, or which one does not (pipeline rule 12)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

PATIENCE = 60.0
"""Seconds: a rebalance or a broker that starts again may take a while."""


class Health:
    """Remembers since when the control plane has been outside of its consumer group."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._apart_since: float | None = clock()

    def verdict(self, status: Mapping[str, Any], *, control_joined: bool) -> dict[str, Any]:
        """`healthy`, the data plane's state, and `reason` when it is not healthy."""
        if control_joined:
            self._apart_since = None
        elif self._apart_since is None:
            self._apart_since = self._clock()
        reason = self._reason(status)
        shown = {"healthy": reason is None, "state": status["state"]}
        return shown if reason is None else {**shown, "reason": reason}

    def _reason(self, status: Mapping[str, Any]) -> str | None:
        if status["state"] == "stopped":
            return "the data plane has stopped"
        still = status["seconds_since_progress"]
        if still >= PATIENCE:
            return f"the data plane has made no progress for {still:.0f} s"
        if self._apart_since is not None and self._clock() - self._apart_since >= PATIENCE:
            apart = self._clock() - self._apart_since
            return f"the control plane has been outside of its consumer group for {apart:.0f} s: plans do not arrive"
        return None
