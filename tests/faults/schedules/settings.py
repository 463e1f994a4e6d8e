"""The settings of a run. Equal shapes share one object, because making one takes longer than a short run."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from evenflow.settings import Settings, load_settings
from tests.faults.schedules.schedule import MOST_KEY, MOST_RESULT, MOST_VALUES, Shape

RESULTS = "mem://results"
_PLACES: dict[str, dict[str, Any]] = {
    "parquet": {"path": RESULTS},
    "avro": {"registry": {"url": "http://model:1"}},
}
"""What a sink needs in `[results]`."""


@lru_cache(maxsize=4096)
def settings_of(shape: Shape, instance: int) -> Settings:
    """The settings of one instance."""
    if not instance:
        return _first(shape)
    first = settings_of(shape, 0)
    mine = first.partitioner.model_copy(update={"instance": f"p{instance}"})
    return first.model_copy(update={"partitioner": mine})


def _first(shape: Shape) -> Settings:
    """The settings of instance 0."""
    query = {
        "name": "q",
        "key": "k",
        "time": "t",
        "window": shape.window,
        "slide": shape.slide,
        "out_of_orderness": shape.disorder,
        "allowed_lateness": shape.lateness,
        "max_ahead_of_clock": "off" if shape.ahead is None else shape.ahead,
        "types": {"v": "int64"} | ({"w": "string"} if shape.texts else {}),
        "aggregates": _aggregates(shape),
        "emit": shape.emit,
        "late": "update" if shape.updates else "reject",
        "max_key_bytes": MOST_KEY,
        "max_value_bytes": MOST_VALUES,
        "max_result_bytes": MOST_RESULT,
    }
    if shape.filtered:
        query["where"] = "v > 0"
    return load_settings(
        query=query,
        kafka={
            "bootstrap_servers": "model:1",
            "extras": {"librdkafka": {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_000}},
        },
        input={"topic": "in", "start": shape.start},
        partitioner={
            "name": shape.partitioner,
            "workers": shape.workers,
            **({"routed_partitions": min(shape.shared, shape.workers)} if shape.shared else {}),
            "instance": "p0",
            "instances": shape.instances,
            "forwarding": shape.forwarding,
            "block_tuples": shape.block,
            "linger": shape.linger,
            "commit_interval": shape.commit,
            "transaction_timeout": 5_000,
            "idle_timeout": shape.idle,
            "frame_bytes": shape.frame_bytes,
            "max_skew": shape.max_skew,
            **({"batch_interval": shape.batch, "batch_clock": shape.batch_clock} if shape.batch else {}),
        },
        spark={
            "buckets": shape.buckets,
            "wiring": shape.wiring,
            "reduce": shape.reduce,
            "checkpoint": "mem://checkpoints",
            "batch_interval": shape.interval,
        },
        results={"sink": shape.sink, **_PLACES.get(shape.sink, {})},
    )


def _aggregates(shape: Shape) -> dict[str, str]:
    if shape.alone:
        return {"s": shape.alone}
    counted = {"n": "count"} if shape.counted else {}
    return counted | {"s": "sum(v)"} | ({"c": "collect(w, 100)"} if shape.texts else {})
