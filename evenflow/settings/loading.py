"""Reads settings from a file, the environment and arguments, and writes them to a file for another
process.
"""

from __future__ import annotations

import json
import os
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError

from evenflow.errors import ConfigError
from evenflow.settings.model import Settings
from evenflow.settings.sections.choices import CHOICES, taken_apart

_EXAMPLES = "docs/settings.md shows what a settings file looks like"
DEFAULT_FILE = Path("evenflow.toml")


def load_settings(file: Path | None = None, **overrides: Any) -> Settings:
    """Settings from a TOML or .json file, the variables EVENFLOW_*, and overrides.

    Without `file`, `evenflow.toml` is read if it exists. `overrides` are nested dicts that win over
    everything else. Raises ConfigError, which lists every problem.
    """
    path = file if file is not None else DEFAULT_FILE
    content = _content(path, named=file is not None)
    try:
        if not overrides:
            return Settings(**content)
        # The file and the environment are merged and validated first. Overrides then go on top, without the
        # environment, which would win over them otherwise.
        base = Settings(**content).model_dump(mode="python", exclude_unset=True)
        # Taken apart before they are merged, so that the options behind a name replace those of the file,
        # too.
        over = {table: taken_apart(values, CHOICES.get(table, "")) for table, values in overrides.items()}
        return _FixedSettings(**_merge(base, over))
    except ValidationError as error:
        problems = [_problem(item["loc"], item["type"], item["msg"]) for item in error.errors()]
        raise ConfigError(
            "settings are not valid:\n  " + "\n  ".join(problems),
            hint="`evenflow settings` explains each setting",
        ) from None


def _content(path: Path, *, named: bool) -> dict[str, Any]:
    """The content of the file. Empty if the file is missing and the user did not name it (`named`)."""
    kind = "JSON" if path.suffix == ".json" else "TOML"
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if kind == "JSON" else tomllib.loads(text)
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
    # ValueError: text that is no TOML, no JSON or no UTF-8, and a number of more digits than Python converts.
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid {kind}: {error}", hint=_EXAMPLES) from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path} holds no table of settings", hint=_EXAMPLES)
    return content


def _problem(where: tuple[int | str, ...], kind: str, message: str) -> str:
    name = ".".join(map(str, where)) or "settings"
    if kind == "extra_forbidden":
        return f"{name}: there is no such setting{_meant(where)}"
    return f"{name}: {message.removeprefix('Value error, ')}"


def _meant(where: tuple[int | str, ...]) -> str:
    """The end of a message: the setting of the same table that was likely meant, or all its settings.

    Empty for a place within a table whose names the user chooses.
    """
    table: Any = Settings
    for part in where[:-1]:
        if _is_model(table):
            field = table.model_fields.get(str(part))
            table = None if field is None else field.annotation
            # An optional table is a union with None.
            table = next((kind for kind in get_args(table) if _is_model(kind)), table)
        elif get_origin(table) is dict:  # each name leads to a table of the same kind (query.views)
            table = get_args(table)[-1]
    if not _is_model(table):
        return ""
    close = get_close_matches(str(where[-1]), table.model_fields, n=1)
    return f"; did you mean {close[0]}?" if close else f" (there are: {', '.join(table.model_fields)})"


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def save_settings(settings: Settings, file: Path) -> None:
    """Write a .json settings file that `load_settings` reads back, for a process that is started with it.

    The file holds the passwords of Kafka and of the schema registries in the clear, so only its owner may
    read it.
    """
    # model_dump masks secrets as asterisks, so they are put back below.
    fields = settings.model_dump(mode="json", exclude_unset=True)
    kafka = settings.kafka
    _unmask(fields.get("kafka"), sasl_password=kafka.sasl_password, ssl_key_password=kafka.ssl_key_password)
    for section, registry in (("input", settings.input.registry), ("results", settings.results.registry)):
        if registry is not None:
            _unmask(fields[section]["registry"], password=registry.password)
    # The mode is given when the file is made, so there is no moment at which others could read it.
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as target:
        json.dump(fields, target)


def _unmask(section: Any, **secrets: SecretStr | None) -> None:
    """Write these secrets into the section. A secret that is set was dumped, so its section is there."""
    for name, secret in secrets.items():
        if secret is not None:
            section[name] = secret.get_secret_value()


class _FixedSettings(Settings):
    """Settings that do not read the environment, because overrides have already been merged over it."""

    reads_environment: ClassVar[bool] = False


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Both dicts merged, where `over` wins. The tables `aggregates` and `options` are replaced as a whole."""
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
