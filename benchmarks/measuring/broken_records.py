"""Streams with bad records of one kind at a given share, and the CPU time that the router takes for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenflow.partitioners import create
from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from partitioner_service.block import Slice
from partitioner_service.routing.router import Router

SHARES = {"1/10,000": 10_000, "1/100": 100, "1/2": 2, "all": 1}
"""Shares of bad records. The number n says that every n-th record is bad."""

_START = 1_700_000_000_000
SEED = 1
_JSON = {"format": "json"}
_CSV = {"format": "csv", "columns": ["key", "time", "amount"]}
_ISO = '"2024-01-02T03:04:{second:02}.{ms:03}Z"'


@dataclass(frozen=True)
class Kind:
    """A kind of bad record."""

    good: str
    """Template of a good record, for `str.format`."""
    bad: str
    """Template of a bad record."""
    time_unit: str = "ms"
    """The query's setting of this name."""
    input: tuple[tuple[str, Any], ...] = tuple(_JSON.items())
    """The input settings, as pairs."""

    def settings(self, **parts: Any) -> Settings:
        """Settings of the query: count and an integer sum over windows of 60 s that slide by 1 s."""
        return load_settings(
            query={
                "window": "60s",
                "slide": "1s",
                "time_unit": self.time_unit,
                "types": {"amount": "int64"},
                "aggregates": {"tuples": "count", "total": "sum(amount)"},
            }
            | parts.pop("query", {}),
            input=dict(self.input) | {"partitions": 4} | parts.pop("input", {}),
            **parts,
        )

    def records(self, count: int, *, bad_every: int | None) -> list[bytes]:
        """`count` records, 50 per ms of event time. Every `bad_every`-th record is bad. None: all are
        good.
        """
        return [
            (self.bad if bad_every and number % bad_every == 0 else self.good)
            .format(
                key=number % 1_000,
                time=_START + number // 50,
                amount=10**12 + number,
                second=number // 1_000 % 60,
                ms=number % 1_000,
            )
            .encode()
            for number in range(count)
        ]


_GOOD = '{{"key":"k{key}","time":{time},"amount":{amount}}}'
KINDS: dict[str, Kind] = {
    "number as text": Kind(_GOOD, '{{"key":"k{key}","time":{time},"amount":"12,50"}}'),
    "missing column": Kind(_GOOD, '{{"key":"k{key}","amount":{amount}}}'),
    "invalid JSON": Kind(_GOOD, '{{"key":"k{key}","time":{time},"amount":{amount}'),
    "key of another type": Kind(_GOOD, '{{"key":{key}.25,"time":{time},"amount":{amount}}}'),
    "late": Kind(_GOOD, '{{"key":"k{key}","time":1,"amount":{amount}}}'),
    "csv, fields missing": Kind("k{key},{time},{amount}", "k{key},{time}", input=tuple(_CSV.items())),
    "csv, text for a number": Kind("k{key},{time},{amount}", "k{key},{time},x", input=tuple(_CSV.items())),
    "bad ISO times": Kind(
        '{{"key":"k{key}","time":' + _ISO + ',"amount":{amount}}}',
        '{{"key":"k{key}","time":"2024-13-02T03:04:05Z","amount":{amount}}}',
        time_unit="iso",
    ),
}


def routed(kind: Kind, count: int, repetitions: int) -> dict[str, float]:
    """Nanoseconds of CPU time per record in the router, by share.

    A figure is of one block, the best of the repetitions. The shares take turns.
    """
    settings = kind.settings()
    blocks = {"good": kind.records(count, bad_every=None)}
    blocks |= {share: kind.records(count, bad_every=every) for share, every in SHARES.items()}
    best = dict.fromkeys(blocks, float("inf"))
    for _ in range(repetitions + 1):  # the first compiles and warms up
        for share, values in blocks.items():
            seconds = _timed(route_one_block(settings, values))
            best[share] = min(best[share], 1e9 * seconds / count)
    return best


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def route_one_block(settings: Settings, values: list[bytes]) -> Callable[[], object]:
    """A function that routes these records as one block of one input partition.

    The partition has had a tuple before, at `_START`.
    """
    router = Router(settings, create("hashing", workers=8, seed=SEED))
    # A tuple came before, so that late records are late.
    state = PartitionState(
        fingerprint=settings.fingerprint,
        topic_id="t",
        offset=0,
        first_time=_START,
        max_time=_START,
        steady_from=_START,
    )
    return lambda: router.route([Slice(0, 0, len(values) - 1, values)], {0: state})
