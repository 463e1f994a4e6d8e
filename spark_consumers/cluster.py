"""The cluster manager that this application has: what it is asked, and what it has given.

Spark's developer interface is the same on local-cluster, standalone, YARN and Kubernetes. Three things are easily got
wrong: asking for fewer executors in all stops none; killing some lowers the number asked for once more, unless told not
to; and a lost executor stays registered until its heartbeats have timed out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import SparkSession


class Refused(Exception):
    """The cluster manager did not do what it was asked, or does not answer."""


class Cluster(Protocol):
    """What `Executors` needs of a cluster manager. Every call raises Refused."""

    def executors(self) -> list[str]:
        """Those that are registered and not on their way out, the oldest first; the driver is none."""
        ...

    def ask(self, total: int) -> None:
        """From now on, have so many executors; stops none."""
        ...

    def release(self, executors: Sequence[str]) -> None:
        """Let these go once their tasks are done; how many are asked for stays as it is."""
        ...


class SparkCluster:
    """The cluster manager of a running session."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self._context: Any = spark.sparkContext._jsc.sc()
        self._backend: Any = self._context.schedulerBackend()

    def executors(self) -> list[str]:
        """As the protocol says."""
        try:
            ids = str(self._backend.getExecutorIds().mkString(",")).split(",")
            return sorted((id for id in ids if id and self._backend.isExecutorActive(id)), key=_age)
        except (Py4JError, Py4JNetworkError) as error:
            raise Refused(_why(error)) from None

    def ask(self, total: int) -> None:
        """As the protocol says."""
        try:
            nowhere = getattr(self._jvm, "scala.collection.immutable.Map$").__getattr__("MODULE$").empty()
            acknowledged = self._context.requestTotalExecutors(total, 0, nowhere)
        except (Py4JError, Py4JNetworkError) as error:
            raise Refused(_why(error)) from None
        if not acknowledged:
            raise Refused("it does not acknowledge the request")

    def release(self, executors: Sequence[str]) -> None:
        """As the protocol says: a decommissioned executor takes no new task and ends after those that it has."""
        try:
            spark = self._jvm.org.apache.spark.scheduler
            leaving = self._gateway.new_array(self._jvm.scala.Tuple2, len(executors))
            nobody = self._jvm.scala.Option.empty()
            for at, executor in enumerate(executors):
                why = spark.ExecutorDecommissionInfo("the plan asks for fewer executors", nobody)
                leaving[at] = self._jvm.scala.Tuple2(executor, why)
            self._backend.decommissionExecutors(leaving, False, False)
        except (Py4JError, Py4JNetworkError) as error:
            raise Refused(_why(error)) from None


def _age(executor: str) -> tuple[int, str]:
    return (int(executor) if executor.isdigit() else 0, executor)


def _why(error: Exception) -> str:
    java: Any = getattr(error, "java_exception", None)
    return str(error if java is None else java.toString()).strip().splitlines()[0][:500]
