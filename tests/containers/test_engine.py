"""The engine itself: what its containers see, and that nothing of it stays, however it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evenflow.errors import ServiceError
from tests.ground.engine import Engine, engine

pytestmark = pytest.mark.containers
_PATIENCE = 60
_HELD = """
import sys
from tests.ground.engine import engine
with engine() as own:
    print(own.host, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """An environment in which the engine is another one than that of the other tests, with an empty cache."""
    environment = {name: value for name, value in os.environ.items() if name != "DOCKER_HOST"}
    return environment | {"XDG_CACHE_HOME": str(tmp_path)}


def test_a_container_runs_the_base_s_python(docker_engine: Engine, python_base: str, java_base: str) -> None:
    command = ("run", "--rm", "--read-only", "--user=1000")
    assert docker_engine.docker(*command, python_base, "python", "-c", "print(6 * 7)") == "42"
    assert "17." in docker_engine.docker(*command, java_base, "java", "--version")


def test_a_container_reaches_nothing_outside(docker_engine: Engine, python_base: str) -> None:
    attempt = "import socket; socket.create_connection(('192.0.2.1', 9), timeout=1)"
    with pytest.raises(ServiceError, match=r"TimeoutError|unreachable"):
        docker_engine.docker("run", "--rm", python_base, "python", "-c", attempt)


def test_an_engine_that_nobody_runs_is_said() -> None:
    with (
        pytest.raises(ServiceError, match="no engine answers at DOCKER_HOST=unix:///nowhere"),
        engine(environment={"DOCKER_HOST": "unix:///nowhere"}),
    ):
        pass


@pytest.mark.parametrize("killed", [False, True])
def test_nothing_of_an_engine_stays(place: dict[str, str], tmp_path: Path, killed: bool) -> None:
    before = _traces(tmp_path)
    holder = _Holder(place)
    assert _traces(tmp_path) != before
    if killed:
        holder.process.kill()
        holder.process.communicate()
        holder = _Holder(place)  # the next one finds what the killed one left
    holder.let_go()
    assert _traces(tmp_path) == before


def test_processes_share_one_engine(place: dict[str, str]) -> None:
    first, second = _Holder(place), _Holder(place)
    assert first.host == second.host
    second.let_go()
    assert Engine(first.host).answers
    first.let_go()
    assert not Engine(first.host).answers


class _Holder:
    """A process that has an engine until it is told to let go."""

    def __init__(self, place: dict[str, str]) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([sys.executable, "-c", _HELD], env=place, text=True, **pipes)
        assert self.process.stdout is not None
        self.host = self.process.stdout.readline().strip()

    def let_go(self) -> None:
        self.process.communicate("", timeout=_PATIENCE)
        assert self.process.returncode == 0


def _traces(folder: Path) -> dict[str, str]:
    """What of the machine an engine may change. folder: where its files are."""
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout.splitlines()
    return {
        "mounts": str(mounts),
        "processes": str([line for line in running if str(folder) in line]),
        "links": str(sorted(os.listdir("/sys/class/net"))),
        "control groups": str(sorted(map(str, Path("/sys/fs/cgroup").glob("*/evenflow-*")))),
        "packet filter": subprocess.run(["iptables-save"], capture_output=True, text=True).stdout,
        "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
    }
