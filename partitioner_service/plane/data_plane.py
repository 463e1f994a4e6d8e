"""The data plane of one partitioner instance, as the rest of the process sees it.

It runs in one thread of the Faust app: it opens its parts, runs the loop, and closes them. `stop`, `offer`,
`ask`, `channel`, `status` and `newest_telemetry` may be used from other threads at any time, also before the
parts are open and after they are closed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException

from evenflow.settings import Settings
from evenflow.telemetry import PartitionerRecord
from partitioner_service.exchange.channel import Channel
from partitioner_service.kafka.committed_state import StopRequested
from partitioner_service.kafka.watchdog import Watchdog
from partitioner_service.plane.closing import Closing
from partitioner_service.plane.garbage import patient_garbage_collection
from partitioner_service.plane.loop import Loop
from partitioner_service.plane.onlooker import Onlooker
from partitioner_service.plane.opening import open_parts
from partitioner_service.plane.questions import Questions
from partitioner_service.reports.log_lines import LogLines
from partitioner_service.reports.status import Latest
from partitioner_service.reports.telemetry import Reports
from partitioner_service.routing.plan_inbox import PlanInbox
from partitioner_service.routing.speeds import MeasuredSpeeds
from topics import clients

log = logging.getLogger(__name__)


class DataPlane:
    """One partitioner instance. settings: as `prepare` returned them.

    until_ended: `run` returns once every input partition has ended, whoever owns it. onlooker: is told how
    long blocks and commits take. loop: makes the loop from the open parts. Benchmarks pass a loop of their
    own. watchdog: ends the process when a call hangs. The simulator of faults passes one that never does.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        until_ended: bool = False,
        clock: Callable[[], float] = time.monotonic,
        onlooker: Onlooker | None = None,
        loop: Callable[..., Loop] = Loop,
        watchdog: Watchdog | None = None,
    ) -> None:
        self._settings = settings
        self._until_ended = until_ended
        self.clock = clock
        """For intervals (s)."""
        self._onlooker = onlooker
        self._make_loop = loop
        self._stop = threading.Event()
        self._plan_inbox = PlanInbox(settings)
        self.channel = Channel(settings, clock=clock) if settings.exchanges else None
        """What the other instances tell. None if they tell nothing."""
        self.speeds = MeasuredSpeeds(settings) if settings.partitioner.speeds == "measured" else None
        """How fast the workers are. None if nobody measures it."""
        self._reports = Reports(settings, clock=clock)
        self._talk = LogLines(settings, clock=clock)
        self._watchdog = Watchdog() if watchdog is None else watchdog
        self._questions = Questions()
        self._latest = Latest(settings.partitioner.instance, clock=clock)

    # ---- called from other threads

    def stop(self) -> None:
        """Finish the block in hand, commit, leave the group."""
        self._stop.set()

    def offer(self, offset: int, record: bytes | None) -> None:
        """Take a committed record of the plan topic. offset, record: its offset and its value."""
        self._plan_inbox.offer(offset, record)

    def ask(self, key: bytes) -> Future[dict[str, Any]]:
        """Ask where this key goes. The loop answers between two blocks, and never while it does not run.

        Raises ServiceError if too many questions wait.
        """
        return self._questions.ask(key)

    def serves_pages_at(self, address: str) -> None:
        """Say, before the thread starts, where the pages of this instance are, as `host:port`.
        Telemetry tells it.
        """
        self._reports.pages = address

    def status(self) -> dict[str, Any]:
        """What the status page shows. It is made anew at every commit, and twice a second."""
        return self._latest.status()

    @property
    def newest_telemetry(self) -> PartitionerRecord | None:
        """The newest telemetry record. None before the first."""
        return self._latest.telemetry

    # ---- the thread

    def run(self) -> None:
        """Run until `stop` is called. With `until_ended`, also return once the input has ended.

        Raises whatever makes going on wrong. Kafka's errors are raised as ServiceError.
        """
        self._watchdog.start()
        self._talk.begins()
        closing = Closing()
        try:
            with closing:
                self._run(self._opened(closing))
        except StopRequested:
            pass  # told to stop while it waited for Kafka, before anything of a transaction was visible
        except KafkaException as error:
            raise clients.service_error(
                error, self._settings.kafka, f"partitioning {self._settings.topic('input')}"
            ) from error
        finally:
            self._say_the_end(closing.failed)
            self._watchdog.stop()

    def _opened(self, closing: Closing) -> Loop:
        """The loop with all its parts, subscribed to the input topic."""
        parts = open_parts(
            closing,
            self._settings,
            plan_inbox=self._plan_inbox,
            channel=self.channel,
            speeds=self.speeds,
            watchdog=self._watchdog,
            stopping=self._stop.is_set,
            clock=self.clock,
        )
        loop = self._make_loop(
            self._settings,
            parts,
            plan_inbox=self._plan_inbox,
            reports=self._reports,
            questions=self._questions,
            talk=self._talk,
            latest=self._latest,
            stop=self._stop,
            clock=self.clock,
            onlooker=self._onlooker,
        )
        parts.source.subscribe(loop.settle)
        return loop

    def _run(self, loop: Loop) -> None:
        try:
            with patient_garbage_collection():
                while not self._stop.is_set():
                    loop.step()
                    if self._until_ended and loop.all_ended():
                        break
            loop.finish()
        except BaseException:
            loop.abandon()
            raise

    def _say_the_end(self, failed: Exception | None) -> None:
        self._latest.stopped()
        self._talk.ends(self._latest.shown)
        log.info("stopped; what was committed stays")
        if failed is not None:
            log.warning("while closing: %s", failed)
