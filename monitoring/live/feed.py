"""A picture that follows telemetry only while somebody looks. For parts that do not read telemetry anyway."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from evenflow.errors import EvenflowError
from evenflow.settings import Settings
from monitoring.live.glance import Glance, HealthVerdict
from monitoring.live.picture import Picture
from topics.follower import Follower

_NEWEST = 500  # records that are read at the start
_UNWATCHED = 60.0  # s without a look until the thread ends
_AGAIN = 5.0  # s after a failure until the next try
_TURN = 0.5


class Feed:
    """Follows the telemetry topic in a thread of its own. The first look starts the thread.

    The thread ends when nobody has looked for a minute. clock: s.
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._picture = Picture(settings)
        self._lock = threading.Lock()
        self._looked_at = clock()
        self._thread: threading.Thread | None = None
        self._failed_at: float | None = None
        self._trouble = ""
        self._closed = threading.Event()

    def glance(self) -> Glance:
        """What is known now.

        The first look shows nothing yet. If the topic cannot be read, a verdict says so.
        """
        with self._lock:
            self._looked_at = self._clock()
            waits = self._failed_at is not None and self._looked_at - self._failed_at < _AGAIN
            if self._thread is None and not waits and not self._closed.is_set():
                self._picture = Picture(self._settings)
                self._thread = threading.Thread(target=self._follow, name="evenflow-live", daemon=True)
                self._thread.start()
            glance = self._picture.glance()
            if self._trouble:
                glance.verdicts["keeping up"] = HealthVerdict(word="unknown", text=self._trouble)
            return glance

    def close(self) -> None:
        """Stop following."""
        self._closed.set()
        thread = self._thread
        if thread is not None:
            thread.join(timeout=_AGAIN)

    def _follow(self) -> None:
        try:
            follower = Follower(self._settings, "telemetry", newest=_NEWEST, isolation="read_uncommitted")
            self._trouble, self._failed_at = "", None
            try:
                for message in follower.all_so_far():
                    self._picture.take(message.value(), old=True)
                while not self._closed.is_set() and self._clock() - self._looked_at < _UNWATCHED:
                    for message in follower.new(_TURN):
                        self._picture.take(message.value())
            finally:
                follower.close()
        except EvenflowError as error:
            self._trouble, self._failed_at = error.message, self._clock()
        except Exception as error:  # whatever fails here, the service that shows the picture goes on
            self._trouble, self._failed_at = f"{type(error).__name__}: {error}", self._clock()
        finally:
            with self._lock:
                self._thread = None
