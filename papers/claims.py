"""Claims of the papers, the criteria by which they are judged, and the verdicts.

A verdict is computed from the figures. It is never written down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from papers.cells.run_plan import RunPlan
from papers.cells.store import MissingError, SectionFigures

Level = Literal["reproduced", "partly", "not reproduced", "not measured"]
Reason = Literal["paper", "data", "ours", "measure"]
"""What a difference comes from.

"paper": its words, or something that it does not give, and that this is the cause is shown. "data": our data
is other or smaller. "ours": our rule or setting differs, or our rule does not do what is claimed. "measure":
we measured something else than the paper, or the cause is not examined.
"""
Measure = Literal[
    "paper's formula",
    "counted tuples",
    "counted copies",
    "counted tuples and copies",
    "counted keys",
    "counted messages",
    "bytes of state",
    "priced from counts",
    "queue replay",
    "virtual time",
    "kept times",
    "kept trainings",
    "simulated operator",
]
"""What a verdict rests on."""
MEASURES: dict[Measure, str] = {
    "paper's formula": "computed from the formula that the paper prints. No tuple is routed",
    "counted tuples": (
        "tuples of workers, data blocks or buckets, counted in routed streams: imbalance, BSI, Eq. 1"
    ),
    "counted copies": (
        "pairs of a key and a worker (or data block) that routing makes: KSR, Gamma, BCI, Eq. 2"
    ),
    "counted tuples and copies": "both",
    "counted keys": "keys in a head, or rows of a table of hot keys",
    "counted messages": "messages of a protocol",
    "bytes of state": "bytes that a rule's tables take",
    "priced from counts": "work of tasks: counts times kept costs of our stages. No task waits for another",
    "queue replay": (
        "the highest rate at which nobody falls behind. Work is priced from counts, or comparisons are"
        " counted"
    ),
    "virtual time": "a protocol, or queues of messages or batches, played with work that is given",
    "kept times": "CPU times, or times of Spark's triggers, that `evenflow bench` measured and that are kept",
    "kept trainings": "curves of trainings that are kept",
    "simulated operator": "rewards and latencies of an operator that is a queue in a simulation",
}
"""The measures, explained as the page tells them."""


@dataclass(frozen=True)
class Outcome:
    """Our side of a claim."""

    ours: str
    """Our figures in words."""
    checks: tuple[bool, ...]
    """Whether the criterion holds, one value for each of its parts (a setting, a stream)."""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper."""

    source: str
    """Paper and place."""
    statement: str
    """What the paper says, in our words."""
    criterion: str
    """When a part counts as reproduced."""
    judge: Callable[[SectionFigures, RunPlan], Outcome]
    """Gives our figures, and which parts of the criterion hold."""
    measure: Measure
    """What was measured."""
    reason: Reason | None = None
    """What a difference comes from. The page tells it if not everything is reproduced."""
    because: str = ""
    """What explains a difference. The page tells it if not everything is reproduced."""
    absent: str = ""
    """Why a figure may be missing. The page tells it if nothing was measured."""
    note: str = ""
    """A remark that the page tells whatever the verdict is."""
    every: bool = False
    """Whether the claim speaks of all settings or gives a bound. Then "partly" needs three quarters of the
    parts.
    """
    own: bool = False
    """Whether this is a check or variant of ours. Such a claim is not counted among the papers' claims."""
    by_construction: str = ""
    """Why what we measure makes the claim true, whatever the partitioners do. Such a claim is not counted."""
    false_by_construction: str = ""
    """Why what we measure makes the claim false, whatever the partitioners do. Such a claim is not"
    " counted."""

    @property
    def constructed(self) -> str:
        """Why what we measure decides the claim. Empty if the partitioners do."""
        return self.by_construction or self.false_by_construction


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim with its verdict."""

    claim: Claim
    """What the paper says."""
    level: Level
    """The verdict."""
    parts: str
    """How many parts of the criterion hold, as "3 of 10". A dash if nothing was measured."""
    ours: str
    """Our figures, in words. A dash if one is missing."""
    why: str
    """Why the verdict is no better, and the claim's note."""
    reason: Reason | None = None
    """The claim's reason, if the claim was measured and is not fully reproduced."""

    @property
    def counts(self) -> bool:
        """Whether the verdict is one of those on the papers' claims that the page counts."""
        return not self.claim.own and not self.claim.constructed


def verdict(checks: Sequence[bool], *, every: bool = False) -> Level:
    """The verdict by how many parts of a criterion hold.

    All parts hold: "reproduced". At least half of them (with `every`: three quarters): "partly". Fewer: "not
    reproduced". A criterion without parts was "not measured".
    """
    if not checks:
        return "not measured"
    if all(checks):
        return "reproduced"
    return "partly" if sum(checks) >= (0.75 if every else 0.5) * len(checks) else "not reproduced"


def judged(claim: Claim, figures: SectionFigures, plan: RunPlan) -> ClaimVerdict:
    """The verdict on a claim. It is "not measured" if a figure is missing."""
    try:
        outcome = claim.judge(figures, plan)
    except MissingError:
        outcome = Outcome("-", ())
    level = verdict(outcome.checks, every=claim.every)
    parts = f"{sum(outcome.checks)} of {len(outcome.checks)}" if outcome.checks else "-"
    why = {"reproduced": "", "not measured": claim.absent}.get(level, claim.because)
    reason = claim.reason if level in ("partly", "not reproduced") else None
    return ClaimVerdict(claim, level, parts, outcome.ours, " ".join(filter(None, (why, claim.note))), reason)
