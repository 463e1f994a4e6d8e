"""The command `evenflow`: all commands in a clone, and only the library's commands
if just the wheel is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import typer

from evenflow.commands.frame import application, run_command
from evenflow.host.services import beside, service_module

LIBRARY = ("advise", "catalogue", "datasets", "settings", "simulate", "size", "sweep", "train")
"""Modules of `evenflow/commands` that register commands, in the order of `evenflow --help`."""
SERVICES = {
    "aggregate": "spark",
    "audit": "audit",
    "bench": "bench",
    "broker": "broker",
    "combine": "spark",
    "control": "control",
    "demo": "demo",
    "doctor": "doctor",
    "health": "health",
    "key": "key",
    "partition": "partition",
    "plan": "plan",
    "query": "query",
    "reduce": "spark",
    "rename": "rename",
    "replay": "replay",
    "reset": "reset",
    "results": "results",
    "sinks": "sinks",
    "skip": "skip",
    "status": "status",
    "top": "top",
    "topics": "topics",
    "verify": "verify",
}
"""Further commands of a clone, in the order of `evenflow --help`:
each with the module of `cli/` that registers it.
"""


def run() -> None:
    """Entry point of the command `evenflow`."""
    run_command(_command)


def library_application() -> typer.Typer:
    """The application `evenflow` with the library's commands."""
    app = application()
    for name in LIBRARY:
        import_module(f"evenflow.commands.{name}").register(app)
    return app


def wheel_application() -> typer.Typer:
    """The library's application, with hidden commands in place of the services' commands.

    Each hidden command says where the services come from.
    """
    app = library_application()
    app.info.epilog = f"A clone of evenflow has more commands: {', '.join(SERVICES)}."
    for name in SERVICES:
        app.command(name, hidden=True, add_help_option=False, context_settings=_ANY_WORDS)(_elsewhere(name))
    return app


_ANY_WORDS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Settings of a command that accepts any words, so that its own message comes first."""


def _command() -> None:
    app: Callable[[], object] = import_module("cli.main").app if beside() else wheel_application()
    app()


def _elsewhere(name: str) -> Callable[[], None]:
    def refuse() -> None:
        service_module("cli.main", command=f"`evenflow {name}`")

    return refuse
