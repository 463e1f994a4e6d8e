"""Waiting for something that another process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from evenflow.errors import ServiceError
from tests.patience import PATIENCE


def wait_until(holds: Callable[[], Any], otherwise: str, *, patience: float = 60.0) -> None:
    """Wait for it; ServiceError says `otherwise` after so many seconds."""
    deadline = time.monotonic() + patience * PATIENCE
    while not holds():
        if time.monotonic() >= deadline:
            raise ServiceError(f"{otherwise} within {patience * PATIENCE:g} s")
        time.sleep(0.1)
