"""The rhythm of blocks and transactions: chosen anew as the rate and the number of routed partitions in use
change, and said once a change.
"""

from __future__ import annotations

import logging
from typing import Any

from evenflow.settings import PartitionerSettings
from evenflow.settings.sections.rhythm import Rhythm, rhythm

log = logging.getLogger(__name__)


class ChosenRhythm:
    """What the settings leave open is chosen (`evenflow.settings.sections.rhythm`)."""

    def __init__(self, options: PartitionerSettings, *, routed: int, batches: bool) -> None:
        self._options = options
        self._batches = batches
        self._open = [name for name in Rhythm._fields if getattr(options, name) is None]
        self._routed = routed
        self.now = rhythm(options, routed=routed, batches=batches)
        """The rhythm that is in force."""
        if self._open:
            log.info("%s", self._words(self.now, "until the rate is known"))

    def look(self, *, routed: int, rate: float) -> None:
        """Choose anew. rate: tuples a second that this instance routes."""
        chosen = rhythm(self._options, routed=routed, rate=rate, before=self.now, batches=self._batches)
        self._routed = routed
        if chosen != self.now:
            log.info("%s", self._words(chosen, f"{rate:,.0f} tuples/s"))
            self.now = chosen

    def shown(self) -> dict[str, Any]:
        """The rhythm for the status page. chosen: what the settings left open."""
        return {**self.now._asdict(), "chosen": self._open}

    def _words(self, chosen: Rhythm, why: str) -> str:
        settings = ", ".join(f"partitioner.{name}" for name in self._open)
        return (
            f"a block waits up to {chosen.linger} ms for {chosen.block_tuples:,} tuples, and a transaction is"
            f" {chosen.commit_interval} ms long: {settings} chosen for {self._routed:,} routed partitions in"
            f" use, {why}"
        )
