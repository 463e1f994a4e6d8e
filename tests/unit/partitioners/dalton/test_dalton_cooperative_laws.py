"""Laws of cooperative Dalton's partitioners, in virtual time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.keys import candidate
from evenflow.metrics import replication_factor
from evenflow.partitioners import create, restore
from evenflow.partitioners.dalton.cooperative import DaltonCooperative, _top
from evenflow.partitioners.dalton.messages import GlobalTable, SyncMessage
from evenflow.partitioners.dalton.q_table import Home, admit, apply_deferred, defer, find, learn
from evenflow.partitioners.dalton.reducer import dsync_bounds
from evenflow.partitioners.dalton.split_keys import SplitKeyTable
from tests.examples import examples
from tests.unit.partitioners.dalton.cooperation import Cooperation, kept_back, member, reducer, table_of, told
from tests.unit.partitioners.streams import SPREAD, Stream, all_distinct, zipf

few = examples(25)


@pytest.mark.parametrize("dsync", [100, 50, 300])
@pytest.mark.parametrize("explore", ["uniform", "capped"])
def test_one_member_alone_equals_single_dalton(dsync: int, explore: str) -> None:
    stream = zipf(6000, keys=300, z=1.3)
    window = {"window_ms": 1000, "slide_ms": 100, "explore": explore, "eps": 0.3}
    single = create("dalton", workers=12, stats_ms=dsync, **window)
    p = member(0, 1, 12, dsync_ms=dsync, explore=explore, eps=0.3)
    out = Cooperation([p], reducer(12, dsync_ms=dsync)).run(stream)
    assert out.tolist() == single.assign(*stream).tolist()
    mine, its = p._split.values(), single._split.values()  # type: ignore[attr-defined]
    assert {k: v.tolist() for k, v in mine.items()} == {k: v.tolist() for k, v in its.items()}


def test_after_a_broadcast_all_members_hold_the_same_table() -> None:
    members = [member(j, 4, 16) for j in range(4)]
    run = Cooperation(members, reducer(16))
    run.run(zipf(8000, keys=300, z=1.4))
    run.exchange(8000)
    tables = [{k: v.tolist() for k, v in p._split.values().items()} for p in members]
    assert len(tables[0]) > 1
    assert tables[0] == tables[1] == tables[2] == tables[3]
    last = GlobalTable.from_bytes(run.received[-1].body)
    assert tables[0] == {k: v.tolist() for k, v in zip(last.keys.tolist(), last.values, strict=True)}
    assert not any(p.awaiting or kept_back(p) for p in members)


@pytest.mark.parametrize("delay", [0, 30, 90, 270])
def test_every_delay_keeps_the_laws_of_rounds_loads_rows_and_buffers(delay: int) -> None:
    members = [member(j, 3, 8) for j in range(3)]
    run = Cooperation(members, reducer(8), delay=lambda time: delay)
    stream = zipf(9000, keys=300, z=1.2)
    out = run.run(stream)
    assert out.min() >= 0
    assert out.max() < 8
    for table in run.received:
        # A message that is told again is the same one.
        mine = {message for message in run.sent if message.round == table.round}
        assert sorted(message.source for message in mine) == [0, 1, 2] == list(table.sources)
        common = GlobalTable.from_bytes(table.body)
        assert common.total == sum(told(message).total for message in mine)
        assert len(common.keys) <= 8
    for p in members:
        rounds = sorted({message.round for message in run.sent if message.source == p.source})
        assert rounds == list(range(len(rounds)))
        assert p.observe().head_keys <= 2 * 8
    if delay < 50:
        assert sum(GlobalTable.from_bytes(table.body).total for table in run.received) == 9000 - 100


def test_the_buffer_is_filled_in_await_and_empty_after_the_table_came() -> None:
    p = member(0, 2, 6, eps=0.5)
    keys, times = zipf(1000, keys=20, z=1.5)
    p.assign(keys[:250], times[:250])
    assert p.awaiting
    assert kept_back(p) > 0
    before = {k: v.tolist() for k, v in p._split.values().items()}
    p.assign(keys[250:290], times[250:290])
    assert {k: v.tolist() for k, v in p._split.values().items()} == before
    table = table_of(0, total=200, **rows_of(told(p.tell(289))))
    assert p.hear(table, 289)
    assert not p.awaiting
    assert kept_back(p) == 0
    assert not p.hear(table, 289)
    assert {k: v.tolist() for k, v in p._split.values().items()} != before


def test_the_new_table_replaces_the_old_one_and_rewards_kept_back_go_on_top_of_it() -> None:
    p = member(0, 2, 6, eps=0.5)
    keys, times = zipf(290, keys=20, z=1.5)
    p.assign(keys, times)
    own = p._split.values()
    rows = {key: find(p._split.table, np.uint64(key)) for key in own}
    kept = {key: p._split.table.retention[row].copy() for key, row in rows.items()}
    gain = {key: p._split.table.gain[row].copy() for key, row in rows.items()}
    assert any((one < 1).any() for one in kept.values())
    common = {key: np.linspace(-1, -0.5, 6) + 0.01 * at for at, key in enumerate(sorted(own))}
    order = np.argsort(np.array(list(common), np.uint64))
    keys, values = np.array(list(common), np.uint64)[order], np.array(list(common.values()))[order]
    assert p.hear(table_of(0, total=200, keys=keys, values=values), 290)
    assert p._split.values().keys() == common.keys()
    for key, q in p._split.values().items():
        np.testing.assert_allclose(q, kept[key] * common[key] + gain[key], atol=1e-12)


@few
@given(st.integers(1, 9), st.integers(20, 2000), st.integers(12, 6400))
def test_a_key_is_hot_from_its_share_of_the_common_load_in_proportion_to_the_new_interval(
    workers: int, total: int, dsync: int
) -> None:
    """The table's load came in intervals of 100 ms; this interval and the next one are of `dsync` ms."""
    p = member(0, 2, workers)
    p.hear(table_of(0, total=total, dsync_ms=dsync, values=np.empty((0, workers))), 0)
    least = max(2, -(-(total * dsync // 100) // workers))
    for hot, time in enumerate((0, dsync)):
        p.assign(np.full(least - 1, 5 + hot, np.uint64), np.full(least - 1, time))
        assert p.observe().head_keys == hot
        p.assign(np.array([5 + hot], np.uint64), np.array([time]))
        assert p.observe().head_keys == hot + 1


@few
@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(-1, 0.5)), max_size=80),
    st.floats(0.01, 1),
)
def test_rewards_kept_back_equal_rewards_learned_one_by_one(
    rewards: list[tuple[int, float]], gamma: float
) -> None:
    tables = [SplitKeyTable(4, deferring=True) for _ in range(2)]
    for made in tables:
        admit(made.table, np.uint64(9), -1, Home(2, 0, 0), 5)
    now, later = (made.table for made in tables)
    for worker, reward in rewards:
        learn(now, 0, worker, reward, gamma)
        defer(later, 0, worker, reward, gamma)
    apply_deferred(later)
    np.testing.assert_allclose(later.q[0], now.q[0], atol=1e-12)
    assert (later.retention == 1).all()
    assert (later.gain == 0).all()


