"""Words of the form `a=1,b=2` that follow a name: options of generators and rate profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenflow.errors import ConfigError
from evenflow.settings.durations import parse_duration
from evenflow.written import pairs


class WordOptions:
    """Options taken one by one. `done()` refuses those that nobody took."""

    def __init__(self, text: str, *, of: str) -> None:
        self._of = of
        self._left = pairs(text, of=of)
        self._known: list[str] = []

    def number(
        self, name: str, default: float | None, *, above: float | None = None, least: float | None = None
    ) -> float:
        """A finite number, greater than `above`, of at least `least`."""
        text = self._take(name, default)
        try:
            value = float(text)
        except ValueError:
            raise self._wrong(name, text, "a number") from None
        if value != value or value in (float("inf"), float("-inf")):
            raise self._wrong(name, text, "a finite number")
        if above is not None and value <= above:
            raise self._wrong(name, text, f"more than {above:g}")
        if least is not None and value < least:
            raise self._wrong(name, text, f"at least {least:g}")
        return value

    def integer(self, name: str, default: int | None, *, least: float = 0) -> int:
        """A whole number of at least `least`. 1_000_000 and 1e6 are welcome."""
        text = self._take(name, default)
        try:
            value = int(text)
        except ValueError:
            try:
                exact = float(text)
                value = int(exact)
            except (ValueError, OverflowError):
                raise self._wrong(name, text, "a whole number") from None
            if value != exact:
                raise self._wrong(name, text, "a whole number") from None
        if value < least:
            raise self._wrong(name, text, f"at least {least:g}")
        return value

    def duration(self, name: str, default: str | None, *, least: int = 0) -> int:
        """Milliseconds of '10s', '500ms' ... (a bare number is milliseconds)."""
        text = self._take(name, default)
        try:
            value = parse_duration(int(text) if text.isdigit() else text)
        except ValueError as error:
            raise ConfigError(f"{self._of}: {name}: {error}") from None
        if value < least:
            raise self._wrong(name, text, f"at least {least} ms")
        return value

    def switch(self, name: str, default: bool) -> bool:
        """true/false, yes/no, on/off, 1/0."""
        text = self._take(name, str(default)).lower()
        if text in ("true", "yes", "on", "1"):
            return True
        if text in ("false", "no", "off", "0"):
            return False
        raise self._wrong(name, text, "true or false")

    def text(self, name: str, default: str | None) -> str:
        """The word itself."""
        return self._take(name, default)

    def knows(self, name: str) -> None:
        """There is such an option, and it was not given."""
        self._known.append(name)

    def has(self, name: str) -> bool:
        """Whether the option was given (and not yet taken)."""
        return name in self._left

    def done(self) -> None:
        """Raise ConfigError when an option is left that nothing reads."""
        if self._left:
            unknown = ", ".join(sorted(self._left))
            raise ConfigError(
                f"{self._of} has no option {unknown}", hint=f"its options are {', '.join(self._known)}"
            )

    def _take(self, name: str, default: Any) -> str:
        self._known.append(name)
        if name in self._left:
            return self._left.pop(name)
        if default is None:
            raise ConfigError(f"{self._of} needs the option {name}", hint=f"add {name}=...")
        return str(default)

    def _wrong(self, name: str, text: str, wanted: str) -> ConfigError:
        return ConfigError(f"{self._of}: {name}={text} must be {wanted}")


def listed(registry: Mapping[str, Any]) -> str:
    """The names in a registry, for an error message."""
    return ", ".join(sorted(registry))
