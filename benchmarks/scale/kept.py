"""The figures of the scenario, kept as JSON. The page is made from them without measuring again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.machine import machine
from benchmarks.scale.costs import Units
from benchmarks.scale.load import LAWS, Found, load_of
from benchmarks.scale.shape import Load

DEFAULT = "evenflow"
"""The partitioner whose routing by 100 instances the bills use."""


@dataclass(frozen=True)
class Kept:
    """What was measured.

    state: figures of the partitioner's state, and bytes of a row. transactions: the rows that the broker's costs are fitted
    to. routing: a row for each law, partitioner and number of instances. check: whole micro-batches beside the model.
    smoke: whether the run was so small that its figures mean nothing.
    """

    units: Units
    state: dict[str, float]
    transactions: list[dict[str, float]]
    routing: list[dict[str, Any]]
    check: list[dict[str, float]]
    smoke: bool = False

    def write(self, path: Path) -> None:
        """Write everything to a file, with the facts of this machine."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self) | {"machine": machine()}, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> tuple[Kept, dict[str, Any]]:
        """Read what `write` wrote: the figures, and the facts of the machine that measured them."""
        fields = json.loads(path.read_text(encoding="utf-8"))
        facts = fields.pop("machine")
        return cls(units=Units(**fields.pop("units")), **fields), facts


def loads_of(kept: Kept, *, rate: float = 1e7, slide: float = 1.0, window: float = 60.0) -> dict[str, Load]:
    """The load of each law, routed by the default partitioner in 100 instances."""
    found = {
        row["law"]: Found(row["ksr"], row["imbalance"], row["most_holders"], row["ns"])
        for row in kept.routing
        if row["partitioner"] == DEFAULT and row["instances"] == 100
    }
    row = round(kept.state["row_bytes"])
    loads = [
        load_of(law, rate=rate, slide=slide, window=window, workers=1_000, routed=found[law.name])
        for law in LAWS
    ]
    return {load.law: replace(load, row=row) for load in loads}
