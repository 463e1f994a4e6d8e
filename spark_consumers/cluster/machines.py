"""Where an application runs: in one process, on one machine, or on a cluster, and what follows from that.

Whatever assumes one machine is a setting, and its default fits one machine (`[spark]`,
docs/operations/workers-and-partitions.md).
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from evenflow.settings.kafka import own_java_tokens
from evenflow.settings.places import local_folder
from evenflow.telemetry import Stage
from spark_consumers.cluster.demand import executors_wanted, most_executors
from spark_consumers.cluster.own_pod import own_pod_conf
from spark_consumers.jars.archive import using_archive
from spark_consumers.jars.object_store import application_jars

_LOG = logging.getLogger("evenflow.spark")
_WORKER_PYTHON = Path(__file__).parents[1] / "workers" / "worker_python"
_CHILDREN = re.compile(r"local-cluster\[[^\]]*\]")
_PROTECTION = ("spark.authenticate", "spark.network.crypto.enabled")


def one_machine(settings: Settings) -> bool:
    """Whether executors, if there are any, share the driver's machine.

    They must share it if `spark.driver_host` is a loopback address.
    """
    return (
        settings.spark.in_one_process or with_children(settings) or _is_loopback(settings.spark.driver_host)
    )


def one_class_path(settings: Settings) -> bool:
    """Whether executors, if there are any, have the driver's class path from their start."""
    return settings.spark.in_one_process or (with_children(settings) and settings.spark.executor_jars is None)


def executors_conf(settings: Settings, stages: Sequence[Stage]) -> dict[str, str]:
    """Spark configuration that an application with a cluster manager needs.

    Empty if all tasks run in the driver.
    """
    if settings.spark.in_one_process:
        return {}
    spark = settings.spark
    return {
        "spark.executor.cores": str(spark.executor_cores),
        "spark.executor.memory": spark.executor_memory,
        # A standalone master ignores the number of instances.
        # It gives all cores that are free, up to `cores.max`.
        "spark.executor.instances": str(executors_wanted(settings, stages, None)),
        "spark.cores.max": str(most_executors(settings, stages) * spark.executor_cores),
        "spark.dynamicAllocation.enabled": "false",  # plans decide, not Spark's own backlog of tasks
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",  # an executor that leaves hands its shuffle files on
        # How often a leaving executor looks for further blocks to hand on.
        # The default of 30 s would delay its end.
        "spark.storage.decommission.replicationReattemptInterval": "1s",
        **_jars(settings),
        **(own_pod_conf() if spark.master.startswith("k8s://") else {}),
    }


def _jars(settings: Settings) -> dict[str, str]:
    """How executors get the jars that pyspark lacks.

    Children of the driver see its files, so nothing is copied.
    """
    if settings.spark.executor_jars is not None:
        return {"spark.executor.extraClassPath": settings.spark.executor_jars}
    jars = [str(jar) for jar in application_jars(settings)]
    if with_children(settings):
        return {"spark.executor.extraClassPath": os.pathsep.join(jars)}
    return {"spark.jars": ",".join(jars)}


def executors_archive(settings: Settings) -> str:
    """Java options that let executors use the driver's archive of classes.

    Only children of the driver can use it, as Java demands exactly the same class path. Empty for all others.
    """
    return using_archive() if one_class_path(settings) and not settings.spark.in_one_process else ""


def with_children(settings: Settings) -> bool:
    """Whether executors are processes that the driver itself starts on its machine (`local-cluster[...]`)."""
    return _CHILDREN.fullmatch(settings.spark.master.strip()) is not None


def with_handed_secret(settings: Settings) -> bool:
    """Whether Spark makes a secret for each application and hands it to the executors itself.

    It does with YARN and Kubernetes. A standalone cluster has one secret, which its operator sets everywhere.
    """
    master = settings.spark.master.strip()
    return master == "yarn" or master.startswith("k8s://")


def is_true(value: str) -> bool:
    """Whether Spark takes this value of a setting for true."""
    return value.strip().lower() == "true"


def executor_python(settings: Settings) -> str:
    """Path of the Python interpreter that Python workers run in.

    On the driver's own machine it is a script that starts the driver's interpreter (`early_answer.py` says
    what for).
    """
    if settings.spark.executor_python is not None:
        return settings.spark.executor_python
    on_this_machine = settings.spark.in_one_process or with_children(settings)
    return str(_WORKER_PYTHON) if on_this_machine and os.access(_WORKER_PYTHON, os.X_OK) else sys.executable


def refuse_unshared(settings: Settings) -> None:
    """Look, before Spark is started, for places and addresses that mean something else to executors.

    Raises ConfigError for a relative folder, because executors have working folders of their own, and for a
    Kafka token that only this machine would get. Warns of a place or address that may be wrong, and of ports
    that are open to all.
    """
    if settings.spark.in_one_process:
        return
    _warn_of_open_ports(settings)
    shared = one_machine(settings)
    if shared:
        _warn_of_loopback(settings)
    elif settings.kafka.sasl_token_file is not None and not own_java_tokens(settings.kafka):
        raise ConfigError(
            f"spark.master is {settings.spark.master}, and executors on other machines cannot get the token"
            " of kafka.sasl_token_file",
            hint=(
                "let Java clients ask your token endpoint: set sasl.oauthbearer.token.endpoint.url and"
                " sasl.jaas.config in kafka.extras.java (docs/security.md#log-in-by-a-token)"
            ),
        )
    for name, place in (
        ("spark.checkpoint", settings.spark.checkpoint_folder),
        ("results.path", settings.results.folder),
    ):
        folder = None if place is None else local_folder(place)
        if folder is not None:
            _look_at(name, folder, settings.spark.master, shared=shared)


def _look_at(name: str, folder: Path, master: str, *, shared: bool) -> None:
    if not folder.is_absolute():
        raise ConfigError(
            f"{name} is the relative folder {folder}, and spark.master is {master}:"
            " executors would look for it elsewhere",
            hint=f"set {name} to an absolute path that all machines share, or to a URI (hdfs://, s3a://)",
        )
    if not shared:
        _LOG.warning(
            "%s is the folder %s: with spark.master %s it must be one that the driver and all"
            " executors share, as of a network file system", name, folder, master,
        )  # fmt: skip


def _warn_of_open_ports(settings: Settings) -> None:
    if with_children(settings) or with_handed_secret(settings):  # they are protected unless somebody opposed
        return
    open_by = [name for name in _PROTECTION if not is_true(settings.spark.conf.get(name, ""))]
    if open_by:
        _LOG.warning(
            "spark.master is %s, where Spark makes no secret itself, and spark.conf does not set %s to true:"
            " whoever reaches the ports of the driver or of an executor may read keys and values there, and"
            " take part. Give the driver, the master and the workers one secret"
            " (docs/operations/workers-and-partitions.md#who-may-speak-to-the-driver)",
            settings.spark.master, " and ".join(open_by),
        )  # fmt: skip


def _warn_of_loopback(settings: Settings) -> None:
    master, host = settings.spark.master, settings.spark.driver_host
    where = urlsplit(master.removeprefix("k8s://")).hostname if "://" in master else None
    if where is not None and not _is_loopback(where):
        _LOG.warning(
            "spark.driver_host is %s, where executors of %s reach the driver only from this machine: on"
            " others, set spark.driver_host (and spark.driver_bind_address) to an"
            " address of this machine that they can reach",
            host, master,
        )  # fmt: skip


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
