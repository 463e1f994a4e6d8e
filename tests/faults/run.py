"""One run: a schedule goes in, what happened and what was violated comes out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from evenflow.errors import DataLossError, FencedError, IncompatibleStateError, ProtocolError, ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service.plane.data_plane import DataPlane
from tests.faults.checks.history import History
from tests.faults.checks.invariants import violations, wrong_rows
from tests.faults.model.broker import Broker
from tests.faults.model.files import Files
from tests.faults.model.log import Committed
from tests.faults.model.spark import Concurrent, Spark, Storage
from tests.faults.processes.exchange import Sync
from tests.faults.processes.given_marks import GivenMarks
from tests.faults.processes.growth import Growth
from tests.faults.processes.modelled import modelled
from tests.faults.processes.operator import Operator
from tests.faults.processes.parts import Writer, driver, partitioner
from tests.faults.processes.world import Process, World
from tests.faults.schedules.schedule import BASE, FUTURE, Schedule
from tests.faults.schedules.settings import settings_of
from tests.faults.strikes.losses import Losses
from tests.faults.strikes.strikes import Strikes

SECONDS_AFTER = 150.0
"""Virtual seconds after the last fault and the last record within which all results must be there."""
_NOTICED = (DataLossError, ProtocolError, IncompatibleStateError)
_MOST_STARTS = 40
_TOO_LATE = "all others had ended before these were taken in"
"""What an instance says that ends because partitions were added when there was nothing left to add them
to.
"""


@dataclass
class Outcome:
    """What came of a run. violations: what must not be, in words. noticed: the errors that say that data
    is lost.
    """

    schedule: Schedule
    violations: list[str]
    noticed: list[str]
    history: History
    struck: Counter[str] = field(default_factory=Counter)
    events: int = 0
    calls: int = 0
    tables: int = 0
    """Rounds of the exchange of which an instance heard a table."""


def run(schedule: Schedule) -> Outcome:
    """Run this schedule."""
    history = History()
    world = World(schedule.seed, list(schedule.faults), history)
    broker = Broker(world)
    with modelled(world, broker):
        cluster = Cluster(schedule, world, broker)
        ended = cluster.run()
        result = list(cluster.problems)
        if not result and not cluster.noticed:
            result = violations(cluster, ended)
        elif cluster.noticed and not cluster.destroyed:
            result.append(f"refused although nothing was lost: {cluster.noticed[0]}")
        elif cluster.noticed:
            result += wrong_rows(cluster)
            if not cluster.losses.names(cluster.noticed[0]):
                result.append(f"refused, but not because of what was lost: {cluster.noticed[0]}")
    tables = 0 if cluster.sync is None else len(cluster.sync.tables)
    return Outcome(
        schedule, result, cluster.noticed, history, world.struck, len(history), world.total, tables
    )


class Cluster:
    """The processes of a run and what restarts them.

    settings: with which the query began. deployed: those of the next start of each instance. states: the last
    committed state of each input partition, whatever became of it.
    """

    def __init__(self, schedule: Schedule, world: World, broker: Broker) -> None:
        self.schedule, self.world, self.broker = schedule, world, broker
        self.problems: list[str] = []
        self.noticed: list[str] = []
        self.losses = Losses(world)
        shape = schedule.shape
        watched = any(fault.kind.startswith("recreate") for fault in schedule.faults)
        self.storage = Storage(Files(world, atomic=shape.store == "disk"), shape.piece, watched)
        self.settings: list[Settings] = [settings_of(shape, number) for number in range(shape.instances)]
        self.deployed = list(self.settings)
        self.states: dict[int, PartitionState] = {}
        broker.create("in", schedule.shape.inputs)
        self.writer = Writer(schedule, world, broker)
        self.growth = Growth(self.settings[0].query, world)
        times = (record.time for record in schedule.records if record.kind == "tuple")
        honest = BASE + max((time for time in times if time < FUTURE), default=0)
        self.given_marks = GivenMarks(honest, world)
        broker.groups.of("q.partitioner").on_change = self._committed
        self.planes: dict[str, DataPlane] = {}
        told = self.settings[0].topic("sync")
        self.sync = Sync(world, broker, self.planes, told) if self.settings[0].exchanges else None
        if any(record.kind == "batch" for record in schedule.records):
            self.operator = Operator(world, broker, (self.settings[0].topic("telemetry"), "q.snapshots"))
        self.sessions: dict[str, Spark] = {}
        self._running: dict[str, Process] = {}
        self._over: set[str] = set()
        self._starts: Counter[str] = Counter()
        self.outage_until = self._until = 0.0
        world.on_stall = self._stalled
        world.on_fault |= Strikes(self).by_kind()

    def run(self) -> bool:
        """Run until everything is over. False if that takes too long."""
        for number in range(len(self.settings)):
            self._start(f"p{number}", self.world.random.uniform(0.0, 0.5))
        self._start("spark", self.world.random.uniform(0.5, 2.0))
        wanted = {f"p{number}" for number in range(len(self.settings))} | {"spark"}
        ended = self._until_stopped(wanted)
        again = sorted(self._over - {"spark"})
        if not ended and self.destroyed and again:
            # The lost last frames of a session are noticed once somebody takes over from it.
            self._over -= {again[0]}
            self._start(again[0], 0.0)
            self._until = self.world.now + SECONDS_AFTER
            ended = self._until_stopped(wanted)
        return ended

    def _until_stopped(self, wanted: set[str]) -> bool:
        while True:
            ended = self.world.run(until=lambda: self._stopped(wanted), limit=self._limit())
            if ended or self.world.now >= self._limit() or not self.world.waiting(self._limit()):
                return ended

    @property
    def running(self) -> list[Process]:
        """Every process that was started, whether or not it has ended."""
        return list(self._running.values())

    @property
    def partitioners_are_over(self) -> bool:
        """Whether all instances have come to their end."""
        return all(f"p{number}" in self._over for number in range(len(self.settings)))

    @property
    def destroyed(self) -> list[str]:
        """What was lost that Kafka had acknowledged, in words."""
        return self.losses.what

    def _committed(self, offsets: dict[tuple[str, int], Committed]) -> None:
        states = {
            number: PartitionState.decode(result.metadata, offset=result.offset)
            for (_, number), result in offsets.items()
        }
        self.states |= states
        self.growth.committed(states)
        self.given_marks.committed(states)

    def _stopped(self, wanted: set[str]) -> bool:
        if self.problems or self.noticed:
            return True
        return self._over >= wanted and all(process.done for process in self._running.values())

    def _stalled(self, process: Process) -> None:
        """A driver that does not answer is replaced while it may still run."""
        self.broker.groups.stalled(process)
        if process.alive and process.name.startswith("spark") and self.world.random.random() < 0.7:
            self.world.at(3.0, lambda: process.stalled_since is not None and self._start("spark", 0.0))

    def _limit(self) -> float:
        last = self.schedule.records[-1].at % 1_000 if self.schedule.records else 0.0
        return max(self._until, max(self.world.last_fault, last) + SECONDS_AFTER)

    # ---- processes

    def _start(self, name: str, delay: float) -> None:
        if name in self._over:
            return
        self._starts[name] += 1
        if self._starts[name] > _MOST_STARTS:
            self.problems.append(f"{name} ended {_MOST_STARTS} times")
            return
        whole = f"{name}.{self._starts[name]}"
        if name == "spark":
            body = driver(
                self.settings[0],
                self.world,
                self.storage,
                whole,
                lambda s: self.sessions.__setitem__(whole, s),
            )
        else:
            mine = self.deployed[int(name[1:])]
            body = partitioner(mine, self.world, lambda plane: self.planes.__setitem__(whole, plane))

        def begin() -> None:
            wait = self.outage_until - self.world.now
            if wait > 0:
                self.world.at(wait, begin)
                return
            self.world.history.note(self.world.now, whole, "starts")
            self._running[whole] = self.world.spawn(whole, body, ended=self._ended)

        self.world.at(delay, begin)

    def _ended(self, process: Process) -> None:
        name = process.name.split(".")[0]
        self.planes.pop(process.name, None)
        self.sessions.pop(process.name, None)
        error = process.error
        self.world.history.note(self.world.now, process.name, "ends", _said(process))
        if error is None and not process.crashed:
            self._over.add(name)
        elif isinstance(error, FencedError):
            self.world.at(5.0, self._start_driver_if_none_runs)  # the newer driver goes on
        elif error is not None and _TOO_LATE in str(error):
            self._over.add(name)
            if not self.destroyed:
                self.problems += self.growth.refused(process.name)
        elif isinstance(error, _NOTICED):
            self.noticed.append(f"{process.name}: {type(error).__name__}: {error.args[0]}")
        elif error is not None and not _passes(error):
            self.problems.append(f"{process.name} failed: {type(error).__name__}: {error}")
            self.failure = error
        else:
            self._start(name, self.world.random.uniform(0.2, 3.0))

    def _start_driver_if_none_runs(self) -> None:
        """A fenced driver is not started against the newer one, but somebody has to go on."""
        if all(process.done for name, process in self._running.items() if name.startswith("spark")):
            self._start("spark", 0.0)


def _passes(error: BaseException) -> bool:
    """Whether a process that ended with this error is started again."""
    return isinstance(error, ServiceError | Concurrent)


def _said(process: Process) -> str:
    if process.crashed:
        return "crashed"
    return "" if process.error is None else f"{type(process.error).__name__}: {str(process.error)[:300]}"
