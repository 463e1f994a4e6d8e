"""The command `evenflow` of a clone: the library's commands and those of the services.

A new command of a service needs a file `cli/<command>.py` with `register(app)`, and a line in
`evenflow.console.SERVICES`. Nothing heavy is imported before a command runs: commands import what they need
inside their functions, and what a service needs only after its settings were read. So a mistake in the
settings is said at once.
"""

from __future__ import annotations

from importlib import import_module

from evenflow.commands.frame import run_command
from evenflow.console import SERVICES, library_application

app = library_application()
for _module in dict.fromkeys(SERVICES.values()):  # one module may register several commands
    import_module(f"cli.{_module}").register(app)


def run() -> None:
    """Entry point of `python -m cli.main`."""
    run_command(app)


if __name__ == "__main__":
    run()
