"""What verify found."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

FLOAT_BOUND = 1e-9
"""Sums and means of float64 may differ by this much, relative to the sum (mean) of the magnitudes."""

_SHOWN = 120


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing that is not as it should be. Fields that do not apply are None.

    kind: missing | unexpected | not-due | value | duplicate | malformed | rejected | not-rejected |
    unreadable | counters | state. window_* in ms; key as text, cut when long; partition and offset are
    those of the input record, or of the results record for `duplicate` and `malformed`.
    """

    kind: str
    detail: str
    window_start: int | None = None
    window_end: int | None = None
    key: str | None = None
    column: str | None = None
    expected: int | float | str | None = None
    got: int | float | str | None = None
    partition: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        where = []
        if self.window_end is not None:
            where.append(f"window [{self.window_start}, {self.window_end})")
        if self.key is not None:
            where.append(f"key {self.key}")
        if self.column is not None:
            where.append(f"{self.column}: expected {self.expected}, got {self.got}")
        if self.partition is not None:
            where.append(f"at [{self.partition}]" + ("" if self.offset is None else f" offset {self.offset}"))
        return f"{self.kind}: " + ", ".join([*where, self.detail])


@dataclass(frozen=True, kw_only=True)
class Counters:
    """Tuples of one input partition below its committed offset, as counted here and as committed."""

    partition: int
    offset: int
    read: int
    routed: int
    rejected: int
    committed_read: int
    committed_routed: int
    committed_rejected: int
    ended: bool


@dataclass(frozen=True, kw_only=True)
class Report:
    """windows and rows: due and compared; open_windows: begun but not closed yet; pending_windows: due, but
    after the newest that was written while the input is still running (the reducer may be behind).

    differences is how many there are, `first` some of them; kinds counts them by kind. mark is the event
    time (ms) up to which windows are due, None when none is or all are (`ended`).
    """

    windows: int
    rows: int
    open_windows: int
    pending_windows: int
    ended: bool
    mark: int | None
    read: int
    routed: int
    rejected: int
    differences: int
    kinds: dict[str, int]
    first: tuple[Difference, ...]
    counters: tuple[Counters, ...]
    float_bound: float = field(default=FLOAT_BOUND)

    @property
    def exact(self) -> bool:
        """Nothing differs."""
        return self.differences == 0

    def json(self) -> str:
        """One line of JSON, every field."""
        return json.dumps(asdict(self))

    def text(self) -> str:
        """For a person; the last line is `N differences`."""
        lines = [str(difference) for difference in self.first]
        more = self.differences - len(self.first)
        if more > 0:
            lines.append(
                f"... and {more} more: " + ", ".join(f"{n} {kind}" for kind, n in self.kinds.items())
            )
        lines.append(f"read {self.read} = routed {self.routed} + rejected {self.rejected}")
        lines.append(f"{self.windows} windows, {self.rows} rows compared with the input")
        if not self.ended:
            lines.append(
                f"the input is still running, not compared: {self.open_windows} windows that are open, "
                f"{self.pending_windows} that are due but newer than any result"
            )
        lines.append(
            f"integers, counts, minima and maxima compared exactly, float sums and means within "
            f"{self.float_bound:g} of the sum of magnitudes"
        )
        lines.append(f"{self.differences} difference{'' if self.differences == 1 else 's'}")
        return "\n".join(lines)


@dataclass
class Findings:
    """Differences as they are found: all are counted, the first `limit` of each kind kept."""

    limit: int
    kinds: dict[str, int] = field(default_factory=dict)
    kept: list[Difference] = field(default_factory=list)

    def add(self, difference: Difference) -> None:
        """One difference."""
        seen = self.kinds.get(difference.kind, 0)
        self.kinds[difference.kind] = seen + 1
        if seen < self.limit:
            self.kept.append(difference)

    def count_only(self, kind: str, number: int) -> None:
        """`number` more of this kind that nobody will look at one by one."""
        if number > 0:
            self.kinds[kind] = self.kinds.get(kind, 0) + number

    @property
    def total(self) -> int:
        """How many differences there are."""
        return sum(self.kinds.values())


def shown_key(key: Any) -> str | None:
    """A key for people: text where it is text, cut when long."""
    if key is None:
        return None
    data = bytes(key)
    text = repr(data[:_SHOWN].decode("utf-8", "backslashreplace"))
    return text if len(data) <= _SHOWN else f"{text}... ({len(data)} bytes)"
