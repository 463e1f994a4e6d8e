"""The services, which lie beside the library in a clone or image and are not in the wheel.

The library imports none of them. Its command reaches them here, by name and when it runs.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

from evenflow.errors import ConfigError

CHECKOUT = Path(__file__).resolve().parent.parent
"""The folder that holds this package: a checkout, or the site-packages of a wheel."""


def beside(folder: Path = CHECKOUT) -> bool:
    """Whether `folder` is a checkout: anybody's packages may be called `cli` and `producers`."""
    return (folder / "pyproject.toml").is_file() and (folder / "cli" / "main.py").is_file()


def room(module: str, *, what: str, folder: Path = CHECKOUT) -> ModuleType:
    """The module of a service. ConfigError where there are no services says that `what` needs them."""
    if not beside(folder):
        raise ConfigError(
            f"{what} comes with the clone or image of evenflow, not with the wheel",
            hint="clone the repository and run `make setup` in it; the wheel is the library, with simulate and advise",
        )
    return import_module(module)
