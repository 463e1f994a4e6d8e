"""`evenflow demo`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evenflow.commands.reading import Delimiter, Encoding, Format, NoHeader, TimeUnit, opened

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    query: Annotated[str, typer.Option(help="A built-in query (`evenflow queries`).")] = "flights",
    input: Annotated[
        str | None, typer.Option("--input", help="Any file or generator instead of a built-in query.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Key column of --input.")] = None,
    time: Annotated[
        str | None, typer.Option(help="Event time column of --input. Default: 1,000 tuples a second.")
    ] = None,
    time_unit: TimeUnit = None,
    value: Annotated[str | None, typer.Option(help="A number column to sum, average and maximise.")] = None,
    format: Format = None,
    delimiter: Delimiter = None,
    no_header: NoHeader = False,
    encoding: Encoding = "utf-8",
    partitioner: Annotated[
        str, typer.Option(help="NAME[:option=value,...] (`evenflow partitioners`).")
    ] = "evenflow",
    workers: Annotated[int, typer.Option(min=1, help="Workers.")] = 8,
    instances: Annotated[int, typer.Option(min=1, help="Partitioner instances.")] = 1,
    window: Annotated[str | None, typer.Option(help="Window, e.g. 60s.")] = None,
    slide: Annotated[str | None, typer.Option(help="Slide, e.g. 10s.")] = None,
    wiring: Annotated[
        Literal["fused", "split"], typer.Option(help="How the Spark stages are joined.")
    ] = "fused",
    limit: Annotated[int | None, typer.Option(min=0, help="Only the first ROWS tuples.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object as the last line of output.")
    ] = False,
) -> None:
    """Run the whole pipeline on this machine with real data and verify every window; exit 1 on differences."""
    from evenflow.partitioners.written import parse_partitioner
    from workbench.demo import DemoOptions, run

    name, options = parse_partitioner(partitioner)
    result = run(
        DemoOptions(
            query=query,
            input=input,
            key=key,
            time=time,
            time_unit=time_unit,
            value=value,
            format=format,
            delimiter=delimiter,
            header=not no_header,
            encoding=encoding,
            partitioner=name,
            partitioner_options=options,
            workers=workers,
            instances=instances,
            window=window,
            slide=slide,
            wiring=wiring,
            limit=limit,
        ),
        _console(stderr=as_json),
        opened=opened,
    )
    if as_json:
        typer.echo(result.json())
    raise typer.Exit(0 if result.differences == 0 else 1)


def _console(*, stderr: bool) -> Console:
    """A console that does not squeeze tables where nobody looks at a terminal."""
    from rich.console import Console

    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=120)
