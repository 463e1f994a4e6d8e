"""What one reduce bucket remembers between micro-batches, and the named byte strings that hold it.

    meta    JSON: version, fingerprint, topic, layout, position, segments of which only some rows were merged
    lanes   int64: merged offset of every routed partition, mark of every (routed, input) lane, and how far
            the lanes that this bucket watches have been read
    sessions int64: which frames of which session were merged (sequences.py)
    chunks, nodes/CHUNK     which nodes there are (directory.py)
    totals  Arrow: sliding totals of an invertible plan
    layers, layer/NUMBER    the same for an invertible plan that emits changes (layers.py)
    node/LEVEL/NUMBER/RUN   Arrow: partials of panes [number * 2^level, (number + 1) * 2^level)

A node of level 0 is a pane. An open pane grows by runs, as a binary counter does: after n appends it has one
run for each bit that is set in n, and the highest bit is the oldest run. So a row is rewritten O(log n)
times, not once a micro-batch. `save` writes what changed, each string once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.errors import DataLossError, IncompatibleStateError
from evenflow.numeric.arrays import Int64s
from evenflow.twostep.lanes import UNREAD, grown
from evenflow.twostep.layout import Layout
from evenflow.twostep.reducing.directory import Directory, Node
from evenflow.twostep.reducing.layers import RowLayers
from evenflow.twostep.reducing.state_blobs import BucketState, needed, packed, table_bytes, table_of, unpacked
from evenflow.twostep.sequences import Sessions
from evenflow.windows import NO_MARK, panes_closed_by
from evenflow.wire import BlobHeader

STATE_VERSION = 3
META, LANES, SESSIONS, TOTALS = "meta", "lanes", "sessions", "totals"


@dataclass
class PendingSegment:
    """A segment of which only some rows were merged."""

    first: int
    """Offset of the segment's first frame."""
    last: int
    """Offset of the segment's last frame."""
    total: int
    """Rows of the segment in this bucket."""
    have: int
    """How many of them were merged, the first ones."""


class ClosedPane(NamedTuple):
    """A closed pane, and how new it is."""

    pane: int
    """The pane, by its number."""
    arrival_time: int
    """When the newest of the pane's tuples came into the input topic, ms."""


_MORE_SESSIONS = 64
"""The state remembers twice as many sessions as there are input partitions, and so many more."""
_MOST_CAME = 64
"""The state remembers of so many open panes, the first to close, when their tuples came.
This serves latencies only.
"""


