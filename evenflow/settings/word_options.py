"""Options of generators and rate profiles, written as `a=1,b=2` behind a name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from evenflow.errors import ConfigError
from evenflow.generation.laws import KeyLaw
from evenflow.settings.durations import parse_duration
from evenflow.text.options import pairs


class WordOptions:
    """Options that the caller takes one by one. `done()` then refuses options that nobody took.

    owner: what the options belong to, for messages. Every method that takes an option raises ConfigError for
    a wrong value, and for a missing option without a default.
    """

    def __init__(self, text: str, *, owner: str) -> None:
        self._owner = owner
        self._left = pairs(text, owner=owner)
        self._known: list[str] = []

    def number(
        self, name: str, default: float | None, *, above: float | None = None, least: float | None = None
    ) -> float:
        """A finite number that is greater than `above` and at least `least`, where these are given."""
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
        """A whole number of at least `least`. It may be written as 1_000_000 or 1e6."""
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
        """The milliseconds of a duration such as '10s' or '500ms'. A bare number is milliseconds."""
        text = self._take(name, default)
        try:
            value = parse_duration(int(text) if text.isdigit() else text)
        except ValueError as error:
            raise ConfigError(f"{self._owner}: {name}: {error}") from None
        if value < least:
            raise self._wrong(name, text, f"at least {least} ms")
        return value

    def switch(self, name: str, default: bool) -> bool:
        """A truth value, written as true/false, yes/no, on/off or 1/0."""
        text = self._take(name, str(default)).lower()
        if text in ("true", "yes", "on", "1"):
            return True
        if text in ("false", "no", "off", "0"):
            return False
        raise self._wrong(name, text, "true or false")

    def text(self, name: str, default: str | None) -> str:
        """The option as text."""
        return self._take(name, default)

    def settings_of(self, law: KeyLaw, *, but: Collection[str] = ()) -> dict[str, float]:
        """The settings of a law that were given, but for those in `but`."""
        values: dict[str, float] = {}
        for name, setting in law.settings.items():
            if name in but:
                continue
            if name in self._left:
                take = self.integer if setting.whole else self.number
                values[name] = take(name, None, least=setting.least)
                if values[name] > setting.most:
                    raise ConfigError(
                        f"{self._owner}: {name}={values[name]:g} must be at most {setting.most:g}"
                    )
            else:
                self._known.append(name)  # so that a message about a wrong option lists it
        return values

    def has(self, name: str) -> bool:
        """Whether the option was given (and not yet taken)."""
        return name in self._left

    def done(self) -> None:
        """Raise ConfigError if an option is left that nobody took."""
        if self._left:
            unknown = ", ".join(sorted(self._left))
            known = f"its options are {', '.join(self._known)}" if self._known else "it has no options"
            raise ConfigError(f"{self._owner} has no option {unknown}", hint=known)

    def _take(self, name: str, default: Any) -> str:
        self._known.append(name)
        if name in self._left:
            return self._left.pop(name)
        if default is None:
            raise ConfigError(f"{self._owner} needs the option {name}", hint=f"add {name}=...")
        return str(default)

    def _wrong(self, name: str, text: str, requirement: str) -> ConfigError:
        return ConfigError(f"{self._owner}: {name}={text} must be {requirement}")


def listed(registry: Mapping[str, Any]) -> str:
    """The names in a registry, for an error message."""
    return ", ".join(sorted(registry))
