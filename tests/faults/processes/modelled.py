"""Lets the product's own code run over the model: what stands in the place of clients, threads, clocks and
files.
"""

from __future__ import annotations

import atexit
import gc
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from partitioner_service.exchange import channel
from partitioner_service.kafka import source
from partitioner_service.routing import session
from spark_consumers import poller, stage
from spark_consumers.checkpoints import epoch, result_files, run_folder
from spark_consumers.checkpoints.folders import Folder
from spark_consumers.sinks import avro
from tests.column_fetcher import either_fetcher
from tests.faults.model import network
from tests.faults.model.admin import AdminClient
from tests.faults.model.broker import Broker
from tests.faults.model.consumer import Consumer
from tests.faults.model.files import MemoryFolder
from tests.faults.model.producer import Producer
from tests.faults.processes import remembered, times
from tests.faults.processes.world import World
from topics import clients


@contextmanager
def modelled(world: World, broker: Broker) -> Iterator[None]:
    """Let the product reach the model of this run instead of a broker and Spark."""
    seams: list[tuple[Any, str, Any]] = [
        (clients, "Consumer", Consumer),
        (clients, "Producer", Producer),
        (clients, "AdminClient", AdminClient),
        (source, "opened", either_fetcher),
        (
            clients,
            "_ADMINS_LOCK",
            nullcontext(),
        ),  # a process gives way while it holds it, and all share one thread
        (stage, "col", _Column),
        (run_folder, "ThreadPoolExecutor", InLine),
        (epoch, "BoundedCalls", InLine),
        (poller, "ask_in_thread", at_once),
        (session, "secrets", SimpleNamespace(randbelow=Random(world.random.random()).randrange)),
        (channel, "secrets", SimpleNamespace(randbelow=Random(f"sync {world.now}").randrange)),
        (avro, "_with_headers", lambda rows, before: rows.with_header(before)),
        (avro, "_registry", lambda settings: SimpleNamespace(registered=lambda subject, text: 1)),
        (result_files, "with_times", lambda rows: rows),
        (result_files, "_counted", lambda rows: (rows, lambda: sorted(rows.buckets))),
    ]
    _once()
    seams += [*remembered.seams(), *((module, "Folder", MemoryFolder) for module in _with_folders())]
    before = [(where, name, getattr(where, name)) for where, name, _ in seams]
    garbage, quiet = gc.get_threshold(), logging.root.manager.disable
    gc.disable()  # what a run leaves behind is collected at its end, all at once
    admins = dict(clients._ADMINS)
    clients._ADMINS.clear()
    network.connect(broker)
    times.set_world(world)
    logging.disable(logging.CRITICAL)
    for where, name, value in seams:
        setattr(where, name, value)
    try:
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)
        clients._ADMINS.clear()
        clients._ADMINS.update(admins)
        times.set_world(None)
        logging.disable(quiet)
        gc.set_threshold(*garbage)
        gc.enable()


@lru_cache(maxsize=1)
def _once() -> None:
    """Replace the product's clocks, and let Arrow use one thread: its pool costs more than such small
    tables.
    """
    times.install()
    pa.set_cpu_count(1)
    gc.collect()
    gc.freeze()  # the product's modules live on, and no run makes garbage of them
    atexit.register(gc.unfreeze)  # else DuckDB says at the end that its objects leak


@lru_cache(maxsize=1)
def _with_folders() -> list[Any]:
    """Modules of the product that reach files through `Folder`."""
    mine = [module for name, module in sys.modules.items() if name.startswith("spark_consumers.")]
    return [module for module in mine if getattr(module, "Folder", None) is Folder]


class InLine:
    """Takes the place of threads: a process of the simulator is its only thread. name, most: not used."""

    def __init__(self, name: str | int) -> None:
        pass

    def __enter__(self) -> InLine:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, work: Callable[..., Any], *each: Iterable[Any]) -> list[Any]:
        """The results of the work on each, one after the other."""
        return [work(*one) for one in zip(*each, strict=True)]

    def call(self, what: Callable[[], Any], *, timeout: float, doing: str) -> Any:
        """The result of this call."""
        return what()

    def close(self) -> None:
        """Nothing is open."""


def at_once(ask: Callable[[], None]) -> Future[None]:
    """Takes the place of a thread that waits for an answer."""
    answer: Future[None] = Future()
    try:
        ask()
    except Exception as error:
        answer.set_exception(error)
    else:
        answer.set_result(None)
    return answer


class _Column:
    """A column of Spark by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def alias(self, _: str) -> _Column:
        return self
