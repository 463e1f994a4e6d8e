"""What a run has lost of what Kafka had acknowledged, and how a refusal because of it reads."""

from __future__ import annotations

import re

from tests.faults.processes.world import World

_RECREATED = r"deleted and (created|made) (again|anew)"
_GONE = (
    r"routed partition \d.* gone|session \d+ had written|was read up to its end|still has \d+ open windows"
)
SIGNS = {
    "routed": (
        r"(q\.routed\[|routed partition|session \d).*( gone|ends at|begins at|needed)|q\.routed"
        rf" .*{_RECREATED}|" + _GONE
    ),
    "partials": rf"q\.partials\[.*(gone|ends at|begins at|needed)|{_GONE}",
    "input": rf"in\[\d+\].*(gone|but the next to read)|in(\[\d+\])? .*{_RECREATED}",
}
"""What a refusal says when records of a topic are lost."""
_AGAIN = "was routed twice"
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

    def note_fallen(self, partitions: dict[int, tuple[int, int]]) -> None:
        """The committed offsets of these input partitions fell, each from one offset to another."""
        fell = ", ".join(f"in[{number}] from {high} to {low}" for number, (high, low) in partitions.items())
        self.note(f"committed offsets: {fell}", _AGAIN)

    @property
    def of_progress(self) -> bool:
        """Whether committed offsets fell, so that input that was read is read again."""
        return _AGAIN in self._signs

    @property
    def of_offsets(self) -> bool:
        """Whether the broker has forgotten committed offsets."""
        return _EXPIRED in self._signs

    def names(self, refusal: str) -> bool:
        """Whether a refusal speaks of one of these losses."""
        return any(re.search(sign, refusal, re.DOTALL) for sign in self._signs)
