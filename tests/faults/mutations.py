"""The product with one mend taken out. `test_runs.py` says which of them the simulator notices, and from
which seeds on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from evenflow import progress
from evenflow.aggregates.kinds import collect
from evenflow.twostep import lanes, sequences
from evenflow.twostep.reducing import merging, reducer, state, updates
from partitioner_service.begin import added_partitions as added
from partitioner_service.begin import claim
from partitioner_service.kafka import committed_state as committed
from partitioner_service.kafka import idle_and_ahead as pace
from partitioner_service.kafka import leaps, sink, source, unfetchable
from partitioner_service.plane import aborts, loop
from partitioner_service.reading import parse
from partitioner_service.routing import ahead, batches, session
from partitioner_service.routing import router as route
from spark_consumers import reducer as pieces
from spark_consumers import stage
from spark_consumers.checkpoints import epoch
from tests.faults.run import run
from tests.faults.schedules.drawing import drawn
from tests.faults.schedules.schedule import Schedule
from tests.faults.taken_out import (
    as_if_not_begun,
    as_it_is,
    by_anybody,
    by_the_fastest,
    by_tuples_alone,
    fastest,
    first_check_only,
    forgetting,
    higher,
    instead,
    never_back,
    nothing,
    offsets_alone,
    one_folder,
    own_lock,
    remembered,
    remembering,
    stint_alone,
    unless_skipped,
    without_a_commit,
    without_bound,
    without_floor,
)
from topics import transactional, watch
from topics.records import UNFETCHABLE

Change = tuple[Any, str, Callable[[Any], Any]]
"""(where a name stands, the name, what makes the new value of the old one). Where: an object, or a module
by name.
"""


@contextmanager
def without(mend: str | None) -> Iterator[None]:
    """Take this mend out. None: the product as it is."""
    changes = [
        (import_module(where) if isinstance(where, str) else where, name, made)
        for where, name, made in (() if mend is None else MENDS[mend].changes)
    ]
    before = [(where, name, getattr(where, name)) for where, name, _ in changes]
    for where, name, made in changes:
        setattr(where, name, made(getattr(where, name)))
    try:
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)


@dataclass(frozen=True)
class Mend:
    """A mend of the product.

    focus: where to look for the hole that is there without it. changes: how it is taken out. seen_by: what a
    violation says that shows the hole, and not just an accident on the way to it.
    """

    focus: str
    changes: tuple[Change, ...]
    seen_by: str = ""


MENDS: dict[str, Mend] = {
    "offsets that are gone are a loss": Mend("expiry", ((claim._Claim, "_refuse_lost", as_if_not_begun),)),
    "the epoch of a driver is checked": Mend("two drivers", ((epoch.StageEpoch, "check", first_check_only),)),
    "no two runs share a folder": Mend(
        "two drivers", ((epoch.StageEpoch, "check", first_check_only), (stage, "make_run", one_folder))
    ),
    "frames have numbers without gaps": Mend(
        "ends of sessions",
        (
            (sequences, "check_next", instead(nothing)),
            (sequences.Sessions, "settled", instead(lambda self: True)),
        ),
    ),
    "the end of a session is told": Mend(
        "ends of sessions", ((sequences.Sessions, "settled", instead(lambda self: True)),)
    ),
    "an idle partition follows no leap": Mend(
        "leaps", ((leaps.Leaps, "followed_by", instead(lambda *_: True)),)
    ),
    "tuples ahead of the clock are rejected": Mend("future", ((ahead.LiveClock, "ahead", instead(nothing)),)),
    "states go back after an abort": Mend("aborts", ((aborts.Aborts, "note", offsets_alone),)),
    "a transaction never spans a rebalance": Mend("rebalances", ((loop.Loop, "settle", instead(nothing)),)),
    "states come from what is committed": Mend(
        "rebalances",
        ((source.Source, "_give_up", remembering), (source, "load_states", remembered)),
    ),
    "numbers of an aborted transaction are used again": Mend(
        "aborts", ((session.Session, "aborted", stint_alone),)
    ),
    "merged offsets are remembered": Mend("repeats", ((state.Bucket, "save", forgetting),)),
    "a pane closes after all lanes": Mend("rebalances", ((reducer, "_close", by_the_fastest),)),
    "a client is not used again after an abort": Mend(
        "aborts", ((transactional.Transactional, "renew", instead(lambda self: False)),)
    ),
    "marks are told again after an abort": Mend(
        "aborts", ((route.Router, "forget_what_was_told", instead(nothing)),)
    ),
    "the beginning is locked": Mend("the beginning", ((claim, "lock", own_lock),)),
    "pieces of the state have checksums": Mend(
        "damage", ((pieces, "_opened", as_it_is),), seen_by="window ("
    ),
    "added partitions are looked for": Mend(
        "growth", ((added.AddedPartitions, "_look_due", instead(property(lambda self: False))),)
    ),
    "only the owner of the slowest partition takes others in": Mend(
        "growth", ((added.AddedPartitions, "_written", by_anybody),)
    ),
    "what is open is committed before the look": Mend(
        "growth", ((added.AddedPartitions, "step", without_a_commit),)
    ),
    "frames tell that partitions were taken in": Mend(
        "growth", ((route.Router, "take_in", instead(lambda self, states, *, inputs: [])),)
    ),
    "added partitions begin at a mark that no pane has passed": Mend(
        "growth", ((added, "first_states", higher),)
    ),
    "the mark of the slowest partition counts": Mend("growth", ((added, "slowest_of", instead(fastest)),)),
    "keys have a bound": Mend("bounds", ((parse, "note_large", without_bound("most_key")),)),
    "values have a bound": Mend("bounds", ((parse, "note_large", without_bound("most_values")),)),
    "lists have a bound": Mend(
        "bounds",
        ((collect, "_too_large", instead(lambda lists, call: np.zeros(len(lists), bool))),),
        seen_by="window (",
    ),
    "a batch that cannot be fetched stops its partition": Mend(
        "unfetchable",
        (
            (
                unfetchable.UnfetchableBatches,
                "take",
                instead(lambda self, message, error: error.code() in UNFETCHABLE),
            ),
        ),
    ),
    "what is skipped is rejected": Mend(
        "unfetchable", ((sink.Sink, "write_skipped", instead(lambda self, order: self.begin())),)
    ),
    "verify compares the tuples of each row": Mend(
        "verify",
        (
            (sequences, "check_next", instead(nothing)),
            (sequences.Sessions, "settled", instead(lambda self: True)),
            ("workbench.verify.windows.tuples", "_of_rows", instead(nothing)),
        ),
        seen_by="verify is green",
    ),
    "verify refuses an input that ends too early": Mend(
        "truncated input", (("workbench.verify.shell", "_refuse_truncated", instead(nothing)),)
    ),
    "a topic that is made again is noticed": Mend(
        "made again",
        (
            (watch.TopicWatch, "check", instead(nothing)),
            (committed, "check_continues", instead(nothing)),
            (source, "check_continues", instead(nothing)),
        ),
    ),
    "the record of the beginning grows": Mend(
        "growth", ((sink.Sink, "write_beginning", instead(lambda self, beginning: self.begin())),)
    ),
    "only what is released is committed and told": Mend(
        "micro-batches", ((batches.Batches, "released", instead(lambda self, states: dict(states))),)
    ),
    "an open batch is dropped with its partitions": Mend(
        "micro-batches", ((batches.Batches, "drop", instead(nothing)),)
    ),
    "nothing is held when partitions are taken in": Mend(
        "micro-batches", ((added.AddedPartitions, "due", instead(False)),)
    ),
    "a batch is cut where others wait for it": Mend(
        "micro-batches", ((pace.Pace, "held_back", instead(False)),)
    ),
    "nothing is held when offsets are skipped": Mend(
        "micro-batches", ((batches.Batches, "empty", unless_skipped),)
    ),
    "a mark does not fall when out_of_orderness grows": Mend(
        "limits", ((progress.PartitionState, "_with_disorder_of", without_floor),)
    ),
    "a limit holds from the offset that is committed with it": Mend(
        "limits",
        ((progress.PartitionState, "out_of_orderness", instead(lambda self, query: query.out_of_orderness)),),
    ),
    "a max_jump that changes is committed": Mend(
        "limits", ((progress.PartitionState, "max_jump", instead(lambda self, query: query.max_jump)),)
    ),
    "rows that later tuples change come out again": Mend(
        "updates", ((updates.Updates, "note", instead(nothing)),)
    ),
    "input that is routed twice is noticed": Mend(
        "offsets that fall",
        ((lanes.RoutedLanes, "_read", never_back), (merging, "_watch", instead(nothing))),
        seen_by="window (",
    ),
    "a takeover tells every worker where it begins": Mend(
        "offsets that fall", ((lanes.RoutedLanes, "_read", by_tuples_alone),), seen_by="window ("
    ),
    "an end compares what was read with what stands there": Mend(
        "partials", ((stage, "check_complete", instead(nothing)),), seen_by="window ("
    ),
}
"""By what is guaranteed."""


def shows(mend: str, schedule: Schedule) -> bool:
    """Whether a run of this schedule shows that a mend is missing, which must have been taken out."""
    return any(MENDS[mend].seen_by in what for what in run(schedule).violations)


def seeds_that_show(mend: str, seeds: int) -> tuple[int, ...]:
    """Which of the first seeds of its focus show that this mend is missing."""
    with without(mend):
        return tuple(seed for seed in range(seeds) if shows(mend, drawn(seed, focus=MENDS[mend].focus)))
