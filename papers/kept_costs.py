"""The kept costs that counts are priced with. They are kept, so that the page is the same on every machine.

`evenflow bench stage-costs` measures those of the stages, and `evenflow bench partitioners-prompt-plan` those of Prompt's
planning. `benchmarks/cores/stage_costs.py` and `benchmarks/partitioners/prompt_plan.py` say how.
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
class _KeptCosts:
    @property
    def mark(self) -> str:
        """A short name of these costs. It is in the names of cells, so that other costs mean other cells."""
        return hashlib.blake2s(repr(astuple(self)).encode(), digest_size=3).hexdigest()


@dataclass(frozen=True)
class Costs(_KeptCosts):
    """Nanoseconds of CPU of one of each. `benchmarks.cores.stage_costs.COSTS` says what of."""

    tuple: float
    make: float
    send: float
    receive: float
    hold: float
    emit: float
    hear: float


@dataclass(frozen=True)
class Planning(_KeptCosts):
    """Nanoseconds of CPU. `benchmarks.partitioners.prompt_plan.COSTS` says what of."""

    buffer: float
    renew: float
    sort: float
    read: float
    plan: float


@cache
def kept_costs() -> Costs:
    """The costs of the stages that docs/reproducing.md is made with."""
    return Costs(**_read(COSTS))


@cache
def kept_planning() -> Planning:
    """The costs of planning that docs/reproducing.md is made with."""
    return Planning(**_read(PLANNING))


def _read(path: Path) -> dict[str, float]:
    costs: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))["ns"]
    return costs
