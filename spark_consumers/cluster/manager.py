"""The cluster manager of this application: asks it for executors and says which executors it has given.

Spark's developer interface is the same on local-cluster, standalone, YARN and Kubernetes. Three facts are
easily missed. A request for a smaller total stops no executor. Killing executors also lowers the total,
unless Spark is told not to lower it. A lost executor stays registered until its heartbeats have timed out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession


class RequestRefused(Exception):
    """The cluster manager refused a request or did not answer."""


class Cluster(Protocol):
    """What `Executors` needs of a cluster manager. Every method may raise Refused."""

    def executors(self) -> list[str]:
        """Ids of the executors that are registered and not being released, the oldest first.

        Without the driver.
        """
        ...

    def ask(self, total: int) -> None:
        """Ask for this total of executors from now on. Stops no executor."""
        ...

    def release(self, executors: Sequence[str]) -> None:
        """Let these executors go once their tasks are done. The total that is asked for stays the same."""
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
            # One string instead of a call to the JVM for each id. Without executors it is empty.
            ids = str(self._backend.getExecutorIds().mkString(",")).split(",")
            return sorted((id for id in ids if id and self._backend.isExecutorActive(id)), key=_age)

    def ask(self, total: int) -> None:
        """As the protocol says."""
        with _refusals():
            # Executors may be on any host. Python has no other way to Scala's empty map.
            nowhere = getattr(self._jvm, "scala.collection.immutable.Map$").__getattr__("MODULE$").empty()
            if not self._context.requestTotalExecutors(total, 0, nowhere):
                raise RequestRefused("it does not acknowledge the request")

    def release(self, executors: Sequence[str]) -> None:
        """As the protocol says: a decommissioned executor takes no new task and ends after those that it
        has.
        """
        with _refusals():
            leaving = self._gateway.new_array(self._jvm.scala.Tuple2, len(executors))
            for at, executor in enumerate(executors):
                leaving[at] = self._jvm.scala.Tuple2(executor, self._reason())
            # The flags: leave the total alone, as `ask` has set it, and it was no executor who decided this.
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
        raise RequestRefused(_why(error)) from None


def _why(error: Py4JError) -> str:
    """The first line of the innermost cause: Spark wraps what its cluster manager says."""
    cause: Any = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    message = str(error if cause is None else cause.toString()).strip()
    return message.splitlines()[0][:500] if message else type(error).__name__


def _age(executor: str) -> tuple[int, str]:
    # Spark numbers executors as they come. As text, "10" would come before "9".
    return (int(executor) if executor.isdigit() else 0, executor)
