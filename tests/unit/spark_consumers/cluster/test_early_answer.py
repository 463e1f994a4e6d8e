"""A Python process of Spark's driver connects before it imports anything."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from evenflow.settings import Settings
from spark_consumers.cluster.machines import executor_python
from tests.patience import PATIENCE

MODULE = "pyspark.sql.streaming.transform_with_state_driver_worker"


def started(tmp_path: Path, port: int, *words: str) -> subprocess.Popen[str]:
    """A process as Spark starts it. Its pyspark cannot be imported before `ready` is there."""
    package = tmp_path / "pyspark"
    (package / "sql/streaming").mkdir(parents=True)
    (package / "sql/__init__.py").touch()
    (package / "sql/streaming/__init__.py").touch()
    ready = tmp_path / "ready"
    (package / "__init__.py").write_text(f"import os\nassert os.path.exists({str(ready)!r}), 'too early'\n")
    (package / "util.py").write_text(
        "def local_connect_and_auth(port, secret):\n    raise OSError(f'a second connection, to {port}')\n"
    )
    (package / f"sql/streaming/{MODULE.rpartition('.')[2]}.py").write_text(
        "import os, own\nfrom pyspark.util import local_connect_and_auth\nport, secret ="
        " int(os.environ['PYTHON_WORKER_FACTORY_PORT']), os.environ['PYTHON_WORKER_FACTORY_SECRET']\nfile,"
        " sock = local_connect_and_auth(port, secret)\nfile.write(b'pid'); file.flush()\ntry:\n   "
        " local_connect_and_auth(7, secret)\nexcept OSError as error:\n    print(error)\n"
    )
    (tmp_path / "own.py").touch()  # a module of the user's in the working directory
    environment = {
        **os.environ,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(tmp_path),
        "PYTHON_WORKER_FACTORY_PORT": str(port),
        "PYTHON_WORKER_FACTORY_SECRET": "canary",
    }
    return subprocess.Popen(
        [executor_python(Settings()), *words],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_it_shows_the_secret_before_pyspark_is_imported_and_the_module_goes_on_with_the_connection(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as java:
        java.settimeout(60 * PATIENCE)
        process = started(tmp_path, java.getsockname()[1], "-m", MODULE)
        with java.accept()[0] as connection, connection.makefile("rwb") as file:
            assert file.read(4 + 6) == struct.pack("!i", 6) + b"canary"
            (tmp_path / "ready").touch()
            file.write(struct.pack("!i", 2) + b"ok")
            file.flush()
            assert file.read(3) == b"pid"
        output, _ = process.communicate(timeout=60 * PATIENCE)
    assert (process.returncode, output) == (0, "a second connection, to 7\n")


def test_a_java_that_does_not_take_the_secret_ends_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as java:
        java.settimeout(60 * PATIENCE)
        process = started(tmp_path, java.getsockname()[1], "-m", MODULE)
        with java.accept()[0] as connection:
            connection.sendall(struct.pack("!i", 2) + b"no")
            output, _ = process.communicate(timeout=60 * PATIENCE)
    assert process.returncode != 0
    assert "Java does not take the secret" in output


def test_every_other_worker_is_the_drivers_own_python(tmp_path: Path) -> None:
    (tmp_path / "ready").touch()
    process = started(tmp_path, 9, "-c", "import sys; print(sys.executable)")
    output, _ = process.communicate(timeout=60 * PATIENCE)
    assert output == f"{sys.executable}\n"


@pytest.mark.parametrize(
    ("spark", "own"),
    [
        ({"master": "local[2]"}, True),
        ({"master": "local-cluster[2,1,1024]"}, True),
        ({"master": "spark://far:7077"}, False),
        ({"master": "local[2]", "executor_python": "/opt/python"}, False),
    ],
)
def test_it_is_for_workers_on_the_drivers_machine_alone(spark: dict[str, str], own: bool) -> None:
    settings = Settings(spark=spark)
    expected = spark.get("executor_python", sys.executable)
    assert (executor_python(settings) != expected) == own
