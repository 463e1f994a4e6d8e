"""Make the archives of classes: a real broker and a real driver write them as they end, after a small stream.

`make setup` runs `python -m workbench.local.archive`. It returns at once if the archives are there already.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from evenflow.errors import ConfigError, EvenflowError, ServiceError
from evenflow.settings import Settings, load_settings, save_settings
from evenflow.sources.generators import generate
from evenflow.sources.source import SourceOptions
from partitioner_service.plane.data_plane import DataPlane
from producers.replay import replay
from spark_consumers.jars.archive import archive_path, making
from spark_consumers.session import GARBAGE_COLLECTOR
from topics.admin import ensure_topics, pipeline_topics
from workbench.local.broker import EmbeddedBroker, broker_archive_path
from workbench.local.broker_jars import kafka_broker_jars

_PATIENCE = 600
_KEPT = 6


def make_broker_archive() -> Path:
    """Path of the archive of the broker's classes, which is made if there is none.

    Raises ServiceError if the broker does not write it.
    """
    path = broker_archive_path(kafka_broker_jars())
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="partial-") as name:
            draft = Path(name) / path.name
            with EmbeddedBroker(classes_to=draft, grace=60):
                pass  # what a broker loads until it answers is nearly all that it ever loads
            if not draft.exists():
                raise ServiceError("the archive of the broker's classes was not made")
            os.replace(draft, path)
    return path


def make_archive() -> Path:
    """Path of the archive of Spark's classes, which is made if there is none.

    Raises ServiceError if the driver does not write it.
    """
    path = archive_path()
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="partial-") as name, EmbeddedBroker() as broker:
        folder = Path(name)
        draft = folder / path.name
        settings = _small_stream(broker, folder, " ".join(making(draft)))
        save_settings(settings, folder / "settings.json")
        words = ["--verbose", "-c", str(folder / "settings.json"), "aggregate", "--until-ended"]
        # Java writes the archive after Python has ended. run() waits for the end of the output, which Java
        # holds open too, because `--verbose` passes Java's output on.
        done = subprocess.run(
            [sys.executable, "-m", "cli.main", *words],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE,
        )  # fmt: skip
        if done.returncode or not draft.exists():
            raise ServiceError(f"the archive of Spark's classes was not made:\n{done.stderr[-2000:]}")
        os.replace(draft, path)
    _keep_the_newest(path.parent)
    return path


def _keep_the_newest(folder: Path) -> None:
    """Remove all but the newest archives.
    Each fits one virtual environment, so old archives would fill the disk.
    """
    for old in sorted(folder.glob("*.jsa"), key=lambda file: file.stat().st_mtime)[:-_KEPT]:
        old.unlink(missing_ok=True)


def _small_stream(broker: EmbeddedBroker, folder: Path, java_options: str) -> Settings:
    """Settings whose routed topic holds a few windows, up to the end of stream."""
    (folder / "none.json").write_text("{}")
    settings = load_settings(
        folder / "none.json",
        query={"name": "archive", "window": "4s", "slide": "1s"},
        input={"partitions": 4},
        kafka=broker.settings().model_dump(exclude_unset=True),
        spark={
            "checkpoint": str(folder / "checkpoint"),
            "batch_interval": 100,
            "max_frames_per_batch": 60,
            "conf": {"spark.driver.extraJavaOptions": f"{GARBAGE_COLLECTOR} {java_options}"},
        },
    )
    ensure_topics(settings.kafka, pipeline_topics(settings).values())
    replay(settings, generate("zipf", "keys=100,tuples=20000,rate=1000,seed=1", SourceOptions()))
    DataPlane(settings, until_ended=True).run()
    return settings


def main() -> int:
    """Make the archives and say where they are. Returns 0 in any case, because all works without an
    archive.
    """
    for whose, make in (("the broker", make_broker_archive), ("Spark", make_archive)):
        try:
            print(f"archive of {whose}'s classes: {make()}", file=sys.stderr)
        except (EvenflowError, ConfigError, OSError, subprocess.SubprocessError) as error:
            print(f"no archive of {whose}'s classes, it starts more slowly: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
