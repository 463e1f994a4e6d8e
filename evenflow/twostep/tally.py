"""What the cores tell of their work, for people and telemetry: never for results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Stand:
    """Where a bucket stands after a micro-batch; times in ms.

    windows: how many windows with tuples are open; next_end: when the first of them closes, None without any. marks:
    the least mark of each input partition.
    """

    windows: int
    next_end: int | None
    marks: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts that add up, and the newest stand of each bucket.

    tuples: that were combined. rows: that were emitted. unfit: result values that are null because they do not fit
    their type. closed: by bucket, windows that were emitted (few keys may leave a bucket without a row of a window);
    emitted: by bucket, the end (ms) of the last one.
    """

    tuples: int = 0
    rows: int = 0
    unfit: int = 0
    closed: Mapping[int, int] = field(default_factory=dict)
    emitted: Mapping[int, int] = field(default_factory=dict)
    stands: Mapping[int, Stand] = field(default_factory=dict)

    def __add__(self, later: Tally) -> Tally:
        buckets = {*self.closed, *later.closed}
        return Tally(
            tuples=self.tuples + later.tuples,
            rows=self.rows + later.rows,
            unfit=self.unfit + later.unfit,
            closed={b: self.closed.get(b, 0) + later.closed.get(b, 0) for b in buckets},
            emitted={**self.emitted, **later.emitted},
            stands={**self.stands, **later.stands},
        )

    @property
    def windows(self) -> int:
        """Windows that were emitted, by the bucket that emitted most."""
        return max(self.closed.values(), default=0)

    @property
    def stand(self) -> Stand | None:
        """Where all buckets together stand; None before the first micro-batch."""
        if not self.stands:
            return None
        each = list(self.stands.values())
        nexts = [stand.next_end for stand in each if stand.next_end is not None]
        return Stand(
            windows=max(stand.windows for stand in each),
            next_end=min(nexts, default=None),
            marks=tuple(min(column) for column in zip(*(stand.marks for stand in each), strict=True)),
        )
