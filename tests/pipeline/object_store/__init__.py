"""An S3 API on loopback: moto's server, in a process and a virtual environment of its own.

moto's botocore and the Kubernetes client want different versions of one package, so they never share an
environment. What lies in the store outlives `stop` and `start`.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pyarrow import fs

from evenflow.errors import ServiceError
from evenflow.settings import Settings
from spark_consumers.checkpoints.runs import COMPLETE, newest_run
from spark_consumers.jars.fetch import cache_dir
from tests.ground.machine import locked

BUCKET = "checkpoints"
REGION = "us-east-1"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "evenflow",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_HERE = Path(__file__).parent
_PACKAGES = _HERE / "requirements.lock"
_PATIENCE = 60


@dataclass(frozen=True)
class ObjectStore:
    """A store with one bucket. port: stays the same over a stop and a start."""

    port: int
    _orders: IO[str]
    _answers: IO[str]

    def _order(self, word: str) -> None:
        self._orders.write(f"{word}\n")
        self._orders.flush()
        answer = self._answers.readline().strip()
        if answer != word:
            raise ServiceError(f"the object store was told to {word} and says {answer!r}")

    def start(self) -> None:
        """Answer requests again."""
        self._order("start")

    def stop(self) -> None:
        """Refuse connections from now on."""
        self._order("stop")

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """All credentials are refused."""
        self._order("refuse")
        try:
            yield
        finally:
            self._order("accept")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def conf(self) -> dict[str, str]:
        """`[spark.conf]` for it."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": REGION,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }

    def files(self) -> fs.S3FileSystem:
        """Its buckets as folders."""
        return fs.S3FileSystem(
            access_key=ENVIRONMENT["AWS_ACCESS_KEY_ID"],
            secret_key=ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
            region=REGION,
            endpoint_override=self.endpoint,
            allow_bucket_creation=True,
        )

    def upload(self, folder: Path, settings: Settings) -> None:
        """Every file of a folder of checkpoints, to where these settings have them."""
        fs.copy_files(
            str(folder),
            settings.spark.checkpoint_folder.removeprefix("s3a://"),
            source_filesystem=fs.LocalFileSystem(),
            destination_filesystem=self.files(),
        )

    def names(self, settings: Settings, stage: str, folder: str) -> list[str]:
        """Names of the objects in a folder of the stage's newest run, without what is still being written."""
        place = f"{settings.query_checkpoint.removeprefix('s3a://')}/{stage}"
        chosen = fs.FileSelector(place, recursive=True, allow_not_found=True)
        result = [one.path for one in self.files().get_file_info(chosen) if one.type == fs.FileType.File]
        names = [path.removeprefix(f"{place}/") for path in result if not path.endswith(".tmp")]
        run = newest_run({name.partition("/")[0] for name in names}, lambda run: f"{run}/{COMPLETE}" in names)
        inside = f"{run}/{folder}/"
        return [name.removeprefix(inside) for name in names if name.startswith(inside)]


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """One that is running, and empty but for its bucket."""
    command = [str(_python()), str(_HERE / "server.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            store = ObjectStore(int(server.stdout.readline()), server.stdin, server.stdout)
            store.files().create_dir(BUCKET)
            yield store
        finally:
            server.stdin.close()  # its end
            server.wait(_PATIENCE)


def _python() -> Path:
    """The interpreter of moto's environment, made at its first use."""
    name = hashlib.sha256(_PACKAGES.read_bytes()).hexdigest()[:12]
    folder = cache_dir() / "moto" / name
    with locked(folder):
        if not (folder / "ready").exists():
            _run(sys.executable, "-m", "venv", "--clear", str(folder))
            _run(str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "-r", str(_PACKAGES))
            (folder / "ready").touch()
    return folder / "bin/python"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise ServiceError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
