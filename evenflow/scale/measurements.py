"""What was measured: unit costs, and how partitioners route at 1,000 workers. `evenflow bench scale`
writes such a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from evenflow.scale.costs import Units
from evenflow.scale.law import LAWS
from evenflow.scale.shape import StreamLoad

DEFAULT = "evenflow"
"""The partitioner whose routing by 100 instances the bills use."""
MEASURED = Path(__file__).with_name("measured.json")
"""The measurements that come with this version.
The tables of docs/scale.md and `evenflow size` are made from them.
"""


@dataclass(frozen=True)
class Measurements:
    """What was measured."""

    units: Units
    """What one thing of each kind costs."""
    state: dict[str, float]
    """Figures of the partitioner's state, and bytes of a row."""
    transactions: list[dict[str, float]]
    """The rows that the broker's costs are fitted to."""
    routing: list[dict[str, Any]]
    """A row for each law, partitioner and number of instances."""
    check: list[dict[str, float]]
    """Whole micro-batches beside the model."""
    smoke: bool = False
    """Whether the run was so small that its figures mean nothing."""

    def write(self, path: Path, *, machine: Mapping[str, object]) -> None:
        """Write everything to a file, with the facts of the machine."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self) | {"machine": machine}, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> tuple[Measurements, dict[str, Any]]:
        """Read what `write` wrote: the figures, and the facts of the machine that measured them."""
        fields = json.loads(path.read_text(encoding="utf-8"))
        facts = fields.pop("machine")
        return cls(units=Units(**fields.pop("units")), **fields), facts

    def transaction_seconds(self, partitions: float) -> float:
        """Seconds (not of CPU) that a partitioner waits for the commit
        of a transaction over this many partitions.

        A line through the rows with one frame a partition, which were measured on one busy broker: an upper
        bound.
        """
        rows = [row for row in self.transactions if row["frames_a_partition"] == 1]
        few, many = (min(rows, key=_partitions), max(rows, key=_partitions))
        slope = (many["seconds"] - few["seconds"]) / (many["partitions"] - few["partitions"])
        return max(0.0, few["seconds"] + slope * (partitions - few["partitions"]))

    def routing_at(self, zipf: float) -> tuple[float, float]:
        """ksr and imbalance of the default partitioner for a Zipf law with this exponent.

        They are read off between the measured laws with a million keys. Beyond these the nearest law counts.
        """
        rows = _default_rows(self)
        laws = [law for law in LAWS if law.keys >= 1_000_000]
        exponents = [law.zipf for law in laws]
        ksr, imbalance = (
            float(np.interp(zipf, exponents, [rows[law.name][name] for law in laws]))
            for name in ("ksr", "imbalance")
        )
        return ksr, imbalance


@cache
def measured() -> tuple[Measurements, dict[str, Any]]:
    """The measurements in `MEASURED`, and the facts of their machine."""
    return Measurements.read(MEASURED)


def loads_of(
    measurements: Measurements, *, rate: float = 1e7, slide: float = 1.0, window: float = 60.0
) -> dict[str, StreamLoad]:
    """The load of each law, routed by the default partitioner in 100 instances."""
    rows = _default_rows(measurements)
    row = round(measurements.state["row_bytes"])
    loads = [
        law.load(
            rate=rate,
            slide=slide,
            window=window,
            workers=1_000,
            ksr=rows[law.name]["ksr"],
            imbalance=rows[law.name]["imbalance"],
        )
        for law in LAWS
    ]
    return {load.law: replace(load, row=row) for load in loads}


def _partitions(row: Mapping[str, float]) -> float:
    return row["partitions"]


def _default_rows(measurements: Measurements) -> dict[str, dict[str, Any]]:
    return {
        row["law"]: row
        for row in measurements.routing
        if row["partitioner"] == DEFAULT and row["instances"] == 100
    }
