"""The pipeline that is hit: a broker behind a proxy, the services as processes, a stream, and who starts
them again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

from confluent_kafka import KafkaException

from evenflow.errors import EvenflowError, FencedError, ServiceError
from evenflow.settings import Settings
from tests.chaos.clocks import Clocks
from tests.chaos.course import BATCH_PARTITIONERS, Course
from tests.chaos.processes import MARK, java_of, resident, settled
from tests.chaos.proxy import HOST, Proxy
from tests.chaos.registered import RegisteredStream
from tests.patience import PATIENCE
from tests.pipeline.end_to_end import INVERTIBLE, Stream, as_toml, evenflow, make_settings
from tests.pipeline.routed import create_topics
from tests.schema_registry import schema_registry
from workbench.local.broker import EmbeddedBroker
from workbench.local.processes import ChildProcess

TUPLES_AT_ONCE = 40
BETWEEN_WRITES = 0.2
"""Seconds between two writes of the stream: 200 tuples a second, which are two seconds of event time."""
TICK = 0.1
STOPS_WITHIN = 60.0
"""Seconds that a service has after SIGTERM, whatever else happens to it."""
RESTART_AFTER = 0.5
EXPECTED = frozenset({0, 2, FencedError.exit_code, 75, -signal.SIGKILL, -signal.SIGTERM})
"""Exit statuses with which a service may end: in order, with an error in words, fenced, by its watchdog,
killed, or by SIGTERM before it had begun. Not 1, which is Python's after a traceback."""
AT_WORK_WITHIN = 150.0 * PATIENCE
"""Seconds within which all are at work again after anything that can happen."""
STAGES = {"fused": ("fused",), "split": ("combine", "reduce")}
"""Names of the stages of a wiring, which are those of their checkpoints' folders."""
VIEWS = {"coarse": {"aggregates": {"n": "count", "hi": "max(f)"}, "window": "10s", "slide": "5s"}}
CONTROL = {"policy": "threshold:stabilization_s=4", "group": 2, "scale_in_wait": "2s"}
"""Of a controller: it changes its mind often."""
EXECUTORS = {"master": "local-cluster[2,1,1024]", "executor_memory": "512m", "partitions_per_slot": 3}
DISKS = {"checkpoint": 200, "broker": 600}
"""MB of the small file systems."""
_QUICK = {
    "session.timeout.ms": 3_000,
    "reconnect.backoff.max.ms": 500,
    "topic.metadata.refresh.interval.ms": 2_000,
}


