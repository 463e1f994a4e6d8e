"""`python -m benchmarks.fleet.virtual`: the course of `service-instances` in virtual time, over 20 seeds.

There are partitioners and their rounds, but neither processes nor topics. A portion of the stream is a tick.
Messages are told at the first tick from which they are due, and a table is heard a tick later. The running
instance with the least number makes the tables. A round with a silent member closes after `_PATIENCE_MS`. An
instance that ends keeps a snapshot, and a killed one has that which it kept last. A new one begins with its
own snapshot, or else with the newest of another instance, as in the service (`LearnedState`).

The rows go to docs/measurements/instances-virtual.json. `python -m benchmarks.fleet` makes their table.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np

from benchmarks.fleet.__main__ import PAGE
from benchmarks.fleet.course import Phase, course
from benchmarks.fleet.instances import INPUTS, PANES, SLIDE_MS, WORKERS
from benchmarks.service.instances import PARTITIONERS, PHASES
from evenflow.generation.rank_laws import labels
from evenflow.keys import hash_keys
from evenflow.metrics import imbalance
from evenflow.numeric.arrays import Int64s
from evenflow.partitioners import Partitioner, create, restore
from evenflow.partitioners.exchange import Table
from evenflow.partitioners.fitting import fitted
from evenflow.partitioners.registry import tells
from partitioner_service.exchange.table_maker import TableMaker

NAME = "instances-virtual"
SEEDS = range(1, 21)
COURSE = (*PHASES, Phase("SIGKILL of 0", (1,), kills=(0,)), Phase("0 is back", (0, 1)))
"""As on a broker. Then the instance that makes the tables is killed."""
_PORTIONS = 20
_PATIENCE_MS = 500
_SNAPSHOT_SLIDES = 5
_KEPT = ("title", "seed", "length", "events", "windows")


class VirtualFleet:
    """As `Fleet`, for a partitioner whose instances tell each other what they know."""

    def __init__(self, partitioner: str, *, sources: int) -> None:
        self.partitioner = partitioner
        self.rounds: list[int | None] = []
        self._loads: list[Int64s] = []
        self._alive: dict[int, Partitioner] = {}
        self._snapshots: dict[int, bytes] = {}
        self._newest: int | None = None
        """The instance that kept a snapshot last."""
        self._sources = sources
        self._now = 0
        self._heard: int | None = None
        """The round of the newest table."""
        self._tables: list[Table] = []
        """Tables that are heard at the next tick."""
        self._makers: dict[int, TableMaker] = {}

    def run(self, *numbers: int) -> None:
        """Let exactly these instances run. The others end."""
        for number in sorted(self._alive.keys() - set(numbers)):
            self._keep(number)
            self.kill(number)
        for number in numbers:
            if number not in self._alive:
                self._alive[number] = self._started(number)
                self._makers[number] = TableMaker(
                    sources=self._sources, patience=_PATIENCE_MS, clock=lambda: float(self._now)
                )

    def kill(self, number: int) -> None:
        """Take it away with what it has not kept."""
        del self._alive[number], self._makers[number]

    def slide(self, keys: Int64s) -> float:
        """Route a slide of tuples with these keys. Returns the slide's imbalance."""
        loads = np.zeros(WORKERS, np.int64)
        hashes = hash_keys(labels(keys))
        for number, portion in enumerate(np.array_split(hashes, _PORTIONS)):
            self._now = len(self._loads) * SLIDE_MS + number * SLIDE_MS // _PORTIONS
            self._exchange()
            times = self._now + np.arange(len(portion)) * (SLIDE_MS // _PORTIONS) // len(portion)
            turn = np.arange(len(portion)) % INPUTS % len(self._alive)
            for place, source in enumerate(sorted(self._alive)):
                mine = turn == place
                workers = self._alive[source].assign(portion[mine], times[mine])
                loads += np.bincount(workers, minlength=WORKERS)
        self._loads.append(loads)
        if len(self._loads) % _SNAPSHOT_SLIDES == 0:
            for source in self._alive:
                self._keep(source)
        self.rounds.append(self._heard)
        return imbalance(loads)

    def end(self) -> None:
        """Nothing is left to do."""

    def window_imbalance(self) -> list[float]:
        """The imbalance of the window that ends with each slide."""
        return [
            imbalance(np.sum(self._loads[max(0, slide + 1 - PANES) : slide + 1], axis=0))
            for slide in range(len(self._loads))
        ]

    def _keep(self, number: int) -> None:
        self._snapshots[number] = self._alive[number].snapshot()
        self._newest = number

    def _started(self, number: int) -> Partitioner:
        options: dict[str, Any] = fitted(self.partitioner, {}, window_ms=PANES * SLIDE_MS, slide_ms=SLIDE_MS)
        fresh = create(
            self.partitioner, workers=WORKERS, seed=1, source=number, sources=self._sources, **options
        )
        if number in self._snapshots:
            return restore(self._snapshots[number], like=fresh)
        if self._newest is not None:
            return restore(self._snapshots[self._newest], like=fresh, any_source=True)
        return fresh

    def _exchange(self) -> None:
        elected = min(self._alive)
        for number, maker in self._makers.items():
            if number == elected:
                maker.appoint(self._alive[number])
            else:
                maker.dismiss()
        heard, self._tables = self._tables, []
        for table, number in product(heard, self._alive):
            self._alive[number].hear(table, self._now)
            self._makers[number].note(table)
            self._heard = table.round
        messages = [part.tell(self._now) for part in self._alive.values() if self._due(part)]
        tables = [
            maker.take(message)
            for message, maker in product(messages, self._makers.values())
            if message is not None
        ]
        tables += [maker.overdue() for maker in self._makers.values()]
        self._tables += [table for table in tables if table is not None]

    def _due(self, part: Partitioner) -> bool:
        return part.tells_at is None or part.tells_at <= self._now


def played(partitioner: str, seed: int) -> dict[str, Any]:
    """The row of a course: what tables need of it."""
    row = course(VirtualFleet(partitioner, sources=4), COURSE, smoke=False, seed=seed)
    return {name: value for name, value in {"title": partitioner, **row}.items() if name in _KEPT}


def main() -> None:
    """Play all seeds, and write their rows. The working directory is the repository."""
    rows = [played(name, seed) for name in PARTITIONERS if tells(name) for seed in SEEDS]
    (PAGE.with_suffix("") / f"{NAME}.json").write_text(json.dumps(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
