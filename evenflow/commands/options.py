"""Options of every command, which may stand before the command's name or behind it."""

from __future__ import annotations

import copy
from typing import Any

from typer.core import TyperGroup

PANEL = "Options of every command"
"""The heading of these options in the help of a command."""


class EverywhereGroup(TyperGroup):
    """A typer group whose own options each of its commands takes too.

    An option behind the command's name calls the group's callback again, with the option's value in place of
    the value before the command's name.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        _share(self, self.params)


def _share(group: Any, options: list[Any]) -> None:
    for command in group.commands.values():
        command.params += [_twin(option) for option in options]
        if hasattr(command, "commands"):
            _share(command, options)


def _twin(option: Any) -> Any:
    """A copy of a group's option for one of its commands."""
    twin = copy.copy(option)
    twin.expose_value = False  # the command's function has no parameter for it
    twin.callback = _given_behind
    twin.rich_help_panel = PANEL
    return twin


def _given_behind(context: Any, option: Any, value: Any) -> Any:
    # click calls this for an option that is left out as well. Its default must not override the group's
    # value.
    if context.get_parameter_source(option.name).name == "COMMANDLINE":
        group = context.find_root()
        group.params[option.name] = value
        group.command.callback(**group.params)
    return value
