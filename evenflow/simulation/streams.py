"""The tuples to route: columns of key hashes, key numbers, event times and perhaps costs,
made once for all processes.

A generated stream is the same as that of `evenflow replay` with the same law, keys and seed: the same draws,
and the same labels k0, k1, ... with the same hashes. A tuple takes 20 bytes, or 28 if tuples have costs. In a
folder, the columns are memory-mapped files.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.errors import ConfigError
from evenflow.generation.laws import LAWS
from evenflow.generation.rank_laws import (
    RANKS,
    RankLaw,
    labels,
    numbered_times,
    ranks_by_period,
    wandering_times,
)
from evenflow.keys import hash_keys
from evenflow.numeric.arrays import Int32s, Int64s, UInt64s
from evenflow.settings.word_options import WordOptions
from evenflow.text.options import name_and_rest

MOST_KEYS = 100_000_000
GIANT_SHARE = 0.9
HOUR = 3_600_000
_AT_ONCE = 1 << 20
_INDEX_RATE = 1000.0
_Types = Mapping[str, type[np.generic]]
_COLUMNS: _Types = {"keys": np.uint64, "codes": np.int32, "times": np.int64}
_COSTS: _Types = {"costs": np.int64}
"""A further column, if tuples have costs."""


@dataclass(frozen=True, eq=False)
class KeyedStream:
    """The tuples of a stream in arrival order. The columns have shape (m,)."""

    keys: UInt64s
    """Key hashes (`keys.hash_keys`)."""
    codes: Int32s
    """The same keys as numbers 0 .. key_count-1."""
    times: Int64s
    """Event times, ms."""
    key_count: int
    """Number of keys. In a generated stream, some of them may not occur."""
    next_time: int | None
    """Event time that a further tuple would have, ms. None if it is not known (a file with a time column)."""
    folder: Path | None = None
    """The folder that holds the columns as files. None if they lie in memory only."""
    costs: Int64s | None = None
    """What each tuple costs, 1 to `partitioners.costs.MAX_COST`. None if tuples are only counted."""

    def __len__(self) -> int:
        return len(self.keys)

    def digest(self) -> str:
        """16 hex digits that tell these tuples from others: a hash of all keys,
        times and costs in their order.
        """
        whole = hashlib.sha256()
        for column in (self.keys, self.times) if self.costs is None else (self.keys, self.times, self.costs):
            whole.update(np.ascontiguousarray(column).data)
        return whole.hexdigest()[:16]

    def stored(self, folder: Path) -> KeyedStream:
        """The same stream with its columns as files in this folder,
        so that other processes can open it (`opened`).

        A stream that is already stored is returned as it is. ConfigError if the disk has no room for the
        files.
        """
        if self.folder is not None:
            return self
        columns = _columns(costs=self.costs is not None)
        _check_room(folder, len(self), columns)
        for name in columns:
            np.save(folder / f"{name}.npy", getattr(self, name))
        return replace(self, folder=folder)


def opened(folder: Path, *, key_count: int, next_time: int | None) -> KeyedStream:
    """A stored stream, memory-mapped."""
    names = _columns(costs=(folder / "costs.npy").exists())
    columns = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in names}
    return KeyedStream(**columns, key_count=key_count, next_time=next_time, folder=folder)


@dataclass(frozen=True)
class _Clock:
    """How event times of a stream differ from a steady rate."""

    wandering: bool = False
    """Whether the rate walks between a fifth and five times the one asked for, with a step each period."""
    wrong: bool = False
    """Whether the tuple in the middle is an hour ahead."""
    silent: bool = False
    """Whether the second half begins an hour late."""
    slower: float = 1.0
    """How many times slower than the rate asked for tuples come."""

    def times(self, first: int, count: int, *, tuples: int, rate: float, period_ms: int, seed: int) -> Int64s:
        """Times of tuples first .. first+count-1, ms, in a stream of `tuples` tuples at `rate` per second."""
        if self.wandering:
            return wandering_times(first, count, rate=rate, period_ms=period_ms, seed=seed)
        times = numbered_times(first, count, rate=rate / self.slower)
        index = np.arange(first, first + count)
        # 2 * index, because half of an odd number of tuples is no whole number.
        late = (index == tuples // 2) if self.wrong else (2 * index >= tuples) & self.silent
        return times + HOUR * late


_STEADY = _Clock()


@dataclass(frozen=True)
class _Kind:
    """A kind of generated stream: a law of its keys (`LAWS`), and a clock."""

    description: str
    """What the stream is like, in a few words for users."""
    law: str
    """Name of the law of its keys in `LAWS`."""
    fixed: Mapping[str, float] = field(default_factory=dict)
    """Settings of the law besides z."""
    clock: _Clock = _STEADY
    """When its tuples come."""
    by_halves: bool = False
    """Whether the law's period is 0 in the first half of the tuples and 1 in the second, whatever the
    time.
    """

    @property
    def has_exponent(self) -> bool:
        """Whether the law has an exponent that can be set."""
        return "z" in LAWS[self.law].settings

    def rank_law(self, keys: int, zipf: float, seed: int) -> RankLaw:
        """The law over this many keys. zipf: exponent of a law that has one."""
        exponent = {"z": zipf} if self.has_exponent else {}
        return LAWS[self.law].rank_law(keys, seed, **exponent, **self.fixed)


# `flash-crowd` is no stream of its own here, where its periods cannot be set. The stream `giant` has its law.
STREAMS: dict[str, _Kind] = {
    **{name: _Kind(law.description, name) for name, law in LAWS.items() if name != "flash-crowd"},
    "shift": _Kind("uniform, and Zipf(z) from half of the tuples on", "alternating", by_halves=True),
    "wandering-load": _Kind(
        "Zipf(z) whose rate walks between a fifth and five times the one given",
        "zipf",
        clock=_Clock(wandering=True),
    ),
    "giant": _Kind(
        f"Zipf(z); from half of the tuples on one key has {GIANT_SHARE:.0%} of them",
        "flash-crowd",
        {"share": GIANT_SHARE},
        by_halves=True,
    ),
    "wrong-clock": _Kind(
        "Zipf(z); the tuple in the middle is an hour ahead", "zipf", clock=_Clock(wrong=True)
    ),
    "silence": _Kind("Zipf(z); an hour without tuples in the middle", "zipf", clock=_Clock(silent=True)),
    "few": _Kind("Zipf(z) at a thousandth of the rate", "zipf", clock=_Clock(slower=1000.0)),
}
"""Generated streams by name."""


def kind_of(text: str) -> _Kind:
    """The kind of a stream as a person writes it: `NAME[:setting=value,...]`,
    with settings of its law besides z.

    ConfigError for an unknown name or setting, or a value that cannot be.
    """
    name, rest = name_and_rest(text)
    if name not in STREAMS:
        raise ConfigError(f"there is no stream {name!r}", hint=f"known: {', '.join(STREAMS)}")
    kind, words = STREAMS[name], WordOptions(rest, owner=f"stream {name}")
    settings = words.settings_of(LAWS[kind.law], but={"z", *kind.fixed})
    words.done()
    return replace(kind, fixed={**kind.fixed, **settings})


def rank_hashes(keys: int) -> UInt64s:
    """The key hash of each rank 0 ..
    keys-1 of a generated stream, shape (keys,): XXH64 of the labels k0, k1, ...
    """
    return hash_keys(labels(np.arange(keys)))


def generated(
    kind: str,
    *,
    tuples: int,
    keys: int = 100_000,
    zipf: float = 1.0,
    seed: int = 1,
    rate: float | None = None,
    period_ms: int = 10_000,
    folder: Path | None = None,
) -> KeyedStream:
    """A seeded stream, in memory or as files in `folder`.
    kind: its name (`STREAMS`), with settings (`kind_of`).

    Times begin at 0. With `rate`, tuples come at this rate per second. Without it, the time of a tuple is its
    index in ms. `period_ms` is the length of a period in event time, for streams that change with each
    period. ConfigError for an unknown name, a value out of range, or a disk without room.
    """
    stream_kind, pace = kind_of(kind), rate or _INDEX_RATE
    _check(tuples=tuples, keys=keys, zipf=zipf, seed=seed, rate=rate, period_ms=period_ms)
    times_of = partial(stream_kind.clock.times, tuples=tuples, rate=pace, period_ms=period_ms, seed=seed)
    next_time = int(times_of(tuples, 1)[0])
    law = stream_kind.rank_law(keys, zipf, seed)
    names = _columns(costs=law.has_costs)
    if folder is not None:
        _check_room(folder, tuples, names)
    keys += law.extra_keys
    if keys > MOST_KEYS:
        raise ConfigError(
            f"the stream {kind} would have {keys:,} keys, more than {MOST_KEYS:,}",
            hint="give smaller settings",
        )
    hashes = rank_hashes(keys)
    columns = {name: _column(folder, name, kind, tuples) for name, kind in names.items()}
    codes, times = columns["codes"], columns["times"]
    # The generator of `evenflow replay` draws its ranks from a sequence with the same seed.
    draws = np.random.default_rng([seed, RANKS])
    for first, count in _pieces(tuples):
        rows = slice(first, first + count)
        times[rows] = times_of(first, count)
        if stream_kind.by_halves:
            periods = (2 * np.arange(first, first + count) >= tuples).astype(np.int64)
        else:
            periods = times[rows] // period_ms
        codes[rows] = ranks = ranks_by_period(law, draws.random(count), periods, first)
        columns["keys"][rows] = hashes[ranks]
        if law.has_costs:
            columns["costs"][rows] = law.costs(ranks)
    return KeyedStream(**columns, key_count=keys, next_time=next_time, folder=folder)


def from_columns(
    keys: pa.Array, times: Int64s | None, *, rate: float | None = None, costs: Int64s | None = None
) -> KeyedStream:
    """A stream of given keys (binary or text) with their event times in ms, and perhaps their costs.

    Without times, tuples are numbered: they come at `rate` tuples per second, or the time of a tuple is its
    index in ms. ConfigError if there are no tuples or a key is null.
    """
    _check_rate(rate)
    if len(keys) == 0:
        raise ConfigError("the input has no tuples", hint="name a file with rows")
    if keys.null_count:
        raise ConfigError(
            f"{keys.null_count} of {len(keys)} keys are missing",
            hint="choose another --key, or drop those rows",
        )
    encoded = pc.dictionary_encode(keys)
    codes = encoded.indices.to_numpy()
    next_time = None
    if times is None:
        pace = rate or _INDEX_RATE
        times = numbered_times(0, len(keys), rate=pace)
        next_time = int(numbered_times(len(keys), 1, rate=pace)[0])
    hashes = hash_keys(encoded.dictionary)
    return KeyedStream(hashes[codes], codes, times, len(hashes), next_time, costs=costs)


def check_order(times: Int64s, *, max_disorder_ms: int, where: str) -> None:
    """ConfigError if a time lies more than `max_disorder_ms` behind the largest time before it."""
    # Differences of unsigned numbers are exact even where int64 would overflow.
    behind = np.maximum.accumulate(times).astype(np.uint64) - times.astype(np.uint64)
    row = int(behind.argmax())
    if behind[row] > max_disorder_ms:
        raise ConfigError(
            f"{where}: tuple {row + 1:,} lies {int(behind[row]):,} ms behind an earlier one, "
            f"more than {max_disorder_ms:,} ms allowed",
            hint="sort the file by its time column, or allow more with --max-disorder",
        )


def _check(*, tuples: int, keys: int, zipf: float, seed: int, rate: float | None, period_ms: int) -> None:
    if not 1 <= keys <= MOST_KEYS:
        raise ConfigError(f"keys must be between 1 and {MOST_KEYS:,}, not {keys:,}")
    if tuples < 1:
        raise ConfigError(f"tuples must be at least 1, not {tuples}")
    if not 0 <= zipf <= 100:
        raise ConfigError(f"zipf must be an exponent between 0 and 100, not {zipf}")
    if seed < 0:
        raise ConfigError(f"seed must be at least 0, not {seed}")
    _check_rate(rate)
    if period_ms < 1:
        raise ConfigError(f"period must be at least 1 ms, not {period_ms}")


def _check_rate(rate: float | None) -> None:
    if rate is not None and not 0 < rate < float("inf"):
        raise ConfigError(f"rate must be more than 0 tuples per second, not {rate}")


def _columns(*, costs: bool) -> _Types:
    """Name and type of each column. costs: whether tuples have costs."""
    return {**_COLUMNS, **_COSTS} if costs else _COLUMNS


def _check_room(folder: Path, tuples: int, columns: _Types) -> None:
    needed = tuples * sum(np.dtype(kind).itemsize for kind in columns.values())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise ConfigError(
            f"{tuples:,} tuples need {needed / 1e9:,.1f} GB in {folder.parent},"
            f" which has {free / 1e9:,.1f} GB left",
            hint="take fewer tuples, or name another folder for temporary files in TMPDIR",
        )


def _column(folder: Path | None, name: str, kind: type[np.generic], tuples: int) -> npt.NDArray[Any]:
    if folder is None:
        return np.empty(tuples, kind)
    column: npt.NDArray[Any] = np.lib.format.open_memmap(
        folder / f"{name}.npy", mode="w+", dtype=kind, shape=(tuples,)
    )
    return column


def _pieces(tuples: int) -> Iterator[tuple[int, int]]:
    for first in range(0, tuples, _AT_ONCE):
        yield first, min(_AT_ONCE, tuples - first)
