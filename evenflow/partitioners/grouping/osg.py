"""OSG (online shuffle grouping): each tuple goes to the worker with the least work,
where work is learned per key.

Idea: what a tuple costs is known only when its worker is done with it. Each worker counts its tuples in a
sketch of rows x columns cells. A tuple of key k adds 1 to F and its cost to W in one cell of each row, which
h_1(k), h_2(k), ... name. Every `check` tuples the worker compares the mean cost W/F of each cell with that of
the last look. If the differences sum up to at most `mu` of the means of that look, the sketch is stable. The
scheduler then takes it over in place of the worker's former one, and the worker begins an empty one. From the
sketch of a worker the scheduler estimates what a tuple costs there: W/F of the key's cell with the least F
(the first of them on a tie). It sums the estimates of the tuples that it sends to each worker, and the next
tuple goes to the worker with the least sum (the first of them on a tie).

Estimates are corrected by what workers measured. The scheduler is in one of four states:

* *round robin*, until it has a sketch of every worker. Tuples go to the workers in turn, and nothing is
  estimated;
* *send all*: the next n tuples go to the workers in turn. With each the scheduler asks the worker what its
  tuples have cost up to that one, and remembers its own sum at that moment;
* *wait all*: the least sum decides, until all workers have answered. Then each sum is corrected by the
  difference of the two numbers;
* *run*: the least sum decides. After `check` x n tuples all workers are asked again.

A sketch that is taken over leads to *send all* from each state but the first. Answers to an earlier round of
questions are then void.

Costs: without costs each tuple costs 1, so every estimate is 1. The rule comes to round robin, and to the
least loaded of all workers once it knows that. With costs a tuple's own cost never decides where it goes. It
counts when the tuple has been measured.

Parameters: `check` tuples of a worker between two looks at its sketch (1,024). `mu` of the test for stability
(0.05, as in the authors' code). `columns` (55) and `rows` (4) of a sketch: its eps is e/columns, here 0.05,
and its delta is 2^-rows, here below 0.1. `delay`: number of tuples between the routing of a tuple and the
moment when its cost is known (n, which is one tuple waiting at each worker). Sketches and answers are of
tuples that were measured. *Round robin* lasts until the last worker's sketch is stable. That takes 2n x
`check` tuples at least. Rare keys in cells of their own make it longer. Measured: with 512 workers it was not
over after 4,000,000 tuples by Zipf's law, and with a `check` of 256 it was. With 1,024 columns instead of 55
sketches are stable less often, and 128 workers are then less level. If a sketch is taken over more often than
every n + `delay` tuples, the workers never answer in time, and no sum is corrected.

What is modelled: one process is the scheduler and all of its workers. It keeps a tuple and its cost until the
worker has measured it, and does the worker's part then. Costs stand for execution times, and the number of
tuples stands for the clock. A worker measures its tuples in the order in which all of them were sent, however
long its queue is. Each of several sources learns from its own tuples alone.
Differences from the authors' code: a key whose cell of least F is empty is estimated at the mean cost of the
sketch. (There its tuple is free, so one worker gets such tuples one after the other until the next
correction.) An answer that comes during *send all* counts. (There it is dropped, and that round corrects
nothing.) *Send all* takes the workers from where the turn stands, so that rounds that are broken off do not
load the first workers most. The test for stability covers all cells, and there the first columns of each row.
An estimate is not rounded to whole units. The answer is the sum of what the worker's tuples have cost, and
there the time that has passed, with the worker's idle time in it. Not published is what a rescale does: the
sketches of the workers that stay are kept, tuples that were not measured yet are forgotten, and a new worker
takes the scheduler back to *round robin*.

Cost per tuple: O(rows) for the estimate and for the worker's sketch, O(n) for the least sum, and the look at
a sketch every `check` tuples. State: 40 bytes for each cell of each worker (8,800 for each worker by
default), 56 for each worker, and 32 for each tuple that is not measured yet.
Paper: Rivetti, Anceaume, Busnel, Querzoni and Sericola, "Online Scheduling for Shuffle Grouping in
Distributed Stream Processing Systems", Middleware 2016, as far as its abstract and the authors' code for
Storm show the rule. "Proactive Online Scheduling for Shuffle Grouping" (POSG, 2015) is their report of the
same idea.

The workers take turns at first:

    >>> create("osg", workers=4).assign(keys, times).tolist()
    [0, 1, 2, 3, 0, 1]

Turns give worker 0 all the cheap tuples here. When both workers have answered, it gets the tuples that it
lacks:

    >>> p = create("osg", workers=2, check=3, mu=1.0, delay=0)
    >>> costs = np.array([9, 9, 1, 9, 1, 9])
    >>> [p.assign(keys, times, costs).tolist() for _ in range(4)][2:]
    [[0, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]]
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from pydantic import Field

from evenflow.errors import ConfigError
from evenflow.keys import candidate_kernel, salts
from evenflow.numeric.arrays import Float64s, Int64s, Rows, State, UInt64s, Whole, record, records
from evenflow.numeric.kernels import inlined, kernel
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation
from evenflow.partitioners.papers import ONLINE_SHUFFLE
from evenflow.text.options import Options

_MOST_CELLS = 1 << 26
ROUND_ROBIN, SEND_ALL, WAIT_ALL, RUN = range(4)
"""The states of the scheduler."""
META = np.dtype(
    [
        ("state", np.int64),  # of the scheduler
        ("turn", np.int64),  # the worker whose turn it is
        ("round", np.int64),  # how often all workers were asked
        ("asked", np.int64),  # workers that were asked in this round
        ("answered", np.int64),  # workers that answered in this round
        ("ran", np.int64),  # tuples since the state became RUN
        ("known", np.int64),  # workers whose sketch was taken over
        ("at", np.int64),  # the entry of the tuples under way that is written next
    ]
)
"""The scheduler."""
WORKER = np.dtype(
    [
        ("spent", np.int64),  # costs of the worker's measured tuples
        ("seen", np.int64),  # how many of them its present sketch has
        ("known", np.int64),  # 1 if a sketch was taken over
        ("usual", np.float64),  # the mean cost of the tuples of that sketch
        ("said", np.float64),  # the scheduler's sum when it last asked
        ("correction", np.float64),  # the answer, as what the sum must grow by
    ]
)
"""What the scheduler and a worker know of the worker's costs."""
SENT = np.dtype(
    [
        ("key", np.uint64),  # hash of the tuple's key
        ("cost", np.int64),  # what the tuple costs
        ("to", np.int64),  # its worker + 1, 0 for no tuple
        ("round", np.int64),  # round of the question that goes with it, 0 for none
    ]
)
"""A tuple under way."""


