"""Machines for Spark on this one: a standalone cluster whose workers have addresses of their own.

Spark prefers a *host* for a task that reads a shuffle. Executors of `local-cluster` share one host, so there
Spark cannot tell whose output a task reads.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from evenflow.errors import ServiceError
from workbench.local.processes import ChildProcess

_HOME = Path(pyspark.__file__).parent
_PATIENCE = 60.0
_DAEMONS = "org.apache.spark.deploy"


@contextmanager
def machines(count: int, folder: Path, *, memory: str = "1g") -> Iterator[str]:
    """The address (`spark.master`) of a cluster of `count` machines with a core each, at 127.0.0.1 and on.

    folder: for logs and the executors' files. memory: of each machine. Raises ServiceError if one does not
    start.
    """
    with ExitStack() as running:

        def start(name: str, host: str, *words: str) -> ChildProcess:
            # What a Spark of this process has set there is not meant for these processes.
            inherited = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
            # By SPARK_LOCAL_IP go the pages, which else listen on all addresses.
            own = {"SPARK_HOME": str(_HOME), "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": host}
            at = ("--host", host, "--port", "0", "--webui-port", "0")
            command = [str(_HOME / "bin" / "spark-class"), *words, *at]
            return running.enter_context(
                ChildProcess(command, log=folder / f"{name}.log", name=name, env=inherited | own)
            )

        master = start("master", "127.0.0.1", f"{_DAEMONS}.master.Master")
        address = _line(master, r"Starting Spark master at (spark://\S+)")
        for number in range(1, count + 1):
            worker = start(
                f"machine-{number}",
                f"127.0.0.{number}",
                f"{_DAEMONS}.worker.Worker",
                address,
                *("--cores", "1", "--memory", memory, "--work-dir", str(folder / f"machine-{number}")),
            )
            _line(worker, r"Successfully registered with master (\S+)")
        yield address


def _line(child: ChildProcess, pattern: str) -> str:
    """What the pattern's group matches in the output, as soon as it is there."""
    deadline = time.monotonic() + _PATIENCE
    while (match := re.search(pattern, child.output())) is None:
        if not child.alive or time.monotonic() > deadline:
            raise ServiceError(f"{child.name} of Spark did not start: {child.tail()}")
        time.sleep(0.1)
    return match[1]
