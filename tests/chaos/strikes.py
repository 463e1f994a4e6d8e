"""What each kind of strike does to the world. What lasts is undone by `World.undo`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from confluent_kafka import TopicPartition

from evenflow.settings.views import queries
from partitioner_service.plans_by_hand import publish
from tests.chaos.clocks import MOST
from tests.chaos.course import ON_SMALL_DISKS, Strike
from tests.chaos.processes import executors, java_of, python_workers
from tests.chaos.world import STAGES, World
from tests.pipeline.spark_stream import committed
from topics import clients
from workbench.local.processes import ChildProcess

_DELAY = 0.1
"""Seconds that each piece of a slow connection waits."""
_STATUSES = (500, 503, 429, 401, 403)
"""What a failing registry answers to everything. Not 404, which would say of each id that there is no such
schema.
"""
_PARTITION = ("partition",)
_DRIVER = ("aggregate", "combine", "reduce")
_CONTROLLER = ("control",)


def strike(world: World, fault: Strike) -> None:
    """Do it, if it can be done at this moment."""
    world.note(f"{fault.kind} ({fault.target}, {fault.lasts:.1f} s)")
    world.measure()
    world.attempt(fault.kind, partial(HOW[fault.kind], world, fault))


def _target(world: World, fault: Strike, commands: tuple[str, ...]) -> str:
    names = world.names(*commands)
    return names[fault.target % len(names)]


def _running(world: World, name: str) -> ChildProcess:
    """The process of this service. Raises ProcessLookupError if it has ended, or stands still."""
    child = world.parts[name]
    if not child.alive or child.pid in world.frozen:
        raise ProcessLookupError(f"{name} does not run")
    return child


def _kill(commands: tuple[str, ...], world: World, fault: Strike) -> None:
    name = _target(world, fault, commands)
    if not world.parts[name].alive:
        raise ProcessLookupError(f"{name} does not run")
    world.kill(name)


def _stop(commands: tuple[str, ...], world: World, fault: Strike) -> None:
    name = _target(world, fault, commands)
    _running(world, name)
    world.terminate(name)


def _pause(commands: tuple[str, ...], world: World, fault: Strike) -> None:
    _freeze_for(world, _running(world, _target(world, fault, commands)), fault.lasts)


def _freeze_for(world: World, child: ChildProcess, seconds: float) -> None:
    world.freeze(child)
    world.undo(seconds, partial(world.thaw, child))


def _one_more_partitioner(world: World, fault: Strike) -> None:
    instance = f"extra-{fault.target}"
    name = f"partition-{instance}"
    if name in world.parts:
        raise ProcessLookupError(f"{name} is there already")
    world.run(name, "partition", "--instance", instance)
    world.undo(fault.lasts, partial(world.dismiss, name))


def _second_driver(world: World, fault: Strike) -> None:
    """The older of two drivers goes on, or stands still meanwhile: either way it must end as soon as it
    notices.
    """
    name = _target(world, fault, _DRIVER)
    older = world.parts[name]
    if older.alive and older.pid not in world.frozen and fault.lasts > 4.0:
        _freeze_for(world, older, fault.lasts + 8.0)
    world.replace(name)


def _kill_below(search: Callable[[int], list[int]], world: World, fault: Strike) -> None:
    """SIGKILL one of the processes that a driver has started. Raises ProcessLookupError if there is none."""
    below = search(world.parts[_target(world, fault, _DRIVER)].pid)
    if not below:
        raise ProcessLookupError("the driver has no such process")
    os.kill(below[fault.target % len(below)], signal.SIGKILL)


def _kill_broker(world: World, fault: Strike) -> None:
    world.broker.kill()


def _restart_broker(world: World, fault: Strike) -> None:
    with world.clock("broker"):
        world.broker.restart()


def _pause_broker(world: World, fault: Strike) -> None:
    pid = world.broker.pid
    if pid is None:
        raise ProcessLookupError("the broker does not run")
    os.killpg(pid, signal.SIGSTOP)

    def go_on() -> None:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGCONT)

    world.undo(fault.lasts, go_on)


def _cut(world: World, fault: Strike) -> None:
    world.proxy.cut()


def _slow(world: World, fault: Strike) -> None:
    world.proxy.delay = _DELAY
    world.undo(fault.lasts, partial(setattr, world.proxy, "delay", 0.0))


def _refuse(world: World, fault: Strike) -> None:
    world.proxy.refusing = True
    world.proxy.cut()
    world.undo(fault.lasts, partial(setattr, world.proxy, "refusing", False))


def _plan(world: World, fault: Strike) -> None:
    workers = 1 + fault.target % world.settings.max_workers

    def ask() -> None:
        publish(world.settings, workers=workers, reason="chaos")

    world.beside(fault.kind, ask)


def _trim_routed(world: World, fault: Strike) -> None:
    """Delete routed frames that lie before the last commit of each combiner, as a short retention would."""
    world.beside(fault.kind, partial(_trim, world))


def _trim(world: World) -> None:
    topic = world.settings.topic("routed")
    # Each view has a combiner of its own, which may be behind that of the query.
    reached = [committed(one, STAGES[world.course.wiring][0]) for one in queries(world.settings)]
    offsets = {number: min(each.get(number, 0) for each in reached) for number in reached[0]}
    wanted = [TopicPartition(topic, int(number), offset) for number, offset in offsets.items() if offset]
    if not wanted:
        raise ProcessLookupError("nothing has been read yet")
    for done in clients.admin(world.settings.kafka).delete_records(wanted).values():
        done.result()


def _fail_registry(world: World, fault: Strike) -> None:
    """Every answer is an error. A partitioner asks for the next schema soon. One that is killed now asks for
    all of them.
    """
    status = _STATUSES[fault.target % len(_STATUSES)]
    world.note(f"  HTTP {status}")
    world.registry.status = status
    if fault.target // len(_STATUSES) % 2:
        world.kill(_target(world, fault, _PARTITION))
    world.undo(fault.lasts, partial(setattr, world.registry, "status", 200))


def _set_clock(world: World, fault: Strike) -> None:
    """Set the clock of the services, of the broker, or of both, by 1 s to 17 minutes, for good."""
    step = 2 ** (fault.target % 11) * (1 if fault.target // 11 % 2 else -1)
    for name in (("services",), ("broker",), ("services", "broker"))[fault.target // 22 % 3]:
        wrong = world.clocks.wrong(name) + step
        # What would be wrong by too much is set in the other direction.
        wrong = wrong if abs(wrong) <= MOST else wrong - 2 * step
        world.note(f"  the clock of the {name} is {wrong:+d} s")
        world.clocks.set(name, wrong)


def _power_cut(world: World, fault: Strike) -> None:
    world.broker.kill()
    for name in list(world.parts):
        world.kill(name)


def _fill(disk: str, world: World, fault: Strike) -> None:
    ballast = world.folder / disk / "ballast"
    _write_until_full(ballast)
    world.undo(fault.lasts, partial(ballast.unlink, missing_ok=True))


def _write_until_full(file: Path) -> None:
    with suppress(OSError), file.open("wb", buffering=0) as ballast:
        for size in (1 << 20, 1 << 12):
            with suppress(OSError):
                while ballast.write(b"\0" * size):
                    pass


HOW: dict[str, Callable[[World, Strike], None]] = {
    "kill partitioner": partial(_kill, _PARTITION),
    "stop partitioner": partial(_stop, _PARTITION),
    "pause partitioner": partial(_pause, _PARTITION),
    "one more partitioner": _one_more_partitioner,
    "kill driver": partial(_kill, _DRIVER),
    "stop driver": partial(_stop, _DRIVER),
    "pause driver": partial(_pause, _DRIVER),
    "second driver": _second_driver,
    "kill python worker": partial(_kill_below, python_workers),
    "kill java": partial(_kill_below, java_of),
    "kill executor": partial(_kill_below, executors),
    "kill controller": partial(_kill, _CONTROLLER),
    "stop controller": partial(_stop, _CONTROLLER),
    "pause controller": partial(_pause, _CONTROLLER),
    "kill broker": _kill_broker,
    "restart broker": _restart_broker,
    "pause broker": _pause_broker,
    "cut connections": _cut,
    "slow connections": _slow,
    "refuse connections": _refuse,
    "plan": _plan,
    "trim routed": _trim_routed,
    "power cut": _power_cut,
    "registry fails": _fail_registry,
    "set clock": _set_clock,
    **{kind: partial(_fill, kind.removeprefix("full ")) for kind in ON_SMALL_DISKS},
}
