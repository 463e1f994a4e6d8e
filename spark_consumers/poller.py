"""A question to a server that is asked every few seconds, while nobody waits for its answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

_T = TypeVar("_T")


def ask_in_thread(ask: Callable[[], _T]) -> Future[_T]:
    """The answer of `ask`, which a thread of its own waits for.
    A server that is away must not hold up the application.
    """
    answer: Future[_T] = Future()

    def wait() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    # A daemon: an answer that never comes must not keep the process.
    threading.Thread(target=wait, name="evenflow-ask", daemon=True).start()
    return answer


class Question(Generic[_T]):
    """Asked again `every` so many seconds after its last answer was taken, and first after `first`
    seconds. clock: s.
    """

    def __init__(
        self,
        ask: Callable[[], Future[_T]],
        *,
        every: float,
        first: float,
        clock: Callable[[], float],
    ) -> None:
        self._ask = ask
        self._every = every
        self._clock = clock
        self._due = clock() + first
        self._pending: Future[_T] | None = None

    def answer(self) -> Future[_T] | None:
        """An answer that has come and was not taken yet. Without one it asks, if it is time.
        This never waits.
        """
        pending = self._pending
        if pending is None:
            if self._clock() >= self._due:
                self._pending = self._ask()
            return None
        if not pending.done():
            return None
        self._pending, self._due = None, self._clock() + self._every
        return pending
