"""The cluster manager that this application has: what it is asked, and what it has given.

Spark's developer interface is the same on local-cluster, standalone, YARN and Kubernetes. Three things are easily got
wrong: asking for fewer executors in all stops none. Killing some lowers the number asked for once more, unless told not
to, and a lost executor stays registered until its heartbeats have timed out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession


class Refused(Exception):
    """The cluster manager did not do what it was asked, or does not answer."""


class Cluster(Protocol):
    """What `Executors` needs of a cluster manager. Every call raises Refused."""

    def executors(self) -> list[str]:
        """Those that are registered and not on their way out, the oldest first. The driver is none."""
        ...

    def ask(self, total: int) -> None:
        """From now on, have so many executors. Stops none."""
        ...

    def release(self, executors: Sequence[str]) -> None:
        """Let these go once their tasks are done. How many are asked for stays as it is."""
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
        with _refusals():
            ids = str(self._backend.getExecutorIds().mkString(",")).split(",")
            return sorted((id for id in ids if id and self._backend.isExecutorActive(id)), key=_age)

    def ask(self, total: int) -> None:
        """As the protocol says."""
        with _refusals():
            nowhere = getattr(self._jvm, "scala.collection.immutable.Map$").__getattr__("MODULE$").empty()
            if not self._context.requestTotalExecutors(total, 0, nowhere):
                raise Refused("it does not acknowledge the request")

    def release(self, executors: Sequence[str]) -> None:
        """As the protocol says: a decommissioned executor takes no new task and ends after those that it has."""
        with _refusals():
            leaving = self._gateway.new_array(self._jvm.scala.Tuple2, len(executors))
            for at, executor in enumerate(executors):
                leaving[at] = self._jvm.scala.Tuple2(executor, self._reason())
            self._backend.decommissionExecutors(leaving, False, False)

    def _reason(self) -> Any:
        nobody = self._jvm.scala.Option.empty()
        return self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "the plan asks for fewer", nobody
        )


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except Py4JError as error:
        raise Refused(_why(error)) from None


def _why(error: Py4JError) -> str:
    """The first line of the innermost cause: Spark wraps what its cluster manager says."""
    cause: Any = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    said = str(error if cause is None else cause.toString()).strip()
    return said.splitlines()[0][:500] if said else type(error).__name__


def _age(executor: str) -> tuple[int, str]:
    return (int(executor) if executor.isdigit() else 0, executor)
