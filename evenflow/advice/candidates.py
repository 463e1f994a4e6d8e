"""The partitioners that are tried. Those of one cost are preferred in this order: simpler ones first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from evenflow.errors import ConfigError
from evenflow.partitioners import names
from evenflow.simulation import Entrant, entrant

Family = Literal["hashing", "affinity", "splitting"]


@dataclass(frozen=True)
class Candidate:
    """A partitioner to be tried."""

    text: str
    """NAME[:option=value,...]"""
    family: Family
    """hashing: a key has its worker; affinity: a key stays where it is; splitting: a key may be on several."""
    few_groups_only: bool = False
    """Splits every key: to be recommended only where the rule of 004 says so."""

    @property
    def entrant(self) -> Entrant:
        """As a simulation takes it."""
        return entrant(self.text)


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("hashing", "hashing"),
    Candidate("shuffle", "splitting", few_groups_only=True),
    Candidate("cam", "affinity"),
    Candidate("am", "affinity"),
    Candidate("cam:d=5", "affinity"),
    Candidate("evenflow", "splitting"),
    Candidate("d-choices", "splitting"),
    Candidate("w-choices", "splitting"),
    Candidate("dalton", "splitting"),
    Candidate("pkg", "splitting"),
    Candidate("pk5", "splitting"),
)
_FAMILIES: dict[str, Family] = {candidate.entrant.name: candidate.family for candidate in CANDIDATES}
_BY_TEXT = {candidate.text: candidate for candidate in CANDIDATES}


def candidates(also: Iterable[str] = (), *, registered: Sequence[str] | None = None) -> list[Candidate]:
    """The candidates that this evenflow has, and those asked for (a name that does not exist is refused later)."""
    known = names() if registered is None else registered
    asked = list(dict.fromkeys(also))
    usual = [candidate for candidate in CANDIDATES if candidate.entrant.name in known]
    more = [text for text in asked if text not in {candidate.text for candidate in usual}]
    for text in more:
        if not text.strip():
            raise ConfigError("an empty name is no partitioner", hint="write NAME[:option=value,...]")
    return usual + [_BY_TEXT.get(text) or Candidate(text, _family(text)) for text in more]


def _family(text: str) -> Family:
    return _FAMILIES.get(entrant(text).name, "splitting")
