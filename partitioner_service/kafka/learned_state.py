"""What the partitioner has learned, kept across restarts.

Results do not depend on it, only balance and cost do.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from evenflow import partitioners
from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.keys import hash_keys
from evenflow.partitioners.fitting import fitted
from evenflow.settings import Settings
from partitioner_service.kafka.side_records import SideRecords

log = logging.getLogger(__name__)

_MOST_SLIDES = 1_024
"""Slides of a window that a partitioner counts."""


class LearnedState:
    """Saves a snapshot of the partitioner every `snapshot_interval`, and restores the last one if it fits.

    since: when this process began to learn, None for a partitioner that learns nothing. kept_at: when this
    process last saved a state, or took one over, None before that. Both are in s since 1970.
    """

    def __init__(
        self,
        settings: Settings,
        side: SideRecords,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._wall = wall
        self.since: float | None = None
        self.kept_at: float | None = None
        self._settings = settings
        self._options = settings.partitioner
        self._side = side
        self._clock = clock
        self._saved_at = clock()
        self._saved_tuples = 0

    def restored(self) -> tuple[partitioners.Partitioner, int]:
        """The partitioner of the last run and the epoch of its plan.

        An instance that has not run before takes over what another one has learned on the same stream. If
        there is nothing, it gets a fresh partitioner and epoch 0. If the last run followed a plan, the number
        of workers is that of the plan. Otherwise it is that of the settings.
        """
        options = self._options
        fresh = new_partitioner(self._settings)
        self.since = self._wall() if fresh.learns else None
        saved = self._side.snapshot()
        if saved is None:
            return fresh, 0
        epoch = saved.epoch
        try:
            restored = partitioners.restore(saved.snapshot, like=fresh, any_source=not saved.own)
        except IncompatibleStateError as error:
            log.warning("learned state is not usable, starting without (quality only): %s", error)
            return fresh, 0
        if options.speeds == "settings" and restored.speeds is not None:
            restored.set_speeds(None)
        if epoch == 0:
            restored.rescale(workers=options.workers)
        self._saved_tuples = restored.observe().tuples
        self.kept_at = self._wall()
        whose = "an earlier run" if saved.own else "another instance"
        log.info("continuing with the learned state of %s", whose)
        return restored, epoch

    def save(self, partitioner: partitioners.Partitioner, epoch: int) -> None:
        """Save the state of this partitioner now, unless it has seen no tuple since the last time.

        epoch: of its plan.
        """
        self._saved_at = self._clock()
        tuples = partitioner.observe().tuples
        if tuples != self._saved_tuples:
            self._saved_tuples = tuples
            self._side.save_snapshot(partitioner.snapshot(), epoch, on_saved=self._note_saved)

    def _note_saved(self) -> None:
        self.kept_at = self._wall()

    def save_when_due(self, partitioner: partitioners.Partitioner, epoch: int) -> None:
        """As `save`, if the last time is a `snapshot_interval` ago."""
        if self._clock() - self._saved_at >= self._options.snapshot_interval / 1000:
            self.save(partitioner, epoch)


def check_partitioner(settings: Settings) -> None:
    """Raise ConfigError for a partitioner that cannot be used. Asks no broker."""
    new_partitioner(settings)  # only for its errors


def new_partitioner(settings: Settings) -> partitioners.Partitioner:
    """The configured partitioner in its first state.

    Raises ConfigError for an unknown name or option, for a partitioner that does not weigh tuples although
    the settings say what they cost, and for one that cannot be told speeds although they are to be measured.
    """
    options = settings.partitioner
    if partitioners.is_plain_python(options.name):
        log.info("%s is plain Python, which takes a microsecond or more for each tuple", options.name)
    partitioner = partitioners.create(
        options.name,
        workers=options.workers,
        seed=options.seed,
        source=source_number(options.instance, options.instances),
        sources=options.instances,
        **fitted_options(settings),
    )
    if options.cost is not None and not partitioner.takes_costs:
        why = "decides on whole batches and" if partitioner.micro_batch else "counts tuples and"
        raise ConfigError(
            f"partitioner.cost = {options.cost!r} is set, but partitioner"
            f" {options.name} {why} does not weigh them",
            hint=(
                "leave partitioner.cost out, or take a partitioner that weighs:"
                f" {', '.join(partitioners.weighing())}"
            ),
        )
    if options.speeds == "measured" and not partitioner.takes_speeds:
        raise ConfigError(
            "partitioner.speeds is 'measured', but partitioner"
            f" {options.name} cannot be told how fast workers are",
            hint="leave partitioner.speeds out, or take partitioner 'evenflow'",
        )
    return partitioner


def source_number(instance: str, instances: int) -> int:
    """Which of the sources this instance is, 0 <= number < instances.

    It is the number that the instance's name ends in (0, partitioner-3), modulo `instances`. A name without a
    number is hashed. Two sources with the same number still give right results. They only draw the same
    random numbers, if their partitioner draws any.
    """
    digits = re.search(r"[0-9]+$", instance)
    if digits:
        return int(digits[0]) % instances
    return int(hash_keys(pa.array([instance]))[0] % instances)


def fitted_options(settings: Settings) -> dict[str, Any]:
    """Options of the configured partitioner, with the query's window and the batch interval
    where it knows of these.

    A partitioner has a counter per worker and slide. So if a window has very many slides, the partitioner
    sees several of them as one.
    """
    options, query = settings.partitioner, settings.query
    panes = query.window // query.slide_ms
    # The smallest number of slides to take together that divides the window and leaves at most
    # `_MOST_SLIDES`.
    together = next(k for k in range(-(-panes // _MOST_SLIDES), panes + 1) if panes % k == 0)
    slide = query.slide_ms * together
    batch_ms = query.slide_ms if options.batch_interval is None else options.batch_interval
    return fitted(options.name, options.options, window_ms=query.window, slide_ms=slide, batch_ms=batch_ms)