class Sketches(NamedTuple):
    """The sketches of all workers, each array of shape (n, rows, columns): what kernels take as one
    argument.
    """

    salts: UInt64s
    """(rows,): the hash of each row."""
    counts: Int64s
    """F of the sketch that the worker builds."""
    sums: Int64s
    """W of that sketch."""
    means: Float64s
    """W/F at the last look. 0 for an empty cell."""
    taken_counts: Int64s
    """F of the sketch that the scheduler has."""
    taken_sums: Int64s
    """W of that sketch."""


class OsgState(NamedTuple):
    """Everything that the rule knows: what kernels take as one argument."""

    sketches: Sketches
    """What the workers have measured, and what the scheduler has of it."""
    expected: Float64s
    """(n,): the scheduler's sum of each worker."""
    workers: Rows
    """(n,) of WORKER."""
    sent: Rows
    """(delay + 1,) of SENT: the latest tuples."""
    meta: Rows
    """One of META."""


class OsgRule(NamedTuple):
    """The settings of osg, for kernels."""

    check: int
    """Tuples of a worker between two looks at its sketch."""
    mu: float
    """A sketch is stable if its means change by at most this share."""


@kernel
def _estimate(sketches: Sketches, worker: Whole, key: np.uint64, usual: float) -> float:
    """What a tuple of this key costs at the worker, by the sketch that was taken over."""
    counts, columns = sketches.taken_counts, np.uint64(sketches.taken_counts.shape[2])
    least, at, best = np.int64(2**63 - 1), np.int64(0), np.int64(0)
    for row in range(counts.shape[1]):
        column = candidate_kernel(key, sketches.salts[row], columns)
        if counts[worker, row, column] < least:
            least, at, best = counts[worker, row, column], column, np.int64(row)
    return sketches.taken_sums[worker, best, at] / least if least > 0 else usual


@inlined
def _ask_all(meta: Rows) -> None:
    """Begin another round of questions."""
    meta["state"] = SEND_ALL
    meta["round"] += 1
    meta["asked"] = 0
    meta["answered"] = 0


