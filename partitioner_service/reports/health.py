"""What the health pages say: whether both halves are alive, and whether all that should move does.

`alive` is false only for what a restart may heal. `healthy` is also false for what a restart does not heal:
input that is not read, and windows that wait for an input partition without data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from evenflow.reporting import silent_after, unanswered
from evenflow.reporting.words import printable
from evenflow.telemetry import Standstill
from monitoring.health import PATIENCE


class Health:
    """Judges the status of an instance.

    It remembers since when Faust has been outside of its consumer group.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._apart_since: float | None = clock()

    def alive(self, status: Mapping[str, Any], *, control_joined: bool) -> dict[str, Any]:
        """Fields of the page: `alive`, the data plane's `state`, and a `reason` if it is not alive.

        control_joined: whether Faust is in its consumer group now.
        """
        return _shown("alive", status, self._not_alive(status, control_joined=control_joined))

    def healthy(self, status: Mapping[str, Any], *, control_joined: bool) -> dict[str, Any]:
        """Fields of the page: `healthy`, the data plane's `state`, and a `reason` if it is not healthy.

        An instance is not healthy if it is not alive, if its data plane has made no progress for 12 s, or if
        something stands still. `warnings` has sentences about what a person should look at though all moves:
        windows that stay open for long. control_joined: as in `alive`.
        """
        reason = self._not_alive(status, control_joined=control_joined, patience=silent_after())
        if reason is None:
            reason = next((str(some["reason"]) for some in _for_long(status)), None)
        shown = _shown("healthy", status, reason)
        warnings = warnings_of(status)
        return {**shown, "warnings": warnings} if warnings else shown

    def _not_alive(
        self, status: Mapping[str, Any], *, control_joined: bool, patience: float = PATIENCE
    ) -> str | None:
        """Why the instance is not alive, None if it is.
        patience: seconds without progress that are no trouble.
        """
        if control_joined:
            self._apart_since = None
        elif self._apart_since is None:
            self._apart_since = self._clock()
        if status["state"] == "stopped":
            return "the data plane has stopped"
        still = status["seconds_since_progress"]
        if still >= patience:
            return f"the data plane has made no progress for {still:.0f} s"
        if self._apart_since is not None and self._clock() - self._apart_since >= PATIENCE:
            apart = self._clock() - self._apart_since
            return (
                "the control plane has been outside of its consumer group"
                f" for {apart:.0f} s: plans do not arrive"
            )
        return None


def standing_still(status: Mapping[str, Any]) -> list[Standstill]:
    """What makes the instance unhealthy, for telemetry. What cannot be fetched has a field of its own
    there.
    """
    return [
        Standstill(what=some["what"][:60], why=printable(some["reason"])[:2_000])
        for some in _for_long(status)
        if some["what"] != "unfetchable"
    ]


def broker_gone(servers: str, seconds: float) -> list[dict[str, Any]]:
    """What stands still, for the status page, if Kafka does not answer.
    seconds: since the first unanswered request.
    """
    trouble = unanswered(servers, seconds)
    if trouble is None:
        return []
    return [{"what": "broker gone", "seconds": round(seconds, 1), "reason": trouble.text, "at_once": True}]


def warnings_of(status: Mapping[str, Any]) -> list[str]:
    """What a person should look at though all moves, in sentences, for telemetry and the health page."""
    return [printable(text)[:2_000] for text in status.get("warnings", ())]


def _for_long(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What has stood still for too long."""
    # What no waiting heals is told at once.
    still = status.get("standing_still", ())
    return [some for some in still if some.get("at_once") or some["seconds"] >= PATIENCE]


def _shown(word: str, status: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    shown = {word: reason is None, "state": status["state"]}
    return shown if reason is None else {**shown, "reason": reason}