@dataclass
class Meta:
    """Position of a bucket.

    `due` and `revisions` are for `late = "update"`. Those with `came` serve latencies, never results.
    """

    fingerprint: str
    """Fingerprint of the query. State of another query is refused."""
    topic_id: str
    """Kafka's id of the routed topic."""
    bucket: int
    """Which of the `buckets` this is, from 0."""
    buckets: int
    """How many buckets the query has."""
    input_partitions: int
    """Partitions of the input topic that the state has marks of."""
    routed_partitions: int
    """Partitions of the routed topic that the state has offsets of."""
    closed: int
    """Panes below this one are closed."""
    newest: int | None = None
    """The last closed pane that has a tuple, None before the first."""
    tuples: int = 0
    """How many tuples the window that closed last has. Counted with `emit = "changes"` only."""
    due: int | None = None
    """The windows that end with panes below this one have come out. None before the first."""
    revisions: dict[int, int] = field(default_factory=dict)
    """By last pane of a window that may change yet: how often rows of it have come out again. A window that
    is not there has not been updated."""
    pending: dict[int, PendingSegment] = field(default_factory=dict)
    """By routed partition, the segment of which only some rows were merged."""
    came: dict[int, int] = field(default_factory=dict)
    """By open pane: when the newest of its tuples came into the input topic, ms,
    as far as blobs say it (`BlobHeader.arrival_time`)."""
    came_closed: list[ClosedPane] = field(default_factory=list)
    """The closed panes that may hold the newest tuple of a later window.
    Their numbers ascend and their times descend."""
    came_unknown: int | None = None
    """The last closed pane that has tuples of unknown time."""

    @classmethod
    def first(cls, header: BlobHeader, *, slide: int) -> Meta:
        """The position before the blob with this header, the first ever seen. slide: in ms."""
        return cls(
            fingerprint=header.fingerprint,
            topic_id=header.topic_id,
            bucket=header.bucket,
            buckets=header.buckets,
            input_partitions=header.input_partitions,
            routed_partitions=header.routed_partitions,
            closed=panes_closed_by(NO_MARK, slide),
        )

    @classmethod
    def decode(cls, data: bytes) -> Meta:
        """The position in these bytes of `encode`.
        Raises IncompatibleStateError for another version of the state.
        """
        fields = json.loads(data)
        version = fields.pop("v", None)
        if version != STATE_VERSION:
            raise IncompatibleStateError(
                f"the reducer's state has version {version}, this evenflow reads version {STATE_VERSION}",
                hint="finish the query with the evenflow that began it, or give the query a new name",
            )
        pending = {int(number): PendingSegment(**some) for number, some in fields.pop("pending").items()}
        arrivals = {int(pane): at for pane, at in fields.pop("came").items()}
        came_closed = [ClosedPane(*entry) for entry in fields.pop("came_closed")]
        revisions = {int(pane): count for pane, count in fields.pop("revisions", {}).items()}
        return cls(pending=pending, came=arrivals, came_closed=came_closed, revisions=revisions, **fields)

    def encode(self) -> bytes:
        """JSON that `decode` reads."""
        fields = {"v": STATE_VERSION, **asdict(self), "came": dict(sorted(self.came.items())[:_MOST_CAME])}
        if self.due is None:  # no window has come out that may change yet
            del fields["due"], fields["revisions"]
        return json.dumps(fields, separators=(",", ":")).encode()

    def note_arrival(self, panes: Iterable[int], arrival_time: int) -> None:
        """Note that tuples of these panes came at this time (ms) or later. Closed panes are passed over."""
        for pane in panes:
            if pane >= self.closed:
                self.came[pane] = max(arrival_time, self.came.get(pane, arrival_time))

    def closes(self, pane: int, *, span: int) -> int | None:
        """Close this pane. Returns when (ms) the newest tuple of the window that ends with it came,
        None if unknown.

        span: panes of a window. `newest` must be this pane already, if the pane has tuples.
        """
        arrival_time, filled = self.came.pop(pane, None), self.newest == pane
        # A sliding maximum: a pane whose tuples came before those of a later pane can never be the newest
        # again.
        if arrival_time is not None:
            while self.came_closed and self.came_closed[-1].arrival_time <= arrival_time:
                self.came_closed.pop()
            self.came_closed.append(ClosedPane(pane, arrival_time))
            del self.came_closed[_MOST_CAME:]
        elif filled:
            self.came_unknown = pane
        self.came_closed = [entry for entry in self.came_closed if entry.pane > pane - span]
        if self.came_unknown is not None and self.came_unknown > pane - span:
            return None
        return self.came_closed[0].arrival_time if self.came_closed else None

    def newest_came(self, panes: Iterable[int], *, first: int) -> int | None:
        """When (ms) the newest tuple of a window that is still open came, None if that is unknown.

        panes: the open panes of the window that have tuples. first: the first pane of the window.
        """
        open_panes = list(panes)
        if any(pane not in self.came for pane in open_panes):
            return None
        if self.came_unknown is not None and self.came_unknown >= first:
            return None
        times = [self.came[pane] for pane in open_panes]
        times += [entry.arrival_time for entry in self.came_closed if entry.pane >= first]
        return max(times, default=None)

    @property
    def watched(self) -> range:
        """The routed partitions whose lanes this bucket watches (see `Layout.watcher`)."""
        return range(self.bucket, self.routed_partitions, self.buckets)


