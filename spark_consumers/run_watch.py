"""What a driver looks after beside its micro-batches: whether the stage is still its own, and what older runs have left."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from evenflow.errors import ServiceError
from spark_consumers.checkpoints import Checkpoint
from spark_consumers.epoch import StageEpoch
from spark_consumers.folders import Folder
from spark_consumers.run_folder import remove_older

_LOG = logging.getLogger("evenflow.spark")
_EVERY = 10.0  # s
_T = TypeVar("_T")


class RunWatch:
    """Looks every few seconds. folder: of the stage. checkpoint: of this run. clock: s."""

    def __init__(
        self,
        folder: Folder,
        epoch: StageEpoch,
        checkpoint: Checkpoint,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._epoch = epoch
        self._checkpoint = checkpoint
        self._clock = clock
        self._due = clock() + _EVERY
        self._begun_with = checkpoint.committed_batch()
        self._removed = False
        self._asked: Future[None] | None = None

    def look(self) -> None:
        """Look at the answer if it has come, or ask if it is time. This never waits.

        Raises FencedError if another driver has taken over.
        """
        if self._asked is None:
            if self._clock() >= self._due:
                self._asked = beside(self._epoch.check)
            return
        if not self._asked.done():
            return
        asked, self._asked, self._due = self._asked, None, self._clock() + _EVERY
        try:
            asked.result()
        except ServiceError as error:
            # A broker that is away is the business of the next micro-batch, which cannot do without.
            _LOG.debug("the epoch cannot be checked now: %s", error)
            return
        if not self._removed and self._checkpoint.committed_batch() > self._begun_with:
            remove_older(self._folder, self._epoch.number)
            self._removed = True


def beside(ask: Callable[[], _T]) -> Future[_T]:
    """The answer of `ask`, which a thread of its own waits for. A server that is away must not hold up the application."""
    answer: Future[_T] = Future()

    def wait() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    # A daemon: an answer that never comes must not keep the process.
    threading.Thread(target=wait, name="evenflow-ask", daemon=True).start()
    return answer
