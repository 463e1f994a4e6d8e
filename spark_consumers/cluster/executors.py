"""Executors follow the plan.

Plans are read from `<query>.plan`, and the application's cluster manager is asked. Too many executors do no
harm, too few do. So a plan that needs more executors is followed as soon as it is known. A plan that needs
fewer is followed only once it is in force, that is when the least mark that was merged has passed
`effective_from`. (An application that only combines goes by the least mark that was combined.) An application
that starts follows the newest plan at once.

`spark.reserve_executors` are asked for on top of what a plan needs. When an executor has registered, `warm`
starts its Python before a micro-batch needs it.

Surplus executors are let go, the newest first: older ones hold more of the buckets' state and more
connections to Kafka. Results never depend on executors: a task of a lost executor is repeated elsewhere.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from evenflow.errors import EvenflowError
from evenflow.plans import Plan, Schedule
from evenflow.reporting import Concern, Concerns, on_every_line, with_fields
from evenflow.settings import Settings
from evenflow.telemetry import Stage
from evenflow.windows import END_MARK, NO_MARK
from spark_consumers.cluster.demand import executors_in_reserve, executors_wanted
from spark_consumers.cluster.manager import Cluster, RequestRefused

_LOG = logging.getLogger("evenflow.spark")
_LOOK_SECONDS = 0.5
_FIRST_RETRY, _LAST_RETRY = 5.0, 60.0  # s: the wait doubles from the first to the last
_MISSING_AFTER = 30.0  # s without all executors until a warning: a new one needs a while to register
_UNREADABLE_AFTER = 60.0  # s without plans until a warning
_CLOSE_SECONDS = 5.0


class Follower(Protocol):
    """The plan topic, as `topics.query.plan_topic.PlanFollower` reads it."""

    def all_so_far(self) -> list[Plan]:
        """The plans that the topic held at the start."""
        ...

    def new(self, timeout: float = 0.0) -> list[Plan]:
        """The plans that have come since the last call. timeout: seconds to wait for one."""
        ...

    def close(self) -> None:
        """Close the connection to the broker."""
        ...


@dataclass(frozen=True, kw_only=True)
class ExecutorState:
    """How many tasks and executors an application has at the moment, and by which plan."""

    slots: int | None = None
    """Tasks that can run at once. None if not known."""
    executors: int | None = None
    """How many are registered. None without a cluster manager."""
    epoch: int = 0
    """Number of the plan in force, 0 if there is none."""
    reducers: int | None = None
    """r of that plan, or of the settings without a plan. None before the first look."""


class _Patience:
    """When a refused request may be tried again. The wait grows with each refusal. clock: s."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._wait = 0.0
        self._at = clock()

    @property
    def due(self) -> bool:
        return self._clock() >= self._at

    def refused(self) -> None:
        self._wait = min(_LAST_RETRY, 2 * self._wait) if self._wait else _FIRST_RETRY
        self._at = self._clock() + self._wait

    def granted(self) -> None:
        self._wait, self._at = 0.0, self._clock()


