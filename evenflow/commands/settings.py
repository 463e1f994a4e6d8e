"""`evenflow settings` lists every setting."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("settings")(settings)


def settings(
    markdown: Annotated[bool, typer.Option("--markdown", help="As the page docs/settings.md.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON on standard output.")] = False,
) -> None:
    """List every setting with its type, default, environment variable and meaning."""
    import dataclasses
    import json

    from evenflow.settings.describe import describe_settings, settings_markdown

    if markdown:
        typer.echo(settings_markdown(), nl=False)
    elif as_json:
        typer.echo(json.dumps([dataclasses.asdict(setting) for setting in describe_settings()], indent=1))
    else:
        for setting in describe_settings():
            typer.secho(setting.name, bold=True, nl=False)
            typer.echo(f"  ({setting.kind}; default {setting.default}; {setting.variable})")
            typer.echo(f"    {setting.description}")
