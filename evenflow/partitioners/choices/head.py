"""The head of a stream: what d-choices, w-choices and rr-head share (002, section 4 of its Algorithm 1).

A SpaceSaving summary counts every tuple. A key is *head* (frequent) while est(k) >= theta*N, where N is the
number of tuples so far and est(k) is the key's count in the summary, an upper bound. With costs both are sums
of costs, because what has to be split is what brings much work. `warm_up` stays a number of tuples. All other
keys are *tail* and take the less loaded of F_1, F_2, as in PKG. Early on, while N < 1/theta, every key is
head, as in the paper. This costs a few extra copies of keys, which `warm_up` > 0 avoids.

`head=cumulative` is the paper's: N and est are of all tuples so far. Where the hot keys change, former hot
keys stay head for long, and new hot keys become head late. `head=window` forgets: every half window, all
counts and N are halved. So a tuple that is a window old weighs a quarter, and N stands for the tuples of half
a window to a whole window. A tuple whose time lies far in the future halves everything away. After it nothing
is forgotten until the times of the stream have caught up.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenflow.keys import Candidates, candidates, workers_of
from evenflow.numeric.arrays import LAST_TIME, NEVER, Int64s, Rows, State, Whole, record
from evenflow.numeric.kernels import inlined, kernel
from evenflow.partitioners.base import Partitioner
from evenflow.partitioners.choices.pkg import holders_of, sent_to_one_of_two
from evenflow.partitioners.explanation import Explanation
from evenflow.partitioners.papers import TWO_CHOICES
from evenflow.partitioners.window import Window
from evenflow.sketches.space_saving import (
    SpaceSaving,
    SpaceSavingSummary,
    count_of,
    halve,
    offer,
)
from evenflow.sketches.window_loads import WindowLoads, end_of, loads_from, moves, passed

_HALVINGS = 63  # more would change nothing: 63 halvings bring every int64 count to 0
AGES = np.dtype([(name, np.int64) for name in ("half", "length", "end")])
"""The present half window, its length in ms (0: it never ends), its end in ms."""


class Head(NamedTuple):
    """All that a scheme with a head knows: what kernels take as one argument."""

    summary: SpaceSavingSummary
    """SpaceSaving counts of the frequent keys."""
    ages: Rows
    """One of AGES."""
    tuples: Int64s
    """(1,): tuples that the summary has counted, halved whenever it is. By them `warm_up` ends."""
    window: WindowLoads
    """The loads of the workers."""
    among: Candidates
    """The two candidates of each key that is not head."""


class HeadRule(NamedTuple):
    """The settings of a scheme with a head, for kernels."""

    windowed: bool
    """Loads are those of the window, not of all tuples so far."""
    theta: float
    """Share of the stream from which a key is head."""
    warm_up: int
    """Tuples that the summary counts before any key can be head."""


@inlined
def offered_is_head(head: Head, key: np.uint64, cost: np.int64, rule: HeadRule) -> bool:
    """Count one tuple of this key and cost. Returns whether the key is head now."""
    at = offer(head.summary, key, cost)
    head.tuples[0] += 1
    total = head.summary.meta[()]["total"]
    return bool(head.tuples[0] > rule.warm_up and count_of(head.summary, at) >= rule.theta * total)


@inlined
def is_older(head: Head, time: Whole) -> bool:
    """Whether the present half window has ended, so that `forget` has something to do."""
    return bool(time >= head.ages[()]["end"])


@kernel
def forget(head: Head, time: Whole) -> None:
    """Halve the summary once for each half window that has ended before `time`."""
    ages = head.ages[()]
    if ages["length"] == 0:
        return
    now = time // ages["length"]
    if ages["half"] != NEVER:
        for _ in range(passed(_HALVINGS, ages["half"], now)):
            halve(head.summary)
            head.tuples[0] //= 2
    ages["half"] = now
    ages["end"] = end_of(now, ages["length"])


@inlined
def send_to_one_of_two(head: Head, key: np.uint64, cost: np.int64) -> np.int64:
    """Send a tuple of a tail key to the less loaded of F_1 and F_2. Returns the worker."""
    return sent_to_one_of_two(key, cost, head.among, head.window.loads)


@kernel
def _head_size(summary: SpaceSavingSummary, threshold: float) -> int:
    order, many = summary.order, summary.meta[()]["size"]
    size = 0
    # The order ascends by count, so the head stands at its end.
    while size < many and count_of(summary, order[order.shape[0] - 1 - size]) >= threshold:
        size += 1
    return size


class HeadOptions(Window):
    """Options of d-choices, w-choices and rr-head, which treat frequent keys apart."""

    theta: float | None = Field(
        None, ge=0, le=2, description="Share of the stream from which a key is frequent. None = 1/(5n)."
    )
    counters: int | None = Field(
        None, ge=1, le=1 << 24, description="Counters of the SpaceSaving summary. None = 4/theta."
    )
    warm_up: int = Field(0, ge=0, description="Tuples before which no key is treated as frequent.")
    head: Literal["cumulative", "window"] = Field(
        "cumulative",
        description="By which tuples a key is frequent: all so far, or recent ones (about a window).",
    )

    window_ms: int = Field(
        60_000,
        ge=1,
        description="Length of the window, ms: of the loads, of a head of recent tuples, or of both.",
    )

    @classmethod
    def uses_lengths(cls, user_options: Mapping[str, Any], windowed: bool) -> bool:
        """As for `Window`. A head of recent tuples uses the window even if the loads are cumulative."""
        return super().uses_lengths(user_options, windowed) or user_options.get("head") == "window"

    def new_ages(self) -> Rows:
        """The half window of a summary that has seen nothing. With a cumulative head it never ends."""
        if self.head == "cumulative":
            return record(AGES, half=NEVER, end=LAST_TIME)
        return record(AGES, half=NEVER, length=max(1, self.window_ms // 2), end=NEVER)


_VARIABLE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("keys", "counts", "errors"), ("counters",)),
    "heavy": ("figures",),
}


@dataclass(frozen=True, kw_only=True)
class KeyCount:
    """What the summary says of a key once its next tuple has been counted."""

    halvings: int
    """How often the summary forgets half before that tuple."""
    count: int
    """Upper bound of what the key's tuples cost."""
    total: int
    """N: what all counted tuples cost."""
    tuples: int
    """How many tuples are counted."""


