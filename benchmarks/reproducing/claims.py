"""What a paper says, the criterion it is judged by, and the verdict: computed from the figures, never written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.reproducing.plan import Plan
from benchmarks.reproducing.store import Found, MissingError

Level = Literal["reproduced", "partly", "not reproduced", "not measured"]
Reason = Literal["paper", "data", "ours"]
"""What a difference lies in: the paper (its words, or what it does not give), the data (ours is other or smaller), or us
(our rule or setting differs)."""


@dataclass(frozen=True)
class Outcome:
    """Our side of a claim."""

    ours: str
    """Our figures in words."""
    held: tuple[bool, ...]
    """Whether the criterion holds, for each part it has (a setting, a stream)."""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper. `judge` gives our figures and which parts of the criterion hold."""

    source: str
    """Paper and place."""
    says: str
    """What the paper says, in our words."""
    criterion: str
    """When a part counts as reproduced."""
    judge: Callable[[Found, Plan], Outcome]
    reason: Reason | None = None
    """Where a difference comes from. Told when not everything is reproduced."""
    because: str = ""
    """What explains a difference. Told when not everything is reproduced."""
    absent: str = ""
    """Why a figure may be missing. Told when nothing was measured."""
    note: str = ""
    """Told whatever the verdict."""
    every: bool = False
    """The claim speaks of all settings or gives a bound: nearly all parts must hold for "partly"."""
    own: bool = False
    """A check or variant of ours, not counted among the papers' claims."""


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict."""

    claim: Claim
    level: Level
    parts: str
    """How many parts of the criterion hold, "3 of 10". A dash when nothing was measured."""
    ours: str
    why: str
    reason: Reason | None = None
    """Of a claim that was measured and is not reproduced."""


def verdict(held: Sequence[bool], *, every: bool = False) -> Level:
    """All parts hold: reproduced. At least half (`every`: three quarters): partly. fewer: not. No parts: not measured."""
    if not held:
        return "not measured"
    if all(held):
        return "reproduced"
    return "partly" if sum(held) >= (0.75 if every else 0.5) * len(held) else "not reproduced"


def judged(claim: Claim, found: Found, plan: Plan) -> Judged:
    """The verdict on a claim. `not measured` when a figure is missing."""
    try:
        outcome = claim.judge(found, plan)
    except MissingError:
        outcome = Outcome("-", ())
    level = verdict(outcome.held, every=claim.every)
    parts = f"{sum(outcome.held)} of {len(outcome.held)}" if outcome.held else "-"
    why = {"reproduced": "", "not measured": claim.absent}.get(level, claim.because)
    reason = claim.reason if level in ("partly", "not reproduced") else None
    return Judged(claim, level, parts, outcome.ours, " ".join(filter(None, (why, claim.note))), reason)
