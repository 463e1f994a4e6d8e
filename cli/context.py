"""What commands share: the settings that `--config` names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

    from evenflow.settings import Settings


def settings_of(context: typer.Context, **overrides: Any) -> Settings:
    """Settings from the file given with --config (or evenflow.toml), EVENFLOW_* and `overrides`."""
    from evenflow.settings import load_settings

    return load_settings(context.obj, **overrides)
