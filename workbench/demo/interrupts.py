"""Lets Ctrl-C and SIGTERM end a demo at any point, through every `finally`."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """Raises KeyboardInterrupt for SIGINT and SIGTERM, and once more at `check`.

    Python drops an exception that a signal handler raises while a finaliser or a callback from C runs. So the
    signal is remembered, and `check` is called wherever the demo waits. Signal handlers can only be set in
    the main thread.
    """

    def __init__(self) -> None:
        self._signal_pending = False
        self._before: dict[int, Any] = {}

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal has come."""
        if self._signal_pending:
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
        self._signal_pending = True
        raise KeyboardInterrupt
