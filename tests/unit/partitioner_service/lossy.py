"""Partitioners that come, go and abort over a routed topic that may lose frames, through combiner and
reducer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from evenflow.errors import EvenflowError
from evenflow.partitioners import create
from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from evenflow.twostep import combine_task, reduce
from evenflow.wire.markers import EndOfStream
from partitioner_service.block import Slice
from partitioner_service.routing.router import Router
from partitioner_service.routing.session import Session, Stint, totals
from spark_consumers.layout import Layout

INPUTS, WORKERS = 3, 3
SETTINGS: Settings = load_settings(
    query={"name": "lossy", "key": "k", "time": "t", "window": "2s", "slide": "1s"},
    input={"topic": "in", "format": "json", "partitions": INPUTS},
    partitioner={"workers": WORKERS},
    spark={"buckets": 2},
)


class State(dict[str, bytes]):
    """A bucket's state."""

    def put(self, name: str, value: bytes) -> None:
        self[name] = value

    def delete(self, name: str) -> None:
        del self[name]


class Instance:
    """A partitioner instance: its session, its working states, and the frames of its open transaction."""

    def __init__(self, number: int) -> None:
        self.session = Session(WORKERS, number=number)
        self.router = Router(SETTINGS, create("hashing", workers=WORKERS), session=self.session)
        self.states: dict[int, PartitionState] = {}
        self.inputs = INPUTS
        self.open: list[tuple[int, bytes]] = []


