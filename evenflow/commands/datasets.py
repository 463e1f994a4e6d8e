"""`evenflow datasets` lists the data sets that a user downloads, and checks a download."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evenflow.sources.downloads import Download

_datasets = typer.Typer(
    no_args_is_help=True, help="Data sets that are files: their layout, and whether a file fits."
)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(_datasets, name="datasets")


@_datasets.command("list")
def listed() -> None:
    """List the data sets whose files can be checked."""
    from evenflow.sources.datasets import DATA_SETS

    for item in DATA_SETS.values():
        typer.echo(f"{item.name:14} {item.layout}\n{'':14}    licence: {item.licence}")


@_datasets.command("check")
def check(
    name: Annotated[str, typer.Argument(help="The data set: taxi, cluster-tasks, retail or flights.")],
    path: Annotated[
        Path | None,
        typer.Argument(help="The downloaded file. Not given: that of the installed package (flights)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Compare a downloaded file with its data set. Exit status 1 if it does not fit, or has a wrong
    checksum.
    """
    from evenflow.sources.downloads import check_download

    download = check_download(name, path)
    typer.echo(json.dumps(download.as_json()) if as_json else _in_words(download))
    if download.problem is not None or download.checksum == "wrong":
        raise typer.Exit(1)


def _in_words(download: Download) -> str:
    from evenflow.reporting.words import moment
    from evenflow.sources.downloads import data_set

    if download.checksum == "right":
        checksum = f"right: that of {download.known_as}"
    elif download.checksum == "wrong":
        files = " or ".join(data_set(download.data_set).sha256.values())
        checksum = f"wrong: this is not {files}"
    else:
        checksum = "no checksum of this data set is known to compare it with"
    fits = f"{download.rows:,} rows fit" if download.problem is None else f"does not fit: {download.problem}"
    if download.same_time is not None:
        time = data_set(download.data_set).time
        fits += (
            f"\nwarning: all of them have the same time in {time!r}, {moment(download.same_time)}: no slide"
            " ever ends"
        )
    return (
        f"{download.data_set}: {fits}\ncolumns {', '.join(download.columns)}\nsha256 {download.sha256}"
        f" ({checksum})"
    )
