"""What a driver looks after beside its micro-batches: whether the stage is still its own, and what older
runs have left.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from evenflow.errors import ServiceError
from spark_consumers import poller
from spark_consumers.checkpoints.epoch import StageEpoch
from spark_consumers.checkpoints.folders import Folder
from spark_consumers.checkpoints.notes import Checkpoint
from spark_consumers.checkpoints.run_folder import remove_older
from spark_consumers.poller import Question

_LOG = logging.getLogger("evenflow.spark")
_EVERY = 10.0  # s


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
        self._begun_with = checkpoint.committed_batch()
        self._removed = False
        # `ask_in_thread` by its name in the module: the simulator of faults puts its own there.
        self._question = Question(
            lambda: poller.ask_in_thread(epoch.check), every=_EVERY, first=_EVERY, clock=clock
        )

    def look(self) -> None:
        """Look at the answer if it has come, or ask if it is time. This never waits.

        Raises FencedError if another driver has taken over.
        """
        answer = self._question.answer()
        if answer is None:
            return
        try:
            answer.result()
        except ServiceError as error:
            # A broker that is away is the business of the next micro-batch, which cannot do without.
            _LOG.debug("the epoch cannot be checked now: %s", error)
            return
        if not self._removed and self._checkpoint.committed_batch() > self._begun_with:
            remove_older(self._folder, self._epoch.number)
            self._removed = True
