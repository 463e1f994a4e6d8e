"""One run: a schedule goes in, what happened and what was violated comes out."""

from __future__ import annotations

import gc
import logging
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from evenflow.errors import DataLossError, FencedError, IncompatibleStateError, ProtocolError, ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service import session
from partitioner_service.exchange import channel
from partitioner_service.plane import DataPlane
from spark_consumers import epoch, result_files, run_folder, stage
from spark_consumers.folders import Folder
from tests.faults import remembered, times
from tests.faults.damage import flipped
from tests.faults.exchange import Sync
from tests.faults.given_marks import GivenMarks
from tests.faults.growth import Growth
from tests.faults.history import History
from tests.faults.invariants import violations, wrong_rows
from tests.faults.model import network
from tests.faults.model.admin import AdminClient
from tests.faults.model.broker import Broker
from tests.faults.model.consumer import Consumer
from tests.faults.model.files import Files, MemoryFolder
from tests.faults.model.log import Committed, Entry, Log
from tests.faults.model.producer import Producer
from tests.faults.model.spark import Concurrent, Spark, Storage
from tests.faults.operator import Operator
from tests.faults.parts import Writer, driver, partitioner, plan_of
from tests.faults.schedule import BASE, FUTURE, Fault, Schedule
from tests.faults.settings import settings_of
from tests.faults.world import Process, World
from topics import clients

SECONDS_AFTER = 150.0
"""Virtual seconds after the last fault and the last record within which all results must be there."""
_NOTICED = (DataLossError, ProtocolError, IncompatibleStateError)
_SIGNS = {
    "routed": r"(q\.routed\[|routed partition|session \d).*( gone|ends at|begins at|needed)",
    "input": r"in\[\d+\].*(gone|but the next to read)",
}
"""What a refusal says when records of a topic are lost."""
_EXPIRED = "no committed offsets of"
_MOST_STARTS = 40
_TOO_LATE = "all others had ended before these were taken in"
"""What an instance says that ends because partitions were added when there was nothing left to add them to."""


@dataclass
class Outcome:
    """What came of a run. violations: what must not be, in words. noticed: the errors that say that data is lost."""

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
    with _modelled(world, broker):
        cluster = Cluster(schedule, world, broker)
        ended = cluster.run()
        found = list(cluster.problems)
        if not found and not cluster.noticed:
            found = violations(cluster, ended)
        elif cluster.noticed and not cluster.destroyed:
            found.append(f"refused although nothing was lost: {cluster.noticed[0]}")
        elif cluster.noticed:
            found += wrong_rows(cluster)
            if not cluster.names_the_loss(cluster.noticed[0]):
                found.append(f"refused, but not because of what was lost: {cluster.noticed[0]}")
    tables = 0 if cluster.sync is None else len(cluster.sync.tables)
    return Outcome(schedule, found, cluster.noticed, history, world.struck, len(history), world.total, tables)


