"""Options of every command: they may stand before the command's name or behind it."""

from __future__ import annotations

import copy
from typing import Any

from typer.core import TyperGroup

PANEL = "Options of every command"


class EverywhereGroup(TyperGroup):
    """A group whose own options each of its commands takes as well.

    One that stands behind the command's name calls the group's callback again, in the context of the command: it
    then sets there what it would have set for all.
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
    twin = copy.copy(option)
    twin.expose_value = False
    twin.callback = _given_behind
    twin.rich_help_panel = PANEL
    return twin


def _given_behind(context: Any, option: Any, value: Any) -> Any:
    if context.get_parameter_source(option.name).name == "COMMANDLINE":
        group = context.find_root()
        group.params[option.name] = value
        group.command.callback(**group.params)
    return value
