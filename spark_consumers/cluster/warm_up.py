"""Python workers that are there before the first micro-batch that needs them."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any


def warm_up(context: Any, slots: int) -> None:
    """Start the parents of the Python workers of so many slots, in the background.

    A parent takes a second for its imports. Spark starts the parent of an executor with the executor's first
    task in Python, which would otherwise be one of a micro-batch. context: of the session.
    """
    with suppress(RuntimeError):  # no thread is to be had
        threading.Thread(target=_run, args=(context, slots), name="evenflow-warm", daemon=True).start()


def _run(context: Any, slots: int) -> None:
    """Give each slot a task that does nothing.

    Nothing depends on this. So every error is ignored, for example that the session has ended meanwhile.
    """
    with suppress(Exception):
        context.parallelize(range(slots), slots).foreach(abs)