def test_with_kept_rewards_nothing_is_learned_until_a_table_comes_however_many_intervals_that_takes() -> None:
    """The same tuples come to both: one learns at the end of each interval in AWAIT, the other keeps back."""
    keys, times = zipf(890, keys=20, z=1.5)
    stays, learns = (member(0, 2, 6, eps=0.5, keep_rewards=option) for option in (True, False))
    values = []
    for p in (stays, learns):
        p.assign(keys[:250], times[:250])
        before = {key: row.tolist() for key, row in p._split.values().items()}
        p.assign(keys[250:], times[250:])
        after = p._split.values()
        assert p.awaiting
        values.append([after[key].tolist() == before[key] for key in before if key in after])
    assert values[0]
    assert all(values[0])
    assert not any(values[1])
    assert kept_back(stays) > 0
    message = stays.tell(889)
    assert stays.hear(table_of(0, total=200, **rows_of(told(message))), 889)
    assert kept_back(stays) == 0
    assert not stays.awaiting


def test_without_any_reply_it_learns_in_steps_and_stays_in_await() -> None:
    p = member(0, 4, 12)
    stream = zipf(20_000, keys=300, z=1.4)
    out = p.assign(*stream)
    assert p.awaiting
    assert p.tell(19_999) is not None
    assert p.tell(19_999) is None
    assert p.observe().head_keys > 2
    alone = np.bincount(out[-1000:], minlength=12).max()
    assert alone < 0.7 * np.bincount(candidate(stream[0][-1000:], 1, 12, 7), minlength=12).max()
    assert any((row > -2).any() for row in p._split.values().values())


def test_a_member_that_was_kept_waiting_asks_for_a_longer_interval() -> None:
    members = [member(j, 2, 8) for j in range(2)]
    made = reducer(8, adaptive=True)
    run = Cooperation(members, made, delay=lambda time: 130 if time < 3000 else 0, step=4)
    made._clock = lambda: float(run.now)  # it takes no time to merge, so it is idle whenever it waits
    run.run(zipf(9000, keys=100, z=1.2))
    assert any(told(message).late for message in run.sent)
    low, high = dsync_bounds(100)
    assert all(low <= one <= high for one in run.intervals)
    assert max(run.intervals) >= 200
    assert run.intervals[-1] == low
    assert all(p.dsync_ms == low for p in members)


def test_a_member_without_tuples_does_not_hold_up_the_others() -> None:
    members = [member(j, 2, 8) for j in range(2)]
    run = Cooperation(members, reducer(8))
    keys, times = zipf(2000)
    for now in range(0, 2000, 50):
        run.exchange(now)
        members[0].assign(keys[now : now + 50], times[now : now + 50])
    assert len(run.received) == 19
    assert members[1].observe().head_keys == len(GlobalTable.from_bytes(run.received[-1].body).keys)


