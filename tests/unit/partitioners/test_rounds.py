"""Laws of rounds: what a table is made of, and that nobody waits for ever, whatever happens to messages
and tables.
"""

import json
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.partitioners.exchange import LAST_ROUND, Merger, Message, Table
from evenflow.partitioners.rounds import Rounds
from tests.examples import examples

PATIENCE = 10.0


class Lists(Merger):
    """The body of a table is the list of its messages."""

    def check(self, message: Message) -> None:
        if message.body == b"unreadable":
            raise IncompatibleStateError("unreadable")

    def merge(self, messages: Sequence[Message]) -> bytes:
        return json.dumps([(one.source, one.round, one.body.decode()) for one in messages]).encode()

    def rescale(self, workers: int) -> None:
        pass


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def rounds_of(sources: int, clock: Clock | None = None) -> Rounds:
    return Rounds(Lists(), sources=sources, patience=PATIENCE, clock=clock or Clock())


def message(source: int, number: int, body: str = "") -> Message:
    return Message(source, number, body.encode())


def parts_of(table: Table) -> list[list[object]]:
    result: list[list[object]] = json.loads(table.body)
    return result


# one round


def test_a_round_is_complete_with_the_message_of_everyone_in_any_order() -> None:
    rounds = rounds_of(3)
    assert rounds.take(message(2, 0)) is None
    assert rounds.take(message(0, 0)) is None
    table = rounds.take(message(1, 0))
    assert table is not None
    assert (table.round, table.sources) == (0, (0, 1, 2))
    assert [one[0] for one in parts_of(table)] == [0, 1, 2]
    assert (rounds.round, rounds.table) == (1, table)


def test_of_two_messages_of_a_source_the_last_one_counts() -> None:
    rounds = rounds_of(2)
    rounds.take(message(0, 0, "first"))
    rounds.take(message(0, 0, "second"))
    table = rounds.take(message(1, 0))
    assert table is not None
    assert parts_of(table) == [[0, 0, "second"], [1, 0, ""]]


def test_a_round_ends_when_its_time_is_over_with_the_messages_that_are_there() -> None:
    clock = Clock()
    rounds = rounds_of(3, clock)
    assert (rounds.overdue(), rounds.closes_at) == (None, None)
    clock.now = 5.0
    rounds.take(message(1, 0))
    assert rounds.closes_at == 5.0 + PATIENCE
    clock.now = 14.9
    rounds.take(message(0, 0))
    assert rounds.overdue() is None
    clock.now = 15.0
    table = rounds.overdue()
    assert table is not None
    assert table.sources == (0, 1)
    assert (rounds.overdue(), rounds.closes_at) == (None, None)


def test_who_was_silent_for_two_rounds_is_not_waited_for_until_the_next_message() -> None:
    clock = Clock()
    rounds = rounds_of(2, clock)
    for number in range(2):
        assert rounds.waited_for == (0, 1)
        assert rounds.take(message(0, number)) is None
        clock.now += PATIENCE
        assert rounds.overdue() is not None
    assert rounds.waited_for == (0,)
    assert rounds.take(message(0, 2)) is not None
    assert rounds.take(message(1, 2)) is rounds.table, "its round is over, so it gets the table of it"
    assert rounds.waited_for == (0, 1)
    assert rounds.take(message(0, 3)) is None
    both = rounds.take(message(1, 3))
    assert both is not None
    assert both.sources == (0, 1)


def test_a_message_for_a_round_that_is_over_gets_the_latest_table_once_per_patience() -> None:
    clock = Clock()
    rounds = rounds_of(2, clock)
    rounds.take(message(0, 0))
    table = rounds.take(message(1, 0))
    assert table is not None
    assert rounds.take(message(0, 0)) is table
    assert rounds.take(message(0, 0)) is None
    assert rounds.take(message(1, 0)) is table
    clock.now = PATIENCE
    assert rounds.take(message(0, 0)) is table
    assert rounds.take(message(0, 1)) is None
    assert rounds.take(message(1, 1)) is not table


def test_a_merger_that_begins_anew_goes_on_with_the_round_of_its_members() -> None:
    rounds = rounds_of(2)
    assert rounds.take(message(0, 6)) is None
    assert rounds.take(message(1, 7)) is None
    assert rounds.take(message(0, 6)) is None, "of a round that it has no table of"
    table = rounds.take(message(0, 7))
    assert table is not None
    assert (table.round, [one[1] for one in parts_of(table)]) == (7, [7, 7])


