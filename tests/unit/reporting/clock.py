"""A clock that a test sets."""


class Clock:
    """Seconds, or whatever the caller takes them for."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now
