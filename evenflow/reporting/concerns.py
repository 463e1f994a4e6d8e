"""Warnings for conditions that last: a line at once, a line now and then while it lasts, and a line when
it is over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evenflow.reporting.lines import with_fields

AGAIN = 300.0
"""Seconds until the same warning is logged again."""


@dataclass(frozen=True, kw_only=True)
class Concern:
    """A condition that lasts and should not."""

    name: str
    """Identifies the concern from one call to the next."""
    text: str
    """The warning, as a sentence for the log."""
    over: str | None = None
    """The line for when it is over, None for no line."""
    after: float = 0.0
    """Seconds that it must have lasted before the warning is logged."""
    already: float = 0.0
    """Seconds that it had lasted when it was first handed in."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Figures for a log in JSON."""


class LastingConcern(NamedTuple):
    """A concern that is there now."""

    concern: Concern
    """What lasts."""
    seconds: float
    """For how long it has lasted."""


class Concerns:
    """Logs the concerns that last. A concern that comes and goes is logged no more often than one that stays.

    again: seconds until the same warning is logged again. clock: seconds that never go back. `lasting` holds
    the present concerns.
    """

    def __init__(
        self, log: logging.Logger, *, again: float = AGAIN, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._again = again
        self._clock = clock
        self._since: dict[str, float] = {}
        self._said_at: dict[str, float] = {}
        self._open: dict[str, Concern] = {}
        self.lasting: list[LastingConcern] = []

    def now(self, concerns: Iterable[Concern]) -> None:
        """Take in the concerns that last at this moment, and log those that are due. All others are over."""
        now = self._clock()
        present = {concern.name: concern for concern in concerns}
        self._since = {name: self._since.get(name, now - c.already) for name, c in present.items()}
        # Kept also for concerns that are gone, so that one that comes back soon is not logged at once.
        self._said_at = {name: at for name, at in self._said_at.items() if now - at < self._again}
        self.lasting = [LastingConcern(c, now - self._since[name]) for name, c in present.items()]
        for concern, seconds in self.lasting:
            if seconds >= concern.after and concern.name not in self._said_at:
                self._said_at[concern.name] = now
                self._open[concern.name] = concern
                self._log.warning("%s", concern.text, extra=_fields(concern, seconds))
        for name in [name for name in self._open if name not in present]:
            over = self._open.pop(name)
            if over.over is not None:
                self._log.info("%s", over.over, extra=_fields(over, 0.0))


def _fields(concern: Concern, seconds: float) -> dict[str, Any]:
    return with_fields(
        {**concern.fields, "event": "concern", "concern": concern.name, "lasting_s": round(seconds, 1)}
    )
