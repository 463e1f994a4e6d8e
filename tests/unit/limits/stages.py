"""Records through every stage without Kafka and Spark: how large what comes out of each stage is, in
bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from evenflow import partitioners
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.twostep import combine_task, reduce_windows
from evenflow.twostep.tally import Tally
from evenflow.wire.markers import EndOfStream
from partitioner_service.block import Slice
from partitioner_service.reading.parse import Parser
from partitioner_service.reading.registered.schemas import Schemas
from partitioner_service.routing.router import Router
from spark_consumers.layout import Layout
from spark_consumers.sinks import SINKS
from topics.schemas.registry import Lookup


class Kept(dict[str, bytes]):
    """A bucket's state in memory."""

    def put(self, name: str, value: bytes) -> None:
        self[name] = value

    def delete(self, name: str) -> None:
        del self[name]


@dataclass
class Sizes:
    """frame, blob: the largest record of the stage. results: the largest record by sink (key and value).
    reasons: of the rejected records. rows: result rows. unfit: values that are null because they do not fit.
    """

    frame: int = 0
    blob: int = 0
    results: dict[str, int] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    unfit: int = 0


def settings_of(query: dict[str, Any], **others: Any) -> Settings:
    """Settings of one worker and one bucket."""
    return Settings(
        query={"name": "q", "key": "k", "time": "time", "window": "10s", **query},
        input={"topic": "in", "partitions": 1, **others.pop("input", {})},
        partitioner={"workers": 1, **others.pop("partitioner", {})},
        spark={"buckets": 1},
        results={"path": "/nowhere"},
    )


def through_all(
    settings: Settings, blocks: Sequence[Sequence[bytes | None]], *, registry: Lookup | None = None
) -> Sizes:
    """What becomes of these blocks of records. Every stage checks what it gets from the stage before.

    Where the query reads them, a record's key is its value, and its timestamp is 1 ms. registry: has the
    schemas of Avro and Protobuf records.
    """
    result = Sizes()
    router = Router(settings, partitioners.create("hashing", workers=1, seed=7))
    if registry is not None:
        router._parser = Parser(settings, schemas=Schemas(registry))
    states = {0: PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=0)}
    frames: list[bytes] = []
    offset = total = 0
    for block in blocks:
        keys = block if settings.query.key == "@key" else None
        stamps = [1] * len(block) if settings.query.time == "@timestamp" else None
        piece = Slice(0, offset, offset + len(block) - 1, block, keys=keys, timestamps=stamps)
        routed = router.route([piece], states)
        states.update(routed.states)
        frames += [frame for _, frame in routed.frames]
        result.reasons.update({group.reason: len(group.positions) for group in routed.rejections})
        offset, total = offset + len(block), total + len(block)
    end = {0: EndOfStream(producer="p", tuples=total)}
    marker = Slice(0, offset, offset, [None], keys=[None], timestamps=[1], markers=end)
    frames += [frame for _, frame in router.route([marker], states).frames]
    result.frame = max(map(len, frames))
    layout = Layout.from_settings(settings, "t")
    plan = layout.plan
    blobs = [part.data for part in combine_task(plan, layout, [(0, enumerate(frames))])]
    result.blob = max(map(len, blobs))
    tallies: list[Tally] = []
    tables = list(reduce_windows(plan, layout, Kept(), blobs, on_tally=tallies.append))
    result.rows, result.unfit = tallies[0].rows, tallies[0].unfit
    for name, sink in SINKS.items():
        shaped = list(sink.shaper(settings)(iter(tables), 0))
        result.results[name] = max(
            (_largest(table) for table in shaped if "value" in table.schema.names), default=0
        )
    return result


def _largest(table: pa.Table) -> int:
    """Bytes of the largest record (key and value) of a table of Kafka records."""
    sizes = [
        len(key or b"") + len(value if isinstance(value, bytes) else value.encode())
        for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
    ]
    return max(sizes, default=0)
