"""What a sample tells about its stream: its keys, how skewed they are, which are hot,
and how fast tuples come.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Float64s, Int64s
from evenflow.simulation import KeyedStream, from_columns
from evenflow.windows import pane_of

_STEEPEST = 20.0
"""Largest Zipf exponent that is searched."""
_HALVINGS = 50
_SUMMED_RANKS = 10_000
"""Ranks that are summed one by one. The sum over further ranks is approximated by an integral."""


@dataclass(frozen=True, kw_only=True)
class Strays:
    """Tuples whose event time cannot be right. They are no part of the sample, so no figure counts them."""

    tuples: int
    """How many there are."""
    share: float
    """Share of the tuples that were read, these among them."""
    cause: str
    """Why they are strays, in words such as "are in s, not ms"."""
    example: str
    """The first of them, for people."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Consecutive tuples of a stream, in the order in which a partitioner would see them."""

    name: str
    """Where the tuples come from, for people."""
    keys: pa.Array
    """The key of each tuple, as (large) binary or text. No key may be null."""
    times: Int64s | None = None
    """Event times, ms. None: the tuples are numbered."""
    timed: bool = False
    """Whether the times tell how fast tuples come. Numbered times do not."""
    complete: bool = False
    """Whether the sample is the whole stream, so that no key is unseen."""
    unreadable: int = 0
    """Further records that hold no tuple."""
    strays: tuple[Strays, ...] = ()
    """Further tuples that were set aside for their event time, one entry for each cause."""
    costs: Int64s | None = None
    """What each tuple costs, 1 to `partitioners.costs.MAX_COST`. None: tuples are only counted."""
    cost: str | None = None
    """The column of the costs, as the setting `partitioner.cost` takes it. It may be named although `costs`
    is None, if all costs are equal."""
    cost_remarks: tuple[str, ...] = ()
    """What the user should know of that column, each as a sentence."""

    def stream(self, rate: float | None = None) -> KeyedStream:
        """The tuples as a simulation reads them. ConfigError if there are no tuples or a key is null."""
        if len(self.keys) == 0:
            raise ConfigError(
                f"{self.name} has no tuples", hint="a recommendation needs a sample of the stream"
            )
        numbered = rate if self.times is None else None
        return from_columns(self.keys, self.times, rate=numbered, costs=self.costs)


@dataclass(frozen=True, kw_only=True)
class SampledKey:
    """A key that fills a noticeable part of a worker."""

    key: str | None
    """The key as text. None if it is no UTF-8."""
    key_base64: str | None
    """The bytes of the key in base64 if `key` is None, otherwise None."""
    tuples: int
    """Tuples of the key in the sample."""
    share: float
    """Share of all tuples of the sample, or of the work if tuples have costs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Keys:
    """The keys of a sample, those with most work first. Without costs the work of a key is its tuples."""

    codes: Int64s
    """Key numbers (`KeyedStream.codes`), shape (distinct,)."""
    counts: Int64s
    """Tuples of each key, shape (distinct,)."""
    work: Int64s
    """Sum of the costs of each key's tuples, shape (distinct,)."""
    estimate: int
    """A lower bound for the number of distinct keys, with those that the sample missed (Chao)."""
    zipf: float | None
    """Exponent of a Zipf law that is as skewed (`zipf_exponent`). None with a single key."""
    new_share: float
    """Share of the keys that occur only in the second half of the sample."""

    @property
    def distinct(self) -> int:
        """Number of keys in the sample."""
        return len(self.counts)

    @property
    def shares(self) -> Float64s:
        """Share of the work that each key has, shape (distinct,)."""
        return self.work / self.work.sum()


