"""Whatever the others tell, each tuple goes into exactly one frame, so results never depend on it."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from evenflow.partitioners.exchange import Message, Table
from evenflow.plans import Plan
from evenflow.progress import PartitionState
from evenflow.wire import decode_frame
from evenflow.wire.sync import SyncRecord, encode_sync
from partitioner_service.block import Slice
from partitioner_service.routing.planned_partitioner import furthest
from partitioner_service.routing.router import Router
from tests.examples import examples
from tests.hostile import BYTES
from tests.unit.partitioner_service.exchange.instances import Instance, Topic, settings_of, telling

MOST_WORKERS = 6
BODY = b"\1" * 24

Words = st.one_of(
    st.sampled_from(BYTES),
    st.binary(max_size=60),
    st.builds(Message, st.integers(0, 2), st.integers(0, 9), st.sampled_from([BODY, BODY * 2, b"odd"])),
    st.builds(
        lambda number, body: Table(number, (0, 1), body),
        st.integers(0, 9),
        st.sampled_from([BODY, BODY * 2, b"\xff" * 48, b"odd"]),
    ),
)
Blocks = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 400)), min_size=1, max_size=25
)
Steps = st.lists(
    st.one_of(
        st.tuples(st.just("heard"), Words),
        st.tuples(st.just("block"), Blocks),
        st.tuples(st.just("plan"), st.integers(1, MOST_WORKERS)),
        st.tuples(st.just("elected"), st.booleans()),
    ),
    max_size=30,
)


@examples(80)
@given(Steps)
def test_each_tuple_goes_into_exactly_one_frame_whatever_is_told_between_the_blocks(
    steps: list[tuple[str, object]],
) -> None:
    with telling():
        instance = Instance(settings_of(0, routed_partitions=MOST_WORKERS), Topic(), lambda: 0.0)
        how = instance.settings
        router = Router(how, instance.partitioner)
        states = {
            p: PartitionState(fingerprint=how.fingerprint, topic_id="t", offset=0)
            for p in range(how.input_partitions)
        }
        written: Counter[str] = Counter()
        result: Counter[str] = Counter()
        time = epoch = 0

        def route(tuples: list[tuple[int, int, int]]) -> None:
            nonlocal time
            values: dict[int, list[bytes | None]] = {}
            for partition, key, later in tuples:
                time += later
                name = f"{key}/{len(written)}"
                written[name] += 1
                values.setdefault(partition, []).append(json.dumps({"k": name, "t": time}).encode())
            pieces = [
                Slice(p, states[p].offset, states[p].offset + len(held) - 1, held)
                for p, held in values.items()
            ]
            routed = router.route(pieces, states)
            states.update(routed.states)
            assert not routed.rejections
            for worker, data in routed.frames:
                assert 0 <= worker < MOST_WORKERS
                keys = decode_frame(data, fingerprint=how.fingerprint).batch.column("key").to_pylist()
                result.update(key.decode() for key in keys)

        for kind, what in [*steps, ("block", [(p, 1, 10) for p in range(4)])]:
            if kind == "heard" and isinstance(what, bytes):
                instance.channel.offer(what)
            elif kind == "heard":
                assert isinstance(what, Message | Table)
                source = what.source if isinstance(what, Message) else 1
                record = SyncRecord(instance.channel._identity, 7, source, None, what)
                instance.channel.offer(encode_sync(record))
            elif kind == "plan":
                epoch += 1
                router.plans.learn(Plan(epoch=epoch, p=int(str(what)), r=1), reached=furthest(states))
            elif kind == "elected":
                instance.elected = bool(what)
            else:
                instance.step(furthest(states))
                route(what)  # type: ignore[arg-type]
                instance.step(furthest(states))
                instance.channel.tick()
        assert result == written
