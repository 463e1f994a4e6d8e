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
import zipfile
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


def compiled(source: Path, python: Path, folder: Path) -> Path:
    """A jar, in this folder, of a function in Java for the Flink of this Python.

    ServiceError with the compiler's reason. A Java without a compiler (a JRE) has no `javac`.
    """
    (libraries,) = python.parents[1].glob("lib/python*/site-packages/pyflink/lib")
    classes = folder / "classes"
    _run(
        ["javac", "--release", "11", "-cp", f"{libraries}/*", "-d", str(classes), str(source)],
        failure=f"{source.name} cannot be compiled",
        hint="the scenario needs a JDK: install javac (Debian: openjdk-17-jdk-headless)",
    )
    jar = folder / f"{source.stem}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for each in sorted(classes.rglob("*.class")):
            archive.write(each, each.relative_to(classes))
    return jar


def _run(
    command: Sequence[str],
    *,
    failure: str = f"Flink {VERSION} cannot be installed",
    hint: str = "pip needs a package index, 1 GB of disk and a Python that this Flink supports (3.11)",
) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PIP_SECONDS, stdin=subprocess.DEVNULL
        )
        output = done.stdout + done.stderr if done.returncode else None
    except (OSError, subprocess.TimeoutExpired) as error:
        output = str(error)
    if output is not None:
        tail = "\n  ".join(output.strip().splitlines()[-5:])
        raise ServiceError(f"{failure}: {' '.join(command[:4])} failed\n  {tail}", hint=hint)
