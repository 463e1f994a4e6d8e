"""Laws of cooperative Dalton and its reducer (spec section 10), in virtual time."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.keys import candidate
from evenflow.metrics import replication_factor
from evenflow.partitioners import create, restore
from evenflow.partitioners.dalton_cooperative import DaltonCooperative, _top
from evenflow.partitioners.q_table_reducer import QTableReducer, dsync_bounds
from evenflow.partitioners.sync_messages import GlobalTable, SyncMessage
from evenflow.sketches.q_table import admit, defer, learn
from evenflow.sketches.split_keys import SplitKeys
from tests.unit.partitioners.cooperation import Cooperation, member, reducer
from tests.unit.partitioners.streams import SPREAD, Stream, all_distinct, zipf

few = settings(max_examples=25, deadline=None)


def told(
    j: int,
    *,
    total: int = 100,
    counts: dict[int, int] | None = None,
    rows: dict[int, list[float]] | None = None,
    workers: int = 3,
    number: int = 1,
    late: bool = False,
) -> SyncMessage:
    counts, rows = counts or {}, rows or {}
    return SyncMessage(
        member=j,
        round=number,
        total=total,
        late=late,
        keys=np.array(sorted(counts), np.uint64),
        frequencies=np.array([counts[k] for k in sorted(counts)], np.int64),
        row_keys=np.array(sorted(rows), np.uint64),
        values=np.array([rows[k] for k in sorted(rows)], np.float64).reshape(len(rows), workers),
    )


@st.composite
def rounds(draw: st.DrawFn) -> tuple[list[SyncMessage], int]:
    """Messages of one round, with hot, cold and unknown keys on every side."""
    workers = draw(st.integers(1, 5))
    messages = []
    for j in range(draw(st.integers(1, 5))):
        counts = draw(st.dictionaries(st.integers(0, 8), st.integers(1, 50), max_size=8))
        some = draw(st.sets(st.sampled_from(sorted(counts)))) if counts else set()
        values = st.lists(st.floats(-2, 0.5), min_size=workers, max_size=workers)
        rows = {key: draw(values) for key in some | draw(st.sets(st.integers(0, 8), max_size=2))}
        total = sum(counts.values()) + draw(st.integers(0, 40))
        messages.append(told(j, total=total, counts=counts, rows=rows, workers=workers))
    return messages, workers


def reduced(messages: list[SyncMessage], workers: int) -> GlobalTable:
    made = reducer(len(messages), workers)
    tables = [made.receive(message) for message in messages]
    assert all(table is None for table in tables[:-1])
    assert tables[-1] is not None
    return tables[-1]


# the reducer


@few
@given(rounds())
def test_the_hot_keys_are_those_with_their_share_of_the_summed_load(
    drawn: tuple[list[SyncMessage], int],
) -> None:
    messages, workers = drawn
    table = reduced(messages, workers)
    assert table.total == sum(message.total for message in messages)
    counts: Counter[int] = Counter()
    for message in messages:
        counts.update(dict(zip(message.keys.tolist(), message.frequencies.tolist(), strict=True)))
    hot = {key for key, f in counts.items() if f > 1 and f * workers >= table.total}
    assert set(table.keys.tolist()) == hot
    assert len(hot) <= workers


@few
@given(rounds())
def test_merged_values_are_the_weighted_mean_and_lie_in_the_convex_hull(
    drawn: tuple[list[SyncMessage], int],
) -> None:
    messages, workers = drawn
    table = reduced(messages, workers)
    for key, merged in zip(table.keys.tolist(), table.values, strict=True):
        rows, weights = [], []
        for message in messages:
            if key in message.row_keys.tolist():
                rows.append(message.values[message.row_keys.tolist().index(key)])
                seen = dict(zip(message.keys.tolist(), message.frequencies.tolist(), strict=True))
                weights.append(seen.get(key, 0))
        if not rows:
            assert (merged == -2).all()
            continue
        assert (merged >= np.min(rows, axis=0)).all()
        assert (merged <= np.max(rows, axis=0)).all()
        shares = np.array(weights) / sum(weights) if sum(weights) else np.full(len(rows), 1 / len(rows))
        np.testing.assert_allclose(merged, shares @ np.array(rows), atol=1e-12)


@few
@given(rounds(), st.randoms(use_true_random=False))
def test_the_table_does_not_depend_on_the_order_of_messages_nor_on_repeats(
    drawn: tuple[list[SyncMessage], int], random: object
) -> None:
    messages, workers = drawn
    expected = reduced(messages, workers)
    shuffled = messages.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    made = reducer(len(messages), workers)
    for message in shuffled[:-1]:
        assert made.receive(message) is None
        assert made.receive(message) is None
    table = made.receive(shuffled[-1])
    assert table is not None
    assert table.to_bytes() == expected.to_bytes()


def test_a_single_partitioners_values_come_back_unchanged() -> None:
    row = [-0.1, -1 / 3, -2.0]
    table = reduced([told(0, counts={5: 49}, rows={5: row})], 3)
    assert table.values.tolist() == [row]


def test_a_partitioner_without_the_row_does_not_pull_the_mean_down() -> None:
    table = reduced([told(0, counts={5: 60}, rows={5: [-0.5, -2, -1]}), told(1, counts={5: 90})], 3)
    assert table.values.tolist() == [[-0.5, -2.0, -1.0]]


def test_equal_weights_where_the_owners_of_a_row_did_not_see_the_key() -> None:
    messages = [
        told(0, rows={5: [-1.0, 0, 0]}),
        told(1, rows={5: [-2.0, 0, 0]}),
        told(2, total=10, counts={5: 99}),
    ]
    assert reduced(messages, 3).values.tolist() == [[-1.5, 0.0, 0.0]]


def test_a_key_that_is_frequent_in_one_partitioner_only_is_not_hot() -> None:
    messages = [told(0, counts={5: 40}, rows={5: [-0.5, -2, -2]}), told(1), told(2), told(3)]
    assert len(reduced(messages, 3).keys) == 0


def test_the_first_round_learns_the_load_and_creates_no_rows() -> None:
    made = reducer(1, 3)
    table = made.receive(told(0, number=0, counts={5: 99}))
    assert table is not None
    assert (table.total, len(table.keys)) == (100, 0)
    table = made.receive(told(0, number=1, counts={5: 99}))
    assert table is not None
    assert table.values.tolist() == [[-2.0, -2.0, -2.0]]


def test_a_message_of_an_earlier_round_is_answered_with_the_latest_table() -> None:
    made = reducer(2, 3)
    made.receive(told(0, number=0))
    table = made.receive(told(1, number=0))
    assert made.receive(told(0, number=0)) is table
    assert made.receive(told(1, number=1)) is None
    assert made.receive(told(0, number=1)) is not table


def test_a_restarted_reducer_goes_on_with_the_round_of_its_partitioners() -> None:
    made = reducer(2, 3)
    made.receive(told(0, number=3))
    assert made.receive(told(0, number=7)) is None
    table = made.receive(told(1, number=7))
    assert table is not None
    assert table.round == 7


def test_fewer_partitioners_may_complete_a_round_and_values_of_other_widths_are_skipped() -> None:
    made = reducer(3, 3)
    made.receive(told(0, counts={5: 90}, rows={5: [-0.5, -1, -1]}))
    made.receive(told(1, counts={5: 90}, rows={5: [-1.0, -1, -1]}))
    table = made.rescale(members=2, workers=3)
    assert table is not None
    assert table.values.tolist() == [[-0.75, -1.0, -1.0]]
    made.rescale(members=1, workers=4)
    table = made.receive(told(0, number=2, counts={5: 90}, rows={5: [-0.5, -1, -1]}))
    assert table is not None
    assert table.values.tolist() == [[-2.0] * 4]


# the interval


def interval(made: QTableReducer, number: int, *, late: bool = False) -> int:
    table = made.receive(told(0, number=number, late=late))
    assert table is not None
    return table.dsync_ms


def test_the_interval_doubles_on_request_and_halves_when_the_reducer_is_idle() -> None:
    moments = iter([0, 1, 10, 11, 12, 16, 100, 110, 200, 203])
    made = reducer(1, 3, adaptive=True, clock=lambda: next(moments))
    assert interval(made, 0) == 100  # nothing to compare with
    assert interval(made, 1) == 50  # idle 9, busy 1
    assert interval(made, 2) == 50  # idle 1, busy 4
    assert interval(made, 3, late=True) == 100
    assert interval(made, 4) == 50


@few
@given(st.lists(st.booleans(), max_size=60), st.integers(1, 3000))
def test_the_interval_stays_within_its_bounds(wishes: list[bool], slide: int) -> None:
    low, high = dsync_bounds(slide)
    assert 1 <= low <= slide / 8 + 1
    made = reducer(1, 3, adaptive=True, dsync_ms=slide, bounds=(low, high))
    made._clock = iter(range(0, 10**9, 7)).__next__
    for number, late in enumerate(wishes):
        assert low <= interval(made, number, late=late) <= high


def test_impossible_reducers_and_foreign_messages_are_refused() -> None:
    with pytest.raises(ConfigError, match="needs partitioners and workers"):
        reducer(0, 3)
    with pytest.raises(ConfigError, match="within 12 to 6400"):
        reducer(1, 3, dsync_ms=5)
    with pytest.raises(ConfigError, match="message of partitioner 4, but there are 2"):
        reducer(2, 3).receive(told(4))


# the partitioners


@pytest.mark.parametrize("dsync", [100, 50, 300])
@pytest.mark.parametrize("explore", ["uniform", "capped"])
def test_one_member_alone_equals_single_dalton(dsync: int, explore: str) -> None:
    stream = zipf(6000, keys=300, z=1.3)
    window = {"window_ms": 1000, "slide_ms": 100, "explore": explore, "eps": 0.3}
    single = create("dalton", workers=12, stats_ms=dsync, **window)
    p = member(0, 1, 12, dsync_ms=dsync, explore=explore, eps=0.3)
    out = Cooperation([p], reducer(1, 12, dsync_ms=dsync)).run(stream)
    assert out.tolist() == single.assign(*stream).tolist()
    mine, its = p._split.values(), single._split.values()  # type: ignore[attr-defined]
    assert {k: v.tolist() for k, v in mine.items()} == {k: v.tolist() for k, v in its.items()}


def test_after_a_broadcast_all_members_hold_the_same_table() -> None:
    members = [member(j, 4, 16) for j in range(4)]
    run = Cooperation(members, reducer(4, 16))
    run.run(zipf(8000, keys=300, z=1.4))
    run.exchange(8000)
    tables = [{k: v.tolist() for k, v in p._split.values().items()} for p in members]
    assert len(tables[0]) > 1
    assert tables[0] == tables[1] == tables[2] == tables[3]
    last = run.received[-1]
    assert tables[0] == {k: v.tolist() for k, v in zip(last.keys.tolist(), last.values, strict=True)}
    assert not any(p.awaiting or p.deferred for p in members)


@pytest.mark.parametrize("delay", [0, 30, 90, 270])
def test_every_delay_keeps_the_laws_of_rounds_loads_rows_and_buffers(delay: int) -> None:
    members = [member(j, 3, 8) for j in range(3)]
    run = Cooperation(members, reducer(3, 8), delay=lambda time: delay)
    stream = zipf(9000, keys=300, z=1.2)
    out = run.run(stream)
    assert out.min() >= 0
    assert out.max() < 8
    for table in run.received:
        mine = [message for message in run.sent if message.round == table.round]
        assert sorted(message.member for message in mine) == [0, 1, 2]
        assert table.total == sum(message.total for message in mine)
        assert len(table.keys) <= 8
    for p in members:
        rounds = [message.round for message in run.sent if message.member == p.source]
        assert rounds == list(range(len(rounds)))
        assert p.observe().head_keys <= 2 * 8
    if delay < 50:
        assert sum(table.total for table in run.received) == 9000 - 100


def test_the_buffer_is_filled_in_await_and_empty_after_the_table_came() -> None:
    p = member(0, 2, 6, eps=0.5)
    keys, times = zipf(1000, keys=20, z=1.5)
    p.assign(keys[:250], times[:250])
    assert p.awaiting
    assert p.deferred > 0
    before = {k: v.tolist() for k, v in p._split.values().items()}
    p.assign(keys[250:290], times[250:290])
    assert {k: v.tolist() for k, v in p._split.values().items()} == before
    message = p.take_messages()[0]
    table = GlobalTable(round=0, total=200, dsync_ms=100, keys=message.row_keys, values=message.values)
    assert p.receive(table)
    assert not p.awaiting
    assert p.deferred == 0
    assert not p.receive(table)
    assert {k: v.tolist() for k, v in p._split.values().items()} != before


@few
@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(-1, 0.5)), max_size=80),
    st.floats(0.01, 1),
)
def test_rewards_kept_back_equal_rewards_learned_one_by_one(
    rewards: list[tuple[int, float]], gamma: float
) -> None:
    tables = [SplitKeys(4, deferring=True) for _ in range(2)]
    for made in tables:
        t = made.table
        at = (t.key, t.slots, t.row, t.bound, t.q, t.last, t.kept, t.gain, t.meta)
        admit(*at, np.uint64(9), -1, 2, 0, 0, 5, 4)
    now, later = (made.table for made in tables)
    for worker, reward in rewards:
        learn(now.row, now.bound, now.q, 0, worker, reward, gamma)
        defer(later.kept, later.gain, 0, worker, reward, gamma)
    tables[1].apply_deferred()
    np.testing.assert_allclose(later.q[0], now.q[0], atol=1e-12)
    assert (later.kept == 1).all()
    assert (later.gain == 0).all()


def test_without_any_reply_it_learns_in_steps_and_stays_in_await() -> None:
    p = member(0, 4, 12)
    stream = zipf(20_000, keys=300, z=1.4)
    out = p.assign(*stream)
    assert p.awaiting
    assert len(p.take_messages()) == 1
    assert p.take_messages() == []
    assert p.observe().head_keys > 2
    alone = np.bincount(out[-1000:], minlength=12).max()
    assert alone < 0.7 * np.bincount(candidate(stream[0][-1000:], 1, 12, 7), minlength=12).max()
    assert any((row > -2).any() for row in p._split.values().values())


def test_a_member_that_was_kept_waiting_asks_for_a_longer_interval() -> None:
    members = [member(j, 2, 8) for j in range(2)]
    made = reducer(2, 8, adaptive=True)
    run = Cooperation(members, made, delay=lambda time: 130 if time < 3000 else 0, step=4)
    made._clock = lambda: float(run.now)  # it takes no time to merge, so it is idle whenever it waits
    run.run(zipf(9000, keys=100, z=1.2))
    assert any(message.late for message in run.sent)
    low, high = dsync_bounds(100)
    assert all(low <= one <= high for one in run.intervals)
    assert max(run.intervals) >= 200
    assert run.intervals[-1] == low
    assert all(p.dsync_ms == low for p in members)


def test_a_member_without_tuples_does_not_hold_up_the_others() -> None:
    members = [member(j, 2, 8) for j in range(2)]
    run = Cooperation(members, reducer(2, 8))
    keys, times = zipf(2000)
    for now in range(0, 2000, 50):
        run.exchange(now)
        members[0].assign(keys[now : now + 50], times[now : now + 50])
    assert len(run.received) == 19
    assert members[1].observe().head_keys == len(run.received[-1].keys)


def test_cooperation_splits_less_than_going_alone_and_balances_no_worse() -> None:
    stream = zipf(60_000, keys=3000, z=1.2)
    together = Cooperation([member(j, 4, 16) for j in range(4)], reducer(4, 16)).run(stream)
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
    out = Cooperation(members, reducer(3, 16)).run(stream)
    assert out.tolist() == candidate(stream[0], 1, 16, 7).tolist()


def test_a_restored_member_keeps_its_open_message_and_its_rewards() -> None:
    p = member(1, 2, 8, eps=0.4)
    keys, times = zipf(2000, keys=50, z=1.4)
    p.assign(keys[:1000], times[:1000])
    q = restore(p.snapshot())
    assert isinstance(q, DaltonCooperative)
    assert (q.awaiting, q.round, q.deferred) == (True, 0, p.deferred)
    a, b = p.take_messages(), q.take_messages()
    assert [m.to_bytes() for m in a] == [m.to_bytes() for m in b]
    table = GlobalTable(round=0, total=400, dsync_ms=200, keys=a[0].row_keys, values=a[0].values)
    for one in (p, q):
        assert one.receive(table)
        assert one.dsync_ms == 200
    rest = keys[1000:], times[1000:]
    assert p.assign(*rest).tolist() == q.assign(*rest).tolist()
    assert p.snapshot() == q.snapshot()


def test_messages_may_cross_a_rescale() -> None:
    p = member(0, 1, 8)
    keys, times = zipf(3000, keys=50, z=1.4)
    p.assign(keys[:1000], times[:1000])
    old = p.take_messages()[0]
    p.rescale(5)
    table = GlobalTable(round=0, total=100, dsync_ms=100, keys=old.row_keys, values=old.values)
    assert p.receive(table)
    assert all((row == -2).all() for row in p._split.values().values())
    assert p.observe().head_keys == len(old.row_keys)
    assert p.assign(keys[1000:], times[1000:]).max() < 5


def test_a_table_may_come_before_the_first_tuple() -> None:
    p = member(1, 2, 6)
    keys = np.array([4, 9], np.uint64) * SPREAD
    order = np.argsort(keys)
    values = np.full((2, 6), -2.0)
    values[:, 3] = -0.25
    assert p.receive(GlobalTable(round=4, total=50, dsync_ms=100, keys=keys[order], values=values))
    assert p.round == 5
    out = p.assign(np.repeat(keys, 30), np.arange(60, dtype=np.int64))
    assert (out == 3).mean() > 0.7


def test_a_table_with_an_interval_out_of_bounds_is_refused() -> None:
    p = member(0, 1, 4)
    none = np.empty(0, np.uint64)
    table = GlobalTable(round=0, total=1, dsync_ms=100, keys=none, values=np.empty((0, 4)))
    with pytest.raises(ConfigError, match="asks for 0 ms between messages, not 12 to 6400"):
        p.receive(replace(table, dsync_ms=0))
    with pytest.raises(ConfigError, match="dsync_ms \\(5\\) must be within 12 to 6400"):
        member(0, 1, 4, dsync_ms=5)


# messages as bytes


@few
@given(rounds(), st.data())
def test_messages_and_tables_survive_bytes_and_damage_is_noticed(
    drawn: tuple[list[SyncMessage], int], data: st.DataObject
) -> None:
    messages, workers = drawn
    for one in (*messages, reduced(messages, workers)):
        blob = one.to_bytes()
        again = type(one).from_bytes(blob)
        for name, value in vars(one).items():
            if isinstance(value, np.ndarray):
                assert getattr(again, name).tolist() == value.tolist()
                assert getattr(again, name).dtype == value.dtype
                assert getattr(again, name).shape == value.shape
            else:
                assert getattr(again, name) == value
        assert again.to_bytes() == blob
        broken = bytearray(blob)
        broken[data.draw(st.integers(0, len(blob) - 1))] ^= data.draw(st.integers(1, 255))
        with pytest.raises(IncompatibleStateError, match="this is no"):
            type(one).from_bytes(bytes(broken))


def test_one_kind_of_message_is_not_taken_for_another() -> None:
    table = reduced([told(0)], 3)
    with pytest.raises(IncompatibleStateError, match="this is a GlobalTable, not a SyncMessage"):
        SyncMessage.from_bytes(table.to_bytes())
    with pytest.raises(IncompatibleStateError, match="this is a snapshot, not a GlobalTable"):
        GlobalTable.from_bytes(create("pkg", workers=4).snapshot())


@few
@given(st.lists(st.integers(1, 9), max_size=40), st.integers(1, 12))
def test_the_top_of_the_counts_takes_the_first_of_equal_ones(counts: list[int], wanted: int) -> None:
    order = sorted(range(len(counts)), key=lambda at: (-counts[at], at))
    assert set(_top(np.array(counts, np.int64), wanted).tolist()) == set(order[:wanted])
