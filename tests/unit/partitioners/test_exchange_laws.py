"""Laws of what instances tell each other, for every name that tells: whatever happens to messages and
tables.
"""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import IncompatibleStateError
from evenflow.partitioners import Partitioner, create, names, restore
from evenflow.partitioners.exchange import LAST_ROUND, Message, Table
from evenflow.partitioners.rounds import Rounds
from tests.examples import examples
from tests.unit.partitioners.cases import CASES, over
from tests.unit.partitioners.streams import zipf

ABLE = ("dalton-cooperative", "evenflow")
TELLING = [case for case in CASES if case[0] in ABLE]
each_that_tells = over(TELLING)
MEMBERS, WORKERS = 3, 6


def members(name: str, options: dict, *, sources: int = MEMBERS, workers: int = WORKERS) -> list[Partitioner]:
    return [
        create(name, workers=workers, source=source, sources=sources, **options) for source in range(sources)
    ]


def slide_of(p: Partitioner) -> int:
    return int(p.options.slide_ms)  # type: ignore[attr-defined]


def together(parts: list[Partitioner], slides: int, *, seed: int = 1) -> list[Table]:
    """All tell three times a slide and hear at once. The tables."""
    slide = slide_of(parts[0])
    rounds = Rounds(
        parts[0].merger(clock=lambda: 0.0), sources=len(parts), patience=slide, clock=lambda: float(now)
    )
    tables = []
    for step in range(3 * slides):
        now = step * slide // 3
        for message in [p.tell(now) for p in parts]:
            if message is not None and (table := rounds.take(message)) is not None:
                tables.append(table)
                assert all(p.hear(table, now) for p in parts)
        for j, p in enumerate(parts):
            keys, times = zipf(150, keys=60, z=1.3, seed=seed + 1000 * step + j)
            p.assign(keys, times * slide // 450 + now)
    return tables


@pytest.mark.parametrize("name", names())
def test_who_tells_says_so_and_nobody_else_can_be_asked(name: str) -> None:
    p = create(name, workers=4, source=1, sources=2)
    assert p.tells == (name in ABLE)
    if not p.tells:
        for ask in (
            lambda: p.tells_at,
            lambda: p.tell(0),
            lambda: p.hear(Table(0, (0,), b""), 0),
            lambda: p.merger(clock=lambda: 0.0),
        ):
            with pytest.raises(NotImplementedError, match=name):
                ask()


@each_that_tells
def test_all_hear_what_all_have_told_and_every_round_is_of_all(name: str, options: dict) -> None:
    tables = together(members(name, options), 9)
    assert len(tables) >= 3
    assert [table.round for table in tables] == list(range(len(tables)))
    assert {table.sources for table in tables} == {(0, 1, 2)}


@each_that_tells
@given(nows=st.lists(st.integers(-5_000, 20_000), min_size=1, max_size=12))
@examples(20)
def test_telling_twice_at_the_same_moment_is_as_telling_once_and_the_next_time_is_later(
    name: str, options: dict, nows: list[int]
) -> None:
    p = members(name, options)[1]
    assert p.tells_at is None
    for now in sorted(nows):
        p.tell(now)
        before = p.snapshot()
        assert p.tell(now) is None
        assert p.snapshot() == before
        assert p.tells_at is not None
        assert p.tells_at > now
        p.assign(*(column[:20] for column in (zipf(20)[0], np.full(20, now))))


@each_that_tells
def test_any_clock_is_taken(name: str, options: dict) -> None:
    p = members(name, options)[0]
    for now in (-(2**63), -1, 0, 2**62, 2**63 - 1):
        p.tell(now)
        p.hear(together(members(name, options), 4)[-1], now)
        out = p.assign(*zipf(50))
        assert 0 <= out.min() <= out.max() < WORKERS


@each_that_tells
def test_a_message_is_of_its_own_source_and_asks_for_the_round_after_the_last_table(
    name: str, options: dict
) -> None:
    parts = members(name, options)
    tables = together(parts, 9)
    for j, p in enumerate(parts):
        message = p.tell(p.tells_at or 0)
        assert message is not None
        assert (message.source, message.round) == (j, tables[-1].round + 1)


@each_that_tells
def test_an_unanswered_message_is_told_again(name: str, options: dict) -> None:
    p, other = members(name, options)[0], restore(members(name, options)[0].snapshot())
    told = []
    for _ in range(6):
        message = p.tell(p.tells_at or 0)
        told.append(message)
        p.assign(*(zipf(40)[0], np.full(40, (p.tells_at or 0) - 1)))
    result = [one for one in told if one is not None]
    assert len(result) >= 5
    assert {one.round for one in result} == {0}
    assert other.snapshot() == members(name, options)[0].snapshot()


# hostile tables


def spoiled(table: Table, random: Random, name: str, options: dict) -> Table:
    """The table with something wrong: its bytes, its sources, its round or its workers."""
    body = bytearray(table.body)
    at = random.randrange(len(body))
    what = random.randrange(7)
    if what == 0:
        return table._replace(body=random.randbytes(random.randrange(200)))
    if what == 1:
        return table._replace(body=bytes(body[:at]))
    if what == 2:
        body[at] ^= random.randrange(1, 256)
        return table._replace(body=bytes(body))
    if what == 3:
        return table._replace(sources=random.choice([(), (0, 7), (-1, 0), (1, 0), (1, 1), (2**70,)]))
    if what == 4:
        return table._replace(round=random.choice([-1, -(2**63), LAST_ROUND + 1, 2**63]))
    if what == 5:
        return table._replace(body=b"")
    return table._replace(body=together(members(name, options, workers=4), 5)[-1].body)


@each_that_tells
@given(random=st.randoms(use_true_random=False))
@examples(30)
def test_a_table_that_is_refused_changes_nothing(name: str, options: dict, random: Random) -> None:
    p = members(name, options)[1]
    table = together(members(name, options), 5)[-1]
    now = slide_of(p)
    p.tell(now)
    p.assign(*(zipf(100)[0], np.full(100, now)))
    before = p.snapshot()
    try:
        p.hear(spoiled(table, random, name, options), now)
    except IncompatibleStateError:
        assert p.snapshot() == before
    out = p.assign(*(zipf(100)[0], np.full(100, now)))
    assert 0 <= out.min() <= out.max() < WORKERS
    assert restore(p.snapshot()).snapshot() == p.snapshot()


@each_that_tells
@pytest.mark.parametrize(
    "wrong",
    [
        {"round": -1},
        {"round": LAST_ROUND + 1},
        {"sources": ()},
        {"sources": (0, MEMBERS)},
        {"sources": (-1, 0)},
        {"sources": (1, 0)},
        {"sources": (1, 1)},
        {"body": b""},
        {"body": b"\xff" * 8 * WORKERS},
        {"body": b"something else"},
    ],
)
def test_a_table_of_others_is_refused(name: str, options: dict, wrong: dict[str, Any]) -> None:
    p = members(name, options)[1]
    table = together(members(name, options), 5)[-1]
    before = p.snapshot()
    with pytest.raises(IncompatibleStateError):
        p.hear(table._replace(**wrong), 0)
    assert p.snapshot() == before
    assert p.hear(table, 0)


@each_that_tells
@given(body=st.binary(max_size=100))
def test_a_merger_refuses_any_bytes_that_it_could_not_merge(name: str, options: dict, body: bytes) -> None:
    merger = members(name, options)[0].merger(clock=lambda: 0.0)
    message = Message(0, 0, body)
    try:
        merger.check(message)
    except IncompatibleStateError:
        return
    assert merger.merge([message])


@each_that_tells
def test_a_table_does_not_depend_on_the_order_of_messages(name: str, options: dict) -> None:
    parts = members(name, options)
    together(parts, 6)
    told = [message for p in parts if (message := p.tell(p.tells_at or 0)) is not None]
    assert len(told) == MEMBERS
    bodies = set()
    for order in ((0, 1, 2), (2, 0, 1), (1, 1, 2, 2, 0)):
        rounds = Rounds(parts[0].merger(clock=lambda: 0.0), sources=MEMBERS, patience=1e9, clock=lambda: 0.0)
        tables = [table for j in order if (table := rounds.take(told[j])) is not None]
        bodies.add(tables[-1].body)
    assert len(bodies) == 1


@each_that_tells
def test_a_merger_that_was_rescaled_makes_tables_of_both_kinds_of_messages(name: str, options: dict) -> None:
    parts = members(name, options)
    together(parts, 6)
    merger = parts[0].merger(clock=lambda: 0.0)
    old = parts[0].tell(parts[0].tells_at or 0)
    assert old is not None
    parts[1].rescale(WORKERS + 3)
    merger.rescale(WORKERS + 3)
    new = parts[1].tell(parts[1].tells_at or 0)
    assert new is not None
    table = Table(old.round, (0, 1), merger.merge([old, new]))
    for p in parts:
        assert p.hear(table, p.tells_at or 0)
        out = p.assign(*zipf(100))
        assert 0 <= out.min() <= out.max() < p.workers


# anything at all


@pytest.mark.family
@each_that_tells
@given(random=st.randoms(use_true_random=False))
@examples(5)
def test_whatever_happens_to_messages_and_tables_routing_stays_valid_and_snapshots_continue(
    name: str, options: dict, random: Random
) -> None:
    """Lost, late, twice, out of order, damaged and foreign. A twin that is restored at every step does the
    same.
    """
    parts = members(name, options)
    twins = members(name, options)
    slide = slide_of(parts[0])
    now = 0
    rounds = Rounds(
        parts[0].merger(clock=lambda: 0.0), sources=MEMBERS, patience=slide, clock=lambda: float(now)
    )
    waiting: list[Message] = []
    tables: list[Table] = []
    for step in range(24):
        now += random.choice([0, slide // 3, slide // 3, slide, 4 * slide])
        for j, (p, twin) in enumerate(zip(parts, twins, strict=True)):
            if random.random() < 0.1:
                workers = random.choice([3, WORKERS, 9])
                p.rescale(workers)
                twin.rescale(workers)
            if random.random() < 0.8:
                message = p.tell(now)
                assert message == twin.tell(now)
                if message is not None and random.random() < 0.8:
                    waiting += [message] * random.choice([1, 1, 2])
            for _ in range(random.randrange(3) if tables else 0):
                table = random.choice(tables)
                if random.random() < 0.2:
                    table = spoiled(table, random, name, options)
                heard = [_heard(one, table, now) for one in (p, twin)]
                assert heard[0] == heard[1]
            keys, times = zipf(60, keys=30, z=1.3, seed=step * 7 + j)
            times = times * slide // 180 + now
            out = p.assign(keys, times)
            assert out.tolist() == twin.assign(keys, times).tolist()
            assert 0 <= out.min() <= out.max() < p.workers
            assert p.observe().state_bytes <= p.state_bound(30 * 3 * (step + 1))
            assert twin.snapshot() == p.snapshot()
            twins[j] = restore(twin.snapshot())
        random.shuffle(waiting)
        for _ in range(random.randrange(len(waiting) + 1)):
            table = rounds.take(waiting.pop())
            tables += [] if table is None else [table]
        table = rounds.overdue()
        tables += [] if table is None else [table]


def _heard(p: Partitioner, table: Table, now: int) -> bool | None:
    before = p.snapshot()
    try:
        taken = p.hear(table, now)
    except IncompatibleStateError:
        taken = None
    if not taken:
        assert p.snapshot() == before
    return taken
