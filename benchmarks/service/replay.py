"""CPU time of a replayed tuple, by how records are handed to Kafka's client, at full speed and live.

The figures are those of the replaying process alone: the generator, the rendering, the hand-over and
librdkafka's own threads. They begin when the first tuples have been handed over and end with the last flush,
so that connections and compiled code are outside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from statistics import median
from typing import Any, NamedTuple

from benchmarks.measuring.spread import in_turns, ratios, spread
from benchmarks.measuring.stream import INPUT, settings_for, source_words
from benchmarks.measuring.stream import SEED as SEED
from evenflow.settings import KafkaSettings
from evenflow.sources.generators import generate
from evenflow.sources.source import SourceOptions
from producers.profiles import FixedRate
from producers.replay import replay
from producers.writers import Sending
from topics.admin import delete_topics
from workbench.local.broker import EmbeddedBroker

ID = "service-replay"
WHAT = "CPU time of a replayed tuple: handed over from arrays, and by one call a record"
GOAL = 0.8
"""Microseconds of CPU that a tuple of a replay may cost at full speed."""

_RATES = (None, 200_000, 37_500)
"""Tuples per second of each pace. None: full speed."""
_SECONDS = 10
_WAYS: tuple[Sending, Sending] = ("arrays", "calls")


class Cost(NamedTuple):
    """What a replay took."""

    cpu: float
    """Microseconds of CPU time of this process a tuple."""
    own: float
    """Of these, those of the replay's own thread: generator, rendering and hand-over. The others are
    librdkafka's threads.
    """
    rate: float
    """Tuples per second."""


@dataclass
class _Begin:
    """The moment at which the first tuples have been handed over."""

    moments: list[tuple[int, float, float, float]] = field(default_factory=list)
    """One entry: tuples, CPU seconds of the process and of this thread, and seconds until then."""

    def note(self, sent: int, total: int | None) -> None:
        """As of `producers.replay.Progress`."""
        if not self.moments:
            self.moments.append((sent, time.process_time(), time.thread_time(), time.perf_counter()))

    def until_now(self, tuples: int) -> Cost:
        """What so many tuples have taken since."""
        ((before, cpu, own, begun),) = self.moments
        rest = tuples - before
        return Cost(
            1e6 * (time.process_time() - cpu) / rest,
            1e6 * (time.thread_time() - own) / rest,
            rest / (time.perf_counter() - begun),
        )


def run(*, smoke: bool) -> dict[str, object]:
    """The figures of each pace."""
    full, repetitions, seconds = (200_000, 1, 1) if smoke else (3_000_000, 3, _SECONDS)
    numbers = count()
    paces: dict[str, object] = {}
    with EmbeddedBroker() as broker:
        measure = partial(_cost, broker.settings(), numbers)
        measure(200_000, None, sending="arrays")  # loads compiled code
        for rate in _RATES:
            tuples = full if rate is None else rate * seconds
            ways: dict[str, Callable[[], Cost]] = {
                way: partial(measure, tuples, rate, sending=way) for way in _WAYS
            }
            pace = "full_speed" if rate is None else f"live_{rate}_tuples_per_second"
            paces[pace] = _figures(rate, in_turns(ways, repetitions, tell=True))
    return {"goal_microseconds_at_full_speed": GOAL, **paces}


def _cost(
    kafka: KafkaSettings, numbers: count[int], tuples: int, rate: int | None, *, sending: Sending
) -> Cost:
    topic = f"{INPUT}.{next(numbers)}"
    settings = settings_for(kafka, "bench", input={"topic": topic})
    source = generate("zipf", source_words(tuples=tuples), SourceOptions(values=("amount",)))
    begin = _Begin()
    pace: dict[str, Any] = {} if rate is None else {"profile": FixedRate(rate), "live": True}
    summary = replay(settings, source, sending=sending, progress=begin.note, **pace)
    cost = begin.until_now(tuples)
    assert (summary.tuples, summary.sending) == (tuples, sending)
    delete_topics(kafka, [topic])
    return cost


def _figures(rate: int | None, costs: dict[str, list[Cost]]) -> dict[str, object]:
    cpu = {way: [cost.cpu for cost in costs[way]] for way in _WAYS}
    figures: dict[str, object] = {}
    for way in _WAYS:
        figures[f"{way}_cpu_microseconds"] = spread(cpu[way])
        figures[f"{way}_own_thread_microseconds"] = spread([cost.own for cost in costs[way]])
        figures[f"{way}_tuples_per_second"] = spread([cost.rate for cost in costs[way]])
    figures["calls_over_arrays"] = ratios(cpu["calls"], cpu["arrays"])
    if rate is None:
        figures["met"] = median(cpu["arrays"]) <= GOAL
    return figures
