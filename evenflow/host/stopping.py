"""SIGTERM and SIGINT as a request to stop, for services that end between two pieces of work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Within this context both signals set `stop`. At its end the former handlers are restored.

    Only the main thread can install handlers. In another thread this context does nothing, and the caller
    sets `stop`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, lambda *_: stop.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
