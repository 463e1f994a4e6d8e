"""The partitioners that are tried, in the order of preference: of candidates that cost the same,
the simpler first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evenflow.errors import ConfigError
from evenflow.partitioners import describe
from evenflow.partitioners.base import KeyPolicy
from evenflow.simulation import Entrant, entrant


@dataclass(frozen=True)
class Candidate:
    """A partitioner that is tried."""

    text: str
    """The partitioner as NAME[:option=value,...]."""
    few_groups_only: bool = False
    """Whether it splits every key, so that it is recommended only if the selection rule of 004 asks for
    that.
    """

    @property
    def entrant(self) -> Entrant:
        """The candidate as a simulation takes it."""
        return entrant(self.text)

    @property
    def family(self) -> KeyPolicy:
        """What the partitioner does with a key. ConfigError for a name that does not exist."""
        return describe(self.entrant.name).key_policy


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("hashing"),
    Candidate("shuffle", few_groups_only=True),
    Candidate("cam"),
    Candidate("am"),
    Candidate("cam:d=5"),
    Candidate("evenflow"),
    Candidate("d-choices"),
    Candidate("w-choices"),
    Candidate("d-choices:head=window"),
    Candidate("w-choices:head=window"),
    Candidate("dalton"),
    Candidate("pkg"),
    Candidate("pk5"),
)


def candidates(also: Iterable[str] = ()) -> list[Candidate]:
    """The usual candidates, and behind them those in `also` that are not among them.

    ConfigError for an empty name. A name that does not exist is refused later.
    """
    usual = {candidate.text for candidate in CANDIDATES}
    more = [text for text in dict.fromkeys(also) if text not in usual]
    for text in more:
        if not text.strip():
            raise ConfigError("an empty name is no partitioner", hint="write NAME[:option=value,...]")
    return [*CANDIDATES, *map(Candidate, more)]
