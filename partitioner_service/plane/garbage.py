"""How often Python looks for cycles of garbage while blocks are routed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def patient_garbage_collection() -> Iterator[None]:
    """Collect cycles of garbage rarely.

    A block is tens of thousands of Message objects, and none of them is part of a cycle. With Python's own
    threshold the collector would look at all of these objects some seventy times a block.
    """
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
