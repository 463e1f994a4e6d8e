"""When sources tell and hear in event time: before which tuple, after which delay, and what a lost message
costs.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.partitioners.evenflow.shared_loads import LoadsMerger, to_bytes
from evenflow.partitioners.exchange import Merger, Message, Table
from evenflow.simulation.channel import Channel, Exchange


class Recorder:
    """Tells at the end of each interval, and writes down when it told and heard."""

    def __init__(self, source: int, every: int) -> None:
        self.source, self.every = source, every
        self.tells_at: int | None = None
        self.round = 0
        self.told: list[int] = []
        self.heard: list[tuple[int, int, tuple[int, ...]]] = []

    def tell(self, now: int) -> Message | None:
        if self.tells_at is not None and now < self.tells_at:
            return None
        self.tells_at = (now // self.every + 1) * self.every
        self.told.append(now)
        return Message(self.source, self.round, to_bytes(np.array([1])))

    def hear(self, table: Table, now: int) -> bool:
        self.heard.append((now, table.round, table.sources))
        self.round = max(self.round, table.round + 1)
        return True

    def merger(self, *, clock: Callable[[], float]) -> Merger:
        return LoadsMerger(1)


def exchange(
    count: int, *, every: int = 100, patience_ms: int = 100, **channel: Any
) -> tuple[Exchange, list[Recorder]]:
    parts = [Recorder(source, every) for source in range(count)]
    return Exchange(parts, Channel(**channel), patience_ms=patience_ms), parts  # type: ignore[arg-type]


def walk(made: Exchange, times: list[int]) -> None:
    """As the routing does it: nothing happens at a tuple before which nothing is due."""
    for time in np.maximum.accumulate(times).tolist():
        if made.next_at <= time:
            made.catch_up(time)
        assert made.next_at > time


@settings(deadline=None)
@given(
    st.lists(st.integers(-250, 600), min_size=1, max_size=60),
    st.integers(1, 130),
    st.sampled_from([0, 1, 70, 900]),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_a_source_tells_at_the_first_tuple_at_the_end_of_each_interval_and_at_the_end_of_a_silence(
    times: list[int], every: int, delay: int, loss: float
) -> None:
    expected, current = [times[0]], times[0] // every
    for time in times:
        if time // every > current:
            expected += sorted({(current + 1) * every, time // every * every})
            current = time // every
    made, parts = exchange(2, every=every, delay_ms=delay, loss=loss)
    walk(made, times)
    assert [part.told for part in parts] == [expected, expected]


def test_without_delay_all_hear_the_table_at_the_moment_they_tell() -> None:
    made, parts = exchange(3)
    walk(made, [0, 99, 100, 250])
    for part in parts:
        assert part.heard == [(now, number, (0, 1, 2)) for number, now in enumerate((0, 100, 200))]
    assert made.sent.tables == 3


@pytest.mark.parametrize("delay", [1, 30, 49])
def test_a_table_comes_after_twice_the_delay(delay: int) -> None:
    made, parts = exchange(3, delay_ms=delay)
    walk(made, list(range(500)))
    assert parts[1].heard == [(at * 100 + 2 * delay, at, (0, 1, 2)) for at in range(5)]


def test_in_a_silence_what_travels_arrives_before_the_silence_is_over() -> None:
    made, parts = exchange(2, delay_ms=40)
    walk(made, [0, 10_050])
    assert parts[0].heard == [(80, 0, (0, 1)), (180, 1, (0, 1))]
    walk(made, [10_090])
    assert parts[0].heard[2:] == [(10_080, 2, (0, 1))]


def test_a_source_that_has_fallen_silent_is_waited_for_twice() -> None:
    made, parts = exchange(2, every=100, patience_ms=100)
    walk(made, [0])
    parts[1].tells_at = made._due[1] = 10**9
    walk(made, list(range(1, 700)))
    assert [(now, sources) for now, _, sources in parts[0].heard] == [
        (0, (0, 1)),
        (200, (0,)),
        (400, (0,)),
        (500, (0,)),
        (600, (0,)),
    ]


def test_bytes_are_those_of_whole_records() -> None:
    made, _ = exchange(2)
    walk(made, [0])
    assert made.sent.message_bytes / 2 == pytest.approx(made.sent.table_bytes, rel=0.05)
    assert 120 < made.sent.table_bytes < 200
