"""Questions about keys: other threads ask, and the data plane's thread answers between two blocks.

The partitioner belongs to the data plane's thread. So nobody else reads it, and a question waits for its
turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, Full, Queue
from typing import Any

from evenflow.errors import ServiceError

log = logging.getLogger(__name__)

MOST = 16
"""Questions that may wait at a time."""


class Questions:
    """The questions that wait. Each is the bytes of a key, and its answer can be held by JSON."""

    def __init__(self, *, most: int = MOST) -> None:
        self._waiting: Queue[tuple[bytes, Future[dict[str, Any]]]] = Queue(most)

    def ask(self, key: bytes) -> Future[dict[str, Any]]:
        """Put a question, from any thread. Who waits no longer cancels the answer.

        Raises ServiceError if too many questions wait.
        """
        answer: Future[dict[str, Any]] = Future()
        try:
            self._waiting.put_nowait((key, answer))
        except Full:
            raise ServiceError(
                f"{self._waiting.maxsize} questions about keys wait for their answers already",
                hint="ask again a little later",
            ) from None
        return answer

    def answer_one(self, explain: Callable[[bytes], dict[str, Any]]) -> None:
        """Answer the oldest question that somebody still waits for. Called in the data plane's thread.

        One at a time, so that between two blocks no more than one answer is worked out. Whatever `explain`
        raises goes to who has asked: a question never stops the data plane.
        """
        while True:
            try:
                key, answer = self._waiting.get_nowait()
            except Empty:
                return
            if answer.set_running_or_notify_cancel():
                break
        try:
            answer.set_result(explain(key))
        except Exception as error:
            log.warning("a question about a key could not be answered: %s", type(error).__name__)
            answer.set_exception(error)