@inlined
def _is_stable(sketches: Sketches, worker: Whole, mu: float) -> bool:
    """Whether the means of the worker's sketch are near those of the last look."""
    counts, sums, means = sketches.counts, sketches.sums, sketches.means
    change = total = 0.0
    for row in range(counts.shape[1]):
        for column in range(counts.shape[2]):
            if counts[worker, row, column] > 0:  # an empty cell was empty at the last look
                mean = sums[worker, row, column] / counts[worker, row, column]
                change += abs(mean - means[worker, row, column])
                total += means[worker, row, column]
    return change <= mu * total


@kernel
def _look(schedule: OsgState, worker: Whole, rule: OsgRule) -> None:
    """A look of the worker at its sketch. The scheduler takes a stable one over."""
    sketches, state, meta = schedule.sketches, schedule.workers[worker], schedule.meta[()]
    counts, sums, means = sketches.counts, sketches.sums, sketches.means
    rows, columns = counts.shape[1], counts.shape[2]
    # At the first look all means are 0, so the sketch is not stable.
    if not _is_stable(sketches, worker, rule.mu):
        for row in range(rows):
            for column in range(columns):
                if counts[worker, row, column] > 0:
                    means[worker, row, column] = sums[worker, row, column] / counts[worker, row, column]
        return
    total = np.int64(0)
    for column in range(columns):
        total += sums[worker, 0, column]
    state["usual"] = total / state["seen"]
    state["seen"] = 0
    for row in range(rows):
        for column in range(columns):
            sketches.taken_counts[worker, row, column] = counts[worker, row, column]
            sketches.taken_sums[worker, row, column] = sums[worker, row, column]
            counts[worker, row, column] = 0
            sums[worker, row, column] = 0
            means[worker, row, column] = 0.0
    meta["known"] += 1 - state["known"]
    state["known"] = 1
    if meta["known"] == schedule.expected.shape[0]:
        _ask_all(meta)


@kernel
def _correct(schedule: OsgState) -> None:
    """Correct all sums by the answers."""
    for worker in range(schedule.expected.shape[0]):
        schedule.expected[worker] += schedule.workers[worker]["correction"]


@inlined
def _measure(schedule: OsgState, at: Whole, rule: OsgRule) -> None:
    """The tuple of this entry is done: its worker counts it, answers if it was asked,
    and may look at its sketch.
    """
    sketches, meta, done = schedule.sketches, schedule.meta[()], schedule.sent[at]
    worker, columns = done["to"] - 1, np.uint64(sketches.counts.shape[2])
    state = schedule.workers[worker]
    state["spent"] += done["cost"]
    state["seen"] += 1
    for row in range(sketches.counts.shape[1]):
        column = candidate_kernel(done["key"], sketches.salts[row], columns)
        sketches.counts[worker, row, column] += 1
        sketches.sums[worker, row, column] += done["cost"]
    if done["round"] > 0 and done["round"] == meta["round"]:
        state["correction"] = state["spent"] - state["said"]
        meta["answered"] += 1
        if meta["answered"] == schedule.expected.shape[0]:
            _correct(schedule)
            meta["state"] = RUN
            meta["ran"] = 0
    if state["seen"] % rule.check == 0:
        _look(schedule, worker, rule)


@kernel
def _route(block: Block, schedule: OsgState, rule: OsgRule) -> None:
    keys, costs, out = block.keys, block.costs, block.out
    expected, workers, sent, meta = schedule.expected, schedule.workers, schedule.sent, schedule.meta[()]
    n = expected.shape[0]
    for row in range(keys.shape[0]):
        state = meta["state"]
        if state <= SEND_ALL:
            best = meta["turn"]
            meta["turn"] = best + 1 if best + 1 < n else 0
        else:
            best = np.int64(0)
            for worker in range(1, n):
                best = np.int64(worker) if expected[worker] < expected[best] else best
        if state != ROUND_ROBIN:
            expected[best] += _estimate(schedule.sketches, best, keys[row], workers[best]["usual"])
        entry = sent[meta["at"]]
        entry["key"], entry["cost"], entry["to"], entry["round"] = keys[row], costs[row], best + 1, 0
        if state == SEND_ALL:
            entry["round"] = meta["round"]
            workers[best]["said"] = expected[best]
            meta["asked"] += 1
            if meta["asked"] == n:
                meta["state"] = WAIT_ALL
        elif state == RUN:
            meta["ran"] += 1
            if meta["ran"] == rule.check * n:
                _ask_all(meta)
        meta["at"] = meta["at"] + 1 if meta["at"] + 1 < sent.shape[0] else 0
        # The buffer has delay + 1 entries, so the next one holds the tuple that was sent `delay` tuples ago.
        if sent[meta["at"]]["to"] > 0:
            _measure(schedule, meta["at"], rule)
        out[row] = best


