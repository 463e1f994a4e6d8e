"""What a partitioner says about one key: where its next tuple goes, and which rule says so."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A worker that has the key, or may get it."""

    worker: int
    """The worker, from 0."""
    load: float | None = None
    """What the algorithm compares of this worker: tuples of the window, keys, units of load.
    None if it compares nothing."""
    last: int | None = None
    """Begin of the slide in which the worker last got the key, ms of event time. None if that is unknown."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Where the next tuple of a key goes, and why."""

    rule: str
    """The rule of the algorithm that decides about the key now, in words."""
    workers: tuple[int, ...] | None
    """Those that the next tuple may go to. None if that may be any worker."""
    home: int | None = None
    """The worker that the key has while it is not split.
    None if it has none or the algorithm does not know it."""
    holders: tuple[Holder, ...] = ()
    """The workers that have the key, as far as the algorithm knows them, or else its candidates."""
    values: tuple[float, ...] | None = None
    """(workers,): what a learned policy expects of each worker. None without such a policy."""
    share: float | None = None
    """The key's share of the recent stream as the algorithm counts it. None if it does not count this key."""

    def as_json(self) -> dict[str, Any]:
        """The fields as JSON can hold them."""
        return asdict(self)