class Bucket:
    """One bucket's state during a micro-batch.
    Each string is read when it is needed, and `save` writes at the end.

    A bucket begins with the first blob ever seen (`first`). From then on its state is there (`saved`).

    merged: last merged offset of each routed partition, -1 for none. marks: of each lane in ms, shape
    (routed, input partitions). reached: next input offset of each watched lane, shape (watched routed
    partitions, input partitions). layers: totals by key, for an invertible plan that emits changes.
    """

    def __init__(
        self, plan: AggregatePlan, state: BucketState, meta: Meta, saved_lanes: bytes | None
    ) -> None:
        """saved_lanes: what the state has under `LANES`, None for a bucket that begins."""
        self._plan = plan
        self._state = state
        self.meta = meta
        self._saved_lanes = saved_lanes
        lanes = _unread(meta) if saved_lanes is None else unpacked(saved_lanes).copy()
        routed, inputs = meta.routed_partitions, meta.input_partitions
        self.merged, marks, reached = np.split(lanes, [routed, routed * (1 + inputs)])
        self.marks = marks.reshape(routed, inputs)
        self.reached = reached.reshape(len(meta.watched), inputs)
        self._saved_sessions = None if saved_lanes is None else needed(state, SESSIONS)
        self.sessions = Sessions(
            None if self._saved_sessions is None else unpacked(self._saved_sessions),
            routed=routed,
            most=2 * inputs + _MORE_SESSIONS,
            partial=plan.emit_from is not None,
        )
        self._tables: dict[str, pa.Table] = {}
        self._changed: set[str] = set()
        self._deletions: set[str] = set()
        self.nodes = Directory(state)
        self.layers = RowLayers(state, plan.key_schema)

    @classmethod
    def first(cls, plan: AggregatePlan, state: BucketState, header: BlobHeader) -> Bucket:
        """A bucket that begins, with the layout of the first blob ever seen."""
        return cls(plan, state, Meta.first(header, slide=plan.slide), None)

    @classmethod
    def saved(cls, plan: AggregatePlan, layout: Layout, state: BucketState) -> Bucket | None:
        """The bucket that the state holds, None if no blob was ever seen.

        Raises IncompatibleStateError for a state of another query or version, and DataLossError for one of
        another routed topic and for one that lacks something.
        """
        data = state.get(META)
        if data is None:
            return None
        meta = Meta.decode(data)
        if meta.fingerprint != layout.fingerprint:
            raise IncompatibleStateError(
                f"the reducer's state is of query {meta.fingerprint}, but this is {layout.fingerprint}",
                hint="the query changed: give it a new name, or delete its checkpoint and topics",
            )
        if meta.topic_id != layout.topic_id:
            raise DataLossError(
                f"the reducer's state is of routed topic {meta.topic_id}, but the topic is now"
                f" {layout.topic_id}: it was deleted and made again",
                hint="give the query a new name, or rebuild it (docs/operations/data-loss.md)",
            )
        return cls(plan, state, meta, needed(state, LANES))

    def grow(self, inputs: int) -> None:
        """Make room for the lanes of at least so many input partitions. New lanes have no mark yet."""
        if inputs > self.meta.input_partitions:
            self.meta.input_partitions = inputs
            self.marks = grown(self.marks, inputs, NO_MARK)
            self.reached = grown(self.reached, inputs, UNREAD)

    def node(self, node: Node) -> pa.Table | None:
        """Partials of a node (key_schema), or None if the node has no tuple."""
        tables = [self._table(name) for name in _runs(node, self.nodes.appends(node))]
        return None if not tables else tables[0] if len(tables) == 1 else self._plan.merge(tables)

    def append(self, node: Node, table: pa.Table) -> None:
        """Add partials to a node. They are merged with the node's youngest runs into one run."""
        # Adding 1 to the counter clears its lowest bits that are set. These runs and the new rows become the
        # next run.
        appends = self.nodes.appends(node)
        run = 0
        while appends >> run & 1:
            run += 1
        young = [_run(node, number) for number in reversed(range(run))]
        if young:
            table = self._plan.merge([*(self._table(name) for name in young), table])
        for number in range(run):
            self._remove(node, number)
        self.nodes.set(node, appends + 1)
        self._put(_run(node, run), table)

    def drop_node(self, node: Node) -> None:
        """Forget a node. The node need not exist."""
        appends = self.nodes.appends(node)
        # Each bit that is set in the counter is a run that exists (`append`).
        for run in range(appends.bit_length()):
            if appends >> run & 1:
                self._remove(node, run)
        if appends:
            self.nodes.set(node, 0)

    @property
    def totals(self) -> pa.Table:
        """Sliding totals (key_schema) over the last window's panes."""
        if TOTALS not in self._tables:
            data = self._state.get(TOTALS)
            self._tables[TOTALS] = self._plan.key_schema.empty_table() if data is None else table_of(data)
        return self._tables[TOTALS]

    @totals.setter
    def totals(self, table: pa.Table) -> None:
        self._put(TOTALS, table)

    def save(self) -> None:
        """Write what changed. The order does not matter, because the state store commits all
        of it or nothing.
        """
        for name in sorted(self._deletions):
            self._state.delete(name)
        for name in sorted(self._changed):
            self._state.put(name, table_bytes(self._tables[name]))
        self.nodes.save()
        self.layers.save()
        lanes = packed(np.concatenate([self.merged, self.marks.reshape(-1), self.reached.reshape(-1)]))
        if lanes != self._saved_lanes:
            self._state.put(LANES, lanes)
        sessions = packed(self.sessions.saved())
        if sessions != self._saved_sessions:
            self._state.put(SESSIONS, sessions)
        self._state.put(META, self.meta.encode())

    def _table(self, name: str) -> pa.Table:
        if name not in self._tables:
            self._tables[name] = table_of(needed(self._state, name))
        return self._tables[name]

    def _put(self, name: str, table: pa.Table) -> None:
        self._tables[name] = table
        self._changed.add(name)
        self._deletions.discard(name)

    def _remove(self, node: Node, run: int) -> None:
        name = _run(node, run)
        self._tables.pop(name, None)
        self._changed.discard(name)
        # A run that was made in this micro-batch is not in the state store yet, and cannot be deleted there.
        if self.nodes.loaded(node) >> run & 1:
            self._deletions.add(name)


def _unread(meta: Meta) -> Int64s:
    """What `LANES` holds before the first blob: nothing merged, no mark, no input offset reached."""
    routed, inputs = meta.routed_partitions, meta.input_partitions
    return np.repeat([-1, NO_MARK, UNREAD], [routed, routed * inputs, len(meta.watched) * inputs])


def _run(node: Node, number: int) -> str:
    return f"node/{node[0]}/{node[1]}/{number}"


def _runs(node: Node, appends: int) -> list[str]:
    """Names of the runs after so many appends, oldest first."""
    return [_run(node, number) for number in reversed(range(appends.bit_length())) if appends >> number & 1]
