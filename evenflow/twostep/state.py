"""What one reduce bucket remembers between micro-batches, and how it lies in its named byte strings.

    meta    JSON: version, fingerprint, topic, layout, merged offsets, incomplete blobs, position
    lanes   mark of every (routed partition, input partition), int64, deflated
    index   which node tables exist: (level, number) pairs, int64, deflated
    totals  sliding totals of an invertible plan, Arrow
    node/LEVEL/NUMBER   partials of panes [number * 2^level, (number + 1) * 2^level), Arrow

Level 0 are the panes. Only what changed is written, once, by `save`.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.arrays import Int64s
from evenflow.errors import IncompatibleStateError
from evenflow.frames import BlobHeader
from evenflow.windows import NO_MARK, panes_closed_by

STATE_VERSION = 1
META, LANES, INDEX, TOTALS = "meta", "lanes", "index", "totals"
Node = tuple[int, int]
"""(level, number)."""


class BucketState(Protocol):
    """Named byte strings of one bucket: a dict in tests, Spark's state store in the shell."""

    def get(self, name: str) -> bytes | None:
        """The bytes of this name, or None."""

    def put(self, name: str, value: bytes) -> None:
        """Set the bytes of this name."""

    def delete(self, name: str) -> None:
        """Remove this name, which exists."""


@dataclass
class PendingBlob:
    """A blob of which some parts were merged and others have not come yet."""

    first: int
    last: int
    parts: int
    have: list[int]


@dataclass
class Meta:
    """Position of a bucket. Panes below `closed` were closed; `newest` is the last of them with a tuple."""

    fingerprint: str
    topic_id: str
    input_partitions: int
    routed_partitions: int
    merged: list[int]
    closed: int
    newest: int | None = None
    pending: dict[int, PendingBlob] = field(default_factory=dict)

    @classmethod
    def decode(cls, data: bytes) -> Meta:
        """Raises IncompatibleStateError for another version of the state's layout."""
        fields = json.loads(data)
        version = fields.pop("v", None)
        if version != STATE_VERSION:
            raise IncompatibleStateError(
                f"the reducer's state has version {version}, this evenflow reads version {STATE_VERSION}",
                hint="finish the query with the evenflow that began it, or give the query a new name",
            )
        pending = {int(number): PendingBlob(**blob) for number, blob in fields.pop("pending").items()}
        return cls(pending=pending, **fields)

    def encode(self) -> bytes:
        return json.dumps({"v": STATE_VERSION, **asdict(self)}, separators=(",", ":")).encode()


class Bucket:
    """One bucket's state during a micro-batch: tables are read when first needed and written at the end."""

    def __init__(self, plan: AggregatePlan, state: BucketState, fingerprint: str) -> None:
        self._plan = plan
        self._state = state
        self._fingerprint = fingerprint
        self._tables: dict[str, pa.Table] = {}
        self._stored: set[str] = set()
        self._changed: set[str] = set()
        self._saved: dict[str, bytes] = {}
        data = state.get(META)
        self.known = data is not None
        self.meta = Meta("", "", 0, 0, [], panes_closed_by(NO_MARK, plan.slide))
        self.lanes = np.empty((0, 0), np.int64)
        self.nodes: set[Node] = set()
        if data is not None:
            self._load(data)

    def _load(self, data: bytes) -> None:
        self.meta = Meta.decode(data)
        if self.meta.fingerprint != self._fingerprint:
            raise IncompatibleStateError(
                f"the reducer's state is of query {self.meta.fingerprint}, but this is {self._fingerprint}",
                hint="the query changed: give it a new name, or delete its checkpoint and topics",
            )
        shape = (self.meta.routed_partitions, self.meta.input_partitions)
        self._saved = {name: self._state.get(name) or b"" for name in (LANES, INDEX)}
        self.lanes = _unpacked(self._saved[LANES]).reshape(shape).copy()
        index = _unpacked(self._saved[INDEX]).reshape(-1, 2).tolist()
        self.nodes = {(level, number) for level, number in index}
        self._stored = {_name(node) for node in self.nodes}

    def begin(self, header: BlobHeader) -> None:
        """Take the layout of the first blob ever seen."""
        self.known = True
        self.meta.fingerprint = header.fingerprint
        self.meta.topic_id = header.topic_id
        self.meta.input_partitions = header.input_partitions
        self.meta.routed_partitions = header.routed_partitions
        self.meta.merged = [-1] * header.routed_partitions
        self.lanes = np.full((header.routed_partitions, header.input_partitions), NO_MARK, np.int64)

    def node(self, node: Node) -> pa.Table | None:
        """Partials of a node (key_schema), or None when no tuple fell into it."""
        return self._table(_name(node)) if node in self.nodes else None

    def put_node(self, node: Node, table: pa.Table) -> None:
        self.nodes.add(node)
        self._put(_name(node), table)

    def drop_node(self, node: Node) -> None:
        """Forget a node; one that does not exist is fine."""
        if node in self.nodes:
            self.nodes.remove(node)
            self._tables.pop(_name(node), None)
            self._changed.discard(_name(node))

    @property
    def totals(self) -> pa.Table:
        """Sliding totals (key_schema) over the last window's panes."""
        if TOTALS not in self._tables and self._state.get(TOTALS) is None:
            return self._plan.key_schema.empty_table()
        return self._table(TOTALS)

    @totals.setter
    def totals(self, table: pa.Table) -> None:
        self._put(TOTALS, table)

    def save(self) -> None:
        """Write what changed. The order is free: the state store commits it as one."""
        alive = {_name(node) for node in self.nodes}
        for name in sorted(self._stored - alive):
            self._state.delete(name)
        for name in sorted(self._changed):
            self._state.put(name, _table_bytes(self._tables[name]))
        index = np.array(sorted(self.nodes), np.int64).reshape(-1, 2)
        for name, value in ((LANES, _packed(self.lanes)), (INDEX, _packed(index))):
            if self._saved.get(name) != value:
                self._state.put(name, value)
        self._state.put(META, self.meta.encode())

    def _table(self, name: str) -> pa.Table:
        if name not in self._tables:
            data = self._state.get(name)
            if data is None:
                raise IncompatibleStateError(f"the reducer's state lacks {name!r}, which its index lists")
            self._tables[name] = _table_of(data)
        return self._tables[name]

    def _put(self, name: str, table: pa.Table) -> None:
        self._tables[name] = table
        self._changed.add(name)


def _name(node: Node) -> str:
    return f"node/{node[0]}/{node[1]}"


def _packed(values: Int64s) -> bytes:
    return zlib.compress(values.astype("<i8").tobytes(), 1)


def _unpacked(data: bytes) -> Int64s:
    return np.frombuffer(zlib.decompress(data), "<i8").astype(np.int64, copy=False)


_COMPRESSED: Any = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


def _table_of(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
