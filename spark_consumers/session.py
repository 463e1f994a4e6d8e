"""The Spark session: one place for every setting that exactness or speed depends on.

docs/measurements.md says what a micro-batch costs apart from its rows, measured on two cores.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from evenflow.settings.sections.exactness import refused_conf
from evenflow.telemetry import Stage
from spark_consumers.cluster.forwarding import forwarding_conf
from spark_consumers.cluster.machines import (
    executor_python,
    executors_archive,
    executors_conf,
    is_true,
    one_class_path,
    one_machine,
    with_children,
    with_handed_secret,
)
from spark_consumers.cluster.warm_up import warm_up
from spark_consumers.jars.archive import using_archive
from spark_consumers.jars.object_store import application_jars, store_conf
from spark_consumers.reports.java_log import JavaLog

_LOG = logging.getLogger("evenflow.spark")
_CONNECTION_ERRORS = (Py4JError, OSError, EOFError)
"""What a call of Java raises once Java has ended. A Py4JJavaError is an answer of Java that runs."""
_LAST_SECONDS = 2.0
"""How long Java may take to end after its connections have."""
_CLASS_PATHS = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")
_FRAMES_PER_ARROW_BATCH = 32  # not Spark's 10,000: a row is a whole frame here
_SECRET = (
    "(?i)secret|passw|passphrase|pwd|[.]pass\\b|token|credential|access[.]?key|account[.]?key|api[.-]?key|"
    "private[.]?key|encryption[.]key\\b|provided[.-]?key|keystore|jaas|[.]sas[.]"
)
_AT_START = re.compile(
    "spark[.](master|app[.]name|files|archives|shutdown[.]timeout|yarn[.](keytab|principal)"
    "|hadoop[.]fs[.][^.]+[.]impl"
    "|(driver|jars|kerberos|log|submit|yarn[.]dist|hadoop[.]hadoop[.](security|kerberos))([.].*)?)"
)
"""Names of what Java acts on before it has all settings: its own size and class path, what it fetches, its
log-in with Kerberos, and the classes of file systems, of which Java keeps the first that it makes.
"""
_FETCHED = ("spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles")
GARBAGE_COLLECTOR = "-XX:+UseParallelGC"
"""Measured on two cores: a fifth more tuples/s than with G1, whose own threads compete with the tasks."""
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_RENAMED_FILES = "org.apache.spark.sql.execution.streaming.FileContextBasedCheckpointFileManager"
"""For a checkpoint in any place but a local folder. This is Spark's default.

It is named all the same, as Spark would fall back to the other manager below if this one failed. That manager
would take an old object, which it should have replaced, for the new one.
"""
_LOCAL_FILES = "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
"""For a checkpoint in a local folder.

Spark's default renames through Hadoop's FileContext. Without Hadoop's native library, FileContext starts a
`readlink` process for each file of a micro-batch, which takes 0.2 s per micro-batch.
"""
_MODES_WITHOUT_CHMOD = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
"""Hadoop's own local file system starts a `chmod` process for each file: nine in a micro-batch."""

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
# Kafka's private key and password are options of a source.
# Spark's own patterns match neither of their names.
_SECRETS = {
    "spark.redaction.regex": _SECRET,
    "spark.sql.redaction.options.regex": f"(?i)url|{_SECRET.removeprefix('(?i)')}",
}
_SCHEDULING = {
    "spark.locality.wait": "0s",  # a task takes the first free core: its data comes from Kafka anyway
    "spark.scheduler.mode": "FAIR",  # the queries of one application share the cores
}
_FORMS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": (
        "TIMESTAMP_MILLIS"
    ),  # Spark's own INT96 is deprecated everywhere else
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(_FRAMES_PER_ARROW_BATCH),
}
# A repeated micro-batch must have the same offset ranges in the same tasks.
# Adaptive execution would join or split tasks.
_SAME_TASKS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
}
_STREAMING = {
    # Windows close by marks that frames carry, so a micro-batch without frames has nothing to do.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.streaming.minBatchesToRetain": "20",
    # A thread that waits for a broker that is away hears no interrupt. By default a stop would wait for it
    # for ever.
    "spark.sql.streaming.stopTimeout": "5s",
}
_STATE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A commit uploads the changes of a micro-batch, not the whole state.
    # Counting rows would cost a read per write.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}


