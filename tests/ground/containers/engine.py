"""A Docker engine for the tests: the one that DOCKER_HOST names, or one of our own that ends with us.

Our own engine keeps its layers in the cache. It publishes ports on loopback, through a process of its own and
not through the packet filter: it changes none of the machine's rules. Containers of a network reach one
another, and nothing translates their addresses to the outside. A build uses the machine's network.

Several test processes share one engine. The process that started the engine waits at its end until the others
are done.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from evenflow.errors import ServiceError
from spark_consumers.jars.fetch import cache_dir
from tests.ground.machine import ENGINE_PACKAGES, locked, need, run
from tests.ground.sandbox import Sandbox, remove_cgroups

_PATIENCE = 30.0
_KEPT = "8GB"  # of layers, between runs


@dataclass(frozen=True)
class Engine:
    """Where an engine listens."""

    host: str

    @property
    def environment(self) -> dict[str, str]:
        """What a client must find in its environment."""
        return {"DOCKER_HOST": self.host, "DOCKER_BUILDKIT": "1"}

    def docker(self, *words: str | Path, patience: float = 1800) -> str:
        """What `docker WORDS` prints. Raises ServiceError with what it complains of."""
        done = subprocess.run(
            [docker_command(), *map(str, words)],
            env=os.environ | self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
        )
        if done.returncode != 0:
            raise ServiceError(f"docker {words[0]} failed:\n{done.stderr.decode(errors='replace')[-4000:]}")
        return done.stdout.decode(errors="replace").strip()

    @contextmanager
    def saved(self, *images: str) -> Iterator[IO[bytes]]:
        """One archive of the images, as it is written. Raises ServiceError if it does not come whole."""
        command = [docker_command(), "save", *images]
        with subprocess.Popen(command, env=os.environ | self.environment, stdout=subprocess.PIPE) as saving:
            assert saving.stdout is not None
            yield saving.stdout
        if saving.returncode != 0:
            raise ServiceError(f"{' '.join(command)} ended with status {saving.returncode}")

    @property
    def answers(self) -> bool:
        """Whether an engine listens there."""
        try:
            self.docker("version", patience=10)
        except (ServiceError, subprocess.TimeoutExpired):
            return False
        return True

    def identities(self, *images: str) -> dict[str, str]:
        """The id of each image, without `sha256:`."""
        result = self.docker("image", "inspect", "--format={{.Id}}", *images).split()
        return {name: one.removeprefix("sha256:") for name, one in zip(images, result, strict=True)}

    def sizes(self, *images: str) -> dict[str, int]:
        """Bytes of each image."""
        result = self.docker("image", "inspect", "--format={{.Size}}", *images).split()
        return {name: int(one) for name, one in zip(images, result, strict=True)}


def docker_command() -> str:
    """Debian's, whose builds need no plugin; else the one on the path."""
    debian = Path("/usr/bin/docker")
    result = str(debian) if debian.exists() else shutil.which("docker")
    if result is None:
        raise ServiceError("there is no docker", hint="install Debian's docker.io, or set DOCKER_HOST")
    return result


@contextmanager
def engine(*, environment: Mapping[str, str] = os.environ) -> Iterator[Engine]:
    """An engine that answers. Raises ServiceError where none runs and none can be started."""
    named = environment.get("DOCKER_HOST")
    if named is None:
        with _own_engine() as own:
            yield own
        return
    running = Engine(named)
    if not running.answers:
        raise ServiceError(f"no engine answers at DOCKER_HOST={named}", hint="start it, or unset DOCKER_HOST")
    yield running


@contextmanager
def _own_engine() -> Iterator[Engine]:
    need("a Docker engine of our own", ENGINE_PACKAGES)
    place = _Place(cache_dir() / "docker")
    own = Engine(place.host)
    place.folder.mkdir(parents=True, exist_ok=True)
    with (place.folder / "users.lock").open("w") as users:
        with locked(place.folder / "start"):
            sandbox = None if own.answers else _start(place, own)
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield own
        finally:
            fcntl.flock(users, fcntl.LOCK_UN)
            if sandbox is not None:
                with locked(place.folder / "start"):
                    fcntl.flock(users, fcntl.LOCK_EX)
                    _stop(sandbox, place, own)


