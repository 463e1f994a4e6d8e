"""What a partitioner says about one key: where its next tuple goes, and which rule says so."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A worker that has the key, or may get it.

    load: what the algorithm compares of this worker (tuples of the window, keys, units of load). None if it compares
    nothing. last: begin of the slide in which the worker last got the key, ms of event time. None if that is unknown.
    """

    worker: int
    load: float | None = None
    last: int | None = None


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Where the next tuple of a key goes, and why.

    rule: the rule of the algorithm that decides about the key now, in words. workers: those that the next tuple may go
    to. None if that may be any worker. home: the worker that the key has while it is not split, None if it has none or
    the algorithm does not know it. holders: the workers that have the key, as far as the algorithm knows them, or else
    its candidates. values: what a learned policy expects of each worker, shape (workers,), None without such a policy.
    share: the key's share of the recent stream as the algorithm counts it, None if it does not count this key.
    """

    rule: str
    workers: tuple[int, ...] | None
    home: int | None = None
    holders: tuple[Holder, ...] = ()
    values: tuple[float, ...] | None = None
    share: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The fields as JSON can hold them."""
        return asdict(self)
