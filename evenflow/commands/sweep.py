"""`evenflow sweep` simulates a grid of cells into one table. `compare` and `plot` read the table."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenflow.commands.context import counted, milliseconds, say_plain, table_console
from evenflow.commands.reading import (
    Cost,
    Delimiter,
    Encoding,
    Format,
    Input,
    Key,
    MaxDisorder,
    NoHeader,
    Time,
    TimeUnit,
)
from evenflow.commands.streams import (
    Batch,
    Jobs,
    Rate,
    Slide,
    channel_of,
    disorder_of,
    refuse,
    refuse_words_of_file,
    stream_of_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from evenflow.simulation import KeyedStream
    from evenflow.sweep.comparing import Comparison, ConditionSummary, Interval

_TUPLES, _KEYS, _PERIOD = 1_000_000, 100_000, "10s"
_NUMBERS = "LIST"
Metric = Annotated[
    str, typer.Option(help="A number of `simulate --json`, e.g. imbalance, window_imbalance, ksr.")
]
Middle = Annotated[
    Literal["mean", "median"],
    typer.Option(
        "--centre", help="Over the seeds: mean with its t interval, or median with a bootstrap interval."
    ),
]
Level = Annotated[float, typer.Option(help="Level of the interval.")]


def register(app: typer.Typer) -> None:
    """Add the command with its subcommands."""
    program = typer.Typer(help="Simulate a grid of cells into one table; compare and draw what it says.")
    program.callback(invoke_without_command=True)(sweep)
    program.command()(compare)
    program.command()(plot)
    app.add_typer(program, name="sweep")


def sweep(
    context: typer.Context,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The table, .parquet or .csv. A sweep that was stopped goes on with the same command."
        ),
    ] = None,
    series: Annotated[
        Path | None,
        typer.Option(help="A second table: imbalance of every window (without --window: over time)."),
    ] = None,
    partitioner: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:option=value,...]", help="Repeatable. Default: every registered name."),
    ] = None,
    workers: Annotated[str, typer.Option(metavar=_NUMBERS, help="Workers, e.g. 8,16,32 or 8:64:8.")] = "64",
    zipf: Annotated[
        str | None, typer.Option(metavar=_NUMBERS, help="Exponents of Zipf streams, e.g. 0:2:0.5 (1.0).")
    ] = None,
    sources: Annotated[
        str, typer.Option(metavar=_NUMBERS, help="Independent partitioners: tuple t goes to source t mod S.")
    ] = "1",
    seeds: Annotated[
        str,
        typer.Option(
            metavar=_NUMBERS,
            help=(
                "Seeds of the stream and of the hash family, e.g. 1:20. With --input,"
                " of the hash family only."
            ),
        ),
    ] = "1:5",
    tuples: Annotated[
        int | None, counted("Tuples of each stream (1,000,000), or the first so many of --input (all).")
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(metavar="NAME[:setting=value,...]", help="Generated stream (zipf), as for `simulate`."),
    ] = None,
    keys: Annotated[int | None, counted("Keys of the generated stream (100,000).")] = None,
    period: Annotated[str | None, typer.Option(help="Period of the stream, in event time (10s).")] = None,
    exchange: Annotated[
        bool, typer.Option("--exchange", help="Sources that can coordinate tell each other what they know.")
    ] = False,
    exchange_delay: Annotated[
        str | None, typer.Option(help="Event time that each message and table of --exchange takes (0).")
    ] = None,
    exchange_loss: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of the messages of --exchange that never arrive (0)."),
    ] = None,
    input: Input = None,
    key: Key = None,
    time: Time = None,
    time_unit: TimeUnit = None,
    cost: Cost = None,
    format: Format = None,
    delimiter: Delimiter = None,
    no_header: NoHeader = False,
    encoding: Encoding = "utf-8",
    rate: Rate = None,
    window: Annotated[
        str | None, typer.Option(help="Sliding window, e.g. 60s. Default: figures of the whole stream.")
    ] = None,
    slide: Slide = "1s",
    warmup_slides: Annotated[
        int | None, typer.Option(help="First slides left out of the means. Default: those of one window.")
    ] = None,
    batch: Batch = None,
    max_disorder: MaxDisorder = None,
    jobs: Jobs = None,
) -> None:
    """Simulate every combination of partitioner, workers, exponent, sources and seed into one table."""
    if context.invoked_subcommand is not None:
        return
    from evenflow.errors import ConfigError
    from evenflow.partitioners import names
    from evenflow.simulation import Origin, Scenario
    from evenflow.sweep.grid import Grid
    from evenflow.sweep.ranges import decimals, whole_numbers
    from evenflow.sweep.run import run
    from evenflow.sweep.store import Store
    from evenflow.text.options import name_of

    if output is None:
        raise ConfigError("a sweep needs --output", hint="name a file, e.g. --output sweep.parquet")
    if warmup_slides is not None and window is None:
        raise ConfigError("--warmup-slides counts slides of a window", hint="give --window too")
    scenario = Scenario(
        workers=1,
        exchange=channel_of(exchange, exchange_delay, exchange_loss, seed=1),
        window_ms=None if window is None else milliseconds("--window", window),
        slide_ms=milliseconds("--slide", slide),
        warmup_slides=warmup_slides,
        batch=batch,
    )
    words = {
        "key": key,
        "time": time,
        "time_unit": time_unit,
        "cost": cost,
        "format": format,
        "delimiter": delimiter,
        "no_header": no_header,
        "encoding": encoding,
    }
    file: KeyedStream | None = None
    exponents: tuple[float, ...] = ()
    if input is None:
        refuse_words_of_file(words, max_disorder)
        kind = stream or "zipf"
        origin = Origin(
            stream=kind,
            generator_keys=_KEYS if keys is None else keys,
            period_ms=milliseconds("--period", period or _PERIOD),
            rate=rate,
        )
        exponents = _exponents(kind, None if zipf is None else decimals("--zipf", zipf))
        count = _TUPLES if tuples is None else tuples
    else:
        refuse(
            {"--stream": stream, "--keys": keys, "--zipf": zipf, "--period": period},
            "describes a generated stream",
            "drop it, or drop --input",
        )
        file = stream_of_file(
            input, words, first=tuples, rate=rate, disorder_ms=disorder_of(max_disorder, scenario)
        )
        origin = Origin(stream=input, rate=rate, key=key, time=time, cost=cost, digest=file.digest())
        count = len(file)
    grid = Grid(
        partitioners=tuple(partitioner or names()),
        workers=whole_numbers("--workers", workers),
        sources=whole_numbers("--sources", sources),
        seeds=whole_numbers("--seeds", seeds),
        exponents=exponents,
        scenario=scenario,
        origin=origin,
        tuples=count,
    )
    say_plain(map(name_of, grid.partitioners))
    with Store(grid.cells(), output, series) as store:
        left = store.left
        if len(left) < grid.size:
            typer.echo(f"{grid.size - len(left):,} of {grid.size:,} cells are finished", err=True)
        with _progress_bar(grid.size, grid.size - len(left)) as advance:

            def finish(outcome: Any) -> None:
                store.add(outcome)
                advance(outcome.cell.who.label)

            run(left, file=file, processes=jobs, finish=finish)
        store.finish()
    typer.echo(f"{grid.size:,} cells: {output}" + ("" if series is None else f", {series}"), err=True)


def compare(
    table: Annotated[Path, typer.Argument(metavar="FILE", help="The table of a sweep.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[A B]", help="Two partitioners to compare. Default: each by itself."),
    ] = None,
    metric: Metric = "imbalance",
    centre: Middle = "mean",
    level: Level = 0.95,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON Lines, one object per line of the table.")
    ] = False,
) -> None:
    """Means or medians over the seeds with intervals, and the paired difference of two partitioners."""
    from evenflow.errors import ConfigError
    from evenflow.sweep import compared, read_table, summarised

    pair = names or []
    if len(pair) not in (0, 2):
        raise ConfigError(
            f"compare takes two partitioners or none, not {len(pair)}", hint="name them as in the table"
        )
    rows = read_table(table)
    lines: Sequence[Comparison] | Sequence[ConditionSummary]
    if pair:
        lines = compared(rows, metric, pair[0], pair[1], centre=centre, level=level)
    else:
        lines = summarised(rows, metric, centre=centre, level=level)
    if as_json:
        for line in lines:
            typer.echo(json.dumps({"metric": metric, "centre": centre, "level": level, **line.as_json()}))
        return
    how = "t interval" if centre == "mean" else "bootstrap interval"
    _print(lines, f"{metric}: {centre} over seeds with its {level:.0%} {how}")


def plot(
    table: Annotated[Path, typer.Argument(metavar="FILE", help="The table of a sweep.")],
    picture: Annotated[Path, typer.Argument(help="The picture: .svg .pdf .png .html")],
    metric: Metric = "imbalance",
    x: Annotated[
        Literal["workers", "exponent", "sources"], typer.Option("--x", help="The horizontal axis.")
    ] = "workers",
    panels: Annotated[
        Literal["workers", "exponent", "sources"] | None, typer.Option(help="A panel for each of its values.")
    ] = None,
    partitioner: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Repeatable. Default: all of the table.")
    ] = None,
    centre: Middle = "mean",
    level: Level = 0.95,
) -> None:
    """Draw a line for each partitioner with a band over the seeds."""
    from evenflow.simulation.charts import check_target
    from evenflow.sweep import read_table
    from evenflow.sweep.pictures import plot as draw

    check_target(picture)
    rows = read_table(table)
    draw(
        rows, picture, metric=metric, x=x, panels=panels, names=partitioner or (), centre=centre, level=level
    )
    typer.echo(f"chart: {picture}", err=True)


def _exponents(kind: str, exponents: tuple[float, ...] | None) -> tuple[float, ...]:
    """The exponents of a stream. Empty if it has none that can be set."""
    from evenflow.simulation import kind_of

    if exponents is None and kind_of(kind).has_exponent:
        return (1.0,)
    return exponents or ()


@contextmanager
def _progress_bar(cells: int, finished: int) -> Iterator[Callable[[str], None]]:
    """A progress bar of the cells on standard error. Nothing is shown if standard error is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("cells"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=cells, completed=finished)
        yield lambda label: bar.update(task, advance=1, description=label)


