"""Access to the services, which lie beside the library in a clone or image and are not in the wheel.

The library imports none of the services. The command `evenflow` imports them through this module, by name,
when it runs.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

from evenflow.errors import ConfigError

CHECKOUT = Path(__file__).resolve().parents[2]
"""The folder that holds this package: a checkout, or the site-packages of a wheel."""


def beside(folder: Path = CHECKOUT) -> bool:
    """Whether `folder` is a checkout of evenflow."""
    # A folder `cli` alone proves nothing: in site-packages, somebody else's package may have this name.
    return (folder / "pyproject.toml").is_file() and (folder / "cli" / "main.py").is_file()


def service_module(module: str, *, command: str, folder: Path = CHECKOUT) -> ModuleType:
    """The module of a service. command: the one that needs it, for the ConfigError if there are no
    services.
    """
    if not beside(folder):
        raise ConfigError(
            f"{command} comes with the clone or image of evenflow, not with the wheel",
            hint=(
                "clone the repository and run `make setup` in it; the wheel is the library,"
                " with simulate and advise"
            ),
        )
    return import_module(module)
