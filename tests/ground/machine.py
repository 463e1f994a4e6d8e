"""What the machine must have: root, Debian's packages, and one process at a time where two would collide."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from evenflow.errors import ServiceError
from tests.ground.debian import install

# A program of each of Debian's packages, by the package's name.
ENGINE_PACKAGES = {"docker.io": "dockerd", "iproute2": "ip", "iptables": "iptables"}
COMPOSE_PACKAGES = {"docker-compose": "docker-compose"}
IMAGE_PACKAGES = {"debootstrap": "debootstrap"}
PROMETHEUS_PACKAGES = {"prometheus": "prometheus"}
NODE_PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "containernetworking-plugins": "/usr/lib/cni/bridge",
    "iproute2": "ip",
    "iptables": "iptables",
    "tini": "tini",
}


def need(what: str, packages: Mapping[str, str]) -> None:
    """Install those of the packages that are missing. Raises ServiceError for anybody but root."""
    if os.geteuid() != 0:
        raise ServiceError(
            f"{what} needs root, and you are user {os.geteuid()}",
            hint=f"run it as root, which also installs what is missing of Debian's {', '.join(packages)}",
        )
    install(packages)


def run(*command: str) -> None:
    """Run a command of the system. Raises ServiceError with its complaint."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise ServiceError(f"{' '.join(command)}: {done.stderr.strip()}")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else on this machine makes `path` at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder that goes with the block. Those of killed processes go first."""
    for lock in Path(tempfile.gettempdir()).glob(f"{prefix}*/lock"):
        with suppress(OSError), lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with (folder / "being-locked").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            (folder / "being-locked").rename(folder / "lock")
            yield folder
