"""Tuples that cost differently, through the whole pipeline: exact by verify, and loads that are the sums
of their costs.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenflow.settings import KafkaSettings, Settings
from evenflow.telemetry import PartitionerRecord
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.kafka.learned_state import new_partitioner
from partitioner_service.plane.data_plane import DataPlane
from tests.pipeline.end_to_end import BEGIN, Pipeline, Stream, make_settings
from tests.pipeline.planes import start_thread, telemetry, wait_until
from tests.pipeline.spark_stream import results
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280)]

WEIGHTS = [1, 2.4, 40, 700, None, "heavy", -3, 5e6]
PARTS = [[], ["screw", ["nut", "bolt"]], "[1, 2]", None, [{"of": [1, 2]}, "]", 3]]
Number = int | float | None


def weight(parcel: dict[str, Any], beside: int) -> Number:
    """The weight of a parcel. None if it is no number."""
    held = parcel["weight"]
    return held if isinstance(held, int | float) else None


def sizes(parcel: dict[str, Any], beside: int) -> Number:
    """`size(items) * size(items.parts)`, where so many parcels are in the record."""
    held = parcel["parts"]
    return beside * len(held) if isinstance(held, list) else None


def cost(number: Number) -> int:
    """What a tuple of which the expression says this number costs."""
    return 1 if number is None else min(1_000_000, max(1, round(number)))


class Parcels(Stream):
    """Parcels with a weight and parts that only the cost reads. Some have nothing that is a cost.

    several: whether a record holds several of them, or none. beside: for each parcel, how many are in its
    record.
    """

    def __init__(self, settings: Settings, *, several: bool) -> None:
        super().__init__(settings)
        self._several = several
        self.parcels: list[dict[str, Any]] = []
        self.beside: list[int] = []

    def send(self, count: int) -> None:
        draw = random.Random(4)
        for number in range(count):
            parcels = [
                {
                    "sku": f"p{min(int(draw.paretovariate(0.8)), 30)}",
                    "weight": draw.choice(WEIGHTS),
                    "parts": draw.choice(PARTS),
                }
                for _ in range(draw.randint(0, 4) if self._several else 1)
            ]
            self.parcels += parcels
            self.beside += [len(parcels)] * len(parcels)
            row: dict[str, Any] = {"t": BEGIN + 10 * number}
            row |= {"items": parcels} if self._several else parcels[0]
            self._send(number % 4, None, json.dumps(row).encode(), row)


def routed_by_two(settings: list[Settings], stream: Parcels, count: int) -> None:
    """Route so many records with two instances that share the input from its first record on."""
    planes = [DataPlane(one) for one in settings]
    threads = [start_thread(plane) for plane in planes]

    def failed() -> bool:
        return any(errors for _, errors in threads)

    wait_until(lambda: failed() or [len(plane.status().get("assignment", ())) for plane in planes] == [2, 2])
    stream.send(count)
    stream.end()
    wait_until(lambda: failed() or all(state.ended for state in all_states(settings[0]).values()))
    for plane, (thread, _) in zip(planes, threads, strict=True):
        plane.stop()
        thread.join(60)
    assert [errors for _, errors in threads] == [[], []]


@pytest.mark.more
@pytest.mark.parametrize(
    ("several", "expression", "by_hand"),
    [
        pytest.param(False, "weight * 2 / 2", weight, marks=pytest.mark.long),
        pytest.param(True, "items.weight", weight, marks=pytest.mark.long),
        (True, "size(items) * size(items.parts)", sizes),
    ],
    ids=["records", "elements", "sizes"],
)
def test_loads_are_sums_of_costs_and_results_are_exact(
    kafka_settings: KafkaSettings,
    query_name: str,
    tmp_path: Path,
    several: bool,
    expression: str,
    by_hand: Callable[[dict[str, Any], int], Number],
) -> None:
    query: dict[str, Any] = {"slide": "5s", "types": {}, "aggregates": {"n": "count"}}
    query |= {"key": "items.sku", "explode": "items"} if several else {"key": "sku"}
    settings = [
        make_settings(
            kafka_settings,
            query_name,
            tmp_path,
            query=query,
            partitioner={
                "name": "hashing",
                "cost": expression,
                "instance": name,
                "instances": 2,
            },
        )
        for name in ("a-0", "b-1")
    ]
    stream = Parcels(settings[0], several=several)
    routed_by_two(settings, stream, 2_000)
    with Pipeline(settings[0], tmp_path) as pipeline:
        pipeline.start("aggregate", "--until-ended")
        pipeline.finish()
    report = verify(settings[0])
    assert report.exact, report.text()
    tuples = Counter[bytes]()
    for (_, key), row in results(settings[0])[0].items():
        tuples[key] += row["n"]
    assert tuples == Counter(parcel["sku"].encode() for parcel in stream.parcels)

    last: dict[str, PartitionerRecord] = {record.instance: record for record in telemetry(settings[0])}
    assert sorted(last) == ["a-0", "b-1"]
    partitioner, by_worker = new_partitioner(settings[0]), [0] * 3
    numbers = [by_hand(*one) for one in zip(stream.parcels, stream.beside, strict=True)]
    for parcel, number in zip(stream.parcels, numbers, strict=True):
        by_worker[int(partitioner.assign_keys([parcel["sku"]], [0])[0])] += cost(number)
    assert [sum(loads) for loads in zip(*(one.loads for one in last.values()), strict=True)] == by_worker
    assert all(one.tuples > 0 for one in last.values())
    assert sum(one.tuples for one in last.values()) == len(stream.parcels), "tuples are counted as tuples"
    told = [one.costs for one in last.values() if one.costs is not None]
    assert sum(one.below for one in told) == sum(number is None or number < 1 for number in numbers)
    assert sum(one.above for one in told) == numbers.count(5e6)