def session_conf(settings: Settings, stages: Sequence[Stage] = ("fused",)) -> dict[str, str]:
    """Spark configuration of these settings. `[spark.conf]` wins over evenflow's own values.

    stages: of the application. Raises ConfigError if `[spark.conf]` sets something that exactness forbids.
    """
    conf = dict(settings.spark.conf)
    _check(conf, buckets=settings.bucket_count)
    ours = (
        _processes(settings)
        | _QUIET
        | _SECRETS
        | _SCHEDULING
        | forwarding_conf(settings)
        | _FORMS
        | _SAME_TASKS
        | {"spark.sql.shuffle.partitions": str(settings.bucket_count)}
        | _STREAMING
        | _STATE
        | _files(settings)
        | _protection(settings)
        | executors_conf(settings, stages)
        | store_conf(settings)
    )
    # The user's class path is added to ours. It must not replace ours, which has the connector.
    for name in _CLASS_PATHS:
        if name in conf and name in ours:
            conf[name] = f"{ours[name]}{os.pathsep}{conf[name]}"
    return ours | conf


def launch_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """The part of a configuration that Java is started with: what it needs before it has the rest, and of
    that nothing whose name is one of a secret.

    Whoever is on this machine can read the words that a process was started with. All else is set once Java
    runs.
    """
    # Spark fetches what lies in a store before Python speaks to it, and then needs to know that store.
    places = (place.strip() for name in _FETCHED for place in conf.get(name, "").split(","))
    fetching = any(":" in place and not place.startswith(("file:", "local:")) for place in places)
    return {
        name: value
        for name, value in conf.items()
        if (_AT_START.fullmatch(name) or (fetching and name.startswith("spark.hadoop.")))
        and not re.search(_SECRET, name)
    }


def _check(conf: Mapping[str, str], *, buckets: int) -> None:
    """ConfigError if `[spark.conf]` sets something that exactness forbids."""
    for name, value in conf.items():
        refused = refused_conf(name, value)
        if refused is not None:
            word, why = refused
            raise ConfigError(f"spark.conf sets {name}: {word} is refused", hint=f"{why}; take it out")
    partitions = conf.get("spark.sql.shuffle.partitions", str(buckets))
    if partitions != str(buckets):
        raise ConfigError(
            f"spark.conf sets spark.sql.shuffle.partitions to {partitions},"
            f" but there are {buckets} reduce buckets",
            hint="set spark.buckets instead (fixed for the life of a query)",
        )


def _processes(settings: Settings) -> dict[str, str]:
    """The driver's and the executors' processes, and their Python workers."""
    conf = {
        "spark.master": settings.spark.master,
        "spark.app.name": f"evenflow {settings.query.name}",
        "spark.driver.memory": settings.spark.driver_memory,
        "spark.driver.extraJavaOptions": f"{GARBAGE_COLLECTOR} {using_archive()}".strip(),
        "spark.executor.extraJavaOptions": f"{GARBAGE_COLLECTOR} {executors_archive(settings)}".strip(),
        "spark.driver.bindAddress": settings.spark.driver_bind_address,
        "spark.driver.host": settings.spark.driver_host,
        "spark.driver.extraClassPath": os.pathsep.join(map(str, application_jars(settings))),
        "spark.pyspark.python": executor_python(settings),
        "spark.pyspark.driver.python": sys.executable,
        "spark.python.worker.reuse": "true",
        # Only `mapInArrow` asks for short tracebacks.
        # Python workers are shared by equal environments, so it would have workers of its own.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    }
    daemon = {"spark.python.daemon.module": "spark_consumers.workers.daemon"}
    return conf | daemon if settings.spark.preloading_daemon else conf


def _protection(settings: Settings) -> dict[str, str]:
    """Who may speak to the driver, and how what is said is encrypted.

    A driver listens even if it has no executors: without a secret, every user of the machine could speak to
    it.
    """
    # Where spark.network.crypto.enabled is on: how keys are exchanged, and a cipher that proves that a
    # message is whole. Spark's own is AES in counter mode, with which others can change what they cannot
    # read.
    conf = {
        "spark.network.crypto.authEngineVersion": "2",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    }
    if with_children(settings):  # Spark makes no secret for them
        return conf | {"spark.authenticate": "true", "spark.authenticate.secret": secrets.token_hex(32)}
    if settings.spark.in_one_process or with_handed_secret(settings):
        conf["spark.authenticate"] = "true"
    # Spark refuses to encrypt where nobody has to authenticate, which `[spark.conf]` may have chosen.
    if with_handed_secret(settings) and is_true(settings.spark.conf.get("spark.authenticate", "true")):
        conf["spark.network.crypto.enabled"] = "true"
    return conf


def _files(settings: Settings) -> dict[str, str]:
    """How the files of a checkpoint are written."""
    if "://" in settings.spark.checkpoint_folder:
        return {_FILE_MANAGER: _RENAMED_FILES}
    # Where all that use it have our class path. With spark-submit the user chooses it.
    ours = one_class_path(settings) and "PYSPARK_GATEWAY_PORT" not in os.environ
    return {_FILE_MANAGER: _LOCAL_FILES} | (
        {"spark.hadoop.fs.file.impl": _MODES_WITHOUT_CHMOD} if ours else {}
    )


def make_session(
    settings: Settings, log: JavaLog | None = None, stages: Sequence[Stage] = ("fused",)
) -> SparkSession:
    """A session for this query's streams. Stop it with `end_session`.

    log: where Java prints to. None means that Java prints where this process does. stages: of the
    application.
    """
    os.environ["PYSPARK_PYTHON"] = executor_python(settings)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if one_machine(settings):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # For the short-lived Java process that only composes the
    # driver's command: it need not be fast, only start fast.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    conf = session_conf(settings, stages)
    launched = launch_conf(conf)
    if log is not None:
        log.launch(launched)
    elif SparkContext._gateway is None:
        SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(launched.items())))
    builder: Any = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    context: Any = session.sparkContext
    _leave_sigterm_to_python(context)
    _quiet_when_java_ends(context)
    context.setLogLevel(conf["spark.log.level"])
    # Spark puts its jars on the Python workers' path, where
    # each jar costs time in every task (see daemon.py).
    context._python_includes[:] = [name for name in context._python_includes if not name.endswith(".jar")]
    warm_up(context, 1)  # while Spark still plans
    return session


