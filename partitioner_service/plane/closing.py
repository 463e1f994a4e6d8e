"""Closing every part that was opened, even if another part cannot be closed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from confluent_kafka import KafkaException

from evenflow.errors import EvenflowError


class Closing(ExitStack):
    """Closes each part, the one that was opened last first. If a part cannot be closed, the others still
    are.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failed: Exception | None = None
        """The last error while closing. None if there was none."""

    def when_over(self, close: Callable[[], object]) -> None:
        """Call `close` at the end."""
        self.callback(self.quietly, close)

    def quietly(self, close: Callable[[], object]) -> None:
        """Call `close` now, and keep its error in `failed`."""
        try:
            close()
        # A Kafka client that is already closed raises RuntimeError.
        except (EvenflowError, KafkaException, RuntimeError) as error:
            self.failed = error
