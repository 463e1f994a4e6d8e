"""The product with one mend taken out. The simulator must notice each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(mutation: str | None) -> Iterator[None]:
    """Take this mend out. None: the product as it is."""
    yield