def _quiet_when_java_ends(context: Any) -> None:
    """Keep pyspark's server of accumulators from printing a traceback when Java ends: its connection ends
    then, and who calls Java next says in words what has happened.
    """
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: _LOG.debug("the connection of accumulators ended", exc_info=True)


def java_status(*, after: BaseException | None = None) -> int | None:
    """Exit status of the Java process that this process has started, negative for a signal.
    None while it runs.

    Also None if this process has started none, as with spark-submit, where Java is the parent.

    after: an error of before. If it is one of the connection to Java, Java may be about to end, and is waited
    for.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    if isinstance(after, _CONNECTION_ERRORS) and not isinstance(after, Py4JJavaError):
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LAST_SECONDS)
    return cast(int | None, process.poll())


def end_session(session: SparkSession) -> None:
    """Stop the session, unless its Java has ended, which leaves nothing to stop.

    With local-cluster, also remove the folder that its workers leave in pyspark's own folder.
    """
    if java_status() is not None:
        return
    context = session.sparkContext
    try:
        left = Path(os.environ.get("SPARK_HOME") or _find_spark_home()) / "work" / str(context.applicationId)
        session.stop()
    except _CONNECTION_ERRORS as error:
        if java_status(after=error) is None:
            raise
        return
    if str(context.master).startswith("local-cluster"):
        shutil.rmtree(left, ignore_errors=True)


def _leave_sigterm_to_python(context: Any) -> None:
    """Make Java survive SIGTERM, if this process has started Java.

    systemd and `timeout` send SIGTERM to the whole process group. Java would end at once, within a
    micro-batch. But this process needs Java until the micro-batch has ended. Java ends as soon as its
    standard input closes, so it never outlives this process, even if this process is killed.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit: Java is the parent, and owns this process
        return
    java = context._jvm
    try:
        term = java.sun.misc.Signal("TERM")
        # Not SignalHandler.SIG_IGN: executors of local-cluster would inherit it, and could not be ended.
        nothing = java.java.lang.invoke.MethodHandles.empty(
            java.java.lang.invoke.MethodType.methodType(java.java.lang.Void.TYPE, term.getClass())
        )
        handler = java.java.lang.Class.forName("sun.misc.SignalHandler")
        java.sun.misc.Signal.handle(
            term, java.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(handler, nothing)
        )
    except Py4JError as error:  # Java runs with -Xrs, or is none of OpenJDK's
        _LOG.debug("Java ends at SIGTERM: %s", error)
