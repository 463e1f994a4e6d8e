"""A figure, table or algorithm of a paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["fig.", "table", "alg."]
NOT_MEASURED = "not measured"
"""The place of what the page lists as not measured. All other places are names of sections."""


@dataclass(frozen=True)
class Item:
    """One line of the list. It has a place on the page, or says why the item does not exist here, or both."""

    kind: Kind
    """What the paper calls it."""
    number: str
    """As the paper counts, in Arabic numerals: 7, 2.6."""
    shows: str
    """What is in it, in our words."""
    places: tuple[str, ...] = ()
    """Names of sections, or `NOT_MEASURED`."""
    why: str = ""
    """What of it does not exist here, and why. Without a place: why nothing of it does."""

    @property
    def name(self) -> str:
        """As sources name it: fig. 7."""
        return f"{self.kind} {self.number}"
