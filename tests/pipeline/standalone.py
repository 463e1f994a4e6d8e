"""A standalone Spark cluster on loopback, from pyspark's own jars: a master and a worker, each a Java
process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import NamedTuple

from spark_consumers.jars.fetch import spark_jars_dir
from tests.patience import PATIENCE
from workbench.local.ports import free_ports

_HOST = "127.0.0.1"
_PATIENCE = 120.0 * PATIENCE


class Standalone(NamedTuple):
    """A running cluster."""

    url: str
    master: Popen[bytes]


@contextmanager
def standalone(folder: Path, *, cores: int, memory: str) -> Iterator[Standalone]:
    """The worker has so many cores and so much memory for executors."""
    (port,) = free_ports(1)
    url = f"spark://{_HOST}:{port}"
    here = ("--host", _HOST, "--webui-port", "0")
    with (
        _process(folder / "master.log", "master.Master", *here, "--port", str(port)) as master,
        _process(
            folder / "worker.log", "worker.Worker", *here, "--cores", str(cores), "--memory", memory,
            "--work-dir", str(folder / "work"), url,
        ),
    ):  # fmt: skip
        _wait_for_worker(folder / "master.log", master)
        yield Standalone(url, master)


@contextmanager
def _process(log: Path, what: str, *words: str) -> Iterator[Popen[bytes]]:
    home = spark_jars_dir().parent
    environment = os.environ | {
        "SPARK_HOME": str(home), "SPARK_LOCAL_IP": _HOST, "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
    }  # fmt: skip
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}", *words]
    with log.open("wb") as out:
        process = Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except TimeoutExpired:
            process.kill()
            process.wait(5)


def _wait_for_worker(log: Path, master: Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while "Registering worker" not in log.read_text(errors="replace"):
        assert master.poll() is None, log.read_text(errors="replace")[-3000:]
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-3000:]
        time.sleep(0.1)
