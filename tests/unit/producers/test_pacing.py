"""A paced replay sends a chunk a tick, whatever a chunk costs; nothing leaves before it is due, nothing
much later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from evenflow.settings import load_settings
from evenflow.sources.generators import generate
from evenflow.sources.source import SourceOptions
from producers.clock import ManualClock
from producers.profiles import FixedRate, Profile, poisson, staircase
from producers.replay import Replay

TICK = 0.02


@dataclass
class SlowDelivery:
    """Takes everything, and some time for it."""

    clock: ManualClock
    costs: float
    sent: np.ndarray = field(default_factory=lambda: np.zeros(4, np.int64))
    chunks: list[tuple[float, int]] = field(default_factory=list)
    stopped: bool = False

    def send(self, values: list[bytes], keys: Any, partitions: Any, times: Any) -> int:
        self.chunks.append((self.clock.elapsed, len(values)))
        self.clock.elapsed += self.costs
        return len(values)

    def poll(self) -> None: ...


def sent_by(profile: Profile, *, tuples: int, costs: float, live: bool = False) -> list[tuple[float, int]]:
    """(seconds, tuples) of each chunk of such a replay."""
    settings = load_settings(query={"name": "q", "aggregates": {"n": "count"}})
    source = generate("zipf", f"keys=10,tuples={tuples},rate=1000", SourceOptions(values=("v",)))
    clock = ManualClock()
    replay = Replay(
        settings,
        source,
        profile=profile,
        producer_id="p",
        partition_by="round-robin",
        limit=None,
        live=live,
        progress=lambda sent, total: None,
        stop=lambda: False,
        clock=clock,
    )
    delivery = SlowDelivery(clock, costs)
    replay._send_all(delivery)  # type: ignore[arg-type]
    return delivery.chunks


@pytest.mark.parametrize("live", [True, False])
def test_chunks_leave_once_a_tick_and_not_whenever_something_is_due(live: bool) -> None:
    chunks = sent_by(FixedRate(40_000), tuples=80_000, costs=0.0004, live=live)
    assert sum(size for _, size in chunks) == 80_000
    assert len(chunks) <= 2 / TICK + 5


@pytest.mark.parametrize(
    ("profile", "tuples"),
    [
        (FixedRate(40_000), 60_000),
        (FixedRate(7), 20),
        (poisson(2_000, 3), 5_000),
        (staircase(10, 1000, 300, 1.0), 3_000),
    ],
    ids=["fast", "sparse", "poisson", "staircase"],
)
def test_no_tuple_leaves_before_it_is_due_and_none_more_than_a_tick_late(
    profile: Profile, tuples: int
) -> None:
    chunks = sent_by(profile, tuples=tuples, costs=0.0)
    due = profile.send_times(0, np.zeros(tuples, np.int64), 0)
    assert due is not None
    left = np.repeat([at for at, _ in chunks], [size for _, size in chunks])
    assert len(left) == tuples
    assert (left >= np.maximum.accumulate(due) - 1e-9).all()
    assert (left <= np.maximum.accumulate(due) + TICK + 0.002).all()


def test_a_replay_that_cannot_keep_up_sends_large_chunks_without_a_pause() -> None:
    chunks = sent_by(FixedRate(1_000_000), tuples=400_000, costs=0.1)
    assert len(chunks) <= 25
    assert chunks[-1][0] <= 0.1 * len(chunks) + 2 * TICK
