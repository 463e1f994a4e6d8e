"""Flink's environment: a virtual environment of its own and the Kafka connector, made once and cached for
good.

`$XDG_CACHE_HOME/evenflow/peers/flink-VERSION` is made by this Python and pip, as pip is set up on this
machine. It takes about 850 MB on disk. A marker that is written last says that the environment is complete.
An environment without the marker is made again.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring.step_lines import step
from evenflow.errors import ServiceError
from spark_consumers.jars.fetch import cache_dir, resolve

VERSION = "2.3.0"
CONNECTOR = ("org.apache.flink", "flink-sql-connector-kafka", "5.0.0-2.2")
PROGRAM = Path(__file__).with_name("flink_sql.py")
_COMPLETE = "complete"
_PIP_SECONDS = 900


def flink_python() -> Path:
    """The Python that has PyFlink. It is made if it is missing. Raises ServiceError with pip's reason."""
    folder = cache_dir() / "peers" / f"flink-{VERSION}"
    python = folder / "bin" / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        # Two benchmarks that start at once must not install into one folder.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / _COMPLETE).exists():
            return python
        shutil.rmtree(folder, ignore_errors=True)
        with step(f"installing Flink {VERSION} into {folder}, once"):
            _run([sys.executable, "-m", "venv", str(folder)])
            _run([str(python), "-m", "pip", "install", "--quiet", f"apache-flink=={VERSION}"])
        (folder / _COMPLETE).touch()
    return python


def connector_jar() -> Path:
    """Flink's Kafka connector with all that it needs. Raises ServiceError if it cannot be had."""
    (jar,) = resolve(*CONNECTOR, manifest=Path(__file__).with_name("jars.sha256"))
    return jar


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PIP_SECONDS, stdin=subprocess.DEVNULL
        )
        output = done.stdout + done.stderr if done.returncode else None
    except (OSError, subprocess.TimeoutExpired) as error:
        output = str(error)
    if output is not None:
        tail = "\n  ".join(output.strip().splitlines()[-5:])
        raise ServiceError(
            f"Flink {VERSION} cannot be installed: {' '.join(command[1:4])} failed\n  {tail}",
            hint="pip needs a package index, 1 GB of disk and a Python that this Flink supports (3.11)",
        )
