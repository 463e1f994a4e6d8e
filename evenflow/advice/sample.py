"""What a sample says of its stream: keys, how skewed they are, which are hot, how fast tuples come."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenflow.arrays import Float64s, Int64s
from evenflow.errors import ConfigError
from evenflow.simulation import KeyedStream, from_columns
from evenflow.windows import pane_of

_STEEPEST = 20.0
_HALVINGS = 50
_SUMMED_RANKS = 10_000


@dataclass(frozen=True, eq=False)
class Sample:
    """Consecutive tuples of a stream, in the order in which a partitioner would see them."""

    name: str
    """Where they come from, for people."""
    keys: pa.Array
    """(Large) binary or text. None is null."""
    times: Int64s | None = None
    """Event times, ms. None: tuples are numbered."""
    timed: bool = False
    """Whether the times tell how fast tuples come (numbered ones do not)."""
    complete: bool = False
    """Whether this is all there is: then no key is unseen."""
    unreadable: int = 0
    """Records beside these that hold no tuple."""

    def stream(self, rate: float | None = None) -> KeyedStream:
        """The tuples as a simulation reads them. ConfigError without tuples or with a key that is null."""
        if len(self.keys) == 0:
            raise ConfigError(
                f"{self.name} has no tuples", hint="a recommendation needs a sample of the stream"
            )
        return from_columns(self.keys, self.times, rate=rate if self.times is None else None)


@dataclass(frozen=True, kw_only=True)
class HotKey:
    """A key that fills a noticeable part of a worker."""

    key: str | None
    """Its text. None where it is no UTF-8."""
    key_base64: str | None
    """Its bytes where `key` is None."""
    tuples: int
    share: float
    """Of all tuples of the sample."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Keys:
    """The keys of a sample, most frequent first."""

    codes: Int64s
    """Key numbers (`KeyedStream.codes`), shape (distinct,)."""
    counts: Int64s
    """Their tuples."""
    estimate: int
    """Distinct keys there may be, also those that the sample missed (Chao's lower bound)."""
    zipf: float | None
    """Exponent of the Zipf law with as many keys that meets itself as often. None with a single key."""
    new_share: float
    """Of the keys, those that occur in the second half of the sample only."""

    @property
    def distinct(self) -> int:
        """Keys in the sample."""
        return len(self.counts)

    @property
    def shares(self) -> Float64s:
        """Their shares of the tuples."""
        return self.counts / self.counts.sum()


def keys_of(stream: KeyedStream, *, complete: bool) -> Keys:
    """Counts and what follows from them."""
    counts = np.bincount(stream.codes, minlength=stream.key_count)
    order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
    ranked = counts[order]
    estimate = len(ranked) if complete else unseen_too(ranked)
    early = np.zeros(stream.key_count, bool)
    early[stream.codes[: len(stream) // 2]] = True
    return Keys(
        codes=order,
        counts=ranked,
        estimate=estimate,
        zipf=zipf_exponent(ranked, estimate),
        new_share=float((~early[order]).mean()),
    )


def unseen_too(counts: Int64s) -> int:
    """Chao1: keys seen + f1 (f1 - 1) / (2 (f2 + 1)), with f_i keys seen i times. A lower bound in expectation."""
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return len(counts) + once * (once - 1) // (2 * (twice + 1))


def zipf_exponent(counts: Int64s, keys: int) -> float | None:
    """The z for which two tuples drawn from Zipf(z) over so many keys have the same key as often as here.

    Sum of f(f-1) / m(m-1) estimates that probability without bias however many tuples a key has, so a uniform
    stream gives about 0. A fit of ranked counts would take their noise for skew.
    """
    tuples = int(counts.sum())
    if keys < 2 or tuples < 2:
        return None
    wide = counts.astype(np.float64)
    meets = float((wide * (wide - 1)).sum()) / (tuples * (tuples - 1.0))
    low, high = 0.0, _STEEPEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _harmonic(keys, 2 * middle) / _harmonic(keys, middle) ** 2 < meets:
            low = middle
        else:
            high = middle
    return round((low + high) / 2, 6)


def _harmonic(keys: int, exponent: float) -> float:
    """Sum of r^-exponent for r = 1 .. keys. Ranks beyond the first ones as an integral."""
    first = min(keys, _SUMMED_RANKS)
    total = float((np.arange(1, first + 1, dtype=np.float64) ** -exponent).sum())
    if first == keys:
        return total
    low, high = first + 0.5, keys + 0.5
    if abs(exponent - 1) < 1e-9:
        return total + float(np.log(high / low))
    return total + float((high ** (1 - exponent) - low ** (1 - exponent)) / (1 - exponent))


def hot_keys(sample: Sample, stream: KeyedStream, keys: Keys, *, least: float, most: int) -> list[HotKey]:
    """Keys with at least this share, most frequent first, `most` of them."""
    found = []
    for code, tuples, share in zip(keys.codes[:most], keys.counts[:most], keys.shares[:most], strict=True):
        if share < least:
            break
        raw = sample.keys[int(np.argmax(stream.codes == code))].as_py()
        text, coded = _readable(raw.encode() if isinstance(raw, str) else raw)
        found.append(HotKey(key=text, key_base64=coded, tuples=int(tuples), share=float(share)))
    return found


def _readable(key: bytes) -> tuple[str | None, str | None]:
    try:
        return key.decode(), None
    except UnicodeDecodeError:
        return None, b64encode(key).decode()


def span_seconds(times: Int64s) -> float:
    """Event time from the first to the last tuple."""
    return (int(times.max()) - int(times.min())) / 1000


def busiest_rate(times: Int64s, slide_ms: int) -> float | None:
    """Tuples per second in the slide that has most. None when all tuples have one time.

    Of a sample within one slide: over its span.
    """
    panes, counts = np.unique(pane_of(times, slide_ms), return_counts=True)
    if len(panes) > 1:
        return float(counts.max()) * 1000 / slide_ms
    seconds = span_seconds(times)
    return len(times) / seconds if seconds else None
