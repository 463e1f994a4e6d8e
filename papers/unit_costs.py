"""The costs that counts are priced with. They stand in a file, so that the page is the same on every machine.

`evenflow bench stage-costs` measures those of the stages, and `evenflow bench partitioners-prompt-plan` those
of Prompt's planning. `benchmarks/cores/stage_costs.py` and `benchmarks/partitioners/prompt_plan.py` say how.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "docs/reproducing"
COSTS = _FOLDER / "costs.json"
PLANNING = _FOLDER / "planning.json"


@dataclass(frozen=True)
class _UnitCosts:
    @property
    def mark(self) -> str:
        """A short name of these costs. It is in the names of cells, so that other costs mean other cells."""
        return hashlib.blake2s(repr(astuple(self)).encode(), digest_size=3).hexdigest()


@dataclass(frozen=True)
class Costs(_UnitCosts):
    """Nanoseconds of CPU. `benchmarks.cores.stage_costs.COSTS` says more of each."""

    tuple: float
    """A combiner folds a tuple into the partial results of its slide."""
    make: float
    """A combiner makes the partial result of a key in a slide."""
    send: float
    """A combiner hashes, places and encodes a partial result."""
    receive: float
    """A reducer decodes a partial result and merges it with that of another combiner."""
    hold: float
    """A partial result is added to the state of a window, and the window moves on."""
    emit: float
    """A row of results is made, as JSON."""
    hear: float
    """A combiner takes in an announced key, and looks for it in a window."""


@dataclass(frozen=True)
class PlanningCosts(_UnitCosts):
    """Nanoseconds of CPU. `benchmarks.partitioners.prompt_plan.COSTS` says more of each."""

    buffer: float
    """A tuple is counted while the batch fills."""
    renew: float
    """A tuple is counted, and its key's place in the quasi-sorted list is renewed now and then (Alg. 1)."""
    sort: float
    """A key is listed when the batch has ended, by sorting."""
    read: float
    """A key is listed when the batch has ended, by reading the quasi-sorted list."""
    plan: float
    """A key is placed on data blocks (Alg. 2)."""


@cache
def unit_costs() -> Costs:
    """The costs of the stages that docs/reproducing.md is made with."""
    return Costs(**_read(COSTS))


@cache
def planning_unit_costs() -> PlanningCosts:
    """The costs of planning that docs/reproducing.md is made with."""
    return PlanningCosts(**_read(PLANNING))


def _read(path: Path) -> dict[str, float]:
    costs: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))["ns"]
    return costs
