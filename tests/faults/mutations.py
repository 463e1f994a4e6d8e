"""The product with one mend taken out. `test_runs.py` says which of them the simulator notices, and from which seeds on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenflow.aggregates import collect
from evenflow.twostep import reducer, sequences, state
from partitioner_service import (
    aborts,
    added,
    ahead,
    claim,
    leaps,
    loop,
    parse,
    route,
    session,
    sink,
    source,
    unfetchable,
)
from spark_consumers import epoch, stage
from spark_consumers import reducer as pieces
from spark_consumers.folders import Folder
from spark_consumers.runs import COMPLETE, run_name
from tests.faults.drawing import drawn
from tests.faults.run import run
from tests.faults.schedule import Schedule
from topics import clients
from topics.records import UNFETCHABLE
from workbench.verify import tuples

Change = tuple[Any, str, Callable[[Any], Any]]
"""(where a name stands, the name, what makes the new value of the old one)."""


@contextmanager
def without(mend: str | None) -> Iterator[None]:
    """Take this mend out. None: the product as it is."""
    changes = () if mend is None else MENDS[mend].changes
    before = [(where, name, getattr(where, name)) for where, name, _ in changes]
    for where, name, made in changes:
        setattr(where, name, made(getattr(where, name)))
    try:
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)


def _instead(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


def _as_if_not_begun(refuse: Any) -> Any:
    return lambda self, topics, known, *, begun: refuse(self, topics, known, begun=False)


def _first_check_only(check: Any) -> Any:
    """The epoch is taken with the first check, and never asked for again."""

    def checked(self: Any) -> None:
        if not getattr(self, "_taken", False):
            check(self)
            self._taken = True

    return checked


def _one_folder(_: Any) -> Any:
    """All drivers of a stage work in one folder."""

    def made(folder: Folder, number: int, check: Callable[[], None]) -> str:
        name = run_name(1)
        stage.Folder(folder.spark, f"{folder.location}/{name}").write(COMPLETE, "epoch 1")
        return name

    return made


def _offsets_alone(_: Any) -> Any:
    """After an abort the positions go back, and what is known of the partitions does not."""

    def note(self: Any, error: Exception) -> None:
        source_of, committed = self._source, self._source.committed
        source_of.rewind({p: replace(s, offset=committed[p].offset) for p, s in source_of.states.items()})

    return note


def _remembering(give_up: Any) -> Any:
    def remembering(self: Any, consumer: Any, settle: Any) -> None:
        _REMEMBERED[id(consumer)] = dict(self.states)
        give_up(self, consumer, settle)

    return remembering


def _remembered(load: Any) -> Any:
    def loaded(consumer: Any, *words: Any) -> Any:
        known = _REMEMBERED.get(id(consumer), {})
        return {partition: known.get(partition, found) for partition, found in load(consumer, *words).items()}

    return loaded


_REMEMBERED: dict[int, Any] = {}


def _forgetting(save: Any) -> Any:
    def saved(self: Any) -> None:
        self.merged[:] = -1
        save(self)

    return saved


def _by_the_fastest(close: Any) -> Any:
    def closed(plan: Any, bucket: Any, emitted: Any) -> Iterator[Any]:
        marks = bucket.marks
        bucket.marks = np.full_like(marks, marks.max())
        yield from close(plan, bucket, emitted)
        bucket.marks = marks

    return closed


def _as_it_is(_: Any) -> Any:
    return lambda name, sealed: sealed[4:]


def _own_lock(_: Any) -> Any:
    """Each instance locks for itself alone."""

    def lock(settings: Any, watchdog: Any) -> Any:
        name = f"{settings.query.name}.claim.{settings.partitioner.instance}"
        producer = clients.producer(settings.kafka, **{"transactional.id": name})
        producer.init_transactions(30.0)
        return producer

    return lock


def _stint_alone(_: Any) -> Any:
    """After an abort the stint is begun again, and numbers go on."""

    def aborted(self: Any) -> None:
        if self.stint is session.Stint.WRITTEN:
            self.stint = session.Stint.DUE

    return aborted


class _Everything(dict[int, Any]):
    """Holds whatever one asks for."""

    def __contains__(self, _: object) -> bool:
        return True


def _by_anybody(written: Any) -> Any:
    """The owner of any partition takes added ones in, as if it owned the slowest one."""

    def by_anybody(self: Any) -> Any:
        own = self._source.states
        self._source.states = _Everything(own)
        try:
            return written(self) if own else {}
        finally:
            self._source.states = own

    return by_anybody


def _without_a_commit(step: Any) -> Any:
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


def _higher(first_states: Any) -> Any:
    def higher(*words: Any) -> Any:
        states = first_states(*words)
        return {
            p: s if s.idle_mark is None else replace(s, idle_mark=s.idle_mark + 4_000)
            for p, s in states.items()
        }

    return higher


def _without_bound(which: str) -> Callable[[Any], Any]:
    return lambda note: lambda *words, **bounds: note(*words, **bounds | {which: 2**62})


def _fastest(query: Any, everyone: Any) -> int:
    going_on = [p for p, state in everyone.items() if not state.ended]
    return max(going_on, key=lambda p: (everyone[p].mark(query), p))


@dataclass(frozen=True)
class Mend:
    """A mend of the product.

    focus: where to look for the hole that is there without it. changes: how it is taken out. seen_by: what a violation
    says that shows the hole, and not just an accident on the way to it.
    """

    focus: str
    changes: tuple[Change, ...]
    seen_by: str = ""


MENDS: dict[str, Mend] = {
    "offsets that are gone are a loss": Mend("expiry", ((claim._Claim, "_refuse_lost", _as_if_not_begun),)),
    "the epoch of a driver is checked": Mend(
        "two drivers", ((epoch.StageEpoch, "check", _first_check_only),)
    ),
    "no two runs share a folder": Mend(
        "two drivers", ((epoch.StageEpoch, "check", _first_check_only), (stage, "make_run", _one_folder))
    ),
    "frames have numbers without gaps": Mend(
        "ends of sessions",
        (
            (sequences, "check_next", _instead(_nothing)),
            (sequences.Sessions, "settled", _instead(lambda self: True)),
        ),
    ),
    "the end of a session is told": Mend(
        "ends of sessions", ((sequences.Sessions, "settled", _instead(lambda self: True)),)
    ),
    "an idle partition follows no leap": Mend(
        "leaps", ((leaps.Leaps, "followed_by", _instead(lambda *_: True)),)
    ),
    "tuples ahead of the clock are rejected": Mend(
        "future", ((ahead.LiveClock, "ahead", _instead(_nothing)),)
    ),
    "states go back after an abort": Mend("aborts", ((aborts.Aborts, "note", _offsets_alone),)),
    "a transaction never spans a rebalance": Mend("rebalances", ((loop.Loop, "settle", _instead(_nothing)),)),
    "states come from what is committed": Mend(
        "rebalances",
        ((source.Source, "_give_up", _remembering), (source, "load_states", _remembered)),
    ),
    "numbers of an aborted transaction are used again": Mend(
        "aborts", ((session.Session, "aborted", _stint_alone),)
    ),
    "merged offsets are remembered": Mend("repeats", ((state.Bucket, "save", _forgetting),)),
    "a pane closes after all lanes": Mend("rebalances", ((reducer, "_close", _by_the_fastest),)),
    "marks are told again after an abort": Mend(
        "aborts", ((route.Router, "forget_what_was_told", _instead(_nothing)),)
    ),
    "the beginning is locked": Mend("the beginning", ((claim, "lock", _own_lock),)),
    "pieces of the state have checksums": Mend(
        "damage", ((pieces, "_opened", _as_it_is),), seen_by="window ("
    ),
    "added partitions are looked for": Mend(
        "growth", ((added.Added, "_due", _instead(property(lambda self: False))),)
    ),
    "only the owner of the slowest partition takes others in": Mend(
        "growth", ((added.Added, "_written", _by_anybody),)
    ),
    "what is open is committed before the look": Mend("growth", ((added.Added, "step", _without_a_commit),)),
    "frames tell that partitions were taken in": Mend(
        "growth", ((route.Router, "take_in", _instead(lambda self, states, *, inputs: [])),)
    ),
    "added partitions begin at a mark that no pane has passed": Mend(
        "growth", ((added, "first_states", _higher),)
    ),
    "the mark of the slowest partition counts": Mend("growth", ((added, "slowest_of", _instead(_fastest)),)),
    "keys have a bound": Mend("bounds", ((parse, "note_large", _without_bound("most_key")),)),
    "values have a bound": Mend("bounds", ((parse, "note_large", _without_bound("most_values")),)),
    "lists have a bound": Mend(
        "bounds",
        ((collect, "_too_large", _instead(lambda lists, call: np.zeros(len(lists), bool))),),
        seen_by="window (",
    ),
    "a batch that cannot be fetched stops its partition": Mend(
        "unfetchable",
        (
            (
                unfetchable.UnfetchableBatches,
                "take",
                _instead(lambda self, message, error: error.code() in UNFETCHABLE),
            ),
        ),
    ),
    "what is skipped is rejected": Mend(
        "unfetchable", ((sink.Sink, "write_skipped", _instead(lambda self, order: self.begin())),)
    ),
    "verify compares the tuples of each row": Mend(
        "verify",
        (
            (sequences, "check_next", _instead(_nothing)),
            (sequences.Sessions, "settled", _instead(lambda self: True)),
            (tuples, "_of_rows", _instead(_nothing)),
        ),
        seen_by="verify is green",
    ),
    "the record of the beginning grows": Mend(
        "growth", ((sink.Sink, "write_beginning", _instead(lambda self, beginning: self.begin())),)
    ),
}
"""By what is guaranteed."""


def shows(mend: str, schedule: Schedule) -> bool:
    """Whether a run of this schedule shows that a mend is missing, which must have been taken out."""
    return any(MENDS[mend].seen_by in what for what in run(schedule).violations)


def table(seeds: int) -> Iterator[str]:
    """The lines of a table, made by running this many seeds of its focus without each mend."""
    yield "| mend taken out | focus | first seed of the focus | seeds that show it |"
    yield "|---|---|---|---|"
    for name, mend in MENDS.items():
        with without(name):
            found = [seed for seed in range(seeds) if shows(name, drawn(seed, focus=mend.focus))]
        first = str(found[0]) if found else "-"
        yield f"| {name} | {mend.focus} | {first} | {len(found)} of {seeds} |"
