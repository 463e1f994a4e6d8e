"""Claims of the papers, the criteria by which they are judged, and the verdicts.

A verdict is computed from the figures. It is never written down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.reproducing.plan import Plan
from benchmarks.reproducing.store import Found, MissingError

Level = Literal["reproduced", "partly", "not reproduced", "not measured"]
Reason = Literal["paper", "data", "ours"]
"""What a difference comes from.

"paper": its words, or something that it does not give. "data": our data is other or smaller. "ours": our rule or setting
differs, or our rule does not do what is claimed.
"""


@dataclass(frozen=True)
class Outcome:
    """Our side of a claim."""

    ours: str
    """Our figures in words."""
    held: tuple[bool, ...]
    """Whether the criterion holds, one value for each of its parts (a setting, a stream)."""


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
    """What a difference comes from. The page tells it if not everything is reproduced."""
    because: str = ""
    """What explains a difference. The page tells it if not everything is reproduced."""
    absent: str = ""
    """Why a figure may be missing. The page tells it if nothing was measured."""
    note: str = ""
    """A remark that the page tells whatever the verdict is."""
    every: bool = False
    """Whether the claim speaks of all settings or gives a bound. Then "partly" needs three quarters of the parts."""
    own: bool = False
    """Whether this is a check or variant of ours. Such a claim is not counted among the papers' claims."""


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict."""

    claim: Claim
    level: Level
    parts: str
    """How many parts of the criterion hold, as "3 of 10". A dash if nothing was measured."""
    ours: str
    why: str
    reason: Reason | None = None
    """The claim's reason, if the claim was measured and is not fully reproduced."""


def verdict(held: Sequence[bool], *, every: bool = False) -> Level:
    """The verdict by how many parts of a criterion hold.

    All parts hold: "reproduced". At least half of them (with `every`: three quarters): "partly". Fewer: "not reproduced".
    A criterion without parts was "not measured".
    """
    if not held:
        return "not measured"
    if all(held):
        return "reproduced"
    return "partly" if sum(held) >= (0.75 if every else 0.5) * len(held) else "not reproduced"


def judged(claim: Claim, found: Found, plan: Plan) -> Judged:
    """The verdict on a claim. It is "not measured" if a figure is missing."""
    try:
        outcome = claim.judge(found, plan)
    except MissingError:
        outcome = Outcome("-", ())
    level = verdict(outcome.held, every=claim.every)
    parts = f"{sum(outcome.held)} of {len(outcome.held)}" if outcome.held else "-"
    why = {"reproduced": "", "not measured": claim.absent}.get(level, claim.because)
    reason = claim.reason if level in ("partly", "not reproduced") else None
    return Judged(claim, level, parts, outcome.ours, " ".join(filter(None, (why, claim.note))), reason)
