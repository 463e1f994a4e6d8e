"""What stands in the place of a mend that is taken out. Each function makes it of what stands there in the
product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner_service.routing import session
from spark_consumers import stage
from spark_consumers.checkpoints.folders import Folder
from spark_consumers.checkpoints.runs import COMPLETE, run_name
from topics import clients


def instead(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


def as_if_not_begun(refuse: Any) -> Any:
    return lambda self, topics, known, *, begun: refuse(self, topics, known, begun=False)


def first_check_only(check: Any) -> Any:
    """The epoch is taken with the first check, and never asked for again."""

    def checked(self: Any) -> None:
        if not getattr(self, "_taken", False):
            check(self)
            self._taken = True

    return checked


def one_folder(_: Any) -> Any:
    """All drivers of a stage work in one folder."""

    def made(folder: Folder, number: int, check: Callable[[], None]) -> str:
        name = run_name(1)
        stage.Folder(folder.spark, f"{folder.location}/{name}").write(COMPLETE, "epoch 1")
        return name

    return made


def offsets_alone(_: Any) -> Any:
    """After an abort the positions go back, and what is known of the partitions does not."""

    def note(self: Any, error: Exception) -> None:
        source_of, committed = self._source, self._source.committed
        source_of.rewind({p: replace(s, offset=committed[p].offset) for p, s in source_of.states.items()})

    return note


def remembering(give_up: Any) -> Any:
    def remembering(self: Any, consumer: Any, settle: Any) -> None:
        _REMEMBERED[id(consumer)] = dict(self.states)
        give_up(self, consumer, settle)

    return remembering


def remembered(load: Any) -> Any:
    def loaded(consumer: Any, *words: Any) -> Any:
        known = _REMEMBERED.get(id(consumer), {})
        return {
            partition: known.get(partition, result) for partition, result in load(consumer, *words).items()
        }

    return loaded


_REMEMBERED: dict[int, Any] = {}


def forgetting(save: Any) -> Any:
    def saved(self: Any) -> None:
        self.merged[:] = -1
        save(self)

    return saved


def by_the_fastest(close: Any) -> Any:
    def closed(plan: Any, bucket: Any, emitted: Any, updates: Any) -> Iterator[Any]:
        marks = bucket.marks
        bucket.marks = np.full_like(marks, marks.max())
        yield from close(plan, bucket, emitted, updates)
        bucket.marks = marks

    return closed


def as_it_is(_: Any) -> Any:
    return lambda name, sealed: sealed[4:]


def own_lock(_: Any) -> Any:
    """Each instance locks for itself alone."""

    def lock(settings: Any, watchdog: Any) -> Any:
        name = f"{settings.query.name}.claim.{settings.partitioner.instance}"
        producer = clients.producer(settings.kafka, **{"transactional.id": name})
        producer.init_transactions(30.0)
        return producer

    return lock


def stint_alone(_: Any) -> Any:
    """After an abort the stint is begun again, and numbers go on."""

    def aborted(self: Any) -> None:
        if self.stint is session.Stint.WRITTEN:
            self.stint = session.Stint.DUE

    return aborted


class Everything(dict[int, Any]):
    """Holds whatever one asks for."""

    def __contains__(self, _: object) -> bool:
        return True


def by_anybody(written: Any) -> Any:
    """The owner of any partition takes added ones in, as if it owned the slowest one."""

    def by_anybody(self: Any) -> Any:
        own = self._source._states
        self._source._states = Everything(own)
        try:
            return written(self) if own else {}
        finally:
            self._source._states = own

    return by_anybody


def without_a_commit(step: Any) -> Any:
    """The transaction that is open when an instance looks goes on, and takes the partitions in."""

    def without_a_commit(self: Any, commit: Any) -> bool:
        looks, close = self._due, self._close

        def all_but_the_first(commit: Any) -> None:
            nonlocal looks
            if not looks:
                close(commit)
            looks = False

        self._close = all_but_the_first
        try:
            return step(self, commit)
        finally:
            del self._close

    return without_a_commit


def higher(first_states: Any) -> Any:
    def higher(*words: Any) -> Any:
        states = first_states(*words)
        return {
            p: s if s.idle_mark is None else replace(s, idle_mark=s.idle_mark + 4_000)
            for p, s in states.items()
        }

    return higher


def without_bound(which: str) -> Callable[[Any], Any]:
    return lambda note: lambda *words, **bounds: note(*words, **bounds | {which: 2**62})


def fastest(query: Any, everyone: Any) -> int:
    going_on = [p for p, state in everyone.items() if not state.ended]
    return max(going_on, key=lambda p: (everyone[p].mark(query), p))


def unless_skipped(empty: Any) -> Any:
    """What is held stays held when offsets are skipped."""

    def emptied(self: Any, states: Any, *, why: str) -> Iterator[Any]:
        return iter(()) if why == "skip" else empty(self, states, why=why)

    return emptied


def by_tuples_alone(read: Any) -> Any:
    """Where an input partition was read up to is known from tuples, and not from what workers are told."""

    def by_tuples_alone(self: Any, partitions: Any, first: Any, reached: Any) -> None:
        if first is not reached:
            read(self, partitions, first, reached)

    return by_tuples_alone


def never_back(read: Any) -> Any:
    """Lanes take in again what they have read."""

    def never_back(self: Any, partitions: Any, first: Any, reached: Any) -> None:
        self.reached[partitions] = np.minimum(self.reached[partitions], first)
        read(self, partitions, first, reached)

    return never_back


def without_floor(grow: Any) -> Any:
    """The mark follows the larger delay at once, even if it falls."""
    return lambda self, query: replace(grow(self, query), floor=None)
