"""Balance of loads while instances are killed, added and taken away, slide by slide on a real broker.

Instances 0 and 1 run at first. Then 1 is killed (SIGKILL), started again, 2 and 3 are added and taken away.
The stream keeps its law all the time: Zipf over many keys, with the clock of a live stream. Each tuple must
be in the routed topic once. What is measured is how many slides pass until windows are as level again as
before each event.
"""

from __future__ import annotations

from benchmarks.fleet.course import SEED as SEED
from benchmarks.fleet.course import Phase, beside_others, course, levels
from benchmarks.fleet.instances import INPUTS, PANES, WORKERS, fleet
from benchmarks.fleet.picture import courses
from benchmarks.measuring.step_lines import step
from benchmarks.pictures import PLOTS, keep
from workbench.local.broker import EmbeddedBroker

ID = "service-instances"
WHAT = "slides until loads are as level as before a SIGKILL, and before 2 -> 4 -> 2 instances"

PARTITIONERS = ("evenflow", "dalton-cooperative", "dalton")
PHASES = (
    Phase("2 instances", (0, 1)),
    Phase("SIGKILL of 1", (0,), kills=(1,)),
    Phase("1 is back", (0, 1)),
    Phase("2 -> 4", (0, 1, 2, 3)),
    Phase("4 -> 2", (0, 1)),
)


def run(*, smoke: bool, seed: int = SEED) -> dict[str, object]:
    """A row for each partitioner: for each event how many slides it took until windows were as level
    again.
    """
    rows = []
    with EmbeddedBroker() as broker:
        for name in PARTITIONERS[:1] if smoke else PARTITIONERS:
            with step(name), fleet(broker.settings(), f"instances-{name}", name, sources=4) as instances:
                rows.append({"title": name, **course(instances, PHASES, smoke=smoke, seed=seed)})
    if not smoke:
        picture = PLOTS / f"{ID}.svg"
        keep(beside_others(rows, picture), courses, picture)
    again = [{"partitioner": row["title"], **row["again"]} for row in rows]
    around = [
        {"partitioner": row["title"], "event": event, **levels(row, event)._asdict()}
        for row in rows
        for event in row["again"]
    ]
    return {
        "workers": WORKERS,
        "input_partitions": INPUTS,
        "window_slides": PANES,
        "again": again,
        "levels": around,
    }
