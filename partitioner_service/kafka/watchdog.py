"""Ends the process when a call into librdkafka outlasts its own timeout.

With librdkafka 2.16, `send_offsets_to_transaction` and the calls after it may never return after a broker's
crash, whatever their timeout. No exception and no signal handler reaches a thread that is stuck in such a
call, so the process could neither continue nor stop. Ending the process costs only time. Nobody knows whether
a commit without an answer has happened, but all of its transaction is visible or nothing. The committed
offsets are a part of that transaction. So the next run (or the supervisor's restart) begins at these offsets,
and is right in both cases.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

_GRACE = 15.0
_EVERY = 1.0
IN_DOUBT = (
    "either all of its last transaction is visible or nothing; start the service again: it begins at the"
    " committed offsets, which are a part of that transaction"
)
"""What holds for a transaction whose end is unknown, and what to do."""
STATUS = 75
"""EX_TEMPFAIL: start me again.
The status of other errors is 2, which says that something has to be changed first.
"""


def end_process(call_name: str) -> None:
    """Log what hangs and where, and end the process without waiting for any thread."""
    log.critical(
        "%s has not returned long after its timeout: librdkafka hangs. Ending the process; %s",
        call_name,
        IN_DOUBT,
    )
    faulthandler.dump_traceback(sys.__stderr__ or sys.stderr)
    logging.shutdown()
    os._exit(STATUS)  # `sys.exit` would wait for the thread that hangs


class Watchdog:
    """Deadlines of the calls of one thread.

    end: is called with a call's name once it is `_GRACE` s over its timeout.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, end: Callable[[str], None] = end_process
    ) -> None:
        self._clock = clock
        self._end = end
        self._due: tuple[str, float] | None = None
        self._over = threading.Event()

    @contextmanager
    def bounded(self, call_name: str, timeout: float) -> Iterator[None]:
        """The body is one call that promises to return within `timeout` seconds. Calls may nest."""
        outer, self._due = self._due, (call_name, self._clock() + timeout + _GRACE)
        try:
            yield
        finally:
            self._due = outer

    def check(self) -> None:
        """Call `end` if the call in progress is overdue."""
        due = self._due  # read once: the other thread replaces the whole pair
        if due is not None and self._clock() > due[1]:
            self._end(due[0])

    def start(self) -> None:
        """Check every second, in a daemon thread."""

        def watch() -> None:
            while not self._over.wait(_EVERY):
                self.check()

        threading.Thread(target=watch, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """End the thread that checks."""
        self._over.set()