@pytest.mark.parametrize(
    "wrong",
    [message(2, 0), message(-1, 0), message(0, -1), message(0, LAST_ROUND + 1), message(0, 0, "unreadable")],
)
def test_a_message_that_cannot_be_used_is_refused_and_changes_nothing(wrong: Message) -> None:
    rounds = rounds_of(2)
    rounds.take(message(1, 0))
    with pytest.raises(IncompatibleStateError):
        rounds.take(wrong)
    table = rounds.take(message(0, 0))
    assert table is not None
    assert table.round == 0


@pytest.mark.parametrize(("sources", "patience"), [(0, 1.0), (2, 0.0), (2, -1.0)])
def test_impossible_rounds_are_refused(sources: int, patience: float) -> None:
    with pytest.raises(ConfigError, match="needs sources and patience"):
        Rounds(Lists(), sources=sources, patience=patience, clock=Clock())


# many rounds


class Members:
    """Members that tell once per interval, and a channel that loses, repeats, delays and mixes up."""

    def __init__(self, count: int, random: Random) -> None:
        self.random, self.clock = random, Clock()
        self.mergers = [rounds_of(count, self.clock)]
        self.round = [0] * count
        self.heard = [0] * count
        self.alive = set(range(count))
        self.told: set[tuple[int, int, str]] = set()
        self.messages: list[Message] = []
        self.tables: list[Table] = []

    def interval(self, *, loss: float) -> None:
        """All members that are alive tell. Then the channel does what it does, for one patience."""
        for source in sorted(self.alive):
            body = f"{self.clock.now:g}"
            self.told.add((source, self.round[source], body))
            self.messages += [message(source, self.round[source], body)] * self.copies(loss)
        for _ in range(2):
            self.deliver(loss)
            self.clock.now += PATIENCE / 2
            for merger in self.mergers:
                self.publish(merger.overdue(), loss)
        self.deliver(loss)

    def copies(self, loss: float) -> int:
        if not loss:
            return 1
        return 0 if self.random.random() < loss else self.random.choice([1, 1, 2])

    def deliver(self, loss: float) -> None:
        self.random.shuffle(self.messages)
        left = self.random.randrange(3) if loss else 0
        while len(self.messages) > left:
            one = self.messages.pop()
            for merger in self.mergers:
                before = merger.round
                self.publish(merger.take(one), loss)
                assert merger.round >= before, "rounds never go back"
        self.random.shuffle(self.tables)
        while len(self.tables) > left:
            self.hear(self.tables.pop(), loss)

    def publish(self, table: Table | None, loss: float) -> None:
        if table is not None:
            made_of = parts_of(table)
            assert [one[0] for one in made_of] == list(table.sources)
            assert {one[1] for one in made_of} == {table.round}
            assert {tuple(one) for one in made_of} <= self.told
            table.check(len(self.round))
            self.tables += [table] * self.copies(loss)

    def hear(self, table: Table, loss: float) -> None:
        for source in self.alive:
            if table.round >= self.round[source] and (not loss or self.random.random() >= loss):
                self.round[source] = table.round + 1
                self.heard[source] += 1


@examples(60)
@given(st.randoms(use_true_random=False), st.integers(1, 5), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_whatever_the_channel_does_all_that_live_hear_tables_again_when_it_is_well(
    random: Random, count: int, loss: float
) -> None:
    members = Members(count, random)
    for _ in range(random.randrange(25)):
        what = random.random()
        if what < 0.1:  # another one is elected, and knows nothing
            members.mergers = [rounds_of(count, members.clock)]
        elif what < 0.15:  # two for a moment
            members.mergers = [members.mergers[0], rounds_of(count, members.clock)]
        elif what < 0.35:
            members.mergers = members.mergers[:1]
            members.alive ^= {random.randrange(count)}
        members.interval(loss=loss)
    members.alive = members.alive or {0}
    members.mergers = members.mergers[:1]
    members.messages.clear()
    members.tables.clear()
    members.heard = [0] * count
    for _ in range(2):
        members.interval(loss=0.0)
    assert all(members.heard[source] for source in members.alive), "within two intervals"
    before = members.heard.copy()
    for _ in range(4):
        members.interval(loss=0.0)
    # Everybody alive is in step by now, and who is not alive has been given up.
    assert all(members.heard[source] == before[source] + 4 for source in members.alive)
    assert members.mergers[0].table is not None
    assert set(members.mergers[0].table.sources) == members.alive


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [1, 2, 5])
def test_with_half_of_everything_lost_rounds_go_on_for_everyone(seed: int, count: int) -> None:
    members = Members(count, Random(seed))
    for _ in range(100):
        members.interval(loss=0.5)
    assert min(members.heard) >= 4, "each of them about every eighth time"