class Executors:
    """Keeps the number of executors at what the plans need. `look` is to be called every now and then.

    Only one thread may call `look`, and that thread should do nothing else: the cluster manager may take its
    time to answer. stages: of this application. cluster: None if all tasks run in the driver. slots: tasks
    that can run at once in the driver. follow: connects to the plan topic. reached: event time (ms) up to
    which all is merged, None before the first micro-batch. warm: is called with the number of all slots when
    executors have registered. clock: s.
    """

    def __init__(
        self,
        settings: Settings,
        stages: Sequence[Stage],
        cluster: Cluster | None,
        *,
        follow: Callable[[], Follower],
        reached: Callable[[], int | None],
        slots: int | None = None,
        warm: Callable[[int], object] = lambda slots: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._stages = stages
        self._cluster = cluster
        self._follow = follow
        self._reached = reached
        self._warm = warm
        self._met: frozenset[str] = frozenset()
        self._follower: Follower | None = None
        self._schedule = Schedule(settings.query.slide_ms)
        self._concerns = Concerns(_LOG, clock=clock)
        self._reading, self._asking = _Patience(clock), _Patience(clock)
        self._unreadable: str | None = None
        self._refused: str | None = None
        self._demand: int | None = None
        self._requested: int | None = None
        self._told_local = False
        self.standing = ExecutorState(slots=slots)

    def look(self) -> None:
        """Read new plans, ask for missing executors, and let surplus ones go."""
        self._read()
        self._schedule.pass_to(self._reached() or NO_MARK)
        on_every_line(epoch=self._epoch)
        if self._cluster is None:
            self._stay()
        else:
            self._realise(self._cluster)
        self._concerns.now(c for c in (self._no_plans(), self._missing()) if c is not None)

    def close(self) -> None:
        """Stop reading plans."""
        if self._follower is not None:
            self._follower.close()

    # ---- plans

    def _read(self) -> None:
        if not self._reading.due:
            return
        try:
            if self._follower is None:
                self._begin()
            else:
                for plan in self._follower.new():
                    self._schedule.learn(plan, reached=None)
        except EvenflowError as error:
            self._unreadable = error.message
            self._reading.refused()
        else:
            self._unreadable = None
            self._reading.granted()

    def _begin(self) -> None:
        follower = self._follow()
        try:
            # END_MARK is past every `effective_from`, so the newest plan is in force at once.
            self._schedule.start(follower.all_so_far(), reached=END_MARK)
        except EvenflowError:
            follower.close()
            raise
        self._follower = follower

    @property
    def _epoch(self) -> int:
        return 0 if self._schedule.current is None else self._schedule.current.epoch

    # ---- executors

    def _stay(self) -> None:
        self.standing = ExecutorState(
            slots=self.standing.slots, epoch=self._epoch, reducers=self._settings.reducers
        )
        if self._schedule.newest and not self._told_local:
            self._told_local = True
            _LOG.info(
                "spark.master is %s: a plan changes the workers in use (p) only; this application has %s"
                " cores whatever it says",
                self._settings.spark.master,
                self.standing.slots,
            )

    def _realise(self, cluster: Cluster) -> None:
        """Ask the cluster manager, once for each change.

        After a refusal it is left alone for a while, longer each time.
        """
        demand = self._want()
        if not self._asking.due:
            self._stand(self.standing.executors)
            return
        try:
            if self._requested != demand:
                cluster.ask(demand)
                self._requested = demand
                self._refused = None
                self._asking.granted()
            have = cluster.executors()  # the oldest first, so the surplus at the end is the newest
            if self._requested is not None and len(have) > self._requested:
                leaving = have[self._requested :]
                cluster.release(leaving)
                have = have[: self._requested]
                _LOG.info("executors %s are let go; %d stay", ", ".join(leaving), len(have))
            self._meet(have)
            self._stand(len(have))
        except RequestRefused as error:
            self._refused = str(error)
            self._asking.refused()
            self._stand(self.standing.executors)

    def _meet(self, executors: Sequence[str]) -> None:
        """Warm the executors that have registered since the last look."""
        if not self._met.issuperset(executors):
            # A task for every slot: Spark gives the free slots one each, and the new ones are free.
            self._warm(len(executors) * self._settings.spark.executor_cores)
        self._met = frozenset(executors)

    def _want(self) -> int:
        # The largest demand of the plan in force and of all
        # upcoming ones: more at once, fewer only when in force.
        plans = [self._schedule.current, *(entry.plan for entry in self._schedule.upcoming)]
        plans_by_demand = {executors_wanted(self._settings, self._stages, plan): plan for plan in plans}
        most = max(plans_by_demand)
        if most != self._demand:
            self._demand = most
            plan = plans_by_demand[most]
            by = "the settings want" if plan is None else f"plan {plan.epoch} (p {plan.p}, r {plan.r}) wants"
            reserve = executors_in_reserve(self._settings, self._stages, plan)
            _LOG.info(
                "%s %d executors of %d cores%s", by, most, self._settings.spark.executor_cores,
                f", {reserve} of them in reserve" if reserve else "",
                extra=with_fields({"event": "executors", "wanted": most, "epoch": plan.epoch if plan else 0}),
            )  # fmt: skip
        return most

    def _stand(self, executors: int | None) -> None:
        cores = self._settings.spark.executor_cores
        slots = None if executors is None else executors * cores
        current = self._schedule.current
        self.standing = ExecutorState(
            slots=slots,
            executors=executors,
            epoch=self._epoch,
            reducers=self._settings.reducers if current is None else current.r,
        )

    # ---- what lasts and should not

    def _no_plans(self) -> Concern | None:
        if self._unreadable is None:
            return None
        return Concern(
            name="no plans",
            text=f"plans cannot be read ({self._unreadable}): executors stay as they are",
            over="plans are read again",
            after=_UNREADABLE_AFTER,
        )

    def _missing(self) -> Concern | None:
        have = self.standing.executors or 0
        if self._demand is None or (have >= self._demand and self._refused is None):
            return None
        spark = self._settings.spark
        why = (
            f"it refuses ({self._refused})."
            if self._refused is not None
            else (
                f"is there room for {self._demand} times {spark.executor_cores} cores and"
                f" {spark.executor_memory}, and can executors reach the driver at {spark.driver_host}?"
            )
        )
        return Concern(
            name="executors missing",
            text=(
                f"{self._demand} executors are wanted, and the cluster manager ({spark.master}) has given"
                f" {have}; {why} The plan stays as it is, and results stay exact"
            ),
            over="the cluster manager has given the executors that are wanted",
            after=0.0 if self._refused is not None else _MISSING_AFTER,
            fields={"wanted": self._demand, "executors": have, "epoch": self._epoch},
        )


class ExecutorWatch:
    """Calls `Executors.look` in a thread of its own, until closed."""

    def __init__(self, executors: Executors) -> None:
        self._executors = executors
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="evenflow-executors", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._executors.look()
                self._stop.wait(_LOOK_SECONDS)
        except Exception:  # otherwise the log would not say why executors do not follow plans any more
            _LOG.exception("executors do not follow plans any more: results stay exact, restart to go on")
        finally:
            self._executors.close()

    def close(self) -> None:
        """End the thread. A request that is under way gets a few seconds to end."""
        self._stop.set()
        self._thread.join(_CLOSE_SECONDS)
