"""The output of Spark's Java process goes to a file: start-up noise, warnings, Python workers' tracebacks.

A Java process cannot limit the size of the file that is its standard error. So a thread here reads the output
from a pipe and writes it to files of limited size. Python's own warnings go there, too.
"""

from __future__ import annotations

import logging
import os
import threading
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, cast

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from evenflow.errors import ServiceError
from evenflow.settings import Settings
from evenflow.settings.places import private_file, private_folder, state_folder

_LOG = logging.getLogger("evenflow.spark")
_MOST_BYTES = 5_000_000
_KEPT = 2
_SECONDS = 2.0  # for the last lines of a Java process that did not start


def log_file(settings: Settings, stage: str) -> Path:
    """The log file of this command.

    The file is beside the query's checkpoints if `spark.checkpoint` is a local folder, else in the user's
    state folder.
    """
    checkpoint = settings.spark.checkpoint
    if checkpoint is None or "://" in checkpoint or checkpoint.startswith("file:"):
        return Path(state_folder()) / "log" / f"{settings.query.name}-{stage}.log"
    return Path(checkpoint) / settings.query.name / f"{stage}.log"


class _File(RotatingFileHandler):
    """Loses lines that cannot be written, for example because the disk is full.

    Warns once, not for each line.
    """

    _has_warned = False

    def _open(self) -> TextIOWrapper:
        """The file, for its owner alone: Spark's log names folders, topics and users."""
        return cast(
            TextIOWrapper, open(self.baseFilename, self.mode, encoding=self.encoding, opener=private_file)
        )

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        if not self._has_warned:
            self._has_warned = True
            _LOG.warning("Spark's own log %s cannot be written: lines of it are lost", self.baseFilename)


class JavaLog:
    """The log of one Java process: up to `_KEPT` + 1 files of `_MOST_BYTES` each.

    The newest file is `path`.
    """

    def __init__(self, path: Path) -> None:
        """Open the file. Raises OSError if it cannot be written."""
        private_folder(path.parent)
        self.path = path
        self._handler = _File(path, maxBytes=_MOST_BYTES, backupCount=_KEPT, encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._reader: threading.Thread | None = None

    def launch(self, conf: dict[str, str]) -> None:
        """Start a Java process with this configuration, unless this Python process has one already.

        Raises ServiceError if Java does not start.
        """
        if SparkContext._gateway is not None:
            return
        read, write = os.pipe()
        self._reader = threading.Thread(
            target=self._copy, args=(read,), name="evenflow-java-log", daemon=True
        )
        self._reader.start()
        self._take_warnings()
        try:
            words = SparkConf().setAll(list(conf.items()))
            gateway: Any = launch_gateway(words, popen_kwargs={"stdout": write, "stderr": write})
        except (PySparkRuntimeError, OSError) as error:
            # The reader sees the end of the pipe, and so has written all lines, only once our end is closed.
            os.close(write)
            self._reader.join(_SECONDS)
            raise ServiceError(
                f"Spark's Java process did not start: {error}; it said:\n{self._tail()}",
                hint=(
                    f"is there a Java 17 or 21? `evenflow doctor` checks. All that it said is in {self.path}"
                ),
            ) from None
        os.close(write)  # Java has its own copy: the pipe ends when Java does
        SparkContext._ensure_initialized(gateway=gateway)

    @property
    def used(self) -> bool:
        """Whether this log has started a Java process."""
        return self._reader is not None

    def _copy(self, read: int) -> None:
        with os.fdopen(read, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._handler.emit(logging.makeLogRecord({"msg": line.rstrip("\n")}))

    def _take_warnings(self) -> None:
        logging.captureWarnings(True)
        warnings = logging.getLogger("py.warnings")
        warnings.addHandler(self._handler)
        warnings.propagate = False

    def _tail(self) -> str:
        return "\n".join(self.path.read_text(errors="replace").splitlines()[-5:])


def open_log(path: Path) -> JavaLog | None:
    """The log. If it cannot be written: None, and a warning. All output then goes to the terminal."""
    try:
        return JavaLog(path)
    except OSError as error:
        _LOG.warning("Spark's own log %s cannot be written (%s): it goes to standard error", path, error)
        return None
