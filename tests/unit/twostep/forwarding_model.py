"""Instances that route a stream as they like, workers that finish windows at home, and reducers for the rest.

What an instance must do is all here. It tells every worker when a stint begins, when its slowest partition passes a pane,
and when it has routed by another plan than it told last. Each frame that tells names the plan in force at the end of its
block. In each transaction the instance announces what it sends away from a key's home, before its tuples. All else is
drawn: where tuples go, how they are cut into blocks, which transactions are aborted, when an instance reads a plan, who
owns which input partition, how far each worker and each bucket reads, and what is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.arrays import Int32s, Rows, UInt64s, no_rows, records
from evenflow.homes import announced, home_of
from evenflow.keys import hash_keys
from evenflow.twostep import Layout, reduce
from evenflow.twostep.home import Forwarded, Homes, Worker, forward_task
from evenflow.windows import END_MARK, NO_MARK, panes_closed_by
from evenflow.wire import ANNOUNCED, OFFSETS, TOLD, FrameHeader, FramePacker, records_of
from tests.unit.twostep.pipe import SLIDE, Dict, Row, direct

INPUTS, ROUTED, BUCKETS, SEED, DELAY = 3, 4, 2, 7, 13
KEYS = [b"a", b"b", b"c", b"d", b"e"]
PLANS = {0: 2, 1: 4, 2: 2, 3: 3, 4: 1}
"""Workers by epoch."""


@dataclass
class Partition:
    """An input partition. max_time, idle: ms. offset: the next one."""

    offset: int = 0
    max_time: int | None = None
    idle: int = NO_MARK
    ended: bool = False

    @property
    def mark(self) -> int:
        """As `PartitionState.mark`."""
        if self.ended:
            return END_MARK
        return max(NO_MARK if self.max_time is None else self.max_time - DELAY, self.idle)


class Stretch(NamedTuple):
    """Tuples that were routed by one plan: the hashes of their keys, and their workers."""

    epoch: int
    rows: list[Row]
    hashes: UInt64s
    workers: Int32s


@dataclass
class Instance:
    """A running partitioner. told: the panes that were told closed, by partition. epoch_told: of this stint."""

    session: int
    epoch: int = 0
    owned: set[int] = field(default_factory=set)
    numbers: list[int] = field(default_factory=lambda: [0] * ROUTED)
    stint: bool = True
    told: dict[int, int] = field(default_factory=dict)
    epoch_told: int | None = None


_EVENTS = ("rebalance", "plan", "learn", "idle", "block", "combine", "reduce")


class World:
    """A query with forwarding. rows: the tuples that were routed, as `direct` takes them.

    anywhere: the share of tuples that go anywhere. The others go to the homes of their keys.
    """

    def __init__(self, plan: AggregatePlan, random: Random, *, anywhere: float = 0.3) -> None:
        self.plan, self.random, self.anywhere = plan, random, anywhere
        # Some streams hardly move, so that much happens within one pane.
        self.weights = [
            random.choice(some) for some in ((1, 3), (1, 2), (1, 3), (0, 1), (4, 6), (2, 1), (1, 1))
        ]
        self.keys = random.choice([KEYS[:1], KEYS])
        self.paces = random.choice([[0, 3, SLIDE, 2 * SLIDE], [0, 0, 1, SLIDE]])
        self.partitions = [Partition() for _ in range(INPUTS)]
        self.instances = [Instance(session=5), Instance(session=6)]
        self.newest = 0
        self.now = 1_000
        self.logs: list[list[bytes]] = [[] for _ in range(ROUTED)]
        self.read = [0] * ROUTED
        self.kept = [Dict() for _ in range(ROUTED)]
        self.blobs: list[list[bytes]] = [[] for _ in range(BUCKETS)]
        self.merged = [0] * BUCKETS
        self.states = [Dict() for _ in range(BUCKETS)]
        self.rows: list[Row] = []
        self.finished: list[dict[str, Any]] = []
        self.reduced: list[dict[str, Any]] = []
        self.layout = Layout(
            fingerprint="f",
            topic_id="t",
            input_partitions=INPUTS,
            routed_partitions=ROUTED,
            buckets=BUCKETS,
            max_bytes=200,
        )
        self.rebalance()

    # What may happen.

    def rebalance(self) -> None:
        """The partitions are dealt out anew, and every stint begins anew."""
        for instance in self.instances:
            instance.owned = set()
        for number in range(INPUTS):
            self.random.choice(self.instances).owned.add(number)
        for instance in self.instances:
            self.forget(instance)

    def learn(self, instance: Instance) -> None:
        """An instance puts a plan in force, the next one or a later one."""
        if instance.epoch < self.newest:
            instance.epoch = self.random.randint(instance.epoch + 1, self.newest)

    def step(self) -> None:
        """Anything may happen next."""
        instance = self.random.choice(self.instances)
        match self.random.choices(_EVENTS, self.weights)[0]:
            case "rebalance":
                self.rebalance()
            case "plan":
                self.newest = min(self.newest + 1, max(PLANS))
            case "learn":
                self.learn(instance)
            case "idle":
                self.fall_asleep(instance)
            case "block":
                self.now += self.random.choice(self.paces)
                self.block(instance)
            case "combine":
                self.combine(self.random.randrange(ROUTED))
            case "reduce":
                self.reduce(self.random.randrange(BUCKETS))

    def fall_asleep(self, instance: Instance) -> None:
        """A partition takes its mark from the slowest of all others, as an idle one does."""
        if instance.owned:
            number = self.random.choice(sorted(instance.owned))
            others = [p.mark for at, p in enumerate(self.partitions) if at != number]
            self.partitions[number].idle = max(self.partitions[number].idle, min(others))
            self._transact(instance, [], {}, self.partitions, abort=False)

    def end(self) -> None:
        """All partitions end, and everything is read."""
        for instance in self.instances:
            for number in sorted(instance.owned):
                self.partitions[number].ended = True
            self._transact(instance, [], {}, self.partitions, abort=False)
        for routed in range(ROUTED):
            self.combine(routed, all_of_it=True)
        for bucket in range(BUCKETS):
            self.reduce(bucket, all_of_it=True)

    # Routing.

    def block(self, instance: Instance) -> None:
        """One block of an instance. A plan may take over within it. The transaction may be aborted."""
        if not instance.owned:
            return
        before = [Partition(**vars(p)) for p in self.partitions]
        epoch = instance.epoch
        offsets: dict[int, tuple[int, int]] = {}
        stretches: list[tuple[int, list[Row]]] = []
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            stretches.append((instance.epoch, self._tuples(instance, offsets)))
            if self.random.random() < 0.5:
                self.learn(instance)
        abort = self.random.random() < 0.15
        self._transact(instance, stretches, offsets, before, abort=abort)
        if abort:
            self.partitions = before
            instance.epoch = max(epoch, instance.epoch)  # an epoch never goes back
            self.forget(instance)

    def write(self, instance: Instance, rows: list[Row]) -> None:
        """A block of these tuples of input partition 0. Their times are the beginnings of their panes."""
        before = [Partition(**vars(p)) for p in self.partitions]
        partition = self.partitions[0]
        offsets = {0: (partition.offset, partition.offset + len(rows) - 1)}
        partition.offset += len(rows)
        partition.max_time = max(row[0] * SLIDE for row in rows)
        self._transact(instance, [(instance.epoch, rows)], offsets, before, abort=False)

    def _tuples(self, instance: Instance, offsets: dict[int, tuple[int, int]]) -> list[Row]:
        rows: list[Row] = []
        for number in sorted(instance.owned):
            for _ in range(self.random.choice([0, 1, 2, 5])):
                partition = self.partitions[number]
                first, _ = offsets.get(number, (partition.offset, 0))
                offsets[number] = (first, partition.offset)
                partition.offset += 1
                time = self.now + self.random.randrange(-30, 12)
                if (time // SLIDE + 1) * SLIDE <= partition.mark:
                    continue  # late
                partition.max_time = max(time, time if partition.max_time is None else partition.max_time)
                value = self.random.choice([None, 1, 7, -3])
                rows.append(
                    (
                        time // SLIDE,
                        self.random.choice(self.keys),
                        value,
                        self.random.choice([None, 0.5, 2.25]),
                    )
                )
        return rows

    def _transact(
        self,
        instance: Instance,
        stretches: list[tuple[int, list[Row]]],
        offsets: dict[int, tuple[int, int]],
        before: list[Partition],
        *,
        abort: bool,
    ) -> None:
        numbers = instance.numbers.copy()
        open_: list[list[bytes]] = [[] for _ in range(ROUTED)]
        if instance.stint and instance.owned:
            epoch = stretches[0][0] if stretches else instance.epoch
            # The marks are those before the block: its tuples come behind them.
            self._write(instance, open_, [], {}, self._tell(instance, before), epoch)
            instance.stint, instance.epoch_told = False, epoch
        if stretches or instance.owned:
            last = stretches[-1][0] if stretches else instance.epoch
            told = records(0, TOLD)
            if self._passes(instance) or instance.epoch_told != last:
                told = self._tell(instance, self.partitions)
                instance.epoch_told = last
            assigned = self._assign(stretches)
            self._announce(instance, open_, assigned)
            self._write(instance, open_, assigned, offsets, told, last)
        if abort:
            instance.numbers = numbers
            return
        for log, frames in zip(self.logs, open_, strict=True):
            log += frames
        self.rows += [row for _, rows in stretches for row in rows]

    def _tell(self, instance: Instance, states: list[Partition]) -> Rows:
        instance.told = self._closed(instance, states)
        return records_of([(p, states[p].mark, states[p].offset) for p in sorted(instance.owned)], TOLD)

    def _closed(self, instance: Instance, states: list[Partition]) -> dict[int, int]:
        return {p: panes_closed_by(states[p].mark, SLIDE) for p in sorted(instance.owned)}

    def _passes(self, instance: Instance) -> bool:
        if not instance.owned:
            return False
        unknown = panes_closed_by(NO_MARK, SLIDE)
        return min(self._closed(instance, self.partitions).values()) > min(
            instance.told.get(p, unknown) for p in instance.owned
        )

    def forget(self, instance: Instance) -> None:
        """A stint begins, or a transaction was aborted: everything is told once more."""
        instance.stint, instance.told, instance.epoch_told = True, {}, None

    def _assign(self, stretches: list[tuple[int, list[Row]]]) -> list[Stretch]:
        """Some tuples go to their homes, the others anywhere."""
        assigned = []
        for epoch, rows in stretches:
            hashes = hash_keys(pa.array([row[1] for row in rows], pa.binary()))
            workers = home_of(hashes, PLANS[epoch], SEED)
            for at in range(len(rows)):
                if self.random.random() < self.anywhere:
                    workers[at] = self.random.randrange(PLANS[epoch])
            assigned.append(Stretch(epoch, rows, hashes, workers))
        return assigned

    def _announce(self, instance: Instance, open_: list[list[bytes]], stretches: list[Stretch]) -> None:
        for stretch in stretches:
            panes = np.array([row[0] for row in stretch.rows], np.int64)
            said = announced(stretch.hashes, panes, stretch.workers, workers=PLANS[stretch.epoch], seed=SEED)
            header = self._header(instance, stretch.epoch, announces=True)
            for worker in range(ROUTED):
                mine = said.homes == worker
                if mine.any():
                    batch = pa.record_batch([said.panes[mine], said.hashes[mine]], schema=ANNOUNCED)
                    self._append(instance, open_[worker], worker, [(header, batch)])

    def _write(
        self,
        instance: Instance,
        open_: list[list[bytes]],
        stretches: list[Stretch],
        offsets: dict[int, tuple[int, int]],
        told: Rows,
        last: int,
    ) -> None:
        """last: the plan in force at the end of the block."""
        held = records_of([(p, first, end) for p, (first, end) in sorted(offsets.items())], OFFSETS)
        none = no_rows(self.plan.frame_schema)
        for worker in range(ROUTED):
            pieces = []
            for stretch in stretches:
                mine = [
                    row
                    for row, at in zip(stretch.rows, stretch.workers.tolist(), strict=True)
                    if at == worker
                ]
                if mine:
                    pieces.append((self._header(instance, stretch.epoch, offsets=held), self._batch(mine)))
            if len(told):
                # The last part tells. It is empty if the worker has no tuple by the last plan.
                batch = pieces.pop()[1] if pieces and pieces[-1][0].epoch == last else none
                mine_held = held if pieces or batch.num_rows else held[:0]
                pieces.append((self._header(instance, last, offsets=mine_held, told=told), batch))
            self._append(instance, open_[worker], worker, pieces)

    def _append(
        self,
        instance: Instance,
        frames: list[bytes],
        worker: int,
        pieces: list[tuple[FrameHeader, pa.RecordBatch]],
    ) -> None:
        for part, (header, batch) in enumerate(pieces):
            packer = FramePacker(header, batch.schema)
            number = instance.numbers[worker]
            frames.append(packer.pack(batch, sequence=number, part=part, parts=len(pieces)))
            instance.numbers[worker] += 1

    def _header(self, instance: Instance, epoch: int, **more: Any) -> FrameHeader:
        return FrameHeader(
            fingerprint="f",
            epoch=epoch,
            input_partitions=INPUTS,
            routed_partitions=ROUTED,
            session=instance.session,
            workers=PLANS[epoch],
            **more,
        )

    def _batch(self, rows: list[Row]) -> pa.RecordBatch:
        columns = {"pane": [r[0] for r in rows], "key": [r[1] for r in rows], "i": [r[2] for r in rows]}
        columns["f"] = [r[3] for r in rows]
        schema = self.plan.frame_schema
        return pa.record_batch(
            [pa.array(columns[f.name.removeprefix("v:")], f.type) for f in schema], schema=schema
        )

    # Combining and reducing.

    def combine(self, routed: int, *, all_of_it: bool = False) -> None:
        """A micro-batch of one worker. It may be repeated from the state before it, and old frames may come again."""
        start, end = self.read[routed], len(self.logs[routed])
        if not all_of_it:
            end = self.random.randint(start, end)
        if self.random.random() < 0.2:
            start = self.random.randint(0, start)
        frames = [(2 * at, self.logs[routed][at]) for at in range(start, end)]
        before = Dict(self.kept[routed])
        made = self._forward(routed, self.kept[routed], frames)
        if self.random.random() < 0.2:
            again = self._forward(routed, before, frames)
            assert again == made, "a repeated micro-batch makes the same"
            assert before == self.kept[routed]
        self.finished += [row for table in made.results for row in table.to_pylist()]
        for blob in made.blobs:
            self.blobs[blob.bucket].append(blob.data)
        self.read[routed] = max(self.read[routed], end)

    def _forward(self, routed: int, state: Dict, frames: list[tuple[int, bytes]]) -> Forwarded:
        homes = Homes(seed=SEED, delay=DELAY)
        worker = Worker(plan=self.plan, layout=self.layout, homes=homes, routed=routed)
        return forward_task(worker, state, frames)

    def reduce(self, bucket: int, *, all_of_it: bool = False) -> None:
        """A micro-batch of one bucket. Blobs that came before may come again, and blobs come in any order."""
        start, end = self.merged[bucket], len(self.blobs[bucket])
        if not all_of_it:
            end = self.random.randint(start, end)
        data = self.blobs[bucket][
            self.random.randint(0, start) if self.random.random() < 0.3 else start : end
        ]
        table = reduce(self.plan, self.layout, self.states[bucket], self.random.sample(data, len(data)))
        self.reduced += table.to_pylist()
        self.merged[bucket] = end

    def results(self) -> dict[tuple[int, bytes], dict[str, Any]]:
        """Every emitted row by (window start, key), from homes and reducers, emitted once each."""
        rows: dict[tuple[int, bytes], dict[str, Any]] = {}
        for row in [*self.finished, *self.reduced]:
            at = (row["window_start"], row["key"])
            assert at not in rows, f"{at} was emitted twice"
            rows[at] = {name: row[name] for name in self.plan.output_schema.names}
        return rows

    def expected(self) -> dict[tuple[int, bytes], dict[str, Any]]:
        """The same windows from plain dicts."""
        return direct(self.plan, self.rows)