class Cluster:
    """The processes of a run and what restarts them. destroyed: what was lost that Kafka had acknowledged."""

    def __init__(self, schedule: Schedule, world: World, broker: Broker) -> None:
        self.schedule, self.world, self.broker = schedule, world, broker
        self.problems: list[str] = []
        self.noticed: list[str] = []
        self.destroyed: list[str] = []
        self._signs: set[str] = set()
        shape = schedule.shape
        self.storage = Storage(Files(world, atomic=shape.store == "disk"), shape.piece)
        self.settings: list[Settings] = [settings_of(shape, number) for number in range(shape.instances)]
        broker.create("in", schedule.shape.inputs)
        self.writer = Writer(schedule, world, broker)
        self.growth = Growth(self.settings[0].query, world)
        times = (record.time for record in schedule.records if record.kind == "tuple")
        honest = BASE + max((time for time in times if time < FUTURE), default=0)
        self.given_marks = GivenMarks(honest, world)
        broker.groups.of("q.partitioner").on_change = self._committed
        self._planes: dict[str, DataPlane] = {}
        told = self.settings[0].topic("sync")
        self.sync = Sync(world, broker, self._planes, told) if self.settings[0].exchanges else None
        if any(record.kind == "batch" for record in schedule.records):
            self.operator = Operator(world, broker, (self.settings[0].topic("telemetry"), "q.snapshots"))
        self._sessions: dict[str, Spark] = {}
        self._running: dict[str, Process] = {}
        self._over: set[str] = set()
        self._starts: Counter[str] = Counter()
        self._outage_until = self._until = 0.0
        self._epoch = 0
        world.on_stall = self._stalled
        for kind in (
            "rebalance",
            "plan",
            "wall step",
            "task fails",
            "expire offsets",
            "lose ends",
            "add partitions",
            "damage state",
        ):
            world.on_fault[kind] = getattr(self, "_" + kind.replace(" ", "_"))
        for kind in ("truncate routed", "trim routed", "truncate input", "trim input"):
            world.on_fault[kind] = self._damage

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
    def lost_offsets(self) -> bool:
        """Whether a fault made the broker forget committed offsets."""
        return _EXPIRED in self._signs

    def _committed(self, offsets: dict[tuple[str, int], Committed]) -> None:
        states = {
            number: PartitionState.decode(found.metadata, offset=found.offset)
            for (_, number), found in offsets.items()
        }
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
                lambda s: self._sessions.__setitem__(whole, s),
            )
        else:
            mine = self.settings[int(name[1:])]
            body = partitioner(mine, self.world, lambda plane: self._planes.__setitem__(whole, plane))

        def begin() -> None:
            wait = self._outage_until - self.world.now
            if wait > 0:
                self.world.at(wait, begin)
                return
            self.world.history.note(self.world.now, whole, "starts")
            self._running[whole] = self.world.spawn(whole, body, ended=self._ended)

        self.world.at(delay, begin)

    def _ended(self, process: Process) -> None:
        name = process.name.split(".")[0]
        self._planes.pop(process.name, None)
        self._sessions.pop(process.name, None)
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

    # ---- faults of the broker, and of people

    def _rebalance(self, _: Fault) -> None:
        self.broker.groups.rebalance("q.partitioner")

    def _wall_step(self, fault: Fault) -> None:
        step = self.world.wall_steps[-1][1] + round(fault.draw % 14_400_000) - 7_200_000
        self.world.wall_steps.append((self.world.now, step))

    def _task_fails(self, _: Fault) -> None:
        for driver_of in self._sessions.values():
            driver_of.fails = 1

    def _plan(self, fault: Fault) -> None:
        topic = self.broker.topics.get("q.plan")
        if topic is None:
            return
        self._epoch += 1
        known = self.settings[0].with_input_partitions(self.schedule.shape.inputs)
        plan = plan_of(fault, known, self._epoch)
        value = plan.encode(known.fingerprint)
        offset = topic.logs[0].append(Entry(plan.key, value, None, 0, None))
        for name in list(self._planes):
            delay = self.world.random.uniform(0.0, 1.0)
            self.world.at(
                delay, lambda name=name: name in self._planes and self._planes[name].offer(offset, value)
            )

    def _add_partitions(self, fault: Fault) -> None:
        """The input topic grows. Members of the group notice it a little later."""
        if self.schedule.shape.start == "latest" and self.writer.begins is None:
            # The query may begin behind the end of a partition, and then waits for another one.
            self.world.at(1.0, lambda: self._add_partitions(fault))
            return
        draw, logs = Random(fault.draw), self.broker.topics["in"].logs
        for _ in range(draw.choice((1, 1, 2))):
            logs.append(Log("in", len(logs)))
            self.growth.add(logs[-1].number)
            self.writer.fill(logs[-1].number, draw)
        self.world.at(fault.seconds, lambda: self._rebalance(fault))

    def _expire_offsets(self, fault: Fault) -> None:
        """All instances stop, the broker forgets their offsets, and they start again."""
        self._outage_until = self.world.now + fault.seconds + 8.0
        for process in self._running.values():
            if process.name.startswith("p"):
                process.kill_soon()

        def expire() -> None:
            group = self.broker.groups.of("q.partitioner")
            if group.members or not group.offsets:
                return
            parts = sorted(group.offsets)
            draw = Random(fault.draw)
            gone = parts if draw.random() < 0.7 else draw.sample(parts, draw.randint(1, len(parts)))
            self._destroyed(f"offsets of {[number for _, number in gone]}", _EXPIRED)
            for part in gone:
                del group.offsets[part]

        self.world.at(fault.seconds + 7.5, expire)

    def _lose_ends(self, fault: Fault) -> None:
        """All instances die, and a routed partition loses what they wrote last, before anybody takes over."""
        for process in self._running.values():
            if process.name.startswith("p"):
                process.kill_soon()
        self.world.at(fault.seconds, lambda: self._damage(replace(fault, kind="truncate routed")))

    def _damage_state(self, fault: Fault) -> None:
        """A bit of the newest state of a bucket flips on the disk."""
        draw, held = Random(fault.draw), self.storage.files.held
        versions = sorted(path for path in held if path.endswith(".delta") and held[path])
        if versions:
            path = draw.choice(versions[-3:])
            name = draw.choice(sorted(held[path]))
            held[path] = {**held[path], name: (flipped(bytes(held[path][name][0]), draw),)}
            self._destroyed(f"a bit of {name[0]} in {path}", "state is damaged")

    def _damage(self, fault: Fault) -> None:
        kind, _, role = fault.kind.partition(" ")
        topic = self.broker.topics.get("in" if role == "input" else f"q.{role}")
        if topic is None:
            return
        draw = Random(fault.draw)
        log = topic.logs[draw.randrange(len(topic.logs))]
        if kind == "truncate":
            lost = log.truncate(log.end - draw.randint(1, 12))
            if lost:
                self._destroyed(f"the last {lost} records of {topic.name}[{log.number}]", _SIGNS[role])
        elif log.end > log.begin:
            before = log.begin
            log.trim(log.begin + draw.randint(1, log.end - log.begin))
            if log.begin > before:
                self._destroyed(f"{topic.name}[{log.number}] up to offset {log.begin - 1}", _SIGNS[role])

    def names_the_loss(self, refusal: str) -> bool:
        """Whether a refusal speaks of one of the losses of this run."""
        return any(re.search(sign, refusal, re.DOTALL) for sign in self._signs)

    def _destroyed(self, what: str, sign: str) -> None:
        """Note a loss. sign: what a refusal because of it says, a regular expression."""
        self.destroyed.append(what)
        self._signs.add(sign)
        self.world.history.note(self.world.now, "broker", "LOST", what)


