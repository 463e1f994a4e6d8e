"""Instances that route a stream as they like, workers that finish windows at home, and reducers for the rest.

What an instance must do is all here: it tells every worker when a stint begins, when its slowest partition passes a pane,
and when it routes by another plan. In each transaction it announces what it sends away from a key's home. All else is
drawn: where tuples go, how they are cut into blocks, which transactions are aborted, when an instance reads a plan, who
owns which input partition, how far each worker and each bucket reads, and what is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.arrays import no_rows, records
from evenflow.homes import announced
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


class World:
    """A query with forwarding. rows: the tuples that were routed, as `direct` takes them."""

    def __init__(self, plan: AggregatePlan, random: Random, *, anywhere: float = 0.3) -> None:
        self.plan, self.random, self.anywhere = plan, random, anywhere
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
            self._forget(instance)

    def learn(self, instance: Instance) -> None:
        """An instance puts a plan in force, the next one or a later one."""
        if instance.epoch < self.newest:
            instance.epoch = self.random.randint(instance.epoch + 1, self.newest)

    def step(self) -> None:
        """Anything may happen next."""
        instance = self.random.choice(self.instances)
        match self.random.randrange(12):
            case 0:
                self.rebalance()
            case 1:
                self.newest = min(self.newest + 1, max(PLANS))
            case 2 | 3:
                self.learn(instance)
            case 4:
                self.fall_asleep(instance)
            case 5 | 6 | 7 | 8:
                self.now += self.random.choice([0, 3, SLIDE, 2 * SLIDE])
                self.block(instance)
            case 9 | 10:
                self.combine(self.random.randrange(ROUTED))
            case _:
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
            self._forget(instance)

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
                rows.append((time // SLIDE, self.random.choice(KEYS), value, self.random.choice([None, 0.5, 2.25])))
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
            self._announce(instance, open_, stretches)
            self._write(instance, open_, stretches, offsets, told, last)
        if abort:
            instance.numbers = numbers
            return
        for log, frames in zip(self.logs, open_, strict=True):
            log += frames
        self.rows += [row for _, rows in stretches for row in rows]

    def _tell(self, instance: Instance, states: list[Partition]) -> Any:
        instance.told = self._closed(instance, states)
        return records_of([(p, states[p].mark, states[p].offset) for p in sorted(instance.owned)], TOLD)

    def _closed(self, instance: Instance, states: list[Partition]) -> dict[int, int]:
        return {p: panes_closed_by(states[p].mark, SLIDE) for p in sorted(instance.owned)}

    def _passes(self, instance: Instance) -> bool:
        if not instance.owned:
            return False
        unknown = panes_closed_by(NO_MARK, SLIDE)
        return min(self._closed(instance, self.partitions).values()) > min(instance.told.get(p, unknown) for p in instance.owned)

    def _forget(self, instance: Instance) -> None:
        instance.stint, instance.told, instance.epoch_told = True, {}, None

    def _announce(self, instance: Instance, open_: list[list[bytes]], stretches: list[tuple[int, list[Row]]]) -> None:
        self._assigned = []
        for epoch, rows in stretches:
            hashes = hash_keys(pa.array([row[1] for row in rows], pa.binary()))
            panes = np.array([row[0] for row in rows], np.int64)
            workers = PLANS[epoch]
            drawn = [
                self.random.randrange(workers) if self.random.random() < self.anywhere else None for _ in rows
            ]
            from evenflow.homes import home_of

            home = home_of(hashes, workers, SEED).tolist()
            assigned = np.array([h if d is None else d for h, d in zip(home, drawn, strict=True)], np.int32)
            self._assigned.append(assigned)
            said = announced(hashes, panes, assigned, workers=workers, seed=SEED)
            for worker in range(ROUTED):
                mine = said.homes == worker
                if mine.any():
                    batch = pa.record_batch([said.panes[mine], said.hashes[mine]], schema=ANNOUNCED)
                    header = self._header(instance, epoch, announces=True)
                    self._append(instance, open_, worker, FramePacker(header, ANNOUNCED), batch)

    def _write(
        self,
        instance: Instance,
        open_: list[list[bytes]],
        stretches: list[tuple[int, list[Row]]],
        offsets: dict[int, tuple[int, int]],
        told: Any,
        last: int,
    ) -> None:
        held = records_of([(p, first, end) for p, (first, end) in sorted(offsets.items())], OFFSETS)
        for worker in range(ROUTED):
            pieces = []
            for (epoch, rows), assigned in zip(stretches, self._assigned if stretches else [], strict=True):
                mine = [row for row, at in zip(rows, assigned.tolist(), strict=True) if at == worker]
                if mine:
                    pieces.append((epoch, self._batch(mine)))
            # The last part tells the plan that is in force at the end of the block, so it is empty if need be.
            if pieces and len(told) and pieces[-1][0] != last:
                pieces.append((last, no_rows(self.plan.frame_schema)))
            for number, (epoch, batch) in enumerate(pieces):
                end = number == len(pieces) - 1
                header = self._header(instance, epoch, offsets=held, told=told if end else records(0, TOLD))
                self._append(instance, open_, worker, FramePacker(header, batch.schema), batch, number, len(pieces))
            if len(told) and not pieces:
                header = self._header(instance, last, told=told)
                empty = no_rows(self.plan.frame_schema)
                self._append(instance, open_, worker, FramePacker(header, empty.schema), empty)

    def _append(
        self, instance: Instance, open_: list[list[bytes]], worker: int, packer: FramePacker, batch: Any, part: int = 0, parts: int = 1
    ) -> None:
        open_[worker].append(packer.pack(batch, sequence=instance.numbers[worker], part=part, parts=parts))
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
        data = self.blobs[bucket][self.random.randint(0, start) if self.random.random() < 0.3 else start : end]
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
