"""Settings out of files, the environment and arguments, and into a file for another process."""

from __future__ import annotations

import json
import os
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from evenflow.errors import ConfigError
from evenflow.settings.model import Settings

DEFAULT_FILE = Path("evenflow.toml")


def load_settings(file: Path | None = None, **overrides: Any) -> Settings:
    """Settings from a TOML or .json file (default `evenflow.toml` if there is one), EVENFLOW_* and overrides.

    `overrides` are nested dicts that win over everything. Raises ConfigError with every problem listed.
    """
    path = file if file is not None else DEFAULT_FILE
    content = _content(path, named=file is not None)
    try:
        if not overrides:
            return Settings(**content)
        base = Settings(**content).model_dump(mode="python", exclude_unset=True)
        return _FixedSettings(**_merge(base, overrides))
    except ValidationError as error:
        problems = [_problem(item["loc"], item["type"], item["msg"]) for item in error.errors()]
        raise ConfigError("settings are not valid:\n  " + "\n  ".join(problems)) from None


def _content(path: Path, *, named: bool) -> dict[str, Any]:
    """What the file says. Nothing where it is missing and nobody has named it."""
    kind = "JSON" if path.suffix == ".json" else "TOML"
    try:
        text = path.read_text(encoding="utf-8")
        content: dict[str, Any] = json.loads(text) if kind == "JSON" else tomllib.loads(text)
    except FileNotFoundError:
        if not named:
            return {}
        raise ConfigError(
            f"there is no settings file {path}", hint="name an existing file, or leave --config out"
        ) from None
    except IsADirectoryError:
        raise ConfigError(
            f"the settings file {path} is a folder",
            hint="Docker makes one where the file that is to be mounted there does not exist",
        ) from None
    except OSError as error:
        raise ConfigError(
            f"the settings file {path} cannot be read: {error.strerror}",
            hint=f"user {os.geteuid()} needs the right to read it",
        ) from None
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid {kind}: {error}") from None
    return content


def _problem(where: tuple[int | str, ...], kind: str, message: str) -> str:
    name = ".".join(map(str, where)) or "settings"
    if kind == "extra_forbidden":
        return f"{name}: there is no such setting{_meant(where)}"
    return f"{name}: {message.removeprefix('Value error, ')}"


def _meant(where: tuple[int | str, ...]) -> str:
    """Which setting of the same table was likely meant."""
    table: Any = Settings
    for part in where[:-1]:
        # Below a table with names of the user's own (query.views) lies one of its kind for each of them.
        named = get_args(table)
        table = named[-1] if named else table.model_fields[str(part)].annotation
    close = get_close_matches(str(where[-1]), table.model_fields, n=1)
    return f"; did you mean {close[0]}?" if close else f" (there are: {', '.join(table.model_fields)})"


def save_settings(settings: Settings, file: Path) -> None:
    """Write a .json settings file that `load_settings` reads back, for a process that is started with it.

    It holds passwords in the clear, so only its owner may read it.
    """
    fields = settings.model_dump(mode="json", exclude_unset=True)
    for name in ("sasl_password", "ssl_key_password"):
        secret = getattr(settings.kafka, name)
        if secret is not None:
            fields["kafka"][name] = secret.get_secret_value()
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as target:
        json.dump(fields, target)


class _FixedSettings(Settings):
    """Settings that read no environment: the overrides were merged over it already."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        if (
            isinstance(value, dict)
            and isinstance(merged.get(key), dict)
            and key not in ("aggregates", "options")
        ):
            merged[key] = _merge(merged[key], value)
        else:
            merged[key] = value
    return merged
