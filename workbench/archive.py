"""Make the archive of Spark's classes: a real driver runs a small stream, and writes the archive as it ends.

`make setup` runs `python -m workbench.archive`. It returns at once if the archive is there already.
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
from partitioner_service.plane import DataPlane
from producers.replay import replay
from spark_consumers.archive import archive_path, making_archive
from spark_consumers.session import GARBAGE_COLLECTOR
from topics.admin import ensure_topics, pipeline_topics
from workbench.broker import EmbeddedBroker

_PATIENCE = 600
_KEPT = 3


def make_archive() -> Path:
    """Path of the archive, which is made if there is none. Raises ServiceError if the driver does not write it."""
    path = archive_path()
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="partial-") as name, EmbeddedBroker() as broker:
        folder = Path(name)
        made = folder / path.name
        settings = _small_stream(broker, folder, making_archive(made))
        save_settings(settings, folder / "settings.json")
        words = ["--verbose", "-c", str(folder / "settings.json"), "aggregate", "--until-ended"]
        # Java writes the archive after Python has ended. run() waits for the end of the output, which Java holds open too,
        # because `--verbose` passes Java's output on.
        done = subprocess.run(
            [sys.executable, "-m", "cli.main", *words],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE,
        )  # fmt: skip
        if done.returncode or not made.exists():
            raise ServiceError(f"the archive of Spark's classes was not made:\n{done.stderr[-2000:]}")
        os.replace(made, path)
    _keep_the_newest(path.parent)
    return path


def _keep_the_newest(folder: Path) -> None:
    """Remove all but the newest archives. Each fits one virtual environment, so old archives would fill the disk."""
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
    """Make the archive and say where it is. Returns 0 in any case, because all works without an archive."""
    try:
        print(f"archive of Spark's classes: {make_archive()}", file=sys.stderr)
    except (EvenflowError, ConfigError, OSError, subprocess.SubprocessError) as error:
        print(f"no archive of Spark's classes, drivers start more slowly: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