@dataclass(frozen=True)
class _Place:
    """Where an engine keeps its files, and its names on this machine: one for each folder."""

    folder: Path

    @property
    def host(self) -> str:
        return f"unix://{self.run / 'docker.sock'}"

    @property
    def run(self) -> Path:
        """For sockets, whose paths must be short."""
        return Path("/run") / self.name

    @property
    def log(self) -> Path:
        return self.folder / "engine.log"

    @property
    def number(self) -> int:
        return hashlib.sha256(str(self.folder).encode()).digest()[0]

    @property
    def name(self) -> str:
        """Of its bridge and its control group."""
        return f"evenflow-{self.number}"

    def command(self) -> list[str]:
        # Nothing of this touches the packet filter or forwarding; see the module's docstring.
        quiet = [f"--{name}=false" for name in ("iptables", "ip6tables", "ip-masq", "ip-forward")]
        return [
            "dockerd",
            f"--data-root={self.folder / 'data'}",
            f"--exec-root={self.run / 'exec'}",
            f"--pidfile={self.run / 'docker.pid'}",
            f"--host={self.host}",
            "--ip=127.0.0.1",
            f"--bridge={self.name}",
            f"--default-address-pool=base=172.29.{self.number}.0/24,size=27",
            f"--cgroup-parent=/{self.name}",
            *quiet,
        ]

    def make_bridge(self) -> None:
        run("ip", "link", "add", self.name, "type", "bridge")
        run("ip", "addr", "add", f"172.28.{self.number}.1/24", "dev", self.name)
        run("ip", "link", "set", self.name, "up")

    def remove_leftovers(self) -> None:
        """Of an engine that was killed, or has just ended."""
        for link in _links():
            if link == self.name or _address(link).startswith(f"172.29.{self.number}."):
                run("ip", "link", "del", link)
        remove_cgroups(self.name)
        shutil.rmtree(self.run, ignore_errors=True)


def _start(place: _Place, own: Engine) -> Sandbox:
    place.remove_leftovers()
    place.run.mkdir(mode=0o700)
    place.log.unlink(missing_ok=True)
    try:
        place.make_bridge()
        sandbox = Sandbox(place.command(), log=place.log)
        _wait_for_an_answer(sandbox, own)
    except BaseException:
        place.remove_leftovers()
        raise
    _empty(own)
    return sandbox


def _wait_for_an_answer(sandbox: Sandbox, own: Engine) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not own.answers:
        if not sandbox.process.alive or time.monotonic() >= deadline:
            sandbox.end()
            raise ServiceError(f"the Docker engine does not start:\n{sandbox.process.tail()}")
        time.sleep(0.05)


def _stop(sandbox: Sandbox, place: _Place, own: Engine) -> None:
    if sandbox.process.alive:
        _empty(own)
    sandbox.end(grace=_PATIENCE)
    place.remove_leftovers()


def _empty(own: Engine) -> None:
    """Take away the containers and networks of tests, and images without a name; of the layers a good many
    stay.
    """
    containers = own.docker("ps", "--all", "--quiet").split()
    if containers:
        own.docker("rm", "--force", "--volumes", *containers)
    for what in ("network", "image"):
        own.docker(what, "prune", "--force")
    own.docker("builder", "prune", "--force", f"--keep-storage={_KEPT}")


def _links() -> list[str]:
    """Names of the machine's bridges."""
    return [path.parent.name for path in Path("/sys/class/net").glob("*/bridge")]


def _address(link: str) -> str:
    """The first IPv4 address of a link; empty where it has none."""
    result = [each for each in psutil.net_if_addrs().get(link, ()) if each.family == socket.AF_INET]
    return str(result[0].address) if result else ""
