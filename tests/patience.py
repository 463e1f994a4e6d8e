"""How long tests wait for what another process does before they call it a failure.

It costs nothing where all is well. A machine at half its speed, with two suites beside this one, took three
times as long as those on which most limits were set, and tests failed that had nothing wrong.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE = float(os.environ.get("EVENFLOW_PATIENCE", "3"))
"""The factor on the limits that stand at tests."""


def wait_for(
    condition: Callable[[], Any], otherwise: Callable[[], Any] = lambda: "", *, timeout: float = 90.0
) -> None:
    """Poll; an AssertionError that shows `otherwise()` if it does not happen in time."""
    deadline = time.monotonic() + timeout * PATIENCE
    while not condition():
        assert time.monotonic() < deadline, otherwise()
        threading.Event().wait(0.05)
