"""What a paper says, the criterion it is judged by, and the verdict: computed from the figures, never written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.reproducing.plan import Plan
from benchmarks.reproducing.store import Found, MissingError

Level = Literal["reproduced", "partly", "not reproduced", "not measured"]


@dataclass(frozen=True)
class Outcome:
    """Our side of a claim."""

    ours: str
    """Our figures in words."""
    held: tuple[bool, ...]
    """Whether the criterion holds, for each part it has (a setting, a stream)."""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper; `judge` gives our figures and which parts of the criterion hold."""

    source: str
    """Paper and place."""
    says: str
    """What the paper says, in our words."""
    criterion: str
    """When a part counts as reproduced."""
    judge: Callable[[Found, Plan], Outcome]
    because: str = ""
    """What explains a difference; told when not everything is reproduced."""
    absent: str = ""
    """Why a figure may be missing; told when nothing was measured."""
    note: str = ""
    """Told whatever the verdict."""
    own: bool = False
    """A check or variant of ours, not counted among the papers' claims."""


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict."""

    claim: Claim
    level: Level
    ours: str
    why: str


def verdict(held: Sequence[bool]) -> Level:
    """All parts hold: reproduced; some: partly; none: not. Without parts nothing was measured."""
    if not held:
        return "not measured"
    if all(held):
        return "reproduced"
    return "partly" if any(held) else "not reproduced"


def judged(claim: Claim, found: Found, plan: Plan) -> Judged:
    """The verdict on a claim; `not measured` when a figure is missing."""
    try:
        outcome = claim.judge(found, plan)
    except MissingError:
        outcome = Outcome("-", ())
    level = verdict(outcome.held)
    parts = f"{sum(outcome.held)} of {len(outcome.held)} parts hold." if level == "partly" else ""
    why = {"reproduced": "", "not measured": claim.absent}.get(level, claim.because)
    return Judged(claim, level, outcome.ours, " ".join(filter(None, (parts, why, claim.note))))
