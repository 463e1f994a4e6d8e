"""A thousand workers, a hundred input partitions and ten million tuples a second, on paper: what breaks
first, and where.

Unit costs are measured here, on one machine (`frames`, `control`, `broker`, `spark`), or taken from
docs/measurements.md (`documented_costs`). `load` simulates the routing of keys at 1,000 workers. The model
that multiplies counts and unit costs is `evenflow.scale`, which `evenflow size` uses, too. `docs/scale.md`
shows what came out. `python -m benchmarks.scale` makes its tables and pictures again from the measurements
that come with the library.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.measuring.machine import machine
from benchmarks.measuring.step_lines import step
from benchmarks.scale.broker import broker_costs
from benchmarks.scale.check import checked
from benchmarks.scale.control import control_costs, partitioner_costs, sync_costs
from benchmarks.scale.documented_costs import DOCUMENTED
from benchmarks.scale.frames import blob_costs, frame_costs, merge_cost, row_bytes
from benchmarks.scale.load import PARTITIONERS, routed, stream_of
from benchmarks.scale.setups import SETUPS, bill_of, cores_in
from benchmarks.scale.spark import task_cost
from evenflow.scale.costs import Units, by_place, over_budget
from evenflow.scale.law import LAWS
from evenflow.scale.measurements import Measurements, loads_of

SEED = 1
ID = "scale"
WHAT = (
    "1,000 workers, 100 input partitions and 10 M tuples/s on paper: unit costs measured here, multiplied out"
)
KEPT = Path(".evenflow/bench/scale.json")
"""The file that the figures are written to. `evenflow/scale/measured.json` is a copy of it."""


def run(*, smoke: bool) -> dict[str, object]:
    """Measure, simulate and multiply. The figures are returned, and written to `KEPT` as well."""
    with step("unit costs in memory"):
        units, state = _measured(smoke)
    brokered, rows = broker_costs(smoke=smoke)
    with step("tasks of Spark"):
        units |= brokered | task_cost(smoke=smoke)
    with step("routing"):
        routing = _routed(smoke)
    costs = Units(**units)
    with step("micro-batches without tuples, beside the model"):
        check = checked(costs, smoke=smoke)
    measurements = Measurements(costs, state, rows, routing, check, smoke)
    measurements.write(KEPT, machine=machine())
    return figures(measurements)


def _measured(smoke: bool) -> tuple[dict[str, float], dict[str, float]]:
    partitioner = partitioner_costs(smoke=smoke)
    state = {name: partitioner.pop(name) for name in ("rescaled", "state_bytes")}
    units = DOCUMENTED | frame_costs(smoke=smoke) | blob_costs(smoke=smoke) | merge_cost(smoke=smoke)
    units |= control_costs() | sync_costs(smoke=smoke) | partitioner
    return units, state | {"row_bytes": row_bytes()}


def _routed(smoke: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for law in LAWS:
        stream = stream_of(law, 20_000 if smoke else 10_000_000)
        for sources in (1, 100):
            for name, row in routed(stream, PARTITIONERS, workers=1_000, sources=sources).items():
                rows.append({"law": law.name, "partitioner": name, "instances": sources, **vars(row)})
    return rows


def figures(measurements: Measurements) -> dict[str, object]:
    """Figures for the runner: unit costs, the broker's rows, and each setup's bill by place with what is
    over budget.
    """
    load = loads_of(measurements)["words"]
    bills: list[dict[str, Any]] = []
    for name, setup in SETUPS.items():
        bill = bill_of(setup, load, measurements.units)
        places: dict[str, Any] = {str(place): cores for place, cores in by_place(bill).items()}
        bills.append({"shape": name, **places, "over_budget": over_budget(bill, cores_in(setup))})
    return {
        "units": measurements.units.rounded(),
        "state": measurements.state,
        "transactions": measurements.transactions,
        "routing": measurements.routing,
        "check": measurements.check,
        "bills": bills,
    }
