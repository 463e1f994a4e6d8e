"""Whether the application makes progress: its own loop turns, and no micro-batch runs for ever."""

from __future__ import annotations

import time
from collections.abc import Callable

from evenflow.talking import silent_after, stuck_after
from evenflow.telemetry import BatchRecord, HeartbeatRecord
from monitoring.health import Checks, Turns


class Health:
    """Collects what the stages report, and answers probes in a thread of its own. clock: s."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.loop = Turns("the application's loop", clock=clock)
        self._stuck: dict[tuple[str, str], str] = {}

    def batch(self, record: BatchRecord) -> None:
        """Note that a micro-batch has ended."""
        self._stuck.pop((record.query, record.stage), None)

    def heartbeat(self, record: HeartbeatRecord) -> None:
        """Note that a stage has finished no micro-batch for a while."""
        running = (record.running_ms or 0) / 1000
        if running < stuck_after(record.batch_interval_ms / 1000):
            self._stuck.pop((record.query, record.stage), None)
        else:
            what = f"{record.stage} of {record.query} has been in one micro-batch for {running:.0f} s"
            self._stuck[record.query, record.stage] = what

    def checks(self) -> Checks:
        """Whether the application is alive and healthy.

        A long micro-batch makes the application unhealthy, not dead: after a restart the micro-batch would
        begin again.
        """
        waits = None if self.loop.begun else "its streaming queries have not started yet"
        waits = waits or self.loop.trouble(patience=silent_after())
        # `list` copies: the listener's thread may change the dict meanwhile.
        return Checks(self.loop.trouble(), waits or next(iter(list(self._stuck.values())), None))
