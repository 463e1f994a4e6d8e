"""Records as the parts of a pipeline write them, and a controller's first three steps fed with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from controller.collect import Collector
from controller.decide import Decider, Judgement, policy_of
from controller.evaluate import Evaluation, Evaluator, Rounds
from controller.plan_history import PlanHistory
from evenflow.plans import Plan
from evenflow.settings import Settings, load_settings
from evenflow.telemetry import BatchRecord, HeartbeatRecord, PartitionerRecord, PartWork, Record

INTERVAL_MS = 5_000


def settings_of(*, name: str = "q", wiring: str = "fused", instances: int = 1, **sections: Any) -> Settings:
    """A query of 8 routed partitions, 4 in use, and 4 buckets; slide 1 s, batch interval 5 s."""
    query = {
        "name": name,
        "key": "k",
        "time": "t",
        "window": "4s",
        "slide": "1s",
        "aggregates": {"n": "count"},
    }
    spark = {
        "wiring": wiring,
        "buckets": 4,
        "batch_interval": INTERVAL_MS,
        "master": "local-cluster[4,1,1024]",
    } | sections.pop("spark", {})
    partitioner = {"workers": 4, "routed_partitions": 8, "instances": instances}
    partitioner |= sections.pop("partitioner", {})
    # The policy with the fewest needs, so that a test has to say little.
    control = {"policy": "prompt-plus"} | sections.pop("control", {})
    return load_settings(
        query=query,
        input={"partitions": 4},
        partitioner=partitioner,
        spark=spark,
        control=control,
        **sections,
    )


def partitioner(settings: Settings, **fields: Any) -> PartitionerRecord:
    """An instance that owns all input partitions and routes 1,000 tuples/s of 100 keys."""
    shown: dict[str, Any] = {
        "instance": "0",
        "started": 1,
        "owned": 4,
        "inputs": 4,
        "epoch": 0,
        "workers": 4,
        "tuples": 10_000,
        "rejected": 0,
        "read": 10_000,
        "filtered": 0,
        "period_ms": 1_000,
        "rate": 1_000.0,
        "keys": 100.0,
        "busy": 0.5,
        "lag": 0,
        "event_time": 60_500,
        "mark": 60_400,
    }
    return PartitionerRecord(**(_head(settings) | shown | fields))


def batch(settings: Settings, **fields: Any) -> BatchRecord:
    """A micro-batch of the fused stage that took 4 of 5 s: 5,000 tuples combined in 3 of 4 parts of the
    time.
    """
    shown: dict[str, Any] = {
        "stage": "fused",
        "batch": 1,
        "rows": 50,
        "duration_ms": 4_000,
        "batch_interval_ms": INTERVAL_MS,
        "backlog": 0,
        "parts": {
            "combine": PartWork(tasks=4, busy_ms=6_000, longest_ms=2_000, rows=5_000),
            "reduce": PartWork(tasks=4, busy_ms=2_000, longest_ms=500, rows=400),
        },
        "tuples": 5_000,
        "mark": 60_000,
        "finished": 1_000,
        "warm_ms": 10**7,
    }
    return BatchRecord(**(_head(settings) | shown | fields))


def heartbeat(settings: Settings, **fields: Any) -> HeartbeatRecord:
    """Of the fused stage, which waits for input."""
    shown: dict[str, Any] = {
        "stage": "fused",
        "batch": 1,
        "batch_interval_ms": INTERVAL_MS,
        "finished": 1_000,
        "warm_ms": 10**7 if fields.get("finished") != 0 else None,
    }
    return HeartbeatRecord(**(_head(settings) | shown | fields))


def _head(settings: Settings) -> dict[str, Any]:
    return {"query": settings.query.name, "fingerprint": settings.fingerprint, "time": 1_700_000_000_000}


@dataclass
class Pipeline:
    """Hears records at moments (s) that the test sets, as the controller's loop does."""

    settings: Settings
    now: float = 100.0
    wall: float = 1_700_000_000.0
    seen: list[Evaluation] = field(default_factory=list)
    judged: list[Judgement] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.collector = Collector(self.settings, clock=lambda: self.now, wall=lambda: self.wall)
        self.rounds = Rounds(self.settings, now=self.now)
        self.evaluator = Evaluator(self.settings)
        self.decider = Decider(self.settings, policy_of(self.settings))
        self.log = PlanHistory(self.settings)

    def hear(self, *records: Record | bytes, fresh: bool = True) -> None:
        """These records now, and an observation after each of them if one is due."""
        for record in records:
            self.collector.take(record if isinstance(record, bytes) else record.encode(), fresh=fresh)
            self.look()

    def look(self) -> None:
        """Without a record."""
        if self.rounds.due(self.collector.known, self.now):
            self.seen.append(self.evaluator.observe(self.collector.known, self.log, self.now))
            self.judged.append(self.decider.judge(self.seen[-1], self.log))

    def publish(self, plan: Plan) -> None:
        """This plan is in the log."""
        reached = self.seen[-1].reached if self.seen else None
        self.log.learn([plan], reached=reached, now=self.now)
        self.decider.groups.learn(plan)
