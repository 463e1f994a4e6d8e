"""What a run has lost of what Kafka had acknowledged, and how a refusal because of it reads."""

from __future__ import annotations

import re

from tests.faults.world import World

_RECREATED = r"deleted and (created|made) (again|anew)"
SIGNS = {
    "routed": rf"(q\.routed\[|routed partition|session \d).*( gone|ends at|begins at|needed)|q\.routed .*{_RECREATED}",
    "input": rf"in\[\d+\].*(gone|but the next to read)|in(\[\d+\])? .*{_RECREATED}",
}
"""What a refusal says when records of a topic are lost."""
_EXPIRED = "no committed offsets of"


class Losses:
    """what: each loss in words. of_input: whether records of the input are lost that may have been read."""

    def __init__(self, world: World) -> None:
        self.what: list[str] = []
        self.of_input = False
        self._signs: set[str] = set()
        self._world = world

    def note(self, what: str, sign: str) -> None:
        """Note a loss. sign: what a refusal because of it says, a regular expression."""
        self.what.append(what)
        self._signs.add(sign)
        self._world.history.note(self._world.now, "broker", "LOST", what)

    def note_expired(self, partitions: list[int]) -> None:
        """The broker has forgotten the committed offsets of these input partitions."""
        self.note(f"offsets of {partitions}", _EXPIRED)

    @property
    def of_offsets(self) -> bool:
        """Whether the broker has forgotten committed offsets."""
        return _EXPIRED in self._signs

    def names(self, refusal: str) -> bool:
        """Whether a refusal speaks of one of these losses."""
        return any(re.search(sign, refusal, re.DOTALL) for sign in self._signs)