class OSGOptions(Options):
    """Options of osg. See the module's docstring."""

    check: int = Field(
        1024, ge=1, le=1 << 30, description="Tuples of a worker between two looks at its sketch."
    )
    mu: float = Field(
        0.05, ge=0, le=1e6, description="A sketch is stable if its means change by at most this share."
    )
    columns: int = Field(55, ge=1, le=1 << 16, description="Cells of each row of a worker's sketch.")
    rows: int = Field(4, ge=1, le=16, description="Rows of a worker's sketch, each with a hash of its own.")
    delay: int | None = Field(
        None,
        ge=0,
        le=1 << 20,
        description="Tuples that are sent after a tuple before its cost is measured. None = n.",
    )


class OnlineShuffleGrouping(Partitioner):
    """Each tuple goes to the worker with the least work.
    What a key's tuples cost is learned from the workers.
    """

    options_type = OSGOptions
    papers = (ONLINE_SHUFFLE,)
    takes_costs = True
    options: OSGOptions

    def _start(self) -> None:
        n, options = self.workers, self.options
        shape = (n, options.rows, options.columns)
        if math.prod(shape) > _MOST_CELLS:
            raise ConfigError(
                f"sketches of {math.prod(shape):,} cells, and {_MOST_CELLS:,} are the most",
                hint="lower columns or rows",
            )
        self._schedule = OsgState(
            sketches=Sketches(
                salts=salts(self.seed, options.rows),
                counts=np.zeros(shape, np.int64),
                sums=np.zeros(shape, np.int64),
                means=np.zeros(shape),
                taken_counts=np.zeros(shape, np.int64),
                taken_sums=np.zeros(shape, np.int64),
            ),
            expected=np.zeros(n),
            workers=records(n, WORKER),
            sent=records((n if options.delay is None else options.delay) + 1, SENT),
            meta=record(META, turn=self.source * n // self.sources),
        )

    def _rescale(self) -> None:
        before = self._schedule
        self._start()
        after, stay = self._schedule, min(len(before.workers), self.workers)
        for old, new in zip(before.sketches[1:], after.sketches[1:], strict=True):
            new[:stay] = old[:stay]
        for field in ("seen", "known", "usual"):
            after.workers[field][:stay] = before.workers[field][:stay]
        after.meta["known"] = after.workers["known"].sum()
        if after.meta["known"] == self.workers:
            # All sums begin at 0 again, as do the costs that the workers have measured.
            after.meta["state"] = RUN

    def _assign(self, block: Block) -> None:
        _route(block, self._schedule, OsgRule(self.options.check, self.options.mu))

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        meta, workers, n = self._schedule.meta, self._schedule.workers, self.workers
        if meta["state"] <= SEND_ALL:
            turn = int(meta["turn"])
            why = (
                f"costs are not learned yet ({int(meta['known'])} of {n} workers have sent a stable sketch)"
                if meta["state"] == ROUND_ROBIN
                else "each worker is asked what its tuples have cost"
            )
            return Explanation(
                rule=f"workers take turns, because {why}: the next is worker {turn}", workers=(turn,)
            )
        best = int(self._schedule.expected.argmin())
        cost = _estimate(self._schedule.sketches, best, key, float(workers[best]["usual"]))
        return Explanation(
            rule=f"the worker with the least work by estimate, whatever the key is: worker {best}. "
            f"A tuple of this key is estimated to cost {cost:.3g} there",
            workers=(best,),
        )

    def _state(self) -> State:
        sketches, rest = self._schedule.sketches._asdict(), self._schedule._asdict()
        del sketches["salts"], rest["sketches"]
        return {**sketches, **rest}

    def _load_state(self, state: State) -> None:
        sketches = {name: state.pop(name) for name in Sketches._fields[1:]}
        self._schedule = OsgState(sketches=Sketches(salts(self.seed, self.options.rows), **sketches), **state)
        meta, sent = self._schedule.meta, self._schedule.sent
        # Kernels do not check bounds.
        if not (
            0 <= meta["turn"] < self.workers
            and 0 <= meta["at"] < len(sent)
            and ROUND_ROBIN <= meta["state"] <= RUN
            and bool(np.all((sent["to"] >= 0) & (sent["to"] <= self.workers)))
        ):
            raise ValueError("there are tuples or turns of workers that do not exist")

    def _choices(self) -> int:
        return self.workers
