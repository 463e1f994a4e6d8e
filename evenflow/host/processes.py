"""Processes that share a computation: they leave Ctrl-C to the process that started them, and end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from threading import Thread


def worker_processes(
    count: int, *, begin: Callable[..., None] | None = None, arguments: tuple[object, ...] = ()
) -> ProcessPoolExecutor:
    """A pool of at most `count` processes, each of which calls `begin(*arguments)` before its first task."""
    # "spawn": a forked child would inherit the threads of the libraries in use, which a fork leaves in an
    # unknown state.
    return ProcessPoolExecutor(
        count,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(begin, arguments),
    )


def _begin(begin: Callable[..., None] | None, arguments: tuple[object, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    if begin is not None:
        begin(*arguments)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone.
    The pool by itself would wait for tasks for ever.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
