"""A service that starts before its broker or its input topic: it waits, says what for, and gives up after a while."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from evenflow.errors import EvenflowError, ServiceError
from evenflow.settings import Settings
from topics.admin import describe
from topics.settled import missing_input

_LOG = logging.getLogger("evenflow.start")
_FIRST_PAUSE, _LAST_PAUSE = 1.0, 15.0


def wait_for_input(
    settings: Settings,
    *,
    made_by_us: bool = False,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Return once the input topic is there, or after `kafka.startup_wait`: who reads it then says what is wrong.

    Each trouble is told once as a warning, and each later try as a line. made_by_us: the broker is enough. clock, sleep: s.
    Raises ConfigError for settings with which no client can be made: waiting heals none.
    """
    deadline, pause, told = clock() + settings.kafka.startup_wait / 1000, _FIRST_PAUSE, ""
    while clock() < deadline:
        trouble = _trouble(settings, made_by_us=made_by_us)
        if trouble is None:
            if told:
                _LOG.info("Kafka at %s is ready: going on", settings.kafka.bootstrap_servers)
            return
        level = logging.INFO if trouble.message == told else logging.WARNING
        told = trouble.message
        pause_now = max(0.0, min(pause, deadline - clock()))
        _LOG.log(level, "not ready to start, trying again in %.0f s: %s", pause_now, trouble)
        sleep(pause_now)
        pause = min(2 * pause, _LAST_PAUSE)


def _trouble(settings: Settings, *, made_by_us: bool) -> EvenflowError | None:
    topic = settings.topic("input")
    try:
        found = describe(settings.kafka, [topic])
    except ServiceError as error:
        return error
    return None if made_by_us or topic in found else missing_input(settings, [])
