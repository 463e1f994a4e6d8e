"""evenflow (priced water-filling): split few keys, the hottest, and let them level everybody's load.

Idea: almost every key stays whole, on one worker, its *home*. Keys are hashed into cells. A cell without a
key in the window is given to the worker with the least unsplit load, and stays there for as long as one of
its keys is in the window. Only a *watched* key (certainly at least 1/(watch*n) of the recent stream) may have
more holders. Its tuples go to the holder in use until that holder has reached the mean load, less one tuple
if there are several sources. The next holder in use is the first one that is 3 tuples or more below that: the
home is asked first, then the others in order of adoption. Another holder is bought when all holders that were
looked at are above the mean by more than 3 tuples (which chance explains) plus

    price * mean * sqrt(0.01 / share of the key)

if the least loaded of all workers is below the mean. That worker then becomes a holder. So replicas are
bought where they carry most, and the hottest keys absorb everybody's imbalance. A passing key costs more: up
to the load that whole keys leave anyway, which is about two average keys of the window. So a burst is not
taken for a lasting hot key. A holder that was not used for a window is released when the next slide begins,
even if its key has no tuples then. A key that cools below half the threshold loses all its holders but the
home. The recent stream is the last 8 to 16 tuples per watched key (2,048 to 4,096 if that is more), or one to
two sixteenths of a window if that is less. Each of S sources sees only a share of a key's tuples, and homes
are hashed, so `watch` counts more there (`watch_factor`).

A worker may be far above the mean although its keys are all too rare to be split, when the skew has changed.
Then keys move away from it, one with each of its tuples, until it is relieved (one source, remembered homes).
Where tuples of a key come in runs, a key whose home is above the mean moves when a run of it begins, at a
price that falls with the length of the runs. With several sources a long run that begins there goes whole to
the first candidate below the mean, in an order that all sources share.

A wrong clock is not mistaken for a silence: a time that lies beyond a silence of more than a window is
believed when 64 more tuples confirm it than deny it. Until then such a tuple counts in the current slide.

Sources may tell each other: at the end of each slide every source tells its tuples of the window by worker,
and hears the sum. It then levels its share of the common imbalance. It also learns which workers are above
the mean again and again, and sends them less. A sum that is lost, late or of few sources costs balance only.
After three slides without one a source levels alone again. A source that is gone or silent still counts, with
the share of its last message that is left of the window. One that begins with the state of another source
takes over its knowledge of keys, but not its tuple counts.

Parameters: `price` of a replica: the knob between imbalance and replication. With a very large price no key
is ever split. `level` is an imbalance that is level enough. `watch` how rare a split key may be. `cells` that
remember homes at first, and `most_cells` when a window has more keys. `tail`: whether homes are remembered or
hashed (F_1). Several sources must agree on the home of a rare key, so `auto` remembers with one source only.
`weights` relative speed of the workers. `window` sliding (default), tumbling or cumulative. While the first
window fills, the price counts as if the window were full already, so that the noise of small loads buys
nothing. When workers are added, the share of the homes that they are to carry is given up and placed anew.
The keys of these homes are split once, within the window of the rescale. Without that the new workers would
stay idle.

Tuples may cost differently. Loads then are sums of costs, and a key's share of the stream is its share of the
costs. So a hot key of cheap tuples stays whole, and a key of few dear tuples may be split. Where chance is
spoken of, a tuple is one that a unit of cost belongs to, on average. A tuple is never divided: a worker that
gets one of a thousandth of the window's cost is above the mean by that. Sums stay exact up to 2^43 units of
cost in a window and 1,024 workers, also with unequal speeds. So with cumulative loads choose a small unit.

Cost per tuple: one counter, one cell, at most 16 holders looked at. Finding the least loaded worker, when it
is needed, is O(log n) amortised. A slide costs O(n). State: 4 bytes x cells, 270 to 470 x watch x n, 3n loads
(windowed: x slides more). At most 2 watch*n replicas are held at a time. With S sources `watch` counts more
here too. Argument and figures: docs/evenflow-partitioner.md.
Paper: none, the rule is our own.

Each new key goes where the load is least. There are too few tuples to split a key:

    >>> create("evenflow", workers=4).assign(keys, times).tolist()
    [0, 0, 1, 0, 2, 0]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from evenflow.errors import IncompatibleStateError
from evenflow.keys import salts
from evenflow.numeric.arrays import NEVER, Float64s, Int64s, State, UInt64s, record, records
from evenflow.numeric.kernels import kernel
from evenflow.numeric.words import mix64
from evenflow.partitioners.base import FASTEST, SLOWEST, Block, Partitioner
from evenflow.partitioners.evenflow.clock import brings_later, tuples_per_cell
from evenflow.partitioners.evenflow.explain import explain
from evenflow.partitioners.evenflow.frequent import FINE, Frequent, frequent, move_all
from evenflow.partitioners.evenflow.holder_rings import Rings, rings
from evenflow.partitioners.evenflow.holders import CERTAIN, fewest_of
from evenflow.partitioners.evenflow.placements import (
    Placements,
    bound,
    cells_of,
    grown,
    placements,
    release,
    without_workers_from,
)
from evenflow.partitioners.evenflow.route import route
from evenflow.partitioners.evenflow.shared_loads import (
    BIAS_PARTS,
    NOT_TOLD,
    PATIENCE,
    ROUNDS,
    LoadsMerger,
    learned,
    table_loads,
    to_bytes,
)
from evenflow.partitioners.evenflow.state import (
    DOUBT,
    DOUBTS,
    MOMENTS,
    NO_RELIEF,
    PROGRESS,
    RUNS,
    Lowest,
    Rule,
    Water,
    columns,
    loads_of_slide,
)
from evenflow.partitioners.evenflow.weights import begin_to_weigh, new_scale
from evenflow.partitioners.exchange import Merger, Message, Table
from evenflow.partitioners.explanation import Explanation
from evenflow.partitioners.window import SlidingWindow
from evenflow.sketches.least_loaded import tournament
from evenflow.sketches.window_loads import WindowLoads, loads_from

_SHARED = 8
"""How many candidates F_2, F_3, ... several sources try first, so that they buy the same replicas."""
HOLDERS = 2
"""Extra holders that there may be at a time, per watched key."""
MEMORY, LEAST_MEMORY = 8, 2048
"""Tuples per watched key, and tuples in all, that the summary remembers at least. What is hot now counts."""
_MOST_WATCHED = 8
_COUNTING = 1 << 14
"""Cells, if they only tell how many keys the window has."""
_REACH = 1 << 61
"""Times are cut to this, ms, so that the end of a slide stays within int64."""
_MOST_LOAD = 1 << 62
_FINE = 1024
"""Units of load that a unit of cost is to a worker of mean speed, when speeds differ.
Loads are whole numbers.
"""


def watch_factor(sources: int) -> float:
    """How many times `watch` counts. 1 with one source.

    Sources hash the homes of whole keys, so whole keys are less level, and rarer keys have to be split. Up to
    8 sources `watch` counts 8 times. Then it counts less, because each source has holders of its own, until
    each source sees so few tuples of a key that sqrt(sources) is more.
    """
    return 1.0 if sources == 1 else max(math.sqrt(sources), min(_MOST_WATCHED, _MOST_WATCHED**2 / sources))


class EvenflowOptions(SlidingWindow):
    """Options of evenflow. See the module's docstring."""

    price: float = Field(
        5e-4,
        ge=0,
        le=1e12,
        description=(
            "Overload, as share of the mean load, that another holder of a key with 1 % of the "
            "stream must save. Rarer keys must save more. Higher: fewer replicas, more imbalance."
        ),
    )
    level: float = Field(
        0.0,
        ge=0,
        le=1,
        description=(
            "Imbalance that is level enough: no holder is bought while the worker is above the mean by less"
            " than this share of the window's tuples. 0: as level as `price` makes it."
        ),
    )
    watch: int = Field(
        8, ge=1, le=10_000, description="Only keys with at least 1/(watch*n) of the stream may be split."
    )
    cells: int = Field(
        1 << 17, ge=1, le=1 << 28, description="Cells that remember the home of keys. A power of two."
    )
    most_cells: int = Field(
        1 << 22,
        ge=1,
        le=1 << 28,
        description=(
            "Cells at most, a power of two. Their number grows fourfold when half of them are in use, "
            "at 4 bytes each. If this is not above `cells`, their number stays. Windowed load only."
        ),
    )
    tail: Literal["auto", "remember", "hash"] = Field(
        "auto", description="Home of a key: remembered, or F_1. auto = remembered when there is one source."
    )
    weights: tuple[float, ...] = Field(
        (), description="Relative speed of worker 0, 1, .... A worker without an entry counts as 1."
    )

    @classmethod
    def fitted(
        cls, user_options: Mapping[str, Any], *, window_ms: int, slide_ms: int, windowed: bool
    ) -> dict[str, Any]:
        """As for `Window`. Without a window the slide is added too,
        because sources tell each other once a slide.
        """
        options = super().fitted(user_options, window_ms=window_ms, slide_ms=slide_ms, windowed=windowed)
        return options if options.keys() & {"window_ms", "slide_ms"} else {**options, "slide_ms": slide_ms}

    @field_validator("cells", "most_cells")
    @classmethod
    def _is_a_power_of_two(cls, value: int, info: ValidationInfo) -> int:
        if value & (value - 1):
            raise ValueError(f"{info.field_name} ({value}) must be a power of two")
        return value

    @field_validator("weights")
    @classmethod
    def _are_speeds(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 1e-3 <= value <= 1e3 for value in values):
            raise ValueError("every weight must be between 0.001 and 1000")
        return values


