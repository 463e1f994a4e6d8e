"""Unit costs of telemetry, decisions, plans, tables of cooperating partitioners, snapshots and the
progress of peers.
"""

from __future__ import annotations

from itertools import count
from typing import Literal

import numpy as np

from benchmarks.scale.timing import cpu
from evenflow import elasticity
from evenflow.partitioners import create
from evenflow.partitioners.base import Partitioner
from evenflow.partitioners.dalton.messages import SyncMessage
from evenflow.partitioners.dalton.reducer import QTableReducer
from evenflow.partitioners.exchange import Message
from evenflow.plans import Plan, parse_plan
from evenflow.progress import PartitionState
from evenflow.simulation import generated
from evenflow.telemetry import DecisionRecord, PartitionerRecord, parse

_PRINT = "0123456789abcdef"
_WORKERS = 1_000


def control_costs() -> dict[str, float]:
    """The units telemetry_written, telemetry_read, load_read, judged, plan_read and peer_read."""
    bare, whole = (_record(workers).encode() for workers in (0, _WORKERS))
    bare_read = cpu(lambda: parse(bare), calls=20)
    plan = Plan(
        epoch=7, p=_WORKERS, r=64, effective_from=1_000, group=3, reason="W 0.97 for 3 batches"
    ).encode(_PRINT)
    state = PartitionState(
        fingerprint=_PRINT,
        topic_id="x" * 22,
        offset=10**9,
        first_time=10**11,
        max_time=10**12,
        steady_from=10**11,
    )
    state_bytes, offsets = state.encode(), count()
    return {
        "telemetry_written": cpu(lambda: _record(_WORKERS).encode(), calls=20),
        "telemetry_read": bare_read,
        # What the loads add to reading the record, for one worker.
        "load_read": max(0.0, cpu(lambda: parse(whole), calls=20) - bare_read) / _WORKERS,
        "judged": cpu(_judge, calls=20),
        "plan_read": cpu(lambda: parse_plan(plan, fingerprint=_PRINT), calls=100),
        # Each time at another offset: a state that was decoded is remembered.
        "peer_read": cpu(lambda: PartitionState.decode(state_bytes, offset=next(offsets)), calls=100),
    }


def _record(workers: int) -> PartitionerRecord:
    return PartitionerRecord(
        query="q",
        fingerprint=_PRINT,
        time=10**12,
        instance="partitioner-17",
        started=10**12,
        owned=1,
        inputs=1,
        epoch=5,
        workers=_WORKERS,
        tuples=10**10,
        rejected=0,
        read=10**10,
        filtered=0,
        period_ms=5_000,
        rate=1e5,
        keys=1e5,
        busy=0.4,
        loads=[1_000_000 + number for number in range(workers)],
    )


_STAGES: tuple[Literal["combine", "reduce"], ...] = ("combine", "reduce")


def _judge() -> bytes:
    """Makes an observation, lets a policy judge it, and exports the decision.

    The newest record of each part of the pipeline is at hand.
    """
    policy = elasticity.create("fixed", bounds=elasticity.Bounds(p_max=_WORKERS, r_max=1_000))
    parts = {name: elasticity.StageObservation(load=0.8, arrivals=1e7) for name in _STAGES}
    observation = elasticity.Observation(
        step=1, interval_ms=5_000, p=_WORKERS, r=64, load=0.8, rate=1e7, stages=parts
    )
    decision = policy.decide(observation)
    record = DecisionRecord(
        query="q",
        fingerprint=_PRINT,
        time=10**12,
        policy="fixed",
        step=1,
        p=observation.p,
        r=observation.r,
        wanted_p=decision.p,
        wanted_r=decision.r,
        reason=decision.reason,
        observation=observation.fields(),
    )
    return record.encode()


def sync_costs(*, smoke: bool) -> dict[str, float]:
    """The units value_sent, value_read and value_merged, for one value.

    Ten partitioners send tables of 70 keys x 1,000 workers.
    """
    keys, workers, members = (8, 50, 3) if smoke else (70, _WORKERS, 10)
    random = np.random.default_rng(1)
    hot = np.sort(random.integers(0, 2**62, keys).astype(np.uint64))
    messages = [
        SyncMessage(
            total=10_000,
            late=0,
            keys=hot,
            frequencies=np.full(keys, 10_000, np.int64),
            row_keys=hot,
            values=random.random((keys, workers)),
        )
        for _ in range(members)
    ]
    data = messages[0].to_bytes()
    round_messages = [Message(member, 0, message.to_bytes()) for member, message in enumerate(messages)]
    # A clock that stands still: only the merge is measured.
    reducer = QTableReducer(workers=workers, dsync_ms=1_000, bounds=(100, 64_000), clock=lambda: 0.0)

    values = keys * workers
    read = cpu(lambda: SyncMessage.from_bytes(data), calls=5) / values
    return {
        "value_sent": cpu(messages[0].to_bytes, calls=5) / values,
        "value_read": read,
        # The reducer reads the messages too, and that is counted by itself.
        "value_merged": max(0.0, cpu(lambda: reducer.merge(round_messages)) / values / members - read),
    }


def warm_partitioner(name: str, *, tuples: int, sources: int = 100) -> Partitioner:
    """Source 0 of `sources` at 1,000 workers, after `tuples` tuples in ten slides of a window of 60
    slides.
    """
    stream = generated("zipf", tuples=tuples, keys=1_000_000, zipf=0.95, seed=1, rate=tuples / 10)
    # Hashing has no options of windows.
    windowed = {"window_ms": 60_000, "slide_ms": 1_000} if name != "hashing" else {}
    partitioner = create(name, workers=_WORKERS, seed=7, source=0, sources=sources, **windowed)
    partitioner.assign(stream.keys, stream.times)
    return partitioner


def partitioner_costs(*, smoke: bool) -> dict[str, float]:
    """The units snapshot and snapshot_bytes of the default partitioner. `rescaled` and `state_bytes` are
    for information.
    """
    partitioner = warm_partitioner("evenflow", tuples=20_000 if smoke else 1_000_000)
    data = partitioner.snapshot()

    def rescale() -> None:
        partitioner.rescale(workers=_WORKERS - 100)
        partitioner.rescale(workers=_WORKERS)

    return {
        "snapshot": cpu(partitioner.snapshot, repetitions=5),
        "snapshot_bytes": float(len(data)),
        "rescaled": cpu(rescale, repetitions=5) / 2,
        "state_bytes": float(partitioner.observe().state_bytes),
    }
