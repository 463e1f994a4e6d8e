"""A real Kafka broker on this machine: one JVM, KRaft combined mode, listening on 127.0.0.1 only.

A data folder holds `kafka/` (the broker's log folder), `server.properties`, `broker.log` and `broker.lock`.
The lock is held by this process *and* by the JVM, which inherits it. So a folder is free exactly when both
have ended, whatever an earlier run left behind. `kafka/` appears by one rename after formatting. So a folder
is formatted again if a run broke while formatting it, and is never formatted twice.
"""

from __future__ import annotations

import base64
import fcntl
import os
import shutil
import signal
import socket
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from evenflow.errors import ConfigError, ServiceError
from evenflow.settings import KafkaSettings
from evenflow.settings.kafka import librdkafka_config
from evenflow.settings.places import private_folder
from spark_consumers.jars.archive import making, path_of, using
from spark_consumers.jars.fetch import java_command
from workbench.left_folders import remove_left_folders
from workbench.local.broker_jars import kafka_broker_jars
from workbench.local.broker_properties import (
    HOST,
    Certificates,
    broker_properties,
    escaped,
    login_properties,
    tls_properties,
)
from workbench.local.ports import free_ports
from workbench.local.processes import ChildProcess

_PORT_ATTEMPTS = 5
_TEMPORARY = "evenflow-broker-"
_LOCK = "broker.lock"
_PORT_TAKEN = ("Address already in use", "Address in use", "BindException")


def broker_archive_path(jars: list[Path]) -> Path:
    """Path of the archive of the broker's classes. The file need not exist. jars: of the broker."""
    return path_of(["broker"], jars)


def new_cluster() -> str:
    """A new id of a cluster."""
    # Without dashes, because the tool that formats would take a leading dash for an option.
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode().replace("-", "A")


