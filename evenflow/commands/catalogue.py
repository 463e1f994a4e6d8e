"""`evenflow partitioners`, `policies`, `queries`, `sources` and `aggregates` list evenflow's
and those of packages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from evenflow.plugins import Entry


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(partitioners)
    app.command()(policies)
    app.command()(queries)
    app.command()(sources)
    app.command()(aggregates)


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
    bibtex: Annotated[bool, typer.Option("--bibtex", help="What to cite for them, as BibTeX.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per policy.")] = False,
) -> None:
    """List the elasticity policies with their options."""
    from evenflow.elasticity.catalogue import bibtex as entries
    from evenflow.elasticity.catalogue import policies_markdown
    from evenflow.elasticity.registry import descriptions

    if markdown + bibtex + as_json > 1:
        raise typer.BadParameter("--markdown, --bibtex and --json exclude each other")
    if markdown or bibtex:
        typer.echo(policies_markdown() if markdown else f"{entries()}\n", nl=False)
        return
    for known in descriptions():
        if as_json:
            typer.echo(json.dumps(known.as_json()))
        else:
            _show(known.name, known.marked, known.options)


def queries(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per query.")] = False,
) -> None:
    """List the queries that are ready to run: key, window, source, size of the data and where it comes
    from.
    """
    from evenflow.queries import catalogue
    from evenflow.settings.durations import format_duration
    from evenflow.settings.sections.query import Query

    for entry in catalogue():
        query = entry.plugin
        if query is None:
            show_entry(entry, {}, as_json=as_json)
            continue
        fields = {
            "name": entry.name,
            "what": query.what,
            "source": query.source,
            "data": query.data,
            "package": entry.package,
        }
        loaded = Query.model_validate(dict(query.fields))
        windows = {
            "window": format_duration(loaded.window),
            "slide": format_duration(loaded.slide_ms),
        }
        if as_json:
            typer.echo(json.dumps({**fields, "key": loaded.key, **windows}))
        else:
            lines = {
                "key": f"{loaded.key_name}, {windows['window']} sliding by {windows['slide']}",
                "source": query.source,
                "data": query.data,
            }
            _show(entry.name, entry.marked, lines, width=18)


def sources(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per source.")] = False,
) -> None:
    """List what `replay`, `simulate`, `sweep` and `advise` can read: generators,
    data sets and formats of files.
    """
    from evenflow.sources.datasets import catalogue

    for entry in catalogue():
        show_entry(entry, {}, as_json=as_json, width=18)


def aggregates(
    markdown: Annotated[bool, typer.Option("--markdown", help="As the page docs/aggregates.md.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per aggregate.")] = False,
) -> None:
    """List the aggregates and how they are written (docs/aggregates.md says more)."""
    from evenflow.aggregates.page import page
    from evenflow.aggregates.registry import catalogue

    if markdown:
        typer.echo(page(), nl=False)
        return
    for entry in catalogue():
        written = [] if entry.plugin is None else list(entry.plugin.forms)
        show_entry(entry, {"written": written}, as_json=as_json, width=14)


def show_entry(
    entry: Entry[Any], further: Mapping[str, list[str]], *, as_json: bool, width: int = 12
) -> None:
    """Print a line of a list, or its object. further: what else is said of it, each a list of texts."""
    if as_json:
        typer.echo(json.dumps({**entry.as_json(), **further}))
    else:
        lines = {name: ", ".join(texts) for name, texts in further.items() if texts}
        _show(entry.name, entry.marked, lines, width=width)


def _show(name: str, summary: str, options: Mapping[str, str], *, width: int = 12) -> None:
    typer.echo(f"{name:{width}} {summary}")
    for option, meaning in options.items():
        typer.echo(f"{'':{width}}   {option}: {meaning}")