def keys_of(stream: KeyedStream, *, complete: bool) -> Keys:
    """The keys of a sample. complete: whether the sample is the whole stream."""
    counts = np.bincount(stream.codes, minlength=stream.key_count)
    work = work_by_key(stream)
    # Codes without a tuple come last and are cut off: every tuple costs at least 1.
    order = np.argsort(-work, kind="stable")[: int((counts > 0).sum())]
    ranked = counts[order]
    estimate = len(ranked) if complete else unseen_too(ranked)
    early = np.zeros(stream.key_count, bool)
    early[stream.codes[: len(stream) // 2]] = True
    return Keys(
        codes=order,
        counts=ranked,
        work=work[order],
        estimate=estimate,
        zipf=zipf_exponent(
            work[order], estimate, squares=None if stream.costs is None else squares_by_key(stream)[order]
        ),
        new_share=float((~early[order]).mean()),
    )


def work_by_key(stream: KeyedStream, piece: slice = slice(None)) -> Int64s:
    """Sum of the costs of each key's tuples in this piece of the stream,
    or their number without costs. Shape (keys,).
    """
    costs = None if stream.costs is None else stream.costs[piece]
    return np.bincount(stream.codes[piece], costs, minlength=stream.key_count).astype(np.int64)


def squares_by_key(stream: KeyedStream, piece: slice = slice(None)) -> Float64s:
    """As `work_by_key`, but of the squares of the costs."""
    costs = None if stream.costs is None else stream.costs[piece].astype(np.float64) ** 2
    return np.bincount(stream.codes[piece], costs, minlength=stream.key_count).astype(np.float64)


def unseen_too(counts: Int64s) -> int:
    """The estimate Chao1 of the number of keys: keys seen + f1 (f1 - 1) / (2 (f2 + 1)),
    with f_i keys seen i times.

    It is a lower bound in expectation. counts: tuples of each key.
    """
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return len(counts) + once * (once - 1) // (2 * (twice + 1))


def zipf_exponent(counts: Int64s, keys: int, *, squares: Float64s | None = None) -> float | None:
    """The exponent z for which two tuples from Zipf(z) over `keys` keys have the same key as often
    as in the sample.

    The sum of f(f-1) / m(m-1) over the keys, with f of m tuples each, estimates the probability of the same
    key without bias, however few tuples a key has. So a uniform stream gives about 0. A fit of the ranked
    counts would take their noise for skew. None for fewer than two keys or tuples.

    With costs, `counts` is the work of each key, and `squares` the sum of the squares of its tuples' costs. A
    tuple then meets another one as often as the product of their costs says. With costs of 1 this is the
    same.
    """
    tuples = int(counts.sum())
    wide = counts.astype(np.float64)
    pairs = tuples * (tuples - 1.0) if squares is None else float(tuples) ** 2 - float(squares.sum())
    if keys < 2 or pairs <= 0:
        return None
    meets = float((wide * (wide - 1) if squares is None else wide**2 - squares).sum()) / pairs
    # Bisection: the probability of the same key, sum of r^-2z over the squared sum of r^-z, grows with z.
    low, high = 0.0, _STEEPEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _harmonic(keys, 2 * middle) / _harmonic(keys, middle) ** 2 < meets:
            low = middle
        else:
            high = middle
    return round((low + high) / 2, 6)


def _harmonic(keys: int, exponent: float) -> float:
    """The sum of r^-exponent for r = 1 .. keys. Beyond the first ranks it is approximated by an integral."""
    first = min(keys, _SUMMED_RANKS)
    total = float((np.arange(1, first + 1, dtype=np.float64) ** -exponent).sum())
    if first == keys:
        return total
    # Each rank r stands for the interval r - 0.5 .. r + 0.5.
    low, high = first + 0.5, keys + 0.5
    if abs(exponent - 1) < 1e-9:
        return total + float(np.log(high / low))
    return total + float((high ** (1 - exponent) - low ** (1 - exponent)) / (1 - exponent))


def hot_keys(sample: Sample, stream: KeyedStream, keys: Keys, *, least: float, most: int) -> list[SampledKey]:
    """The keys with at least the share `least` of the work, those with most of it first,
    at most `most` of them.
    """
    hottest = []
    for code, tuples, share in zip(keys.codes[:most], keys.counts[:most], keys.shares[:most], strict=True):
        if share < least:
            break
        raw = sample.keys[int(np.argmax(stream.codes == code))].as_py()  # at the first tuple with this key
        text, coded = _readable(raw.encode() if isinstance(raw, str) else raw)
        hottest.append(SampledKey(key=text, key_base64=coded, tuples=int(tuples), share=float(share)))
    return hottest


def _readable(key: bytes) -> tuple[str | None, str | None]:
    try:
        return key.decode(), None
    except UnicodeDecodeError:
        return None, b64encode(key).decode()


def span_seconds(times: Int64s) -> float:
    """Event time from the earliest to the latest of these times (ms), in seconds."""
    return (int(times.max()) - int(times.min())) / 1000


def busiest_rate(times: Int64s, slide_ms: int) -> float | None:
    """Tuples per second in the slide that has most tuples. times, slide_ms: ms.

    If the sample lies within one slide, it is the rate over the sample's span. None if all tuples have the
    same time.
    """
    panes, counts = np.unique(pane_of(times, slide_ms), return_counts=True)
    if len(panes) > 1:
        return float(counts.max()) * 1000 / slide_ms
    seconds = span_seconds(times)
    return len(times) / seconds if seconds else None
