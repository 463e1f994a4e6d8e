"""The real cores in a row, without a broker: parse, route, combine, reduce, and the rows of the JSON sink.

A test may change a frame on its way. The changed frame is encoded anew, so its checksum and its header are
right, and no check of the combiner or reducer sees the change. Then only `verify` can.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from evenflow import partitioners
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.twostep import combine_task, merge_leaders, reduce_leaders, reduce_windows
from evenflow.wire import decode_frame
from evenflow.wire.frame import encode_frame
from evenflow.wire.markers import EndOfStream
from partitioner_service.block import Slice
from partitioner_service.routing.router import Router
from spark_consumers.layout import Layout
from spark_consumers.sinks import sink_of
from workbench.verify import INPUT_SCHEMA, REJECTED_SCHEMA, RESULTS_SCHEMA, CommittedInput
from workbench.verify.core import Recomputation
from workbench.verify.report import Report

Change = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Makes other rows of a frame's rows."""


class State(dict[str, bytes]):
    """A BucketState in memory."""

    def put(self, name: str, value: bytes) -> None:
        self[name] = value

    def delete(self, name: str) -> None:
        del self[name]


@dataclass
class Cores:
    """A query over one input partition, and what its frames hold.

    blocks: the tuples of each block, each a JSON record. frames: (worker, frame), in order.
    """

    settings: Settings
    blocks: list[list[dict[str, Any]]]
    frames: list[tuple[int, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings = self.settings
        self.state = PartitionState(fingerprint=settings.fingerprint, topic_id="in", offset=0)
        self.inputs: list[dict[str, Any]] = []
        router = Router(
            settings, partitioners.create("hashing", workers=settings.partitioner.workers, seed=7)
        )
        for block in [*self.blocks, None]:
            at = self.state.offset
            if block is None:
                marker = EndOfStream(producer="p", tuples=len(self.inputs))
                part = Slice(0, at, at, [None], markers={0: marker})
                self._note([None], {"producer": "p", "tuples": marker.tuples, "producers": 1})
            else:
                values = [json.dumps(one).encode() for one in block]
                part = Slice(0, at, at + len(block) - 1, values)
                self._note(values, None)
            routed = router.route([part], {0: self.state})
            self.state = routed.states[0]
            self.frames += routed.frames

    def _note(self, values: Iterable[bytes | None], marker: dict[str, Any] | None) -> None:
        for value in values:
            self.inputs.append(
                {"partition": 0, "offset": len(self.inputs), "timestamp": 0, "value": value, "marker": marker}
            )

    def recomputed(self) -> Recomputation:
        """What `verify` makes of the input."""
        committed = CommittedInput.of(0, self.state, self.settings.query)
        inputs = pa.Table.from_pylist(self.inputs, schema=INPUT_SCHEMA)
        return Recomputation(self.settings, inputs, REJECTED_SCHEMA.empty_table(), [committed])

    def results(self, changed: dict[int, Change] | None = None) -> pa.Table:
        """The records of the results topic (RESULTS_SCHEMA). changed: number of a frame -> what becomes of
        its rows.
        """
        layout = Layout.from_settings(self.settings, "topic")
        plan = layout.plan
        stretches: dict[int, list[tuple[int, bytes]]] = {}
        for number, (worker, frame) in enumerate(self.frames):
            change = (changed or {}).get(number)
            stretches.setdefault(worker, []).append(
                (number, frame if change is None else self._reencoded(frame, change))
            )
        parts = combine_task(plan, layout, list(stretches.items()))
        blobs = [[part.data for part in parts if part.bucket == bucket] for bucket in range(layout.buckets)]
        shape = sink_of(self.settings).shaper(self.settings)
        if plan.emission.mode == "top":
            sent = [leaders for own in blobs for leaders in reduce_leaders(plan, layout, State(), own)]
            shaped = [(0, table) for table in shape(merge_leaders(plan, layout, State(), sent), 0)]
        else:
            shaped = [
                (bucket, table)
                for bucket, own in enumerate(blobs)
                for table in shape(reduce_windows(plan, layout, State(), own), bucket)
            ]
        return pa.Table.from_pylist(list(_records(shaped)), schema=RESULTS_SCHEMA)

    def rows_of(self, number: int) -> pa.RecordBatch:
        """The rows of a frame."""
        return decode_frame(self.frames[number][1], fingerprint=self.settings.fingerprint).batch

    def _reencoded(self, data: bytes, change: Change) -> bytes:
        frame = decode_frame(data, fingerprint=self.settings.fingerprint)
        return encode_frame(change(frame.batch), frame.header, sequence=frame.sequence)


def _records(shaped: list[tuple[int, pa.Table]]) -> Iterator[dict[str, Any]]:
    ends: dict[int, int] = {}
    for bucket, table in shaped:
        for row in table.to_pylist():
            ends[bucket] = ends.get(bucket, -1) + 1
            yield {
                "partition": bucket,
                "offset": ends[bucket],
                "key": row["key"],
                "value": row["value"].encode(),
            }


def compared(due: Recomputation, written: pa.Table) -> Report:
    """What `verify` says of these records."""
    return due.compare(written)
