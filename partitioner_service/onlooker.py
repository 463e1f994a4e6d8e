"""Whoever measures the data plane from outside."""

from __future__ import annotations

from typing import Protocol


class Onlooker(Protocol):
    """Is told how long things take (s), in the data plane's thread."""

    def block(self, seconds: float) -> None:
        """A block, from its records to its frames at the producer."""
        ...

    def commit(self, seconds: float) -> None:
        """A transaction's commit."""
        ...
