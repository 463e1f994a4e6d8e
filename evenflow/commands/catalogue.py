"""`evenflow partitioners`, `evenflow policies` and `evenflow queries` list what is built in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(partitioners)
    app.command()(policies)
    app.command()(queries)


def partitioners(
    markdown: Annotated[bool, typer.Option("--markdown", help="As the page docs/algorithms.md.")] = False,
    bibtex: Annotated[bool, typer.Option("--bibtex", help="What to cite for them, as BibTeX.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per partitioner.")] = False,
) -> None:
    """List the registered partitioners, those of installed packages behind evenflow's, with their options."""
    from evenflow.partitioners.catalogue import algorithms_markdown
    from evenflow.partitioners.catalogue import bibtex as entries
    from evenflow.partitioners.registry import descriptions

    if markdown + bibtex + as_json > 1:
        raise typer.BadParameter("--markdown, --bibtex and --json exclude each other")
    if markdown:
        typer.echo(algorithms_markdown(), nl=False)
    elif bibtex:
        typer.echo(entries())
    else:
        for known in descriptions():
            if as_json:
                typer.echo(json.dumps(known.as_json()))
            else:
                _show(known.name, known.marked + " Takes costs." * known.takes_costs, known.options)


def policies(
    markdown: Annotated[bool, typer.Option("--markdown", help="As the page docs/policies.md.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per policy.")] = False,
) -> None:
    """List the elasticity policies with their options."""
    from evenflow.elasticity.catalogue import policies_markdown
    from evenflow.elasticity.registry import descriptions

    if markdown:
        typer.echo(policies_markdown(), nl=False)
        return
    for known in descriptions():
        if as_json:
            typer.echo(json.dumps(known.as_json()))
        else:
            _show(known.name, known.marked, known.options)


def queries(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per query.")] = False,
) -> None:
    """List the built-in queries: key, window, source, size of the data and where it comes from."""
    from evenflow.queries import known
    from evenflow.settings.durations import format_duration
    from evenflow.settings.query import Query

    for query in known():
        said = {"name": query.name, "what": query.what, "source": query.source, "data": query.data}
        loaded = Query.model_validate(dict(query.fields))
        windows = {
            "window": format_duration(loaded.window),
            "slide": format_duration(loaded.slide_ms),
        }
        if as_json:
            typer.echo(json.dumps({**said, "key": loaded.key, **windows}))
        else:
            told = {
                "key": f"{loaded.key_name}, {windows['window']} sliding by {windows['slide']}",
                "source": query.source,
                "data": query.data,
            }
            _show(query.name, query.what, told, width=18)


def _show(name: str, summary: str, options: Mapping[str, str], *, width: int = 12) -> None:
    typer.echo(f"{name:{width}} {summary}")
    for option, meaning in options.items():
        typer.echo(f"{'':{width}}   {option}: {meaning}")