class World:
    """One pipeline for one course. All that it starts ends with the block.

    quick: sessions and reconnecting take less time than by default, and micro-batches are smaller, so that a
    course meets more. parts: the running services by name. history: what happened, with seconds since the
    beginning. ends: exit statuses that services had, by status. missed: strikes that had no target at their
    moment, by kind. memory: MB of each process of a sort, at each strike.
    """

    def __init__(
        self,
        course: Course,
        folder: Path,
        *,
        small_disks: bool = False,
        quick: bool = True,
    ) -> None:
        self.course = course
        self._quick = quick
        self.token = str(uuid4())
        self.folder = folder
        self.small_disks = small_disks
        self.parts: dict[str, ChildProcess] = {}
        self.history: list[str] = []
        self.ends = Counter[int]()
        self.violations: list[str] = []
        self.missed = Counter[str]()
        self.memory: dict[str, list[int]] = {"partitioner": [], "Java": [], "broker": []}
        self.frozen: set[int] = set()
        self._words: dict[str, tuple[str, ...]] = {}
        self._resting: dict[str, float] = {}
        self._leaving: list[tuple[str, ChildProcess]] = []
        self._undo: list[tuple[float, Callable[[], None]]] = []
        self._stopping: list[tuple[float, str, ChildProcess]] = []
        self._beside: list[threading.Thread] = []
        self._feeding = threading.Event()
        self._broken: list[BaseException] = []
        self._stack = ExitStack()
        self._drivers = 0

    def __enter__(self) -> World:
        with self._stack:
            self._set_up()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _set_up(self) -> None:
        self._stack.enter_context(_marked(self.token))
        if self.course.sets_clocks:
            self.clocks = Clocks(self.folder, ("services", "broker"))
        self.registry = self._stack.enter_context(schema_registry())
        for name, size in DISKS.items():
            (self.folder / name).mkdir()
            if self.small_disks:
                self._mount(self.folder / name, size)
        self.proxy = self._stack.enter_context(Proxy())
        with self.clock("broker"):
            self.broker = self._stack.enter_context(
                EmbeddedBroker(
                    data_dir=self.folder / "broker" / "data",
                    properties={"advertised.listeners": f"CLIENT://{HOST}:{self.proxy.port}"},
                    start_timeout=90.0,
                )
            )
        self.proxy.target = self.broker.port
        self.settings = self._settings()
        self.stream = self._stream()
        self._stack.callback(self._end_all)
        for name, words in self._services().items():
            self.run(name, *words)
        self._begin = time.monotonic()
        self._feeding.set()
        self._feeder = threading.Thread(target=self._feed, name="chaos-stream", daemon=True)
        self._feeder.start()
        self._stack.callback(self.stop_feeding)

    def _stream(self) -> Stream:
        if self.course.registered:
            return RegisteredStream(self.settings, self.registry, seed=self.course.seed)
        return Stream(self.settings, seed=self.course.seed)

    def clock(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Whatever is started within goes by the clock of the services or of the broker, if one is set."""
        return self.clocks.shown(name) if self.course.sets_clocks else contextlib.nullcontext()

    def _mount(self, place: Path, size: int) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m", "evenflow-chaos", place], check=True)
        self._stack.callback(lambda: subprocess.run(["umount", "--lazy", place], check=True))

    def _services(self) -> dict[str, tuple[str, ...]]:
        """The words of each service that the course has, by name."""
        stages = ("aggregate",) if self.course.wiring == "fused" else ("combine", "reduce")
        return {
            **{f"partition-{n}": ("partition", "--instance", str(n)) for n in range(self.course.instances)},
            **{stage: (stage,) for stage in stages},
            **({"control": ("control",)} if self.course.controlled else {}),
        }

    @property
    def seconds(self) -> float:
        """Since the first tuple."""
        return time.monotonic() - self._begin

    def _settings(self) -> Settings:
        course = self.course
        place: dict[str, Any] = (
            {"path": str(self.folder / "results")} if course.sink in ("parquet", "delta") else {}
        )
        if course.sink == "avro":
            place = {"registry": {"url": self.registry.url}}
        kafka = self.broker.settings(
            bootstrap_servers=f"{HOST}:{self.proxy.port}",
            extras={"librdkafka": _QUICK if self._quick else {}},
        )
        query: dict[str, Any] = (
            {"late": course.late, "allowed_lateness": "3s"} if course.late == "update" else {}
        )
        if course.views:
            query |= {"views": VIEWS, "aggregates": INVERTIBLE}
        if course.partitioner in BATCH_PARTITIONERS:
            query["slide"] = "5s"
        spark: dict[str, Any] = {"wiring": course.wiring, "buckets": 3}
        if course.executors:
            spark |= EXECUTORS
        if not self._quick:
            spark["max_frames_per_batch"] = None
        registered = {"format": "avro", "registry": {"url": self.registry.url}} if course.registered else {}
        settings = make_settings(
            kafka,
            f"chaos-{course.seed}",
            self.folder / "checkpoint",
            query=query,
            input=registered,
            partitioner={
                "name": course.partitioner,
                "forwarding": course.forwarding,
                "instances": course.instances,
                "commit_interval": 400,
                # Every other course has workers that share partitions.
                "max_workers": 5 if course.seed % 2 else 7,
                "routed_partitions": 5,
            },
            spark=spark,
            results={"sink": course.sink, **place},
            control=CONTROL,
        )
        (self.folder / "evenflow.toml").write_text(as_toml(settings), encoding="utf-8")
        return settings

    # ---- the stream ----------------------------------------------------------------------------------

    def _feed(self) -> None:
        try:
            while self._feeding.is_set():
                # The client keeps what a broker that is away has not accepted, and sends it later in the same
                # order.
                with contextlib.suppress(ServiceError):
                    self.stream.write(TUPLES_AT_ONCE)
                threading.Event().wait(BETWEEN_WRITES)
        except KafkaException as error:
            self._broken.append(error)

    def stop_feeding(self) -> None:
        """Let the stream rest. Raises KafkaException if its client met an error that lasts."""
        self._feeding.clear()
        self._feeder.join()
        while self._broken:
            raise self._broken.pop()

    # ---- services ------------------------------------------------------------------------------------

    def run(self, name: str, *words: str) -> None:
        """Start a service that is started again whenever it ends."""
        self._words[name] = words
        self.parts[name] = self._started(name, words)

    def _started(self, name: str, words: tuple[str, ...]) -> ChildProcess:
        with self.clock("services"):
            return evenflow(self.folder / "evenflow.toml", self.folder / f"{name}.log", *words)

    def names(self, *commands: str) -> list[str]:
        """The services that run one of these commands."""
        return [name for name, words in self._words.items() if words[0] in commands]

    def kill(self, name: str) -> None:
        """SIGKILL a service and all that it has started."""
        self.parts[name].kill()

    def terminate(self, name: str) -> None:
        """SIGTERM a service, without waiting. It has `STOPS_WITHIN` seconds."""
        child = self.parts[name]
        os.kill(child.pid, signal.SIGTERM)
        self._stopping.append((time.monotonic() + STOPS_WITHIN, name, child))

    def freeze(self, child: ChildProcess) -> None:
        """SIGSTOP a process and all that it has started."""
        self.frozen.add(child.pid)
        child.signal(signal.SIGSTOP)

    def thaw(self, child: ChildProcess) -> None:
        """SIGCONT."""
        self.frozen.discard(child.pid)
        child.signal(signal.SIGCONT)

    def replace(self, name: str) -> None:
        """Start the same service again beside itself. The older process has to end because it is fenced."""
        self._leaving.append((name, self.parts[name]))
        self._drivers += 1
        self.parts[name] = self._started(f"{name}-{self._drivers}", self._words[name])

    def dismiss(self, name: str) -> None:
        """Stop a service for good."""
        if name in self._words:
            self._words.pop(name)
            child = self.parts.pop(name)
            self._leaving.append((name, child))
            if child.alive:
                os.kill(child.pid, signal.SIGTERM)

    def rename(self, name: str, *, within: float) -> None:
        """`evenflow rename`, as often as it is refused, because members and transactions of killed services
        are still there. Then the services go by the settings that it asks for.

        Raises AssertionError if it is refused for so many seconds.
        """
        file, deadline = self.folder / "evenflow.toml", time.monotonic() + within
        number = 0
        while True:
            number += 1
            command = evenflow(file, self.folder / f"rename-{number}.log", "rename", name, "--yes")
            if command.wait(within) == 0:
                break
            assert time.monotonic() < deadline, f"the query cannot be renamed: {command.tail()}"
        query = self.settings.query.model_copy(update={"name": name})
        given = self.settings.input.model_copy(update={"topic": self.settings.topic("input")})
        self.settings = self.settings.model_copy(update={"query": query, "input": given})
        self.stream.settings = self.settings
        create_topics(self.settings)
        file.write_text(as_toml(self.settings), encoding="utf-8")

    def attempt(self, kind: str, action: Callable[[], None]) -> None:
        """Do this. What cannot be done at this moment, because its target is down, is noted and counted."""
        try:
            action()
        except (EvenflowError, KafkaException, OSError) as error:
            self.missed[kind] += 1
            self.note(f"  not possible now: {type(error).__name__}: {str(error).splitlines()[0]}")

    def note(self, line: str) -> None:
        """Write down what happens."""
        self.history.append(f"{self.seconds:6.1f} s  {line}")

    def undo(self, seconds: float, action: Callable[[], None]) -> None:
        """Do this after so many seconds, or when the faults are over if that is earlier."""
        self._undo.append((time.monotonic() + seconds, action))

    def beside(self, kind: str, action: Callable[[], None]) -> None:
        """Do this in a thread of its own: a call of a broker that stands still must not hold up who lets
        it go on.
        """
        thread = threading.Thread(target=self.attempt, args=(kind, action), name="chaos-strike", daemon=True)
        thread.start()
        self._beside.append(thread)

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass."""
        end = self.seconds + seconds
        while self.seconds < end:
            self.tend()
            threading.Event().wait(TICK)

    def pass_until_at_work(self) -> None:
        """Let time pass until every stage has committed a micro-batch since now."""
        before = {stage: self._newest_batch(stage) for stage in STAGES[self.course.wiring]}
        end = self.seconds + AT_WORK_WITHIN
        while any(self._newest_batch(stage) <= number for stage, number in before.items()):
            if self.seconds > end:
                tails = {name: child.tail(6) for name, child in self.parts.items()}
                raise AssertionError(f"no micro-batch within {AT_WORK_WITHIN:g} s: {before}, {tails}")
            self.pass_seconds(TICK)
        self.note("at work")

    def _newest_batch(self, stage: str) -> int:
        """Number of the newest micro-batch that was committed, -1 before the first."""
        runs = (self.folder / "checkpoint" / "checkpoint" / self.settings.query.name / stage).glob(
            "*/commits/*"
        )
        return max((int(file.name) for file in runs if file.name.isdigit()), default=-1)

    @property
    def batches(self) -> int:
        """Micro-batches that were committed so far."""
        return sum(1 + self._newest_batch(stage) for stage in STAGES[self.course.wiring])

    def tend(self) -> None:
        """What a supervisor does all the time: start again what has ended. Also undo what has lasted long
        enough.
        """
        now = time.monotonic()
        for item in [item for item in self._undo if item[0] <= now]:
            self._undo.remove(item)
            item[1]()
        for late in [late for late in self._stopping if late[0] <= now]:
            self._stopping.remove(late)
            self._must_have_ended(*late[1:])
        if not self.broker.alive:
            self.note("the broker starts again")
            self._start_broker()
        for name, child in list(self.parts.items()):
            if child.alive:
                continue
            if name not in self._resting:
                self._count(name, child)
                self._resting[name] = now + RESTART_AFTER
            elif self._resting[name] <= now:
                del self._resting[name]
                self.parts[name] = self._started(name, self._words[name])

    def _start_broker(self) -> None:
        with contextlib.suppress(EvenflowError), self.clock("broker"):  # its disk may be full: tried again
            self.broker.start()

    def _count(self, name: str, child: ChildProcess) -> None:
        status = child.returncode or 0
        self.ends[status] += 1
        self.note(f"{name} ended with {status}")
        if status not in EXPECTED:
            self.violations.append(f"{name} ended with {status}: {child.tail(60)}")

    def _must_have_ended(self, name: str, child: ChildProcess) -> None:
        if child.alive:
            self.violations.append(
                f"{name} has not stopped within {STOPS_WITHIN:g} s of SIGTERM: {child.tail()}"
            )
            child.kill()

    # ---- the end -------------------------------------------------------------------------------------

    def heal(self) -> None:
        """Undo all that lasts, and wait for strikes that are still under way."""
        lasting, self._undo = self._undo, []
        for _, action in lasting:
            action()
        self.proxy.delay, self.proxy.refusing = 0.0, False
        if not self.broker.alive:
            with self.clock("broker"):
                self.broker.start()
        for thread in self._beside:
            thread.join()

    def stop_all(self) -> None:
        """SIGTERM every service, and wait until it has ended by itself."""
        for _, child in self._leaving:
            if child.alive:
                os.kill(child.pid, signal.SIGTERM)
        for name in list(self.parts):
            self.dismiss(name)
        self._await_leaving()

    def _await_leaving(self) -> None:
        for name, child in self._leaving:
            try:
                child.wait(STOPS_WITHIN)
            except EvenflowError:
                self.violations.append(f"{name} does not end: {child.tail()}")
                child.kill()
            else:
                self._count(name, child)
        self._leaving.clear()

    def finish(self, patience: float) -> None:
        """End the stream, and run everything until it has come to the end.

        patience: seconds in which a micro-batch has to be committed or a service has to end, however many of
        them are left. So a busy machine takes its time, and what stands still is found.
        """
        self.stream.end()
        running = {
            name: self._started(f"last-{name}", (*words, "--until-ended"))
            for name, words in self._services().items()
            if name != "control"  # it never comes to an end
        }
        self._leaving += running.items()
        seen, deadline = self._progress(running), time.monotonic() + patience
        while any(child.alive for child in running.values()) and time.monotonic() < deadline:
            threading.Event().wait(TICK)
            if (now := self._progress(running)) != seen:
                seen, deadline = now, time.monotonic() + patience
        for name, child in running.items():
            if child.alive:
                self.violations.append(f"{name} does not come to the end: {child.tail(30)}")
            elif child.returncode != 0:
                self.violations.append(
                    f"{name} ended with {child.returncode} though no fault was left: {child.tail()}"
                )

    def _progress(self, running: Mapping[str, ChildProcess]) -> tuple[int, int]:
        """How many of these services run, and the sum of the numbers of the newest micro-batches of every
        run, those of views included.
        """
        newest: dict[Path, int] = {}
        for file in (self.folder / "checkpoint" / "checkpoint").glob("*/*/*/commits/*"):
            if file.name.isdigit():
                newest[file.parent] = max(newest.get(file.parent, -1), int(file.name))
        return sum(child.alive for child in running.values()), sum(newest.values())

    def measure(self) -> None:
        """Note the memory of the partitioners, of the drivers' Java and of the broker."""
        partitioners = [self.parts[name].pid for name in self.names("partition") if self.parts[name].alive]
        drivers = [self.parts[name].pid for name in self.names("aggregate", "combine", "reduce")]
        java = [pid for driver in drivers for pid in java_of(driver)]
        broker = [] if self.broker.pid is None else [self.broker.pid]
        for sort, pids in (("partitioner", partitioners), ("Java", java), ("broker", broker)):
            self.memory[sort] += filter(None, map(resident, filter(settled, pids)))

    def _end_all(self) -> None:
        for child in (*self.parts.values(), *(child for _, child in self._leaving)):
            child.kill()


@contextlib.contextmanager
def _marked(token: str) -> Iterator[None]:
    """Whatever is started within bears the mark in its environment, so that it can be searched for at the
    end.
    """
    os.environ[MARK] = token
    try:
        yield
    finally:
        del os.environ[MARK]
