"""Faults of the network between containers, made at the machine's end of a container's cable. They need root.

A container has one cable for each network that it is on; here is its first.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evenflow.errors import ServiceError
from tests.ground.containers.engine import Engine
from tests.ground.machine import run


@contextmanager
def cut(engine: Engine, container: str) -> Iterator[None]:
    """Nothing reaches the container, nor leaves it; neither side is told."""
    cable = _cable(engine, container)
    run("ip", "link", "set", cable, "down")
    try:
        yield
    finally:
        run("ip", "link", "set", cable, "up")


@contextmanager
def slowed(engine: Engine, container: str, rate: str) -> Iterator[Callable[[], int]]:
    """What others send to the container comes at `rate` in `tc`'s words, such as `256kbit`; the rest waits.

    Gives how often something had to wait so far.
    """
    cable = _cable(engine, container)
    run("tc", "qdisc", "add", "dev", cable, "root", "tbf", "rate", rate, "burst", "16kb", "latency", "10s")
    try:
        yield lambda: _waits(cable)
    finally:
        run("tc", "qdisc", "del", "dev", cable, "root")


def _waits(cable: str) -> int:
    command = ["tc", "-statistics", "-json", "qdisc", "show", "dev", cable]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return sum(int(one["overlimits"]) for one in shown)


def _cable(engine: Engine, container: str) -> str:
    """The name of the machine's end; the container knows its number."""
    number = engine.docker("exec", container, "cat", "/sys/class/net/eth0/iflink")
    for link in Path("/sys/class/net").iterdir():
        if (link / "ifindex").read_text().strip() == number:
            return link.name
    raise ServiceError(
        f"the cable of container {container} has no end on this machine",
        hint="does its engine run elsewhere?",
    )