@dataclass
class Run:
    """One run of a query of counts. `draw` decides everything."""

    draw: Random
    settings: Settings = SETTINGS
    instances: list[Instance] = field(default_factory=list)
    committed: dict[int, PartitionState] = field(default_factory=dict)
    log: list[list[tuple[int, bytes]]] = field(default_factory=lambda: [[] for _ in range(WORKERS)])
    consumed: list[int] = field(default_factory=lambda: [0] * WORKERS)
    found: dict[tuple[int, bytes], int] = field(default_factory=dict)
    begun: int = 0
    offset: int = 0

    def __post_init__(self) -> None:
        self.layout = Layout.from_settings(self.settings, "topic")
        self.buckets = [State() for _ in range(2)]
        self.input = [self._records() for _ in range(INPUTS)]
        self.expected: Counter[tuple[int, bytes]] = Counter()
        for times in self.input:
            for key, time in times:
                for end in (time // 1000 + 1, time // 1000 + 2):
                    self.expected[end * 1000 - 2000, key.encode()] += 1
        for p in range(INPUTS):
            self.committed[p] = PartitionState(fingerprint=self.settings.fingerprint, topic_id="t", offset=0)
        self.start()
        self.rebalance()

    def _records(self) -> list[tuple[str, int]]:
        times = sorted(self.draw.randrange(0, 9000) for _ in range(self.draw.randrange(1, 30)))
        return [(self.draw.choice("abcdef"), time) for time in times]

    # ---- partitioners

    def start(self) -> None:
        """One more instance. It owns nothing before the next rebalance."""
        self.begun += 1
        self.instances.append(Instance(self.begun))

    def work(self, instance: Instance) -> None:
        """A block of the instance's partitions into its open transaction."""
        self._begin_stint(instance)
        slices = []
        for p, state in sorted(instance.states.items()):
            left = len(self.input[p]) + 1 - state.offset
            count = self.draw.randrange(0, min(5, left) + 1)
            if count:
                slices.append(self._slice(p, state.offset, count))
        if slices:
            routed = instance.router.route(slices, instance.states)
            instance.open += routed.frames
            instance.states.update(routed.states)
        instance.open += instance.router.punctuate(instance.states)

    def _begin_stint(self, instance: Instance) -> None:
        if instance.states and instance.session.stint is Stint.DUE:
            instance.open += instance.router.begin_stint(
                instance.states, self.totals[instance.session.number], inputs=instance.inputs
            )

    def _slice(self, p: int, first: int, count: int) -> Slice:
        rows = [*self.input[p], None][first : first + count]
        values = [None if row is None else json.dumps({"k": row[0], "t": row[1]}).encode() for row in rows]
        ends = {
            n: EndOfStream(producer="p", tuples=len(self.input[p])) for n, v in enumerate(values) if v is None
        }
        return Slice(p, first, first + count - 1, values, markers=ends)

    def commit(self, instance: Instance, added: Mapping[int, PartitionState] | None = None) -> None:
        """As `Loop.commit`: the frames become visible with the states that changed."""
        if not instance.open:
            return
        changed = {p: s for p, s in instance.states.items() if s != self.committed[p]}
        if instance.session.stint is Stint.WRITTEN or not changed:
            changed = instance.states
        changed = instance.session.signed(changed)
        for routed, data in instance.open:
            self.offset += 1
            self.log[routed].append((self.offset, data))
        instance.open = []
        instance.states.update(changed)
        self.committed.update(changed)
        self.committed.update(instance.session.signed(added or {}))
        instance.session.committed()

    def abort(self, instance: Instance) -> None:
        """The open transaction never becomes visible, and the instance goes back to the committed states."""
        instance.open = []
        instance.session.aborted()
        instance.states = {p: self.committed[p] for p in instance.states}
        instance.router.forget_what_was_told()

    def rebalance(self) -> None:
        """Every instance gives its partitions up, and each partition goes to a drawn instance."""
        for instance in self.instances:
            if self.draw.random() < 0.5:
                self.commit(instance)
            self.abort(instance)
            instance.states = {}
        for p, state in sorted(self.committed.items()):
            self.draw.choice(self.instances).states[p] = state
        self.totals = {i.session.number: totals(self.committed) for i in self.instances}
        for instance in self.instances:
            instance.inputs = len(self.committed)
            instance.session.owe_stint()

    def restart(self) -> None:
        """All instances die, and a new one takes everything over and tells it."""
        self.instances = []
        self.start()
        self.rebalance()
        self.work(self.instances[0])
        self.commit(self.instances[0])

    def step(self) -> None:
        """Something happens to a partitioner."""
        instance = self.draw.choice(self.instances)
        act = self.draw.random()
        if act < 0.55:
            self.work(instance)
        if act < 0.4:
            self.commit(instance)
        elif 0.55 <= act < 0.7:
            self.abort(instance)
        elif 0.7 <= act < 0.8:
            self.instances.remove(instance)
            self.start()
            self.rebalance()
        elif 0.8 <= act < 0.88 and len(self.instances) < 3:
            self.start()
            self.rebalance()
        elif act >= 0.88:
            self.rebalance()

    # ---- Spark

    def micro_batch(self, *, all_of_it: bool = False) -> None:
        """Combine and reduce the next frames of each routed partition. Raises what a stage raises."""
        stretches = []
        for routed, frames in enumerate(self.log):
            begin = self.consumed[routed]
            end = len(frames) if all_of_it else self.draw.randint(begin, len(frames))
            self.consumed[routed] = end
            stretches.append((routed, frames[begin:end]))
        blobs: list[list[bytes]] = [[], []]
        for blob in combine_task(self.layout.plan, self.layout, stretches):
            blobs[blob.bucket].append(blob.data)
        for state, mine in zip(self.buckets, blobs, strict=True):
            if self.draw.random() < 0.2:
                mine = mine * 2
            for row in reduce(self.layout.plan, self.layout, state, mine).to_pylist():
                at = row["window_start"], row["key"]
                assert at not in self.found
                assert row["count"] == self.expected[at], f"a wrong result came out: {row}"
                self.found[at] = row["count"]

    def finish(self) -> None:
        """Read the input to its end with what there is."""
        ended = False
        while not ended:
            # Once more after the end: an instance may not have begun its stint before.
            ended = all(state.ended for state in self.committed.values())
            for instance in self.instances:
                self.work(instance)
                self.commit(instance)

    def noticed(self) -> EvenflowError | None:
        """What a stage says of everything that is left, None if it says nothing."""
        try:
            self.micro_batch(all_of_it=True)
        except EvenflowError as error:
            return error
        return None
