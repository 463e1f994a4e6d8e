"""Calls that may hang are made in a thread of their own, one after the other.

librdkafka may keep a transactional call for ever after a broker's crash, whatever its timeout. A thread that
is stuck in such a call can neither be interrupted nor be waited for. So the caller waits only so long.

The partitioner has another answer to the same fault, `partitioner_service/kafka/watchdog.py`, which ends the
process. A Spark driver must not end like that: it first stops its query, its executors and Java. The
partitioner in turn makes its calls on the thread that routes, because a transaction belongs to it and a
commit should wait for no other thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from evenflow.errors import ServiceError

GRACE = 15.0
"""Seconds that a call may take beyond its own timeout."""
_LOOK_SECONDS = 0.5
_T = TypeVar("_T")
_Entry = tuple[Future[Any], Callable[[], Any], threading.Event]


class BoundedCalls:
    """A thread that makes calls in the order in which they are handed over. name: of the thread."""

    def __init__(self, name: str) -> None:
        self._waiting: queue.Queue[_Entry | None] = queue.Queue()
        self._stuck: str | None = None
        # A daemon: a call that hangs must not keep the process.
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def call(self, function: Callable[[], _T], *, timeout: float, doing: str) -> _T:
        """The result of `function`, or the exception that it raised.

        timeout: seconds within which the call promises to return, once those before it have. doing: in words,
        for the error. Raises ServiceError if the call, or one before it, has not returned `GRACE` s after its
        timeout.
        """
        if self._stuck is not None:
            raise _hangs(self._stuck)
        begun = threading.Event()
        future = self.begin(function, begun)
        # Whoever waits for the call before this one says if that hangs.
        while not begun.wait(_LOOK_SECONDS):
            if self._stuck is not None:
                raise _hangs(self._stuck)
        try:
            return future.result(timeout + GRACE)
        except TimeoutError:
            if future.done():
                return future.result()  # it has ended just now, or has itself raised the TimeoutError
            self._stuck = doing
            raise _hangs(doing) from None

    def begin(self, function: Callable[[], _T], begun: threading.Event | None = None) -> Future[_T]:
        """Hand a call over without waiting for it. begun: is set when its turn has come."""
        future: Future[_T] = Future()
        self._waiting.put((future, function, begun or threading.Event()))
        return future

    def close(self) -> None:
        """End the thread after the calls that were handed over."""
        self._waiting.put(None)

    def _work(self) -> None:
        while (entry := self._waiting.get()) is not None:
            future, function, begun = entry
            begun.set()
            if self._stuck is not None:  # nobody waits for it any more
                future.set_exception(_hangs(self._stuck))
                continue
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)


def _hangs(doing: str) -> ServiceError:
    return ServiceError(
        f"{doing} has not returned long after its timeout: the client of Kafka hangs",
        hint=(
            "start the service again: its open transaction is visible whole or not at all,"
            " and it goes by what is there"
        ),
    )
