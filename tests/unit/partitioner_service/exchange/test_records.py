"""Any record may stand in the sync topic: it is used, or counted by its reason, and nothing else happens."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.partitioners.exchange import Message, Table
from evenflow.wire.sync import SYNC_VERSION, SyncRecord, encode_sync
from partitioner_service.exchange.decoder import LARGEST
from partitioner_service.exchange.figures import REASONS
from partitioner_service.exchange.inbox import MOST_BYTES, MOST_TABLES, Inbox
from partitioner_service.exchange.outbox import MOST_UNANSWERED
from partitioner_service.exchange.senders import COMES_BACK, TAKEN_OVER, Senders
from tests.examples import examples
from tests.unit.partitioner_service.exchange.instances import (
    SLIDE,
    Group,
    Instance,
    Topic,
    settings_of,
    telling,
)

BODY = b"\0" * 24


@pytest.fixture(autouse=True)
def _telling() -> Iterator[None]:
    with telling():
        yield


def record_of(
    instance: Instance, payload: Message | Table, *, source: int = 1, session: int = 77, time: int | None = 5
) -> bytes:
    """A record as another instance of the same query writes it."""
    return encode_sync(SyncRecord(instance.channel._identity, session, source, time, payload))


def with_version(record: bytes, version: int) -> bytes:
    """The same record, of another version, with a right checksum."""
    changed = record[:-4].replace(b'"v":%d' % SYNC_VERSION, b'"v":%d' % version)
    return changed + zlib.crc32(changed).to_bytes(4, "little")


def one() -> Instance:
    """An instance that is elected, and has told its first message."""
    group = Group(2, running=1)
    group.step(0)
    return group.instances[0]


def test_each_record_that_is_not_used_is_counted_by_its_reason_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    instance = one()
    good = record_of(instance, Message(1, 0, BODY))
    with_other_seed = Instance(settings_of(1, seed=8), Topic(), lambda: 0.0)
    with_more = Instance(settings_of(1, instances=3), Topic(), lambda: 0.0)
    hostile: dict[str, list[bytes | None]] = {
        "corrupt": [None, b"", b"\xff", good[:-1], good[:20] + b"!" + good[21:]],
        "version": [with_version(good, SYNC_VERSION + 1)],
        "foreign": [
            record_of(with_other_seed, Message(1, 0, BODY)),
            record_of(with_more, Message(2, 0, BODY)),
        ],
        "oversized": [bytes(LARGEST + 1)],
        "twin": [record_of(instance, Message(0, 0, BODY), source=0)],
        "ahead": [record_of(instance, Table(1 << 50, (1,), BODY))],
        "unusable": [record_of(instance, Message(1, 0, b"odd"))],
    }
    for reason, records in hostile.items():
        for record in records * 2:
            before = dict(instance.shown["ignored"])
            instance.channel.offer(record)
            after = instance.shown["ignored"]
            assert after[reason] == before.get(reason, 0) + 1, (reason, record, after)
            assert sum(after.values()) == sum(before.values()) + 1
    for reason in ("corrupt", "version", "foreign", "oversized", "ahead", "unusable"):
        said = [line for line in caplog.messages if "not used" in line]
        assert len(said) == 6, reason
    instance.step(SLIDE)
    assert instance.partitioner.round == 0
    instance.channel.offer(good)
    instance.step(SLIDE + 1)
    assert instance.partitioner.round == 1, "a right record counts after all of them"
    assert set(instance.shown["ignored"]) <= set(REASONS)


def test_a_table_whose_body_cannot_be_used_changes_nothing_and_is_counted() -> None:
    instance = one()
    instance.channel.offer(record_of(instance, Table(0, (1,), b"odd")))
    instance.step(1)
    assert instance.shown["ignored"] == {"unusable": 1}
    assert instance.partitioner.round == 0
    assert instance.shown["round"] is None


def test_a_table_that_nobody_can_use_is_not_what_members_are_answered_with() -> None:
    group = Group(2)
    group.topic.records.append(record_of(group.instances[0], Table(0, (0,), b"")))
    for slide in range(4):
        group.step(slide * SLIDE, seconds=COMES_BACK)
    assert group.rounds[0] == group.rounds[1] >= 2


def test_a_source_that_is_not_one_of_the_instances_is_refused_in_messages_and_tables() -> None:
    instance = one()
    for payload in (Message(2, 0, BODY), Table(0, (0, 2), BODY)):
        source = 2 if isinstance(payload, Message) else 1
        instance.channel.offer(record_of(instance, payload, source=source))
    instance.channel.offer(record_of(instance, Table(0, (0, 1), BODY), source=9))
    assert instance.shown["ignored"] == {"corrupt": 3}


def test_what_comes_twice_or_of_a_run_that_is_over_is_old_and_a_replay_of_all_changes_nothing() -> None:
    group = Group(2)
    for slide in range(4):
        group.step(slide * SLIDE)
    before = [*group.topic.records]
    told = [
        (instance.partitioner.round, instance.partitioner._known.tolist()) for instance in group.instances
    ]
    group.clock += TAKEN_OVER
    group.instances[1] = group.begin(1)  # a new run of the same source
    group.instances[1].partitioner._known[:] = group.instances[0].partitioner._known
    for slide in range(4, 6):
        group.step(slide * SLIDE)
    for instance in group.instances:
        instance.member.hear(instance.partitioner, 5 * SLIDE)
    known = [instance.partitioner._known.tolist() for instance in group.instances]
    assert known != told
    for record in before:
        group.topic.records.append(record)
    made = group.instances[0].shown["made"]
    for instance in group.instances:
        instance.read()
        instance.member.hear(instance.partitioner, 5 * SLIDE)
    assert [instance.partitioner._known.tolist() for instance in group.instances] == known
    assert group.instances[0].shown["made"] == made + 1, "a message of an earlier round was answered, once"
    assert group.instances[0].shown["ignored"]["old"] >= 8


def test_of_two_processes_with_one_number_the_newer_one_counts_and_it_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group = Group(3)
    twin = group.begin(1)
    group.instances.append(twin)
    for slide in range(6):
        group.step(slide * SLIDE)
    assert sum("number of its own" in line for line in caplog.messages) == 2, "each of the two says it once"
    assert group.instances[2].shown["ignored"]["old"] > 0, "for the others only one of them counts"
    assert group.instances[0].partitioner.round >= 5
    assert [instance.shown["ignored"].get("twin", 0) > 2 for instance in group.instances] == [
        False,
        True,
        False,
        True,
    ]


def test_a_session_takes_over_from_a_silent_one_and_what_was_taken_over_comes_back_only_after_long() -> None:
    at = [0.0]
    senders = Senders(2, clock=lambda: at[0])

    def speaks(session: int, *, after: float) -> bool:
        at[0] += after
        return senders.speaks(0, session)

    assert speaks(1, after=0)
    assert speaks(1, after=1)
    assert not speaks(2, after=1), "session 1 has just spoken"
    assert speaks(1, after=1)
    assert speaks(2, after=TAKEN_OVER)
    assert not speaks(1, after=TAKEN_OVER), "it is over"
    assert speaks(3, after=0)
    assert not speaks(2, after=TAKEN_OVER)
    assert speaks(2, after=COMES_BACK), "its replacement is gone"
    assert senders.speaks(1, 1), "each source by itself"


def test_the_inbox_holds_a_few_tables_and_bytes_and_the_newest_ones() -> None:
    inbox = Inbox()
    assert sum(inbox.put(Table(number, (0,), b"")) for number in range(MOST_TABLES + 3)) == 3
    assert [table.round for table in inbox.drain()] == [*range(3, MOST_TABLES + 3)]
    assert inbox.drain() == []
    half = bytes(MOST_BYTES // 2)
    assert [inbox.put(Table(number, (0,), half)) for number in range(4)] == [0, 0, 1, 1]
    assert inbox.put(Table(4, (0,), half + half + b"!")) == 2
    assert [table.round for table in inbox.drain()] == [4], "one that is too large by itself comes alone"


def test_tables_that_give_way_are_counted_and_wait_until_the_first_tuple() -> None:
    instance = one()
    for number in range(MOST_TABLES + 2):
        instance.channel.offer(record_of(instance, Table(number, (1,), BODY)))
    instance.step(None)
    assert instance.partitioner.round == 0
    assert instance.shown["ignored"] == {"crowded": 2}
    instance.step(1)
    assert instance.partitioner.round == MOST_TABLES + 2


def test_what_is_too_large_or_too_much_on_its_way_is_not_sent_but_counted() -> None:
    class Slow(Topic):
        def sync(self, record: bytes, *, answered: object) -> None:
            self.records.append(record)

    topic = Slow()
    instance = Instance(settings_of(0), topic, lambda: 0.0)
    outbox = instance.channel._outbox
    assert outbox is not None
    outbox.send(Message(0, 0, bytes(LARGEST)), time=None)
    assert (instance.shown["lost"], len(topic.records)) == (1, 0)
    for _ in range(4):
        outbox.send(Message(0, 0, bytes(MOST_UNANSWERED // 3)), time=None)
    assert (instance.shown["lost"], len(topic.records)) == (3, 2)


Anything = st.one_of(
    st.binary(max_size=200),
)
Rounds = st.one_of(st.integers(0, 6), st.integers(0, 2**62))
Bodies = st.one_of(
    st.just(BODY), st.binary(max_size=40), st.integers(0, 2**62).map(lambda n: n.to_bytes(8, "little") * 3)
)
Payloads = st.one_of(
    st.builds(Message, st.integers(0, 3), Rounds, Bodies),
    st.builds(
        lambda number, sources, body: Table(number, tuple(sorted(sources)), body),
        Rounds,
        st.sets(st.integers(0, 3), min_size=1),
        Bodies,
    ),
)


@examples(150)
@given(st.data())
def test_whatever_comes_every_instance_goes_on_and_rounds_go_on_after_it(data: st.DataObject) -> None:
    with telling():
        group = Group(2)
        for slide in range(data.draw(st.integers(0, 3))):
            group.step(slide * SLIDE)
        for _ in range(data.draw(st.integers(1, 12))):
            which = data.draw(st.sampled_from(["bytes", "record", "again", "changed"]))
            if which == "bytes":
                record = data.draw(Anything)
            elif which == "record":
                payload = data.draw(Payloads)
                source = payload.source if isinstance(payload, Message) else data.draw(st.integers(0, 3))
                record = record_of(
                    group.instances[0],
                    payload,
                    source=source,
                    session=data.draw(st.integers(1, 3)),
                    time=data.draw(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))),
                )
            else:
                record = data.draw(st.sampled_from(group.topic.records or [b"!"]))
                if which == "changed":
                    at = data.draw(st.integers(0, max(0, len(record) - 1)))
                    record = record[:at] + data.draw(st.binary(min_size=1, max_size=2)) + record[at + 1 :]
            group.topic.records.append(record)
            if data.draw(st.booleans()):
                group.step(
                    data.draw(st.integers(-(10**6), 10**6)), seconds=data.draw(st.sampled_from([0.05, 3.0]))
                )
        before = max(group.rounds)
        for slide in range(1_001, 1_010):
            group.step(slide * SLIDE, seconds=COMES_BACK)
        assert group.rounds[0] == group.rounds[1] > before
