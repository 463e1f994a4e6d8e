"""Ctrl-C and SIGTERM end a demo through every `finally`, wherever they meet it."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """Raises KeyboardInterrupt for SIGINT and SIGTERM, and once more at `check`.

    Python drops an exception that a signal raises while a finaliser or a callback from C runs. So the signal is
    remembered, and asked for wherever the demo waits.
    """

    def __init__(self) -> None:
        self._came = False
        self._before: dict[int, Any] = {}

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal has come."""
        if self._came:
            raise KeyboardInterrupt

    def __enter__(self) -> Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._came = True
        raise KeyboardInterrupt
