"""What bad records cost compared with good ones: in the router for each kind and share, and in the service
on a broker.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.measuring.broken_records import KINDS, SHARES, routed
from benchmarks.measuring.broken_records import SEED as SEED
from benchmarks.measuring.cpu import CpuMeter
from benchmarks.measuring.pipelines import measured_broker
from benchmarks.measuring.spread import Speed, in_turns, ratios, spread
from benchmarks.measuring.step_lines import step
from benchmarks.service.data_plane import MeasuredLoop, MeasuredPlane, commits_of
from evenflow.settings import KafkaSettings, Settings
from evenflow.wire.markers import EndOfStream
from partitioner_service.begin.prepare import prepare
from topics import clients
from topics.admin import delete_topics, ensure_topics, pipeline_topics

ID = "service-bad-records"
WHAT = (
    "records/s with bad records of each kind and share, against good ones: the router alone, and the service"
    " on a broker"
)
GOAL = 3.0
"""The most that a record may cost where some are bad, as a multiple of its cost where all are good."""

_ON_A_BROKER = "number as text"


class _ReadingLoop(MeasuredLoop):
    """Counts records that were read, not tuples that were routed: bad records are never routed."""

    def counted(self) -> int:
        """The number that speed is made of: records."""
        return sum(state.read for state in self.parts.source.states.values())


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each kind of bad record, then the figures of the service."""
    rows = []
    for name, kind in KINDS.items():
        with step(f"router: {name}"):
            rows.append(_row(name, routed(kind, 5_000 if smoke else 50_000, 2 if smoke else 10)))
    return {"goal": GOAL, "router": rows, "service": _service(smoke=smoke)}


def _row(name: str, ns: dict[str, float]) -> dict[str, Any]:
    row: dict[str, Any] = {"bad": name, "good_records_per_second": round(1e9 / ns["good"])}
    for share in SHARES:
        row[share] = round(1e9 / ns[share])
        row[f"{share} costs"] = round(ns[share] / ns["good"], 2)
    row["met"] = all(ns[share] <= GOAL * ns["good"] for share in SHARES)
    return row


def _service(*, smoke: bool) -> dict[str, Any]:
    """Records read per second by share, from the first commit to the last, and the cost of a record
    relative to all good.
    """
    count, repetitions = (300_000, 1) if smoke else (2_000_000, 3)
    with measured_broker("bad_records") as (broker, meter):
        shares = {"good": None, **SHARES}
        for number, every in enumerate(shares.values()):
            with step(f"writing {count:,} records, one in {every} bad"):
                _write(_settings(broker.settings(), number, 0), count, every)
        # Each turn is a query of its own, so that it reads the whole input.
        turns = {share: iter(range(repetitions)) for share in shares}

        def run(number: int, share: str) -> Speed:
            return _speed(_settings(broker.settings(), number, next(turns[share]) + 1, smoke=smoke), meter)

        speeds = in_turns(
            {share: partial(run, number, share) for number, share in enumerate(shares)},
            repetitions,
            tell=True,
        )
    rates = {share: [speed.tuples_per_second for speed in runs] for share, runs in speeds.items()}
    cpu = {share: [speed.cpu for speed in runs] for share, runs in speeds.items()}
    return {
        "bad": _ON_A_BROKER,
        "records": count,
        "records_per_second": {share: spread(values) for share, values in rates.items()},
        "seconds_of_cpu_per_million_records": {share: spread(values) for share, values in cpu.items()},
        "costs": {share: ratios(rates["good"], rates[share]) for share in SHARES},
        "met": all(ratios(rates["good"], rates[share])["median"] <= GOAL for share in SHARES),
    }


def _settings(kafka: KafkaSettings, number: int, turn: int, *, smoke: bool = False) -> Settings:
    return KINDS[_ON_A_BROKER].settings(
        query={"name": f"bad-{number}-{turn}"},
        input={"topic": f"bad-{number}.input"},
        partitioner={"name": "hashing", "workers": 8, **commits_of(smoke=smoke)},
        kafka=kafka.model_dump(exclude_unset=True),
    )


def _write(settings: Settings, count: int, bad_every: int | None) -> None:
    """Write the records, 64 at a time to each partition in turn, and the end of the stream to every
    partition.
    """
    ensure_topics(settings.kafka, pipeline_topics(settings).values())
    client = clients.producer(settings.kafka, **{"linger.ms": 20, "queue.buffering.max.messages": 2_000_000})
    partitions = settings.input_partitions
    for number, value in enumerate(KINDS[_ON_A_BROKER].records(count, bad_every=bad_every)):
        client.produce(settings.topic("input"), value=value, partition=number // 64 % partitions)
    for partition in range(partitions):
        marker = EndOfStream(producer="bench", tuples=0)
        client.produce(settings.topic("input"), partition=partition, headers=list(marker.headers()))
    clients.flush(client, settings.kafka)


def _speed(settings: Settings, meter: CpuMeter) -> Speed:
    plane = MeasuredPlane(prepare(settings), _ReadingLoop)
    plane.run()
    delete_topics(settings.kafka, [settings.topic("routed"), settings.topic("rejected")])
    return plane.commits.speed(meter)
