"""How a service waits when it starts before its broker or its input topic.

It says what it waits for, and gives up.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from evenflow.errors import EvenflowError, ServiceError
from evenflow.settings import Settings
from topics.admin import describe
from topics.query.input_topic import missing_input

_LOG = logging.getLogger("evenflow.start")
_FIRST_PAUSE, _LAST_PAUSE = 1.0, 15.0


def wait_for_input(
    settings: Settings,
    *,
    made_by_us: bool = False,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Return once the input topic is there, or after `kafka.startup_wait`.

    If the topic is still missing, no error is raised here: the service's own first read says what is wrong.
    made_by_us: the caller makes the topic itself, so it only needs the broker. clock, sleep: in s. Raises
    ConfigError for settings with which no client can be made, because no waiting heals them.
    """

    def trouble() -> EvenflowError | None:
        return _trouble(settings, made_by_us=made_by_us)

    if wait_while(trouble, settings, clock=clock, sleep=sleep):
        _LOG.info("Kafka at %s is ready: going on", settings.kafka.bootstrap_servers)


def wait_while(
    trouble: Callable[[], EvenflowError | None],
    settings: Settings,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> bool:
    """Return once there is no trouble, or after `kafka.startup_wait`.

    trouble: looks for trouble, returns None if there is none. Returns True if there was trouble and it has
    passed, else False. Each new trouble is logged as a warning, and each further try as an info line. clock,
    sleep: in s.
    """
    deadline, pause, last_cause = clock() + settings.kafka.startup_wait / 1000, _FIRST_PAUSE, ""
    while clock() < deadline:
        error = trouble()
        if error is None:
            return bool(last_cause)
        cause = _cause(error.message)
        level = logging.INFO if cause == last_cause else logging.WARNING
        last_cause = cause
        pause_now = max(0.0, min(pause, deadline - clock()))
        _LOG.log(level, "not ready to start, trying again in %.0f s: %s", pause_now, error)
        sleep(pause_now)
        pause = min(2 * pause, _LAST_PAUSE)
    return False


def _cause(message: str) -> str:
    """The message without what librdkafka counts in it:
    " (after 1ms in state CONNECT, 2 identical error(s) suppressed)".
    """
    return message.partition(" (after ")[0]


def _trouble(settings: Settings, *, made_by_us: bool) -> EvenflowError | None:
    topic = settings.topic("input")
    try:
        topics = describe(settings.kafka, [topic])
    except ServiceError as error:
        return error
    return None if made_by_us or topic in topics else missing_input(settings, [])