def _print(lines: Sequence[Comparison] | Sequence[ConditionSummary], title: str) -> None:
    from rich.table import Table

    from evenflow.sweep.comparing import Comparison

    console = table_console(width=140)
    varied = [
        name
        for name, value in lines[0].condition.items()
        if any(line.condition[name] != value for line in lines)
    ]
    shown = Table(title=title)
    for name in varied:
        shown.add_column(name, justify="right")
    first = lines[0]
    if isinstance(first, Comparison):
        columns = [first.first, first.second, f"{first.first} - {first.second}"]
        counts = ["seeds", f"{first.first} less", f"{first.second} less", "ties"]
    else:
        columns, counts = ["value"], ["seeds"]
        shown.add_column("partitioner", overflow="fold")
    for name in (*columns, *counts):
        shown.add_column(name, justify="right", overflow="fold")
    for line in lines:
        cells = ["-" if line.condition[name] is None else f"{line.condition[name]}" for name in varied]
        shown.add_row(*cells, *_cells(line))
    console.print(shown)


def _cells(row: Comparison | ConditionSummary) -> list[str]:
    from evenflow.sweep.comparing import ConditionSummary

    if isinstance(row, ConditionSummary):
        return [row.partitioner, _interval(row.value), f"{row.seeds}"]
    intervals = (row.first_value, row.second_value, row.difference)
    return [
        *(_interval(value) for value in intervals),
        *(f"{count}" for count in (row.seeds, row.first_wins, row.second_wins, row.ties)),
    ]


def _interval(value: Interval) -> str:
    if value.low is None or value.high is None:
        return f"{value.centre:.4g}"
    return f"{value.centre:.4g} [{value.low:.4g}, {value.high:.4g}]"
