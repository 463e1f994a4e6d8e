"""Virtual time and processes. One runs at a time, and it gives way at each call to a broker.

A process is a greenlet. Nothing here asks a real clock or a random source of its own, so a run depends on its
schedule alone.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import greenlet
from confluent_kafka import KafkaError

from tests.faults.checks.history import History
from tests.faults.model.errors import Refused
from tests.faults.schedules.schedule import Fault

WALL = 1_700_000_000.0
"""Wall clock (s since 1970) at virtual time 0."""
LATE = "late"
_SHORT, _LONG = 0.0003, 0.003
_MOST_STEPS = 100_000
"""A run takes a few thousand. One that takes so many goes round in circles."""


class Endless(Exception):
    """A run goes round in circles."""


class Crash(BaseException):
    """The process is dead: nothing that it still does has an effect."""


class Process:
    """A process that runs `body`. stalled_since: when it was paused or died, None while it runs."""

    def __init__(
        self, world: World, name: str, body: Callable[[], object], ended: Callable[[Process], object]
    ) -> None:
        self.name = name
        self.alive = True
        self.crashed = False
        self.done = False
        self.stalled_since: float | None = None
        self.error: BaseException | None = None
        self._world = world
        self._body = body
        self._ended = ended
        self.paused_until = 0.0
        self.greenlet = greenlet.greenlet(self._run)

    def _run(self) -> None:
        try:
            self._body()
        except Crash:
            self.crashed = True
        except BaseException as error:
            self.error = error
        self.alive, self.done = False, True
        self._stall()
        self._world.at(0.0, lambda: self._ended(self))

    def _stall(self) -> None:
        if self.stalled_since is None:
            self.stalled_since = self._world.now
        self._world.on_stall(self)

    def resume(self) -> None:
        """Go on. A paused process goes on once its pause is over."""
        if self.done:
            return
        if self.alive and self.paused_until > self._world.now:
            self._world.at(self.paused_until - self._world.now, self.resume)
            return
        if self.alive:
            self.stalled_since = None
        self._world.current = self
        self.greenlet.switch()
        self._world.current = None

    def pause(self, seconds: float) -> None:
        """Stand still for so long, as a suspended machine does."""
        self.paused_until = self._world.now + seconds
        self._stall()
        self._world.sleep(seconds)

    def kill_soon(self) -> None:
        """Let it die at its next call to a broker."""
        if not self.done:
            self.alive = False
            self._stall()

    def die(self) -> None:
        """End at once, as if killed. Call this from the process itself."""
        self.alive = False
        self._stall()
        raise Crash


class World:
    """Virtual time, the processes, and the faults that are still to come.

    now: virtual time (s). wall_steps: since when (s) the wall clock was off, and how
    far (ms), the last is now. struck: faults by kind. over: whether all processes are, and who waits now
    moves the time. on_fault: what a fault of the broker does, by kind. on_stall: is called when a process is
    paused or has ended.
    """

    def __init__(self, seed: int, faults: list[Fault], history: History) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.wall_steps = [(0.0, 0)]
        self.history = history
        self.current: Process | None = None
        self.calls: Counter[str] = Counter()
        self.total = 0
        self.struck: Counter[str] = Counter()
        self.last_fault = 0.0
        self.over = False
        self.on_fault: dict[str, Callable[[Fault], object]] = {}
        self.on_stall: Callable[[Process], object] = lambda process: None
        self._faults: dict[tuple[str, int], tuple[Fault, ...]] = {}
        for fault in faults:
            place = fault.call, fault.number
            self._faults[place] = (*self._faults.get(place, ()), fault)
        self._queue: list[tuple[float, int, Callable[[], object]]] = []
        self._number = 0
        self._main = greenlet.getcurrent()
        self._until: Callable[[], bool] = lambda: False
        self._limit = 0.0

    def at(self, delay: float, what: Callable[[], object]) -> None:
        """Call `what` after so many seconds, outside of any process."""
        self._number += 1
        heapq.heappush(self._queue, (self.now + delay, self._number, what))

    def spawn(
        self, name: str, body: Callable[[], object], *, ended: Callable[[Process], object] = lambda _: None
    ) -> Process:
        """A process that begins now. ended: is called with it when it has ended."""
        process = Process(self, name, body, ended)
        self.at(0.0, process.resume)
        return process

    def waiting(self, limit: float) -> bool:
        """Whether anything is to happen by this virtual time."""
        return bool(self._queue) and self._queue[0][0] <= limit

    def run(self, *, until: Callable[[], bool], limit: float) -> bool:
        """Run until `until` holds, which is asked after every event. False if it does not by virtual time
        `limit`.
        """
        queue = self._queue
        self._until, self._limit = until, limit
        while queue:
            if until():
                return True
            if queue[0][0] > limit:
                return False
            when, number, what = heapq.heappop(queue)
            if number > _MOST_STEPS:
                raise Endless(f"more than {_MOST_STEPS} steps by {self.now:.0f} s")
            self.now = max(self.now, when)
            what()
        return until()

    def sleep(self, seconds: float) -> None:
        """Let the process that calls this wait. Raises Crash if it is dead by then."""
        process = self.current
        if process is None:
            self.now += seconds if self.over else 0.0
            return
        if not process.alive:
            raise Crash
        if self._goes_on(process, seconds):
            return
        self.at(seconds, process.resume)
        self._main.switch()
        if not process.alive:
            raise Crash

    def _goes_on(self, process: Process, seconds: float) -> bool:
        """Let the time pass without leaving the process, if nothing else is to happen before it goes on.

        What follows is what `run` and `resume` would do, without two switches.
        """
        queue, when = self._queue, self.now + seconds
        if (queue and queue[0][0] <= when) or when > self._limit or self._number >= _MOST_STEPS:
            return False
        if process.paused_until > when or self._until():
            return False
        self._number += 1
        self.now = max(self.now, when)
        process.stalled_since = None
        return True

    def refuse_dead(self) -> None:
        """Raise Crash if the process that calls this is dead."""
        if self.current is not None and not self.current.alive:
            raise Crash

    def monotonic(self) -> float:
        """The clock that the product gets for intervals (s)."""
        return self.now

    def wall(self) -> float:
        """The clock that the product gets for the time of day (s since 1970)."""
        return WALL + self.now + self.wall_steps[-1][1] / 1000

    def call(
        self, what: str, deed: Callable[[], Any], *, lost: Callable[[], BaseException] | None = None
    ) -> Any:
        """A call to a broker: the only place where other processes come in between, and where faults strike.

        what: kind of call. lost: makes the error of a call whose answer never comes, None for calls that
        never lose their answer (then the answer comes late instead).
        """
        process = self.current
        if process is None:
            return deed()
        if not process.alive:
            raise Crash
        self.total += 1
        self.calls[what] = number = self.calls[what] + 1
        faults = self._faults.get((what, number), ()) + self._faults.get(("*", self.total), ())
        after: list[Fault] = []
        for fault in faults:
            if fault.kind in ("crash after", "pause after", "answer lost"):
                after.append(fault)
            elif fault.kind == "crash late":
                self._strike(fault, process, what)
                self.at(fault.seconds, lambda: _quietly(deed))
                process.die()
            else:
                self._before(fault, process, what, lost)
        self.sleep(self.random.uniform(_SHORT, _LONG))
        answer = deed()
        for fault in after:
            self._strike(fault, process, what)
            if fault.kind == "crash after":
                process.die()
            elif fault.kind == "pause after":
                process.pause(fault.seconds)
            elif lost is not None:
                self.sleep(fault.seconds)
                raise lost()
            else:
                self.sleep(fault.seconds)
        return answer

    def _before(
        self, fault: Fault, process: Process, what: str, lost: Callable[[], BaseException] | None
    ) -> None:
        """A fault that comes before the broker hears of the call."""
        self._strike(fault, process, what)
        if fault.kind == "crash before":
            process.die()
        elif fault.kind == "pause before":
            process.pause(fault.seconds)
        elif fault.kind == "delay" or (fault.kind == "request lost" and lost is None):
            self.sleep(fault.seconds)
        elif fault.kind == "delivery fails":
            raise Refused(KafkaError._MSG_TIMED_OUT)
        elif fault.kind == "request lost":
            assert lost is not None
            self.sleep(fault.seconds)
            raise lost()
        else:
            self.on_fault[fault.kind](fault)

    def _strike(self, fault: Fault, process: Process, what: str) -> None:
        self.struck[fault.kind] += 1
        self.last_fault = max(self.last_fault, self.now + fault.seconds)
        self.history.note(self.now, process.name, "FAULT", f"{fault.kind} at {what} ({fault.seconds:.1f} s)")


def _quietly(deed: Callable[[], object]) -> None:
    """A request that was under way when its process died."""
    with suppress(Exception):  # nobody hears the answer
        deed()
