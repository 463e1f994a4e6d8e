"""The Spark session: one place for every setting that exactness or speed depends on.

Measured on two cores (docs/measurements.md): what a micro-batch costs apart from its rows.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from evenflow.settings.exactness import refused_conf
from evenflow.telemetry import Stage
from spark_consumers.archive import using_archive
from spark_consumers.java_log import JavaLog
from spark_consumers.machines import executor_python, executors_archive, executors_conf, one_machine
from spark_consumers.object_store import application_jars, store_conf

_CLASS_PATHS = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")
_FRAMES_PER_ARROW_BATCH = 32
_SECRET = "(?i)secret|password|token|access[.]?key|keystore|jaas"
GARBAGE_COLLECTOR = "-XX:+UseParallelGC"
"""Measured on two cores: a fifth more tuples per second than G1, whose own threads compete with the tasks'."""
_RENAMED_FILES = "org.apache.spark.sql.execution.streaming.FileContextBasedCheckpointFileManager"
"""For all other places. It is Spark's default, named because Spark would fall back to the next one, which takes an
object that it should have replaced for the new one."""
_LOCAL_FILES = "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
"""For a checkpoint in a local folder. Spark's default renames through Hadoop's FileContext, which (without
Hadoop's native library) starts a `readlink` process for each of the files of a micro-batch: 0.2 s of it."""


def session_conf(settings: Settings, stages: Sequence[Stage] = ("fused",)) -> dict[str, str]:
    """Spark configuration of these settings. `[spark.conf]` wins. Raises ConfigError for what is refused.

    stages: of the application.
    """
    for name, value in settings.spark.conf.items():
        refused = refused_conf(name, value)
        if refused is not None:
            word, why = refused
            raise ConfigError(f"spark.conf sets {name}: {word} is refused", hint=f"{why}; take it out")
    partitions = settings.spark.conf.get("spark.sql.shuffle.partitions", str(settings.spark.buckets))
    if partitions != str(settings.spark.buckets):
        raise ConfigError(
            f"spark.conf sets spark.sql.shuffle.partitions to {partitions}, but there are {settings.spark.buckets} "
            "reduce buckets",
            hint="set spark.buckets instead (fixed for the life of a query)",
        )
    buckets = str(settings.spark.buckets)
    ours = {
        "spark.master": settings.spark.master,
        "spark.app.name": f"evenflow {settings.query.name}",
        "spark.driver.memory": settings.spark.driver_memory,
        "spark.driver.extraJavaOptions": f"{GARBAGE_COLLECTOR} {using_archive()}".strip(),
        "spark.executor.extraJavaOptions": f"{GARBAGE_COLLECTOR} {executors_archive(settings)}".strip(),
        "spark.driver.bindAddress": settings.spark.driver_bind_address,
        "spark.driver.host": settings.spark.driver_host,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # Kafka's key and password are options of a source. Spark's own patterns know neither by its name.
        "spark.redaction.regex": _SECRET,
        "spark.sql.redaction.options.regex": f"(?i)url|{_SECRET.removeprefix('(?i)')}",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, application_jars(settings))),
        "spark.pyspark.python": executor_python(settings),
        "spark.pyspark.driver.python": sys.executable,
        "spark.python.worker.reuse": "true",
        "spark.locality.wait": "0s",
        "spark.scheduler.mode": "FAIR",  # the two queries of one split application share the cores
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",  # Spark's own INT96 is deprecated everywhere else
        "spark.sql.shuffle.partitions": buckets,
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.adaptive.streaming.stateless.enabled": "false",
        # Of all runners only that of `mapInArrow` asks for short tracebacks, and so for a second set of Python workers.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_FRAMES_PER_ARROW_BATCH),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "20",
        "spark.sql.streaming.minBatchesToRetain": "20",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    }
    ours |= executors_conf(settings, stages) | store_conf(settings)
    if settings.spark.preloading_daemon:
        ours["spark.python.daemon.module"] = "spark_consumers.daemon"
    local = "://" not in settings.spark.checkpoint_folder
    ours["spark.sql.streaming.checkpointFileManagerClass"] = _LOCAL_FILES if local else _RENAMED_FILES
    conf = dict(settings.spark.conf)
    for name in _CLASS_PATHS:
        if name in conf and name in ours:
            conf[name] = f"{ours[name]}{os.pathsep}{conf[name]}"
    return ours | conf


def make_session(
    settings: Settings, log: JavaLog | None = None, stages: Sequence[Stage] = ("fused",)
) -> SparkSession:
    """A session for this query's streams. Stop it with `end_session`. log: where Java prints to. None: where we do."""
    os.environ["PYSPARK_PYTHON"] = executor_python(settings)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if one_machine(settings):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    conf = session_conf(settings, stages)
    if log is not None:
        log.launch(conf)
    builder: Any = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    context: Any = session.sparkContext
    context.setLogLevel(conf["spark.log.level"])
    # Spark hands its jars to the Python workers' path, where each costs time in every task (see daemon.py).
    context._python_includes[:] = [name for name in context._python_includes if not name.endswith(".jar")]
    threading.Thread(target=_warm, args=(context,), name="evenflow-warm", daemon=True).start()
    return session


def end_session(session: SparkSession) -> None:
    """Stop it. Workers of local-cluster leave a folder for each application in pyspark's own. It goes, too."""
    context = session.sparkContext
    left = Path(os.environ.get("SPARK_HOME") or _find_spark_home()) / "work" / str(context.applicationId)
    session.stop()
    if str(context.master).startswith("local-cluster"):
        shutil.rmtree(left, ignore_errors=True)


def _warm(context: Any) -> None:
    """Start the parent of the Python workers while Spark still plans: its imports take a second.

    Nothing rests on it. A session that ends meanwhile, or a Spark that refuses, is no concern of ours.
    """
    with suppress(Exception):
        context.parallelize([0], 1).foreach(abs)
