"""The interface for measuring the data plane from outside."""

from __future__ import annotations

from typing import Protocol


class Onlooker(Protocol):
    """Is told how long things take (s). It is called in the data plane's thread."""

    def block(self, seconds: float) -> None:
        """A block took so long, from its records until the producer had its frames."""
        ...

    def commit(self, seconds: float) -> None:
        """The commit of a transaction took so long."""
        ...
