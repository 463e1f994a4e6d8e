"""Instances that tell each other over a topic: rounds go on whatever happens to one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from evenflow.partitioners.exchange import Message, Table
from evenflow.plans import Plan
from evenflow.wire.sync import SyncRecord, decode_sync, encode_sync
from partitioner_service.exchange.table_maker import TableMaker
from partitioner_service.routing.plan_inbox import PlanInbox
from partitioner_service.routing.planned_partitioner import PlannedPartitioner
from tests.unit.partitioner_service.exchange.instances import (
    SLIDE,
    Adding,
    Group,
    Instance,
    settings_of,
    telling,
)

PATIENCE = 2.0


@pytest.fixture(autouse=True)
def _telling() -> Iterator[None]:
    with telling():
        yield


def tables(group: Group) -> list[Table]:
    """The tables in the topic."""
    identity = group.instances[0].channel._identity
    payloads = [decode_sync(record, identity=identity).payload for record in group.topic.records]
    return [payload for payload in payloads if isinstance(payload, Table)]


def run(group: Group, slides: range, *, seconds: float = 0.05) -> None:
    """Event time goes on by half a slide in each step."""
    for half in range(2 * slides.start, 2 * slides.stop):
        group.step(half * SLIDE // 2, seconds=seconds)


def test_every_instance_hears_one_table_for_each_slide_that_all_told() -> None:
    group = Group(3)
    run(group, range(6))
    group.step(6 * SLIDE)
    assert group.rounds == [6, 6, 6]
    assert [(table.round, table.sources) for table in tables(group)] == [
        (number, (0, 1, 2)) for number in range(7)
    ], "the seventh is on its way"
    assert [instance.shown["made"] for instance in group.instances] == [7, 0, 0]
    assert group.instances[1].shown["members"] == [0, 1, 2]
    assert all(not instance.shown["ignored"] for instance in group.instances)


def test_a_table_is_taken_over_between_any_two_blocks_and_not_at_slides_only() -> None:
    group = Group(2)
    for instance in group.instances:
        type(instance.partitioner)  # the same class in both
    group.step(0)
    assert group.rounds == [0, 0]
    group.step(1)  # the same slide
    assert group.rounds == [1, 1]


def test_cooperating_daltons_hear_tables_several_times_in_a_slide_and_split_what_is_hot_at_both() -> None:
    quarter, slides = SLIDE // 4, 8
    # While each round comes an interval after the last one, an eighth of a slide is the shortest interval.
    group = Group(2, name="dalton-cooperative", options={"dsync_ms": quarter})
    hot, step = np.uint64(1 << 60), SLIDE // 16
    made_at, slide_of_tables = [], Counter[int]()
    for now in range(0, slides * SLIDE, step):
        times = np.arange(now, now + step)
        for number, instance in enumerate(group.instances):
            keys = np.where(times % 2, hot, times.astype(np.uint64) * 2 + number)
            instance.partitioner.assign(keys.astype(np.uint64), times)
        before = len(tables(group))
        group.step(now + step - 1)
        if len(tables(group)) > before:
            made_at.append(now + step)
            slide_of_tables[now // SLIDE] += 1
    assert all(slide_of_tables[slide] >= 4 for slide in range(1, slides)), slide_of_tables
    assert any(time % SLIDE for time in made_at), "not at the ends of slides only"
    assert len(set(group.rounds)) == 1
    assert group.rounds[0] > 4 * (slides - 1)
    for instance in group.instances:
        partitioner = instance.partitioner
        assert SLIDE // 8 <= partitioner.dsync_ms <= quarter
        assert len(partitioner.explain(hot, slides * SLIDE).values) == partitioner.workers
        assert instance.shown["unanswered"] <= 1
        assert not instance.shown["ignored"]


def test_a_silent_member_delays_two_rounds_by_the_patience_and_none_after_them() -> None:
    group = Group(3, running=2)
    group.step(0)
    assert tables(group) == []
    group.step(10, seconds=PATIENCE)
    assert [table.sources for table in tables(group)] == [(0, 1)]
    group.step(SLIDE, seconds=PATIENCE)
    group.step(SLIDE + 1, seconds=PATIENCE)
    before = len(tables(group))
    assert before == 2
    for slide in range(2, 8):
        group.step(slide * SLIDE)
        assert len(tables(group)) == before + slide - 1, "nobody waits for the silent one any more"


def test_a_new_instance_has_the_table_of_the_others_within_one_round() -> None:
    group = Group(3, running=2)
    run(group, range(4), seconds=PATIENCE)
    fresh = group.begin(2)
    group.instances.append(fresh)
    known = group.instances[0].partitioner.round
    assert known > 2
    assert fresh.partitioner.round == 0
    run(group, range(4, 5))
    assert fresh.partitioner.round > known, "a table was adopted at once"
    run(group, range(5, 7))
    assert tables(group)[-1].sources == (0, 1, 2), "and the new one is heard"
    assert len(set(group.rounds)) == 1


def test_without_an_elected_instance_nobody_waits_and_the_next_one_goes_on_with_the_rounds() -> None:
    group = Group(2)
    run(group, range(3))
    group.elect()
    run(group, range(3, 6))
    assert [instance.shown["unanswered"] for instance in group.instances] == [3, 3]
    assert len({instance.partitioner.round for instance in group.instances}) == 1
    group.elect(1)
    run(group, range(6, 8))
    group.step(8 * SLIDE)
    rounds = [table.round for table in tables(group)]
    assert rounds == sorted(set(rounds)), "no round has two tables and none goes back"
    assert [instance.shown["unanswered"] for instance in group.instances] == [1, 1]
    assert group.instances[1].shown["made"] > 0


def test_the_survivor_of_a_kill_goes_on_alone_and_is_heard_again_by_the_next_process() -> None:
    group = Group(2)
    run(group, range(3))
    del group.instances[0]  # SIGKILL
    group.elect(0)  # which is instance 1 now
    run(group, range(3, 6), seconds=PATIENCE)
    assert tables(group)[-1].sources == (1,)
    group.instances.append(group.begin(0))
    run(group, range(6, 9))
    assert tables(group)[-1].sources == (0, 1)
    assert len(set(group.rounds)) == 1


def test_a_rebalance_in_mid_round_costs_that_round_and_the_next_one_is_whole() -> None:
    group = Group(2)
    run(group, range(3))
    known = group.instances[0].partitioner.round
    group.instances[1].step(3 * SLIDE)  # its message comes to the maker that was
    group.instances[0].read()
    group.elect(1)
    run(group, range(4, 6))
    assert group.rounds[0] == group.rounds[1] > known
    assert tables(group)[-1].sources == (0, 1)
    assert [instance.shown["elected"] for instance in group.instances] == [False, True]


def test_two_elected_for_a_moment_make_two_tables_of_which_each_member_takes_the_first() -> None:
    group = Group(3)
    run(group, range(2))
    group.elect(0, 2)
    run(group, range(2, 5))
    group.elect(2)
    run(group, range(5, 7))
    rounds = [table.round for table in tables(group)]
    assert len(rounds) > len(set(rounds)), "two tables of one round"
    assert len(set(group.rounds)) == 1
    for instance in group.instances:
        assert set(instance.shown["ignored"]) <= {"old"}
        assert instance.shown["unanswered"] <= 1


def test_a_plan_in_mid_round_rescales_the_merger_and_the_next_rounds_are_of_its_workers() -> None:
    group = Group(2)
    group.step(0)
    group.instances[0].partitioner.rescale(5)
    run(group, range(1, 2))
    group.instances[1].partitioner.rescale(5)
    run(group, range(2, 5))
    assert [len(table.body) // 8 for table in tables(group)][-2:] == [5, 5]
    assert group.rounds[0] == group.rounds[1] >= 4


def test_a_member_whose_event_time_runs_ahead_or_stands_still_takes_no_round_from_the_others() -> None:
    group = Group(3)
    ahead, still, right = group.instances
    for slide in range(1, 9):
        group.clock += PATIENCE
        ahead.step(slide * 10**9)
        still.step(5)
        right.step(slide * SLIDE)
        for instance in group.instances:
            instance.channel.tick()
            instance.read()
    sources = [table.sources for table in tables(group)]
    assert sources[-1] == (0, 2), "the one that stands still has nothing to tell"
    run(group, range(10, 14), seconds=PATIENCE)
    assert tables(group)[-1].sources == (1, 2), "the one that leapt tells again when its time comes"
    assert len(set(group.rounds)) == 1


@pytest.mark.parametrize("elected", [0, 1])
def test_a_member_whose_clocks_are_wrong_tells_hears_and_makes_tables_as_the_others_do(elected: int) -> None:
    group = Group(2)
    group.instances[1] = Instance(
        settings_of(1, **group.how),
        group.topic,
        lambda: 1e9 + 3 * group.clock,  # of another beginning, and three times as fast
        wall=lambda: -(10**9) - group.clock,  # before 1970, and backwards
    )
    group.elect(elected)
    run(group, range(8))
    made = [table.sources for table in tables(group)]
    assert len(made) >= 7
    assert set(made) == {(0, 1)}
    assert group.rounds[0] == group.rounds[1] >= 7
    right, wrong = (instance.shown for instance in group.instances)
    assert not right["ignored"]
    assert not wrong["ignored"]
    assert right["table_at"] > 0 > wrong["table_at"], "each says so by its own clock"
    assert 0 <= wrong["table_age_s"] < 1


def test_a_plan_for_more_workers_than_routed_partitions_changes_no_table_and_one_for_six_of_them_does() -> (
    None
):
    group = Group(2, routed_partitions=6)
    settings = group.instances[0].settings
    assert settings.input_partitions < 6, "more workers than input partitions are no matter"
    run(group, range(2))
    for offset, (workers, of_tables) in enumerate(((7, 3), (6, 6), (9, 6))):
        value = Plan(epoch=workers, p=workers, r=1).encode(settings.fingerprint)
        for instance in group.instances:
            inbox, planned = PlanInbox(settings), PlannedPartitioner(settings, instance.partitioner)
            inbox.offer(offset, value)
            for plan in inbox.arrived():
                planned.learn(plan, reached=None)
            planned.pass_to(2 * SLIDE)
            assert inbox.ignored == (workers > 6)
        run(group, range(2 * offset + 4, 2 * offset + 6))
        assert len(tables(group)[-1].body) // 8 == of_tables == group.instances[1].partitioner.workers
    assert group.rounds[0] == group.rounds[1] >= 5
    assert all(not instance.shown["ignored"] for instance in group.instances)


def test_a_round_far_ahead_takes_nobody_along_and_a_near_one_takes_all() -> None:
    group = Group(2)
    run(group, range(3))
    own = group.instances[1].channel
    for number, far in enumerate((2**62, 2**41)):
        for payload in (Message(1, far, b"\0" * 24), Table(far, (1,), b"\0" * 24)):
            group.topic.records.append(encode_sync(SyncRecord(own._identity, own._session, 1, 0, payload)))
        run(group, range(3 + number, 4 + number))
    assert max(group.rounds) < 10
    assert group.instances[0].shown["ignored"]["ahead"] == 4
    near = Message(1, 1_000, b"\0" * 24)
    group.topic.records.append(encode_sync(SyncRecord(own._identity, own._session, 1, 0, near)))
    run(group, range(5, 8), seconds=PATIENCE)
    assert group.rounds[0] == group.rounds[1] > 1_000


def test_a_topic_that_is_gone_is_said_once_counted_and_routing_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group = Group(2)
    run(group, range(2))
    caplog.set_level("INFO")
    group.topic.broken = "no such topic"
    run(group, range(2, 8))
    assert [instance.shown["lost"] for instance in group.instances] == [6, 6]
    assert [instance.shown["unanswered"] for instance in group.instances] == [6, 6]
    group.topic.broken = None
    run(group, range(8, 10))
    said = [record.getMessage() for record in caplog.records]
    for line in ("records are lost", "written again", "no table has come", "tables come again"):
        assert sum(line in each for each in said) == 2, "once by each instance"
    assert group.rounds[0] == group.rounds[1] >= 3
    assert [instance.shown["unanswered"] for instance in group.instances] == [0, 0]


def test_a_merger_that_fails_ends_nothing_and_the_round_begins_anew(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    group = Group(2)
    with monkeypatch.context() as patch:
        patch.setattr(Adding, "merge", lambda *_: 1 // 0)
        run(group, range(3))
    assert tables(group) == []
    assert group.instances[0].shown["ignored"]["unusable"] > 0
    assert sum("could not be taken in" in record.getMessage() for record in caplog.records) == 1
    run(group, range(3, 6))
    assert group.rounds[0] == group.rounds[1] >= 2


def test_a_message_that_no_merger_can_take_is_forgotten_with_its_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    merged = Adding.merge
    poison = b"\7" * 24

    def merge(self: Adding, messages: list[Message]) -> bytes:
        assert all(message.body != poison for message in messages)
        return merged(self, messages)

    monkeypatch.setattr(Adding, "merge", merge)
    group = Group(2, running=1)
    group.step(0)
    own = group.instances[0].channel
    group.topic.records.append(encode_sync(SyncRecord(own._identity, 7, 1, 0, Message(1, 0, poison))))
    run(group, range(1, 5), seconds=PATIENCE)
    assert tables(group)[-1].sources == (0,)
    assert group.instances[0].partitioner.round >= 2


def test_a_maker_that_takes_over_answers_members_that_are_behind_with_the_newest_table() -> None:
    maker = TableMaker(sources=2, patience=PATIENCE, clock=lambda: 0.0)
    newest = Table(57, (0, 1), b"\0" * 24)
    maker.note(newest)
    behind = Message(1, 3, b"\0" * 24)
    assert maker.take(behind) is None, "it is not elected"
    maker.appoint(Group(2).instances[0].partitioner)
    assert maker.take(behind) == newest
    assert maker.take(Message(1, 58, b"\0" * 24)) is None
    table = maker.take(Message(0, 58, b"\0" * 24))
    assert table is not None
    assert (table.round, table.sources) == (58, (0, 1))