class Evenflow(Partitioner):
    """Keys stay whole at remembered homes. The hottest keys are split, at a price, to level the load."""

    options_type = EvenflowOptions
    options: EvenflowOptions
    tells = True
    variable_state: ClassVar[Mapping[str, tuple[str, ...]]] = {"places.cell": ("cells",)}
    takes_costs = True
    takes_speeds = True

    def _start(self) -> None:
        options = self.options
        # A salt far from those of the candidates (1, 2, ...) and of the generators (from 2^32 on, see
        # `draws`).
        self._salt = salts(self.seed, 1, first=1 << 40)[0]
        self._remembers = options.tail == "remember" or (options.tail == "auto" and self.sources == 1)
        self._places = (
            placements(options.cells, options.slides, most=options.most_cells)
            if self._remembers
            else placements(_COUNTING, options.slides)
        )
        self._rounds = record(ROUNDS, due=NEVER, told=NOT_TOLD)
        self._speeds = np.zeros(self.workers)
        self._runs, self._in_row = record(RUNS, previous=-1), np.zeros(1, np.int64)
        self._in_runs = np.zeros(3, np.int64)
        self._scale, self._moments = new_scale(fewest_of(self.sources)), np.zeros(MOMENTS)
        self._shape()
        self._window = self._no_loads()
        self._progress = record(PROGRESS, since=NEVER, latest=NEVER, aged=NEVER)
        self._doubts = records(DOUBTS, DOUBT)
        self._again = np.zeros(2, np.int64)
        self._doubted_costs = np.ones(DOUBTS, np.int64)

    def _rescale(self) -> None:
        """Keep what is known of keys, and all homes but those that added workers need.

        A home moves if its worker goes. If workers are added, each worker frees the share of its live cells
        that the added workers are to carry. The keys of these cells are split once, between the old and the
        new home, within the window of the rescale. Without that price, keys that are never silent would leave
        new workers idle for ever. Holders are bought anew.
        """
        old_summary, clock, before = self._summary, self._window.clock, len(self._tail)
        self._break_run()
        self._speeds = self._speeds_of(self.workers)
        brings = np.int64(
            tuples_per_cell(self._tail, self._credit, self._step, int(self._places.meta["live"]))
        )
        known_brings = np.int64(self._progress["known"])
        brings = max(
            brings, known_brings
        )  # soon after another rescale the window is not full, so `brings` is too low
        self._shape()
        # The new summary has another number of sets, so every key is hashed into it again.
        spots = np.empty(len(old_summary.key), np.uint64)
        _spots(old_summary.key, self._salt, spots)
        move_all(old_summary, self._summary, spots)
        if self._remembers:
            without_workers_from(self.workers, self._places)
            weights = self._weights
            if self.workers > before:
                # Another mark for each number of workers, so that repeated growth does not free the same
                # cells.
                mark = salts(self.seed, 1, first=(1 << 41) + self.workers)[0]
                release(weights[before:].sum() / weights.sum(), mark, self._places)
        self._window = self._no_loads()
        self._window.clock[()] = clock
        # The window begins again with the clock where it is. `full` is kept: it still says what a window
        # holds.
        for name in ("cell", "tuples", "known", "doubted"):
            self._progress[name] = 0
        self._progress["since"] = self._progress["latest"]
        if self._remembers and self.options.windowed:  # a kept home is credited as if it had just been placed
            self._progress["known"] = brings
            self._progress["cell"] = later = brings_later(self._again, float(brings))
            self._credit[:] = later * self._step * cells_of(self.workers, self._places)
            self._tail[:] = self._credit

    def _shape(self) -> None:
        """Everything but homes and loads, made for the present number of workers."""
        n, options = self.workers, self.options
        self._watched = math.ceil(options.watch * n * watch_factor(self.sources))
        fine = FINE if self._scale["weighed"] else 1
        self._summary = frequent(4 * self._watched, fine * max(LEAST_MEMORY, MEMORY * self._watched))
        self._rings = rings(len(self._summary.key), HOLDERS * self._watched)
        self._credit, self._tail, self._relieved = (np.zeros(n, np.int64) for _ in range(3))
        self._others, self._told = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._rounds["told"] = NOT_TOLD
        self._bias = np.zeros(n, np.int64)
        self._relief = np.full(1, NO_RELIEF, np.int64)
        self._runs["limit"] = NO_RELIEF
        self._lowest, self._lowest_tail = tournament(n), tournament(n)
        self._family = salts(self.seed, 1 if self.sources == 1 else 1 + _SHARED)
        self._weigh_workers()

    def _weigh_workers(self) -> None:
        """The load that a unit of cost is to each worker, by the speeds that are known."""
        n, options = self.workers, self.options
        weights = np.array([*options.weights[:n], *[1.0] * (n - len(options.weights))])
        # Of a worker that nobody has measured, the settings say how fast it is.
        weights = np.where(self._speeds > 0, self._speeds, weights)
        self._weights = weights
        even = np.all(weights == weights[0])
        self._unit = 1 if even else _FINE
        self._accept = np.floor(weights / weights.max() * CERTAIN).astype(np.uint64)
        self._step = np.maximum(1, np.rint(self._unit * weights.mean() / weights)).astype(np.int64)

    @property
    def homes_are_hashed(self) -> bool:
        """As `Partitioner.homes_are_hashed`: not where homes are remembered, or workers differ in speed."""
        return not self._remembers and self._unit == 1

    @property
    def speeds(self) -> Float64s | None:
        """As `Partitioner.speeds`."""
        return self._speeds.copy() if bool(np.all(self._speeds > 0)) else None

    def _speeds_of(self, workers: int) -> Float64s:
        """The speeds that were told, for so many workers. A new worker is as fast as they are on average."""
        old = self._speeds
        mean = old.mean() if len(old) and old[0] > 0 else 0.0
        return np.concatenate([old[:workers], np.full(max(0, workers - len(old)), mean)])

    def _set_speeds(self, speeds: Float64s) -> None:
        """Loads are what the tuples of the window are to workers of these speeds, as if they had always
        been so fast.
        """
        self._break_run()
        n, old, unit = self.workers, self._step, self._unit
        self._speeds = speeds
        self._weigh_workers()
        window, step = self._window, self._step
        # The load of a slide is a whole number of steps, so nothing is lost.
        for columns_of in (slice(0, n), slice(n, 2 * n)):
            window.ring[:, columns_of] = window.ring[:, columns_of] // old * step
        own = (window.loads - self._others) // old * step
        whole = (self._tail - self._credit) // old * step
        for load in (self._credit, self._relieved):
            load[:] = load // old * step
        self._tail[:] = whole + self._credit
        self._others = self._others * self._unit // unit
        self._bias = self._bias * self._unit // unit
        window.loads[:] = own + self._others
        if self._relief[0] < NO_RELIEF:
            # A relief is a whole number of units, and so large that a product could leave int64.
            self._relief[:] = self._relief // unit * self._unit
        if self._runs["limit"] < NO_RELIEF:
            self._runs["limit"] = self._runs["limit"] // unit * self._unit

    def _break_run(self) -> None:
        """Where homes are hashed, the next tuple goes to its home as that is now,
        not where a run was going on.
        """
        if not self._remembers:
            self._runs["previous"] = -1

    def _no_loads(self) -> WindowLoads:
        """Empty loads of the workers, with a ring of more columns than workers."""
        wide = self.options.new_loads(columns(self.workers))
        return wide._replace(loads=np.zeros(self.workers, np.int64))

    def _assign(self, block: Block) -> None:
        done = 0
        # A kernel cannot allocate, so it stops when more cells are needed and goes on after `grown`.
        while (done := self._route(block, done)) < len(block.keys):
            if block.costs[done] != 1 and not self._scale["weighed"]:
                begin_to_weigh(self._water())
            else:
                self._places = grown(self._places)

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        return explain(self._water(), self._rule(), key, now)

    def _route(self, block: Block, first: int) -> int:
        return route(block, first, self._water(), self._rule(), Lowest(self._lowest, self._lowest_tail))

    def _rule(self) -> Rule:
        return Rule(
            step=self._step,
            accept=self._accept,
            family=self._family,
            salt=self._salt,
            windowed=self.options.windowed,
            remembers=self._remembers,
            unit=self._unit,
            watched=self._watched,
            sources=self.sources,
            price=self.options.price,
            level=self.options.level,
        )

    def _water(self) -> Water:
        return Water(
            summary=self._summary,
            places=self._places,
            holders=self._rings,
            window=self._window,
            tail=self._tail,
            credit=self._credit,
            relieved=self._relieved,
            relief=self._relief,
            progress=self._progress,
            again=self._again,
            runs=self._runs,
            in_row=self._in_row,
            in_runs=self._in_runs,
            doubts=self._doubts,
            doubted_costs=self._doubted_costs,
            scale=self._scale,
            moments=self._moments,
        )

    def window_tuples(self, now: int | None = None) -> Int64s:
        """What this source sent each worker within the window, shape (workers,).
        The other sources hear their sum.

        That is the cost of the tuples, and their number if nothing is said of costs.

        `now`: event time, ms, if it is later than that of the last tuple. Tuples that have left the window by
        then do not count.
        """
        sent, clock = self._window.ring, self._window.clock
        # The loads include what was heard of others.
        own = self._window.loads - self._others
        # Slides that have ended by `now` are still in the ring, because the clock moves only with tuples.
        if now is not None and self.options.windowed and self._tuples:
            slide, slides = int(clock["slide"]), len(sent)
            for left in range(
                slide + 1, slide + 1 + min(slides, max(0, now // int(clock["length"]) - slide))
            ):
                own -= loads_of_slide(sent[left % slides], self.workers)
        return own // self._step

    @property
    def tells_at(self) -> int | None:
        """The end of the slide that the last message was told in."""
        due = int(self._rounds["due"])
        return None if due == NEVER else due

    def tell(self, now: int) -> Message | None:
        """The tuples of the window by worker, once a slide.

        A message that no table has answered is told again as it was, so that this source knows which of its
        tuples a table includes. After `PATIENCE` such messages this source levels alone again, and tells what
        is true then.
        """
        now, rounds = min(max(now, -_REACH), _REACH), self._rounds
        if rounds["due"] != NEVER and now < rounds["due"]:
            return None
        slide = min(self.options.slide_ms, _REACH)
        rounds["due"] = (now // slide + 1) * slide
        if rounds["unanswered"] % PATIENCE == 0 or rounds["told"] != rounds["round"]:
            if rounds["unanswered"]:
                self._level_alone()
            self._told = np.maximum(self.window_tuples(now), 0)
            rounds["told"] = rounds["round"]
        rounds["unanswered"] += 1
        return Message(self.source, int(rounds["round"]), to_bytes(self._told))

    def hear(self, table: Table, now: int) -> bool:
        """Take on a share of the imbalance of all sources.

        Until the next table this source levels as if 1/sources of the common imbalance were its own. The
        sources are those of the table and this one. When every source does so, together they make up for all
        of it and do not overshoot. A source whose keys cannot be split leaves its share to the next round.
        """
        table.check(self.sources)
        loads, remembered = table_loads(table.body)
        if sum(loads.tolist()) + sum(remembered.tolist()) > _MOST_LOAD // int(self._step.max()):
            raise IncompatibleStateError("a table has more tuples than there can be")
        rounds = self._rounds
        if table.round < rounds["round"]:
            return False
        # As of the message, like the loads of the others: what all take on comes to nothing then, however
        # late the table is. A source that was restored may have told after its snapshot, and what is true now
        # comes near.
        own = self._told if rounds["told"] == table.round else np.maximum(self.window_tuples(now), 0)
        rounds["round"], rounds["unanswered"] = table.round + 1, 0
        if len(loads) != self.workers:  # the table is from before a rescale
            self._level_alone()
            return True
        # What is remembered may be this source's own loads, unless the table has its message.
        if self.source in table.sources:
            loads = np.maximum(loads - own, 0) + remembered
        members = sorted({*table.sources, self.source})
        self._level(own, loads, (members.index(self.source), len(members)))
        return True

    def merger(self, *, clock: Callable[[], float]) -> Merger:
        """Adds the tuples of all sources."""
        return LoadsMerger(self.workers, slides=self.options.slides)

    def _level(self, own: Int64s, others: Int64s, place: tuple[int, int]) -> None:
        """Share the imbalance of all. own, others: tuples by worker.
        place: (rank, number) of the sources that share.
        """
        rank, members = place
        common = self._off_level(own + others)
        # One source alone has no sum to correct. After a silence of a window what it learned has left the
        # window.
        learns = members > 1 and bool(own.any() or others.any())
        grain = self._unit * int(self._scale["grain"])
        self._bias = learned(self._bias, common / members, grain) if learns else np.zeros_like(own)
        # Loads are whole. Sources round at different points, so that the shares come to the whole. The turns
        # give each source another point for each worker.
        turn = (np.arange(self.workers) + rank) % members
        share = common / members + self._bias / BIAS_PARTS - self._off_level(own)
        heard = np.floor(share + (turn + 0.5) / members).astype(np.int64)
        self._window.loads[:] += heard - self._others
        self._others = heard

    def _level_alone(self) -> None:
        self._window.loads[:] -= self._others
        self._others = np.zeros(self.workers, np.int64)

    def _off_level(self, tuples: Int64s) -> Float64s:
        """How far each worker's load is from where its speed says it should be, in units of load."""
        return tuples * self._step - tuples.sum() * self._unit / self.workers

    def _state(self) -> State:
        parts = (("summary", self._summary), ("places", self._places), ("rings", self._rings))
        return {
            **self._window._asdict(),
            **{f"{name}.{field}": array for name, part in parts for field, array in part._asdict().items()},
            "tail": self._tail,
            "credit": self._credit,
            "relieved": self._relieved,
            "relief": self._relief,
            "progress": self._progress,
            "again": self._again,
            "runs": self._runs,
            "in_row": self._in_row,
            "in_runs": self._in_runs,
            "doubts": self._doubts,
            "doubted_costs": self._doubted_costs,
            "scale": self._scale,
            "moments": self._moments,
            "speeds": self._speeds,
            "others": self._others,
            "told": self._told,
            "bias": self._bias,
            "rounds": self._rounds,
        }

    def _load_state(self, state: State) -> None:
        def part(name: str, kind: type[Any]) -> Any:
            return kind(**{field: state[f"{name}.{field}"] for field in kind._fields})

        self._window = loads_from(state)
        self._summary, self._places = part("summary", Frequent), part("places", Placements)
        if not self._remembers and len(self._places.cell) != _COUNTING:
            raise ValueError(f"{len(self._places.cell)} cells, not {_COUNTING}")
        self._rings = part("rings", Rings)
        self._tail, self._credit, self._relieved = state["tail"], state["credit"], state["relieved"]
        self._relief = state["relief"]
        self._progress, self._doubts, self._others = state["progress"], state["doubts"], state["others"]
        self._again, self._doubted_costs = state["again"], state["doubted_costs"]
        self._runs, self._in_row, self._in_runs = state["runs"], state["in_row"], state["in_runs"]
        self._scale, self._moments, self._speeds = state["scale"], state["moments"], state["speeds"]
        known = self._speeds[self._speeds != 0]
        if len(known) not in (0, self.workers) or not np.all((known >= SLOWEST) & (known <= FASTEST)):
            raise ValueError("a speed of the snapshot is none")
        self._weigh_workers()
        self._told, self._rounds, self._bias = state["told"], state["rounds"], state["bias"]

    def _take_over(self) -> None:
        """Keep what is known of keys. What the other source sent, that one tells, or the merger remembers."""
        self._rescale()

    def _choices(self) -> int:
        return self.workers

    def _head_keys(self) -> int:
        return int(self._rings.meta["split"])

    def _state_bound(self, keys: int) -> int:
        options, cell = self.options, self._places.cell.nbytes
        most = bound(keys, options.cells, options.slides, options.most_cells) if self._remembers else cell
        return self._state_bytes() - cell + most

    def _state_bytes(self) -> int:
        arrays = (*self._state().values(), self._lowest, self._lowest_tail, self._step, self._family)
        return sum(array.nbytes for array in arrays)


@kernel
def _spots(keys: UInt64s, salt: np.uint64, spots: UInt64s) -> None:
    for at in range(keys.shape[0]):
        spots[at] = mix64(keys[at] ^ salt)
