"""Closing what was opened, whatever becomes of the rest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from confluent_kafka import KafkaException

from evenflow.errors import EvenflowError


class Closing(ExitStack):
    """Calls what closes each part, the last first. A part that cannot be closed keeps no other from being closed.

    failed: the last error on the way, None if there was none.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failed: Exception | None = None

    def when_over(self, close: Callable[[], object]) -> None:
        """Call this at the end."""
        self.callback(self.quietly, close)

    def quietly(self, close: Callable[[], object]) -> None:
        """Call this now and keep its error."""
        try:
            close()
        except (EvenflowError, KafkaException, RuntimeError) as error:
            self.failed = error
