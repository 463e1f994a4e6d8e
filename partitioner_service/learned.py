"""Learned state of the partitioner across restarts: a matter of quality, never of correctness."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from evenflow import partitioners
from evenflow.errors import IncompatibleStateError
from evenflow.settings.model import PartitionerSettings
from partitioner_service.records import SideRecords

log = logging.getLogger(__name__)


class LearnedState:
    """Saves snapshots every `snapshot_interval`; gives back the last one when it fits the settings."""

    def __init__(
        self,
        options: PartitionerSettings,
        side: SideRecords,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._side = side
        self._clock = clock
        self._saved_at = clock()

    def restored(self) -> partitioners.Partitioner:
        """The partitioner of the last run, or a fresh one."""
        options = self._options
        fresh = partitioners.create(
            options.name, workers=options.workers, seed=options.seed, **options.options
        )
        saved = self._side.snapshot(self._fit())
        if saved is None:
            return fresh
        try:
            restored = partitioners.restore(saved)
        except IncompatibleStateError as error:
            log.warning("learned state is not usable, starting without (quality only): %s", error)
            return fresh
        restored.rescale(workers=options.workers)
        log.info("continuing with the learned state of an earlier run")
        return restored

    def save(self, partitioner: partitioners.Partitioner) -> None:
        """Save it now."""
        self._saved_at = self._clock()
        self._side.save_snapshot(partitioner.snapshot(), self._fit())

    def save_when_due(self, partitioner: partitioners.Partitioner) -> None:
        """Save it if the last time is a `snapshot_interval` ago."""
        if self._clock() - self._saved_at >= self._options.snapshot_interval / 1000:
            self.save(partitioner)

    def _fit(self) -> str:
        options = self._options
        return f"{options.name} {options.seed} {sorted(options.options.items())}"
