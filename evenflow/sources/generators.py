"""Seeded keyed streams: the same seed gives the same tuples, however they are cut into batches.

Each random quantity (rank, value, disorder) has its own sequence of random numbers, of which every tuple
takes one. So the size of the batches changes nothing. Ranks are drawn by the inverse of their distribution
function, which makes Zipf exact for every exponent. Tuple i has the base time `start + i*1000/rate`. With
`disorder` of D ms, a random time of up to D is added to each tuple. So a tuple is never more than D behind
the largest time before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from evenflow.errors import ConfigError
from evenflow.generation.laws import LAWS
from evenflow.generation.rank_laws import (
    DISORDER,
    LABELS,
    RANKS,
    VALUES,
    RankLaw,
    labels,
    numbered_times,
    ranks_by_period,
)
from evenflow.grammar.inputs import TimeUnit
from evenflow.settings.word_options import WordOptions
from evenflow.sources.event_time import parse_times, render_times
from evenflow.sources.source import BATCH_TUPLES, Batch, SourceOptions, key_bytes, require_columns

DEFAULT_START = "2026-01-01T00:00:00Z"
MOST_KEYS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Stream:
    """The options that all generators share."""

    keys: int = 100_000
    """How many different keys may come."""
    tuples: int | None = 1_000_000
    """Number of tuples, None for an endless stream."""
    rate: float = 50_000.0
    """Tuples per second of event time."""
    start: int = 1_767_225_600_000
    """Time of the first tuple, ms."""
    seed: int = 1
    """Seed of all random numbers."""
    disorder: int = 0
    """Greatest random delay that is added to a tuple's time, ms."""
    period: int = 10_000
    """Length of a period, ms. A law may change from one period to the next."""
    values: int = 1_000
    """Value columns hold 0 .. values-1. The value of a law with costs is the cost of the tuple."""
    permute: bool = False
    """Whether the ranks get the labels k0, k1, ... in an order that is drawn from the seed."""


class GeneratedSource:
    """A generator as a source with the columns key (text), time and value (integer).
    ConfigError for equal names.
    """

    def __init__(
        self,
        name: str,
        law: RankLaw,
        stream: Stream,
        *,
        key: str = "key",
        time: str = "time",
        value: str = "value",
        time_unit: TimeUnit = "ms",
        columns: tuple[str, ...] | None = None,
    ) -> None:
        if len({key, time, value}) < 3:
            raise ConfigError(f"{name}: key, time and value need three different column names")
        self.name, self.key, self.time_unit, self.rows = name, key, time_unit, stream.tuples
        self.column_names = list(columns) if columns is not None else [key, time, value]
        require_columns(name, [key, time, value], tuple(self.column_names))
        self.time: str | None = time
        self._value = value
        self._law, self._stream = law, stream
        self._labels = _labels(stream, stream.keys + law.extra_keys)

    def batches(self, tuples: int = BATCH_TUPLES) -> Iterator[Batch]:
        stream = self._stream
        ranks, values, disorder = (
            np.random.default_rng([stream.seed, role]) for role in (RANKS, VALUES, DISORDER)
        )
        first = 0
        while stream.tuples is None or first < stream.tuples:
            count = tuples if stream.tuples is None else min(tuples, stream.tuples - first)
            base = numbered_times(first, count, rate=stream.rate)
            chosen = ranks_by_period(self._law, ranks.random(count), base // stream.period, first)
            times = stream.start + base
            if stream.disorder:
                times = times + (disorder.random(count) * (stream.disorder + 1)).astype(np.int64)
            if self.time_unit == "s":  # the column holds whole seconds, and `Batch.times` must say the same
                times = times // 1000 * 1000
            drawn = (values.random(count) * stream.values).astype(np.int64)
            yield self._batch(chosen, times, self._law.costs(chosen) if self._law.has_costs else drawn)
            first += count

    def _batch(self, ranks: np.ndarray, times: np.ndarray, values: np.ndarray) -> Batch:
        keys = self._labels.take(pa.array(ranks))
        whole = {
            self.key: keys,
            self.time: render_times(times, self.time_unit),
            self._value: pa.array(values),
        }
        return Batch(
            columns=pa.table({name: whole[name] for name in self.column_names}),
            keys=key_bytes(keys, key=self.key, where=self.name),
            times=times,
        )


def _labels(stream: Stream, keys: int) -> pa.Array:
    ids = np.arange(keys)
    if stream.permute:
        ids = np.random.default_rng([stream.seed, LABELS]).permutation(ids)
    return labels(ids)


def generate(name: str, words: str = "", options: SourceOptions | None = None) -> GeneratedSource:
    """A generator by name and options, e.g. generate("zipf", "z=1.4,keys=1000,tuples=50000,seed=3").

    Options of all generators: keys, tuples (a number or 'endless'), rate (tuples per second of event time),
    start (ISO or ms), seed, disorder and period (durations), values, permute. ConfigError for an unknown name
    or option, or a value out of range.
    """
    options = options or SourceOptions()
    if name not in LAWS:
        raise ConfigError(f"there is no generator {name!r}", hint=f"known: {', '.join(LAWS)}")
    parsed = WordOptions(words, owner=f"generator {name}")
    stream = _stream(parsed, name)
    law = LAWS[name].rank_law(stream.keys, stream.seed, **parsed.settings_of(LAWS[name]))
    parsed.done()
    return GeneratedSource(
        f"{name}:{words}" if words else name,
        law,
        stream,
        key=options.key or "key",
        time=options.time or "time",
        value=next((value for value in options.values if value not in (options.key, options.time)), "value"),
        time_unit=options.time_unit or "ms",
        columns=options.columns,
    )


def _stream(words: WordOptions, name: str) -> Stream:
    usual = Stream()
    keys = words.integer("keys", usual.keys, least=1)
    if keys > MOST_KEYS:
        raise ConfigError(f"generator {name}: keys={keys} exceeds {MOST_KEYS:,}")
    stream = Stream(
        keys=keys,
        rate=words.number("rate", usual.rate, above=0),
        start=_start(words.text("start", DEFAULT_START), name),
        seed=words.integer("seed", usual.seed),
        disorder=words.duration("disorder", "0"),
        period=words.duration("period", f"{usual.period}ms", least=1),
        values=words.integer("values", usual.values, least=1),
        permute=words.switch("permute", usual.permute),
    )
    count = words.text("tuples", str(usual.tuples))
    if count == "endless":
        return replace(stream, tuples=None)
    return replace(
        stream, tuples=WordOptions(f"tuples={count}", owner=f"generator {name}").integer("tuples", None)
    )


def _start(text: str, name: str) -> int:
    if text.lstrip("-").isdigit():
        return int(text)
    return int(parse_times(pa.array([text]), "iso", name="start", where=f"generator {name}")[0])
