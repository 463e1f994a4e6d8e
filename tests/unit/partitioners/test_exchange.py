"""What an exchange over a channel without delay or loss does to the instances of an algorithm that tells."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.metrics import window_figures
from evenflow.partitioners import Partitioner, create
from evenflow.partitioners.dalton.cooperative import DaltonCooperative
from evenflow.partitioners.evenflow.state import DOUBTS
from evenflow.partitioners.exchange import Table
from evenflow.partitioners.rounds import Rounds
from evenflow.simulation.channel import Channel, Exchange
from tests.examples import examples
from tests.unit.partitioners.dalton.cooperation import Cooperation, kept_back, member, reducer, table_of
from tests.unit.partitioners.evenflow.loads import hear_loads
from tests.unit.partitioners.streams import Stream, zipf

WINDOW = {"window_ms": 1000, "slide_ms": 100}


def instances(name: str, sources: int, *, workers: int = 12, **options: object) -> list[Any]:
    given = {"workers": workers, "sources": sources, **WINDOW, **options}
    return [create(name, source=source, **given) for source in range(sources)]  # type: ignore[arg-type]


def exchange_of(parts: list[Any]) -> Exchange:
    return Exchange(parts, Channel(), patience_ms=100)


def routed(parts: list[Partitioner], stream: Stream, exchange: Exchange) -> np.ndarray:
    """The worker of each tuple; tuple t goes to source t mod P."""
    keys, times = stream
    out = np.empty(len(keys), np.int32)
    clock = np.maximum.accumulate(times)
    low = 0
    while low < len(keys):
        exchange.catch_up(int(clock[low]))
        high = int(np.searchsorted(clock, exchange.next_at))
        for j, part in enumerate(parts):
            mine = np.arange(low, high)[np.arange(low, high) % len(parts) == j]
            out[mine] = part.assign(keys[mine], times[mine])
        low = high
    return out


# evenflow


def test_each_evenflow_hears_the_sum_of_the_others() -> None:
    parts, by_hand = instances("evenflow", 3), instances("evenflow", 3)
    keys, times = zipf(3000, keys=200, z=1.4)
    for group in (parts, by_hand):
        for j, part in enumerate(group):
            part.assign(keys[j::3], times[j::3])
    loads = [part.window_tuples(3000) for part in by_hand]
    for j, part in enumerate(by_hand):
        hear_loads(part, sum(load for i, load in enumerate(loads) if i != j), 3000)
    exchange_of(parts).catch_up(3000)
    for part, other in zip(parts, by_hand, strict=True):
        assert part._others.any()
        assert part._others.tolist() == other._others.tolist()
        assert part._window.loads.tolist() == other._window.loads.tolist()


@given(st.integers(0, 2500))
def test_what_is_told_is_what_the_window_holds_at_that_moment(pause: int) -> None:
    """Slides that have passed since the last tuple have left the window: so many more tuples show it that
    they are believed."""
    told, moved = instances("evenflow", 2)
    keys, times = zipf(1500, keys=100, z=1.3)
    for part in (told, moved):
        part.assign(keys, times)
    now = int(times[-1]) + pause
    result = told.window_tuples(now)
    last = moved.assign(keys[:DOUBTS], np.full(DOUBTS, now))
    before_it = moved.window_tuples() - np.bincount(last, minlength=12)
    assert result.tolist() == before_it.tolist()


def test_after_a_silence_longer_than_the_window_nobody_levels_what_has_left_it() -> None:
    parts, alone = instances("evenflow", 2, workers=8), instances("evenflow", 2, workers=8)
    keys, times = zipf(3000, keys=300, z=1.5)
    for group in (parts, alone):
        for j, part in enumerate(group):
            part.assign(keys[j::2], times[j::2])
    exchange = exchange_of(parts)
    exchange.catch_up(3000)
    exchange.catch_up(10_000_000)
    later = times[:1500] + 10_000_000
    assert parts[0].assign(keys[:1500], later).tolist() == alone[0].assign(keys[:1500], later).tolist()


# dalton-cooperative


@pytest.mark.parametrize("sources", [1, 4])
def test_the_exchange_is_the_protocol_in_virtual_time_without_delay(sources: int) -> None:
    stream = zipf(8000, keys=300, z=1.4)
    parts = instances("dalton-cooperative", sources, dsync_ms=200)
    expected = Cooperation(
        [member(j, sources, 12, dsync_ms=200) for j in range(sources)], reducer(12, dsync_ms=200)
    )
    assert routed(parts, stream, exchange_of(parts)).tolist() == expected.run(stream).tolist()


@examples(20)
@given(st.integers(0, 99), st.sampled_from([50, 100, 300]), st.integers(-3, 3), st.booleans())
def test_one_cooperative_dalton_equals_dalton_while_the_load_is_steady(
    seed: int, dsync: int, start: int, shuffled: bool
) -> None:
    keys, times = zipf(3000, keys=30, z=1.3, seed=seed)
    if shuffled:  # within pieces that lie in one slide and one interval
        times = np.random.default_rng(seed).permuted(times.reshape(-1, 50), axis=1).ravel()
    times = times + start * 300
    parts = instances("dalton-cooperative", 1, dsync_ms=dsync, eps=0.3)
    single = create("dalton", workers=12, stats_ms=dsync, eps=0.3, **WINDOW)
    together = routed(parts, (keys, times), exchange_of(parts))
    assert together.tolist() == single.assign(keys, times).tolist()


def test_after_a_table_all_split_the_same_keys_with_the_same_values_in_the_same_round() -> None:
    keys, times = zipf(8000, keys=300, z=1.4)
    parts = instances("dalton-cooperative", 4)
    exchange = exchange_of(parts)
    rounds = []
    for end in range(100, 8001, 100):
        for j, part in enumerate(parts):
            mine = np.arange(end - 100, end)[np.arange(end - 100, end) % 4 == j]
            part.assign(keys[mine], times[mine])
        exchange.catch_up(end)
        assert not any(part.awaiting or kept_back(part) for part in parts)
        assert len({part.round for part in parts}) == 1
        tables = [{k: v.tolist() for k, v in part._split.values().items()} for part in parts]
        assert tables[0] == tables[1] == tables[2] == tables[3]
        rounds.append(parts[0].round)
    assert len(tables[0]) > 1
    assert rounds == list(range(1, 81))


def test_nobody_waits_for_a_source_without_tuples() -> None:
    keys, times = zipf(4000, keys=300, z=1.4)
    parts = instances("dalton-cooperative", 3)
    exchange = exchange_of(parts)
    exchange.catch_up(0)
    for end in range(100, 4001, 100):
        parts[1].assign(keys[end - 100 : end], times[end - 100 : end])
        exchange.catch_up(end)
        assert not any(part.awaiting for part in parts)
    assert [part.round for part in parts] == [40, 40, 40]
    assert parts[0].observe().head_keys == parts[1].observe().head_keys > 1


@pytest.mark.parametrize("option", ["share_loads", "share_steps"])
def test_what_is_shared_changes_nothing_for_one_partitioner(option: str) -> None:
    keys, times = zipf(6000, keys=300, z=1.4)
    runs: list[list[int]] = []
    for more in ({}, {option: True}):
        parts = instances("dalton-cooperative", 1, **more)
        runs.append(routed(parts, (keys, times), exchange_of(parts)).tolist())
    assert runs[0] == runs[1]


def test_with_shared_loads_each_knows_what_the_others_window_holds_at_the_latest_table() -> None:
    keys, times = zipf(6000, keys=300, z=1.4)
    parts = instances("dalton-cooperative", 3, share_loads=True)
    exchange = exchange_of(parts)
    exchange.catch_up(0)
    for end in range(100, 6001, 100):
        for j, part in enumerate(parts):
            mine = slice(end - 100 + j, end, 3)
            part.assign(keys[mine], times[mine])
        loads = [part._loads.loads.copy() for part in parts]
        exchange.catch_up(end)
        for j, part in enumerate(parts):
            assert part._others.tolist() == sum(load for i, load in enumerate(loads) if i != j).tolist()
    parts[0].tell(6100)
    parts[0].tell(6200)
    assert parts[0].awaiting
    assert not parts[0]._others.any()


def table_of_all(parts: list[DaltonCooperative], now: int) -> Table:
    """The table that the messages of all give, which nobody has heard."""
    rounds = Rounds(reducer(parts[0].workers), sources=len(parts), patience=1.0, clock=lambda: 0.0)
    told = [message for part in parts if (message := part.tell(now)) is not None]
    (table,) = [table for message in told if (table := rounds.take(message)) is not None]
    return table


def test_loads_told_before_a_rescale_are_not_taken_for_those_of_the_others() -> None:
    keys, times = zipf(600, keys=300, z=1.4)
    parts = instances("dalton-cooperative", 2, share_loads=True, workers=4)
    for part in parts:
        part.assign(keys, times)
    table = table_of_all(parts, 600)
    parts[0].rescale(5)
    parts[0].rescale(4)
    assert parts[0].hear(table, 600)
    assert not parts[0]._others.any()
    assert parts[1].hear(table, 600)
    assert parts[1]._others.sum() == 100


def test_loads_of_a_table_without_ones_own_message_are_those_of_the_others() -> None:
    keys, times = zipf(600, keys=300, z=1.4)
    parts = instances("dalton-cooperative", 3, share_loads=True, workers=4)
    for part in parts:
        part.assign(keys, times)
    table = table_of_all(parts, 600)._replace(sources=(0, 1))
    for part in parts:
        assert part.hear(table, 600)
    assert [part._others.sum() for part in parts] == [200, 200, 300]


def test_a_table_without_loads_leaves_nobody_with_old_ones() -> None:
    keys, times = zipf(600, keys=300, z=1.4)
    part = instances("dalton-cooperative", 2, share_loads=True, workers=4)[0]
    part.assign(keys, times)
    part._others[:] = 9
    part.hear(table_of(0, values=np.zeros((0, 4))), 600)
    assert not part._others.any()


def test_partitioners_that_share_steps_are_as_level_as_one() -> None:
    """Eight of them with steps of their own learn too slowly, and are several times as far from level."""
    keys, times = zipf(120_000, keys=5000, z=1.5)
    codes = np.unique(keys, return_inverse=True)[1]
    level = {}
    for sources, share_steps in ((1, False), (8, False), (8, True)):
        given = {"share_steps": share_steps, "window_ms": 20_000, "slide_ms": 1000}
        parts = instances("dalton-cooperative", sources, workers=32, **given)
        out = routed(parts, (keys, times), Exchange(parts, Channel(), patience_ms=1000))
        figures = window_figures(out, codes, times // 1000, 32, panes_per_window=20)
        level[sources, share_steps] = figures.imbalance[40:].mean()
    assert level[8, True] < 1.5 * level[1, False]
    assert level[8, False] > 4 * level[1, False]