class HeadPartitioner(Partitioner):
    """Keeps the summary, the loads and the candidates. A subclass implements `_assign`."""

    papers = (TWO_CHOICES,)
    takes_costs = True
    options: HeadOptions
    variable_state = _VARIABLE

    def _start(self) -> None:
        self._shape()
        self._heavy = SpaceSaving(self._capacity)
        self._ages = self.options.new_ages()
        self._counted_tuples = np.zeros(1, np.int64)

    def _rescale(self) -> None:
        self._shape()
        self._heavy = self._heavy.resized(self._capacity)

    def _shape(self) -> None:
        """Everything but the summary, for the present number of workers."""
        n, options = self.workers, self.options
        self._theta = 1 / (5 * n) if options.theta is None else options.theta
        # With theta 0 every key is head, and 4/theta would be infinite: the default of theta gives the size.
        few = 20 * n if self._theta == 0 else max(1, math.ceil(4 / self._theta))
        self._capacity = min(few, 1 << 24) if options.counters is None else options.counters
        self._loads = options.new_loads(n)
        self._among = candidates(self.seed, 2, n)

    def _head(self) -> Head:
        return Head(self._heavy.summary, self._ages, self._counted_tuples, self._loads, self._among)

    def _rule(self) -> HeadRule:
        return HeadRule(self.options.windowed, self._theta, self.options.warm_up)

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        counted = self._counted(key, now)
        share = counted.count / counted.total
        if counted.tuples > self.options.warm_up and counted.count >= self._theta * counted.total:
            return self._explain_head(key, now, counted)
        two = workers_of(int(key), candidates(self.seed, 2, self.workers))
        return Explanation(
            rule=(
                f"not frequent (below {self._theta:.3g} of the stream): the less loaded of its two candidates"
            ),
            workers=tuple(dict.fromkeys(two)),
            home=two[0],
            holders=holders_of(two, self._loads.loads),
            share=share,
        )

    @abstractmethod
    def _explain_head(self, key: np.uint64, now: int | None, counted: KeyCount) -> Explanation:
        """Explain a key that is head when its next tuple has been counted."""

    def _explain_any(self, key: np.uint64, now: int | None, counted: KeyCount) -> Explanation:
        """Explain a head key that goes to the least loaded of all workers."""
        loads = self._loads.loads
        least = int(np.argmin(loads))
        return Explanation(
            rule="frequent: the least loaded of all workers",
            # When slides end, loads fall by what they have of these slides, and another worker may be the
            # least loaded.
            workers=None if moves(self._loads.clock, now) else (least,),
            holders=holders_of([least], loads),
            share=counted.count / counted.total,
        )

    def _counted(self, key: np.uint64, now: int | None) -> KeyCount:
        ages, heavy = self._ages, self._heavy
        halvings = 0
        if now is not None and int(ages["length"]) and int(ages["half"]) != NEVER and now >= int(ages["end"]):
            halvings = min(_HALVINGS, now // int(ages["length"]) - int(ages["half"]))
        # A key without a counter takes over the least count.
        count, total = heavy.estimate(int(key)) >> halvings, heavy.total >> halvings
        tuples = int(self._counted_tuples[0]) >> halvings
        return KeyCount(halvings=halvings, count=count + 1, total=total + 1, tuples=tuples + 1)

    def _state(self) -> State:
        keys, counts, errors = self._heavy.counters()
        total, tuples = self._heavy.total, int(self._counted_tuples[0])
        figures = [total, self._heavy.least]
        # Without costs they are equal, and a snapshot has two figures.
        if tuples != total:
            figures.append(tuples)
        return {
            **self._loads._asdict(),
            "heavy": np.array(figures, np.int64),
            "ages": self._ages,
            "keys": keys,
            "counts": counts,
            "errors": errors,
        }

    def _load_state(self, state: State) -> None:
        self._loads = loads_from(state)
        self._ages = state["ages"]
        total, least, *tuples = (int(value) for value in state["heavy"])
        (self._counted_tuples[0],) = tuples or (total,)
        self._heavy = SpaceSaving.from_counters(
            self._capacity, state["keys"], state["counts"], state["errors"], total=total, least=least
        )

    def _head_keys(self) -> int:
        if self._counted_tuples[0] <= self.options.warm_up:
            return 0
        return int(_head_size(self._heavy.summary, self._theta * self._heavy.total))

    def _state_bytes(self) -> int:
        known = (*self._heavy.summary, self._ages, self._counted_tuples)
        return sum(array.nbytes for array in (*known, *self._loads, self._among.family, *self._more()))

    def _more(self) -> tuple[npt.NDArray[Any], ...]:
        """Further arrays that the subclass keeps: they count in `state_bytes`."""
        return ()
