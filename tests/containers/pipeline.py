"""The product's images as containers on a network of their own, locked down as compose.yaml does it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from docker.errors import APIError
from docker.models.containers import Container
from testcontainers.community.kafka import KafkaContainer
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from tests.ground.containers.engine import Engine
from tests.ground.waiting import wait_until

PATIENCE = 240.0
CHECKPOINTS = "/var/lib/evenflow"
KILLED = 137
_CHECKED_EVERY = 5_000_000_000  # ns; the images' own checks are further apart
_LINES = 60
_NOT_YET = "the row is due but was never written"
_USER = 10001
_ON_LOOPBACK = {"com.docker.network.bridge.host_binding_ipv4": "127.0.0.1"}
_LOCKED = {
    "read_only": True,
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges:true"],
    "restart_policy": {"Name": "unless-stopped"},
    "working_dir": "/tmp",
    "healthcheck": {"interval": _CHECKED_EVERY},
}


class Part:
    """A container, by its name on the network."""

    def __init__(self, name: str, started: DockerContainer) -> None:
        self.name = name
        self.container: Container = started.get_wrapped_container()

    @property
    def state(self) -> dict[str, Any]:
        """What the engine says of its process."""
        self.container.reload()
        return dict(self.container.attrs["State"])

    @property
    def health(self) -> str:
        """`starting`, `healthy` or `unhealthy`, by its own health command."""
        return str(self.state["Health"]["Status"])

    @property
    def exit_status(self) -> int:
        """Of the process that ended last."""
        return int(self.state["ExitCode"])

    @property
    def restarts(self) -> int:
        """How often the engine has started it again of itself."""
        self.container.reload()
        return int(self.container.attrs["RestartCount"])

    def said(self, *, lines: int | str = "all") -> str:
        """What it logged since it was made."""
        return str(self.container.logs(tail=lines).decode(errors="replace"))

    def inside(self, *command: str) -> tuple[int, str]:
        """Exit status and output of a command in the container."""
        done = self.container.exec_run(list(command))
        return done.exit_code, done.output.decode(errors="replace")

    def page(self, path: str) -> dict[str, Any]:
        """A JSON page that it serves, asked for from inside: that needs no network. Empty without an
        answer.
        """
        try:
            status, said = self.inside("evenflow", "health", f"http://127.0.0.1:8080{path}")
        except APIError as error:
            if error.status_code != HTTPStatus.CONFLICT:
                raise
            return {}  # the engine starts it again just now
        return dict(json.loads(said)) if status == 0 else {}

    def reaches(self, host: str, port: int) -> bool:
        """Whether a connection can be made from inside."""
        code = f"import socket; socket.create_connection(('{host}', {port}), timeout=3)"
        return self.inside("python", "-c", code)[0] == 0

    def kill(self) -> None:
        """As a crash does it; it stays down until it is started."""
        self.container.kill("SIGKILL")
        wait_until(lambda: not self.state["Running"], f"{self.name} does not end", patience=PATIENCE)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """None of its processes runs, and nobody is told."""
        self.container.pause()
        try:
            yield
        finally:
            self.container.unpause()

    def wait_healthy(self) -> None:
        """Until its health command says so."""
        wait_until(
            lambda: self.health == "healthy", f"{self.name} does not become healthy", patience=PATIENCE
        )

    def wait_said(self, words: str) -> None:
        """Until its log has these words."""
        wait_until(lambda: words in self.said(), f"{self.name} does not say {words!r}", patience=PATIENCE)


class Pipeline:
    """A network, a volume for checkpoints, and what is started on them; all gone at the end of its block.

    images: target -> image. settings: EVENFLOW_* of every container, in lower case and without the prefix.
    room: of the volume, such as `40m`, which then lies in memory. with_volume: ends of the names of the
    targets that get it.
    """

    def __init__(
        self,
        engine: Engine,
        images: Mapping[str, str],
        settings: Mapping[str, str],
        *,
        room: str | None = None,
        with_volume: tuple[str, ...] = ("spark",),
    ) -> None:
        self.engine = engine
        self._with_volume = with_volume
        self._room = room
        self._images = images
        self._environment = {f"EVENFLOW_{name.upper()}": value for name, value in settings.items()}
        self.parts: dict[str, Part] = {}
        self.volume = f"evenflow-test-{uuid4().hex[:8]}"
        self._network = Network(docker_network_kw={"options": _ON_LOOPBACK})
        self._ends = ExitStack()

    def __enter__(self) -> Pipeline:
        self._ends.enter_context(self._network)
        bounded = ["type=tmpfs", "device=tmpfs", f"o=size={self._room},uid={_USER},gid={_USER}"]
        options = [f"--opt={option}" for option in bounded] if self._room else []
        self.engine.docker("volume", "create", *options, self.volume)
        self._ends.callback(self.engine.docker, "volume", "rm", "--force", self.volume)
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.close()

    def start_kafka(self, image: str) -> Part:
        """A broker, `kafka:9092` on the network."""
        kafka = KafkaContainer(image).with_kraft().with_network(self._network).with_network_aliases("kafka")
        kafka.with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false")
        self._ends.callback(kafka.stop)
        # Its own patience, 30 s, is too short for a busy machine.
        return self._added("kafka", kafka.start(timeout=int(PATIENCE)))

    def start(self, name: str, target: str, *command: str, **settings: str) -> Part:
        """A container of a target's image. settings: beside the pipeline's own."""
        one = self._container(target, settings).with_network_aliases(name).with_command(list(command))
        return self._added(name, self._ends.enter_context(one))

    def hold_volume(self) -> Part:
        """A container that does nothing: a volume in memory lasts as long as somebody has it."""
        one = DockerContainer(self._images["tools"], entrypoint=["sleep", "infinity"])
        one.with_volume_mapping(self.volume, CHECKPOINTS, "rw")
        return self._added("holder", self._ends.enter_context(one))

    def run(self, target: str, *command: str, **settings: str) -> tuple[int, str]:
        """Exit status and log of a container that is run to its end."""
        one = self._container(target, settings).with_command(list(command))
        one.with_kwargs(**(_LOCKED | {"restart_policy": None}))
        with one:
            running = one.get_wrapped_container()
            status = running.wait(timeout=3 * PATIENCE)["StatusCode"]
            return int(status), running.logs().decode(errors="replace")

    def verify(self, *more: str) -> None:
        """Every window that is due is what a direct aggregation gives. Behind a stream's end it waits for
        the last ones.
        """
        words = ("verify", "--due-within", f"{PATIENCE:g}s", *more)
        checked = until_written(lambda: self.run("tools", *words)[1])
        assert checked.rstrip().endswith("\n0 differences"), checked

    def logs(self) -> str:
        """The end of what each container said, and how it fares."""
        return "\n".join(
            f"--- {part.name}: {part.state}\n{part.said(lines=_LINES)}" for part in self.parts.values()
        )

    def _container(self, target: str, settings: Mapping[str, str]) -> DockerContainer:
        one = (
            DockerContainer(self._images[target]).with_network(self._network).with_tmpfs_mount("/tmp", "exec")
        )
        one.with_kwargs(**_LOCKED)
        if target.endswith(self._with_volume):
            one.with_volume_mapping(self.volume, CHECKPOINTS, "rw")
        more = {f"EVENFLOW_{name.upper()}": value for name, value in settings.items()}
        return one.with_envs(**(self._environment | more))

    def _added(self, name: str, started: DockerContainer) -> Part:
        self.parts[name] = Part(name, started)
        return self.parts[name]


def until_written(verify: Callable[[], str]) -> str:
    """What `verify` says once Spark has written all that is due: of a stream that has ended it does not
    wait for that.
    """
    said = ""

    def all_written() -> bool:
        nonlocal said
        said = verify()
        return _NOT_YET not in said

    wait_until(all_written, "Spark does not write all that is due", patience=PATIENCE)
    return said