def _passes(error: BaseException) -> bool:
    """Whether a process that ended with this error is started again."""
    return isinstance(error, ServiceError | Concurrent)


def _said(process: Process) -> str:
    if process.crashed:
        return "crashed"
    return "" if process.error is None else f"{type(process.error).__name__}: {str(process.error)[:300]}"


@contextmanager
def _modelled(world: World, broker: Broker) -> Iterator[None]:
    """Let the product reach the model of this run instead of a broker and Spark."""
    seams: list[tuple[Any, str, Any]] = [
        (clients, "Consumer", Consumer),
        (clients, "Producer", Producer),
        (clients, "AdminClient", AdminClient),
        (
            clients,
            "_ADMINS_LOCK",
            nullcontext(),
        ),  # a process gives way while it holds it, and all share one thread
        (stage, "col", _Column),
        (run_folder, "ThreadPoolExecutor", InLine),
        (epoch, "BoundedCalls", InLine),
        (session, "secrets", SimpleNamespace(randbelow=Random(world.random.random()).randrange)),
        (channel, "secrets", SimpleNamespace(randbelow=Random(f"sync {world.now}").randrange)),
        (result_files, "_with_times", lambda rows: rows),
        (result_files, "_counted", lambda rows: (rows, lambda: sorted(rows.buckets))),
    ]
    _once()
    seams += [*remembered.seams(), *((module, "Folder", MemoryFolder) for module in _with_folders())]
    before = [(where, name, getattr(where, name)) for where, name, _ in seams]
    garbage, quiet = gc.get_threshold(), logging.root.manager.disable
    gc.disable()  # what a run leaves behind is collected at its end, all at once
    admins = dict(clients._ADMINS)
    clients._ADMINS.clear()
    network.connect(broker)
    times.set_world(world)
    logging.disable(logging.CRITICAL)
    for where, name, value in seams:
        setattr(where, name, value)
    try:
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)
        clients._ADMINS.clear()
        clients._ADMINS.update(admins)
        times.set_world(None)
        logging.disable(quiet)
        gc.set_threshold(*garbage)
        gc.enable()


@lru_cache(maxsize=1)
def _once() -> None:
    """Replace the product's clocks, and let Arrow use one thread: its pool costs more than such small tables."""
    times.install()
    pa.set_cpu_count(1)
    gc.collect()
    gc.freeze()  # the product's modules live on, and no run makes garbage of them


@lru_cache(maxsize=1)
def _with_folders() -> list[Any]:
    """Modules of the product that reach files through `Folder`."""
    mine = [module for name, module in sys.modules.items() if name.startswith("spark_consumers.")]
    return [module for module in mine if getattr(module, "Folder", None) is Folder]


class InLine:
    """Takes the place of threads: a process of the simulator is its only thread. name, most: not used."""

    def __init__(self, name: str | int) -> None:
        pass

    def __enter__(self) -> InLine:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, work: Callable[..., Any], *each: Iterable[Any]) -> list[Any]:
        """The results of the work on each, one after the other."""
        return [work(*one) for one in zip(*each, strict=True)]

    def call(self, what: Callable[[], Any], *, timeout: float, doing: str) -> Any:
        """The result of this call."""
        return what()

    def close(self) -> None:
        """Nothing is open."""


class _Column:
    """A column of Spark by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def alias(self, _: str) -> _Column:
        return self