class EmbeddedBroker:
    """A broker as a context manager. `start()` and `stop()` do the same by hand.

    Without `data_dir` the broker lives in a temporary folder, which is removed at the end. With `data_dir`
    its topics stay. `port=0` takes a free port, and keeps it over `restart()` unless another process took it.
    `sasl` maps users to passwords: clients must then log in (SASL, PLAIN), and only `super_user` may do
    anything without an ACL. With `tls` clients must use TLS and show a certificate of that authority.
    `properties` win over ours. cluster: id of the cluster that the folder is formatted for, a new one if
    None. heap: of the JVM, as in `-Xmx`. start_timeout: seconds until the broker must answer. grace: seconds
    between SIGTERM and SIGKILL. classes_to: file for the archive of classes that this broker writes as it
    ends. Raises ConfigError if the super user is none of the users.
    """

    def __init__(
        self,
        *,
        data_dir: Path | None = None,
        port: int = 0,
        sasl: Mapping[str, str] | None = None,
        super_user: str = "admin",
        tls: Certificates | None = None,
        properties: Mapping[str, str] | None = None,
        cluster: str | None = None,
        heap: str = "512m",
        start_timeout: float = 60.0,
        grace: float = 15.0,
        classes_to: Path | None = None,
    ) -> None:
        if sasl is not None and super_user not in sasl:
            raise ConfigError(f"the super user {super_user!r} is none of the users", hint="add it to sasl")
        self._keep = data_dir is not None
        self.data_dir = data_dir.absolute() if data_dir is not None else Path()
        self.port = port
        self._any_port = port == 0
        self._sasl = dict(sasl) if sasl is not None else None
        self._super_user = super_user
        self._tls = tls
        self._properties = dict(properties or {})
        self._cluster = cluster or new_cluster()
        self._heap = heap
        self._start_timeout = start_timeout
        self._grace = grace
        self._classes_to = classes_to
        self._lock: int | None = None
        self._child: ChildProcess | None = None

    @property
    def bootstrap_servers(self) -> str:
        """`127.0.0.1:port`."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """Process id of the JVM. None if the JVM does not run."""
        return self._child.pid if self._child is not None and self._child.alive else None

    @property
    def alive(self) -> bool:
        """Whether the JVM runs."""
        return self.pid is not None

    @property
    def log(self) -> Path:
        """What the broker and its formatting wrote."""
        return self.data_dir / "broker.log"

    def settings(self, user: str | None = None, **more: object) -> KafkaSettings:
        """Settings that reach this broker, as `user` (default: the super user) if the broker asks
        for a login.
        """
        fields: dict[str, object] = {"bootstrap_servers": self.bootstrap_servers}
        if self._tls is not None:
            fields |= {
                "ssl_ca": self._tls.authority,
                "ssl_certificate": self._tls.certificate,
                "ssl_key": self._tls.key,
            }
        fields["security_protocol"] = self._protocol
        if self._sasl is not None:
            name = user or self._super_user
            fields |= {
                "sasl_mechanism": "PLAIN",
                "sasl_username": name,
                "sasl_password": self._sasl[name],
            }
        return KafkaSettings.model_validate(fields | more)

    @property
    def _protocol(self) -> str:
        encrypted = "PLAINTEXT" if self._tls is None else "SSL"
        return encrypted if self._sasl is None else f"SASL_{encrypted}"

    def start(self) -> EmbeddedBroker:
        """Start the broker and wait until it answers.

        Raises ServiceError, with the end of the log, if the broker does not answer in time or ends.
        """
        if self.alive:
            return self
        java, jars = java_command(), kafka_broker_jars()
        if not self._keep and self._lock is None:
            remove_left_folders(Path(tempfile.gettempdir()), _TEMPORARY, lock=_LOCK)
            self.data_dir = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
        try:
            self._acquire()
            if not self._any_port and not _is_free(self.port):
                raise self._port_taken()
            self._format(java, jars)
            self._launch(java, jars)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL after the grace.
        The folder is then free again, and removed if it was temporary.
        """
        self._end(lambda child: child.terminate(self._grace))
        self._release()
        if not self._keep and self.data_dir != Path():
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def kill(self) -> None:
        """SIGKILL the JVM, as a crash would. Data and port are kept for `restart()`."""
        self._end(ChildProcess.kill)

    def restart(self) -> None:
        """Stop the JVM, if it runs, and start it on the same data and port."""
        self._end(lambda child: child.terminate(self._grace))
        self.start()

    def __enter__(self) -> EmbeddedBroker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # ---- the data folder -------------------------------------------------------------------------

    def _acquire(self) -> None:
        """Take the folder's lock. If the owner is dead, its JVM may need a moment
        to end too. Raises ServiceError.
        """
        if self._lock is not None:
            return
        try:
            private_folder(self.data_dir)
            lock = os.open(self.data_dir / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise ServiceError(
                f"the data folder {self.data_dir} cannot be used: {error.strerror}",
                hint="name another folder",
            ) from None
        deadline = time.monotonic() + self._grace
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                owner = os.read(lock, 32).decode(errors="replace").strip()
                os.lseek(lock, 0, os.SEEK_SET)
                if _is_alive(owner) or time.monotonic() >= deadline:
                    os.close(lock)
                    raise ServiceError(
                        f"the data folder {self.data_dir} is in use by a live broker of process {owner}",
                        hint="stop that one first, or name another folder",
                    ) from None
                time.sleep(0.05)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        self._lock = lock

    def _release(self) -> None:
        if self._lock is not None:
            os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = None

    def _format(self, java: str, jars: list[Path]) -> None:
        if (self.data_dir / "kafka" / "meta.properties").exists():
            return
        half = self.data_dir / "kafka.formatting"
        shutil.rmtree(half, ignore_errors=True)
        properties = self._write_properties(half, [1, 2])  # formatting opens no ports
        tool = [
            *self._java(java, jars),
            "kafka.tools.StorageTool",
            "format",
            "-t",
            self._cluster,
            "-c",
            str(properties),
        ]
        child = ChildProcess(tool, log=self.log, name="format", keep_open=self._inherited())
        self._child = child
        if child.wait(self._start_timeout) != 0:
            raise ServiceError(f"the broker's folder cannot be formatted:\n{child.tail()}")
        half.rename(self.data_dir / "kafka")

    # ---- the JVM -----------------------------------------------------------------------------------

    def _launch(self, java: str, jars: list[Path]) -> None:
        # A port that was free may be taken before the broker listens there. Then other ports are tried.
        for _ in range(_PORT_ATTEMPTS):
            ports = free_ports(2)
            if self.port:
                ports[0] = self.port
            self.port = ports[0]
            properties = self._write_properties(self.data_dir / "kafka", ports)
            classes = [] if self._classes_to is None else making(self._classes_to)
            command = [*self._java(java, jars), *classes, "kafka.Kafka", str(properties)]
            self._child = ChildProcess(command, log=self.log, name="broker", keep_open=self._inherited())
            if self._becomes_ready(self._child):
                return
            if self._any_port:
                self.port = 0
        raise self._port_taken()

    def _port_taken(self) -> ServiceError:
        return ServiceError(
            f"another process has port {self.port or 'after port'} on {HOST}",
            hint="stop it, or choose another port (0: a free one)",
        )

    def _becomes_ready(self, child: ChildProcess) -> bool:
        """Wait until the broker answers.
        Returns False if it ended because a port was taken. Raises ServiceError.
        """
        deadline = time.monotonic() + self._start_timeout
        client = AdminClient(librdkafka_config(self.settings(), log_level=0, reconnect_backoff_max_ms=100))
        while child.alive:
            try:
                if client.list_topics(timeout=0.5).brokers:
                    return child.alive  # if ours has ended, another broker has answered at this port
            except KafkaException:
                pass
            if time.monotonic() >= deadline:
                raise ServiceError(
                    f"the broker does not answer within {self._start_timeout:g} s; "
                    f"the end of its log ({self.log}):\n{child.tail()}"
                )
        output = child.output()
        if any(sign in output for sign in _PORT_TAKEN):
            return False
        raise ServiceError(
            f"the broker ended with status {child.returncode}; "
            f"the end of its log ({self.log}):\n{child.tail()}"
        )

    def _end(self, how: Callable[[ChildProcess], int]) -> None:
        if self._child is not None:
            how(self._child)
            self._child = None

    def _inherited(self) -> list[int]:
        return [] if self._lock is None else [self._lock]

    def _java(self, java: str, jars: list[Path]) -> list[str]:
        return [
            java,
            f"-Xmx{self._heap}",
            "-Xms128m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            *(using(broker_archive_path(jars)) or ["-Xshare:auto"]),
            "-XX:-UsePerfData",
            "-Djava.awt.headless=true",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
            "-cp",
            str(jars[0].parent / "*"),
        ]

    def _write_properties(self, log_dir: Path, ports: list[int]) -> Path:
        properties = broker_properties(log_dir, ports[0], ports[1])
        if self._sasl is not None:
            properties |= login_properties(self._sasl, self._super_user)
        if self._tls is not None:
            properties |= tls_properties(self._tls, log_dir)
        controller = "PLAINTEXT" if self._sasl is None else "SASL_PLAINTEXT"
        properties["listener.security.protocol.map"] = f"CLIENT:{self._protocol},CONTROLLER:{controller}"
        properties |= self._properties
        file = self.data_dir / "server.properties"
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as text:
            text.writelines(f"{name}={escaped(value)}\n" for name, value in properties.items())
        return file


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the broker does: connections of a broker that has just ended must not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _is_alive(pid: str) -> bool:
    """Whether a process that is no zombie has this id."""
    try:
        # The name, in parentheses, may hold spaces and parentheses itself. The state follows the last one.
        state = Path(f"/proc/{int(pid)}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, ValueError, IndexError):
        return False
    return state not in "ZX"


def run_until_stopped(broker: EmbeddedBroker, *, ready: Callable[[EmbeddedBroker], None]) -> None:
    """Run a broker in the foreground until SIGINT or SIGTERM.
    Raises ServiceError if the broker ends by itself.

    ready: called once the broker answers. To be called from the main thread. Both signals are blocked, so
    that they cannot interrupt the start or the stop of the broker.
    """
    ends = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        with broker:
            ready(broker)
            while signal.sigtimedwait(ends, 0.5) is None:
                if not broker.alive:
                    raise ServiceError("the broker ended by itself", hint=f"see {broker.log}")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
