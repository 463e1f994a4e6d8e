"""Whether the application makes progress: its own loop turns, and no micro-batch runs for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from evenflow.due_windows import ResultDelays, open_for_long
from evenflow.reporting import Sign, Trouble, hanging, silent_after
from evenflow.telemetry import BatchRecord, HeartbeatRecord
from monitoring.health import Checks, Turns


class Health:
    """Collects what the stages report, and answers probes in a thread of its own.

    clock: s. kafka: returns what is wrong with Kafka, None if it answers. delays: of each query, by its name.
    wall: seconds since 1970, to compare event times with.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        kafka: Callable[[], Trouble | None] = lambda: None,
        delays: Mapping[str, ResultDelays] | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.loop = Turns("the application's loop", clock=clock)
        self._kafka = kafka
        self._hanging: dict[tuple[str, str], Trouble] = {}
        self._delays = delays or {}
        self._wall = wall
        self._next: dict[str, int | None] = {}

    def batch(self, record: BatchRecord) -> None:
        """Note that a micro-batch has ended."""
        self._hanging.pop((record.query, record.stage), None)
        if record.stage != "combine":  # which knows of no windows
            self._next[record.query] = record.next_window_end

    def heartbeat(self, record: HeartbeatRecord) -> None:
        """Note that a stage has finished no micro-batch for a while."""
        trouble = hanging(
            Sign(
                name=f"{record.stage} of {record.query}",
                interval=record.batch_interval_ms / 1000,
                running=(record.running_ms or 0) / 1000,
                first=record.batch is None,
            )
        )
        if trouble is None:
            self._hanging.pop((record.query, record.stage), None)
        else:
            self._hanging[record.query, record.stage] = trouble

    def checks(self) -> Checks:
        """Whether the application is alive and healthy.

        A long micro-batch makes the application unhealthy, not dead: after a restart the micro-batch would
        begin again.
        """
        waits = None if self.loop.begun else "its streaming queries have not started yet"
        kafka_trouble = self._kafka()
        # `list` copies: the listener's thread may change the dict meanwhile.
        long = list(self._hanging.values())
        reasons = (
            waits,
            None if kafka_trouble is None else kafka_trouble.text,
            self.loop.trouble(patience=silent_after()),
            *(trouble.text for trouble in long if trouble.level == "wrong"),
        )
        first = next((reason for reason in reasons if reason is not None), None)
        slow = (trouble.text for trouble in long if trouble.level != "wrong")
        return Checks(self.loop.trouble(), first, (*slow, *self._late_windows()))

    def _late_windows(self) -> Iterator[str]:
        """Windows that come out, but not for long."""
        now = int(self._wall() * 1000)
        for name, window_end in list(self._next.items()):
            delays = self._delays.get(name)
            if delays is not None:
                needs = None if window_end is None else window_end + delays.total
                trouble = open_for_long(delays, needs=needs, now=now)
                if trouble is not None:
                    yield f"{name}: {trouble.text}"
