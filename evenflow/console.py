"""The command `evenflow`: everything in a clone, the library's commands where only the wheel is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import typer

from evenflow.commands.frame import application, run_command
from evenflow.rooms import beside, room

LIBRARY = ("advise", "catalogue", "settings", "simulate")
"""Modules of `evenflow/commands`, in the order of `evenflow --help`."""
SERVICES = (
    "aggregate",
    "bench",
    "broker",
    "combine",
    "control",
    "demo",
    "doctor",
    "health",
    "partition",
    "plan",
    "query",
    "reduce",
    "rename",
    "replay",
    "reset",
    "status",
    "top",
    "topics",
    "verify",
)
"""Commands that a clone has beside the library's."""


def run() -> None:
    """Entry point of `evenflow`."""
    run_command(_command)


def library_application() -> typer.Typer:
    """`evenflow` with the library's commands."""
    app = application()
    for name in LIBRARY:
        import_module(f"evenflow.commands.{name}").register(app)
    return app


def wheel_application() -> typer.Typer:
    """The same, which also knows what the services' commands are called and where they come from."""
    app = library_application()
    app.info.epilog = f"A clone of evenflow has more commands: {', '.join(SERVICES)}."
    for name in SERVICES:
        app.command(name, hidden=True, add_help_option=False, context_settings=_ANY_WORDS)(_elsewhere(name))
    return app


_ANY_WORDS = {"allow_extra_args": True, "ignore_unknown_options": True}


def _command() -> None:
    app: Callable[[], object] = import_module("cli.main").app if beside() else wheel_application()
    app()


def _elsewhere(name: str) -> Callable[[], None]:
    def refuse() -> None:
        room("cli.main", what=f"`evenflow {name}`")

    return refuse
