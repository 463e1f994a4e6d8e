"""What happened in a run, one line an event."""

from __future__ import annotations


class History:
    """The events of a run, in order."""

    def __init__(self) -> None:
        self._events: list[tuple[float, str, str, object]] = []

    def note(self, now: float, who: str, what: str, detail: object = "") -> None:
        """Add an event. now: virtual time (s). detail: is only made a text when the history is printed."""
        self._events.append((now, who, what, detail))

    def __len__(self) -> int:
        return len(self._events)

    def lines(self) -> list[str]:
        """The whole history, one line an event."""
        return [f"{now:9.3f}  {who:<12} {what:<18} {detail}" for now, who, what, detail in self._events]