def test_cooperation_splits_less_than_going_alone_and_balances_no_worse() -> None:
    stream = zipf(60_000, keys=3000, z=1.2)
    together = Cooperation([member(j, 4, 16) for j in range(4)], reducer(16)).run(stream)
    alone = np.empty_like(together)
    for j in range(4):
        p = create("dalton", workers=16, source=j, sources=4, window_ms=1000, slide_ms=100)
        alone[j::4] = p.assign(stream[0][j::4], stream[1][j::4])
    late = slice(20_000, None)
    hashed = candidate(stream[0], 1, 16, 7)
    worst = [np.bincount(out[late], minlength=16).max() for out in (together, alone, hashed)]
    assert worst[0] < 0.7 * worst[2]
    assert replication_factor(together[late], stream[0][late]) <= replication_factor(
        alone[late], stream[0][late]
    )


@pytest.mark.parametrize("stream", [all_distinct(5000), zipf(5000, keys=4000, z=0.0)])
def test_a_stream_without_frequent_keys_is_hashed_by_all(stream: Stream) -> None:
    members = [member(j, 3, 16) for j in range(3)]
    out = Cooperation(members, reducer(16)).run(stream)
    assert out.tolist() == candidate(stream[0], 1, 16, 7).tolist()


def test_a_restored_member_keeps_its_open_message_and_its_rewards() -> None:
    p = member(1, 2, 8, eps=0.4)
    keys, times = zipf(2000, keys=50, z=1.4)
    p.assign(keys[:1000], times[:1000])
    q = restore(p.snapshot())
    assert isinstance(q, DaltonCooperative)
    assert (q.awaiting, q.round, kept_back(q)) == (True, 0, kept_back(p))
    a, b = p.tell(999), q.tell(999)
    assert a == b
    table = table_of(0, (0, 1), total=400, dsync_ms=200, **rows_of(told(a)))
    for one in (p, q):
        assert one.hear(table, 999)
        assert one.dsync_ms == 200
    rest = keys[1000:], times[1000:]
    assert p.assign(*rest).tolist() == q.assign(*rest).tolist()
    assert p.snapshot() == q.snapshot()


def test_messages_may_cross_a_rescale() -> None:
    p = member(0, 1, 8)
    keys, times = zipf(3000, keys=50, z=1.4)
    p.assign(keys[:1000], times[:1000])
    old = told(p.tell(999))
    p.rescale(5)
    assert p.hear(table_of(0, **rows_of(old)), 999)
    assert all((row == -2).all() for row in p._split.values().values())
    assert p.observe().head_keys == len(old.row_keys)
    assert p.assign(keys[1000:], times[1000:]).max() < 5


def test_a_table_may_come_before_the_first_tuple() -> None:
    p = member(1, 2, 6)
    keys = np.array([4, 9], np.uint64) * SPREAD
    order = np.argsort(keys)
    values = np.full((2, 6), -2.0)
    values[:, 3] = -0.25
    assert p.hear(table_of(4, (0, 1), total=50, keys=keys[order], values=values), 0)
    assert p.round == 5
    out = p.assign(np.repeat(keys, 30), np.arange(60, dtype=np.int64))
    assert (out == 3).mean() > 0.7


def test_a_table_with_an_interval_out_of_bounds_is_refused() -> None:
    p = member(0, 1, 4)
    with pytest.raises(IncompatibleStateError, match="asks for 0 ms between messages, not 12 to 6400"):
        p.hear(table_of(0, dsync_ms=0, values=np.empty((0, 4))), 0)
    with pytest.raises(ConfigError, match="dsync_ms \\(5\\) must be within 12 to 6400"):
        member(0, 1, 4, dsync_ms=5)


def test_an_open_message_is_told_again_as_it_was_at_the_end_of_each_interval() -> None:
    p = member(0, 2, 8)
    keys, times = zipf(1000, keys=50, z=1.4)
    given = []
    for now in range(0, 1000, 50):
        given.append(p.tell(now))
        p.assign(keys[now : now + 50], times[now : now + 50])
    assert [one is not None for one in given] == [now >= 100 and now % 100 == 0 for now in range(0, 1000, 50)]
    assert len({one for one in given if one is not None}) == 1


def test_a_table_that_comes_after_the_end_of_the_interval_was_late_even_before_anybody_tells_it() -> None:
    late = []
    for heard_at in (199, 200, 201):
        p = member(0, 1, 8)
        p.assign(*zipf(150, keys=50, z=1.4))
        assert p.tell(150) is not None
        assert p.hear(table_of(0, values=np.empty((0, 8))), heard_at)
        late.append(told(p.tell(400)).late)
    assert late == [0, 0, 100]


def rows_of(message: SyncMessage) -> dict[str, np.ndarray]:
    order = np.argsort(message.row_keys)
    return {"keys": message.row_keys[order], "values": message.values[order]}


@few
@given(st.lists(st.integers(1, 9), max_size=40), st.integers(1, 12))
def test_the_top_of_the_counts_takes_the_first_of_equal_ones(counts: list[int], wanted: int) -> None:
    order = sorted(range(len(counts)), key=lambda at: (-counts[at], at))
    assert set(_top(np.array(counts, np.int64), wanted).tolist()) == set(order[:wanted])
