"""What the health pages say: both halves live, and what should move does, or what does not (pipeline rules 12, 20).

`alive` asks for what a restart may heal, `healthy` also for what it does not: input that is not read, and windows that
wait for an input partition without data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from monitoring.health import PATIENCE


class Health:
    """Remembers since when the control plane has been outside of its consumer group."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._apart_since: float | None = clock()

    def alive(self, status: Mapping[str, Any], *, control_joined: bool) -> dict[str, Any]:
        """`alive`, the data plane's state, and `reason` when it is not alive."""
        return _shown("alive", status, self._not_alive(status, control_joined=control_joined))

    def healthy(self, status: Mapping[str, Any], *, control_joined: bool) -> dict[str, Any]:
        """`healthy`, the data plane's state, and `reason` when it is not healthy: not alive, or nothing moves."""
        reason = self._not_alive(status, control_joined=control_joined) or _standing_still(status)
        return _shown("healthy", status, reason)

    def _not_alive(self, status: Mapping[str, Any], *, control_joined: bool) -> str | None:
        if control_joined:
            self._apart_since = None
        elif self._apart_since is None:
            self._apart_since = self._clock()
        if status["state"] == "stopped":
            return "the data plane has stopped"
        still = status["seconds_since_progress"]
        if still >= PATIENCE:
            return f"the data plane has made no progress for {still:.0f} s"
        if self._apart_since is not None and self._clock() - self._apart_since >= PATIENCE:
            apart = self._clock() - self._apart_since
            return f"the control plane has been outside of its consumer group for {apart:.0f} s: plans do not arrive"
        return None


def _standing_still(status: Mapping[str, Any]) -> str | None:
    long = [some for some in status.get("standing_still", ()) if some["seconds"] >= PATIENCE]
    return long[0]["reason"] if long else None


def _shown(word: str, status: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    shown = {word: reason is None, "state": status["state"]}
    return shown if reason is None else {**shown, "reason": reason}
