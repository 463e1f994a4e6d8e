"""`evenflow replay`: a file, the flights or a generator into the input topic."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenflow.commands.reading import Delimiter, Encoding, Format, NoHeader, TimeUnit, opened

if TYPE_CHECKING:
    from producers.replay import ReplaySummary


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(replay)


def replay(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="A file (.csv .tsv .jsonl .txt, also .gz .zip; .tar.gz or a folder of texts), 'flights', or"
            " a generator such as zipf:z=1.4,keys=100000,tuples=1000000,rate=50000,seed=1 (also uniform,"
            " alternating, random-exponent, wandering-exponent, drift, replaced, flash-crowd, runs, flash,"
            " sessions, disjoint, costly; options disorder=500ms, start=ISO, period=10s)."
        ),
    ],
    key: Annotated[str | None, typer.Option(help="Column of the record key. Default: query.key.")] = None,
    time: Annotated[str | None, typer.Option(help="Column of the event time. Default: query.time.")] = None,
    time_unit: TimeUnit = None,
    value: Annotated[
        list[str] | None, typer.Option(help="Send only key, time and this column (repeatable).")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Columns to send, in order: a,b,c. Default: all.")
    ] = None,
    format: Format = None,
    delimiter: Delimiter = None,
    no_header: NoHeader = False,
    encoding: Encoding = "utf-8",
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Keep the file's order instead of sorting by event time.")
    ] = False,
    event_rate: Annotated[
        float | None,
        typer.Option(min=0.001, help="Tuples per second of event time, for a source without a time column."),
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Tuples per second. Default: full speed.")] = None,
    speed: Annotated[str | None, typer.Option(help="Times the recorded speed, e.g. 60x.")] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="Rate profile: spike:base=1000,peak=5000,at=10s,for=5s; staircase:...; sine:...; "
            "poisson:rate=1000; pareto:alpha=1.5,xm=0.0002."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Send only the first ROWS tuples.")] = None,
    producer_id: Annotated[str, typer.Option(help="Who ends the stream; unique per input topic.")] = "replay",
    end: Annotated[bool, typer.Option("--end/--no-end", help="End every partition when done.")] = True,
    by_key: Annotated[
        bool, typer.Option("--by-key", help="Partition by hash of the key (murmur2), not by turns.")
    ] = False,
    sticky: Annotated[bool, typer.Option("--sticky", help="Partition in runs of 1000 tuples.")] = False,
    live: Annotated[bool, typer.Option("--live", help="Event time is the clock at sending.")] = False,
    create_topic: Annotated[bool, typer.Option(help="Create the input topic if it is missing.")] = True,
    sending: Annotated[
        Literal["arrays", "calls"],
        typer.Option(
            help="How records are handed to Kafka's client: arrays (compiled), or calls (one call a record)."
        ),
    ] = "arrays",
    as_json: Annotated[bool, typer.Option("--json", help="Print one summary object.")] = False,
) -> None:
    """Replay a data set or a generator into the input topic, then end the stream."""
    from evenflow.commands.context import settings_of
    from evenflow.errors import ConfigError

    if by_key and sticky:
        raise ConfigError("--by-key and --sticky exclude each other")
    settings = settings_of(context)

    from evenflow.sources.source import SourceOptions
    from producers.profiles import choose_profile
    from producers.replay import DeliveryError
    from producers.replay import replay as send
    from topics.query.waiting import wait_for_input

    wait_for_input(settings, made_by_us=create_topic)
    chosen = choose_profile(rate=rate, speed=speed, profile=profile)
    options = SourceOptions.for_settings(
        settings,
        key=key,
        time=time,
        time_unit=time_unit,
        columns=tuple(name.strip() for name in columns.split(",")) if columns is not None else None,
        values=tuple(value or ()),
        format=format,
        delimiter=delimiter,
        header=not no_header,
        encoding=encoding,
        keep_order=keep_order,
        event_rate=event_rate,
    )
    # A signal ends the replay between two tuples: what is under way is delivered, and the summary says so.
    with _stop_on_signals() as stopped, _progress_bar(source) as progress:
        stream = opened(source, options, timed=not live)
        try:
            summary = send(
                settings,
                stream,
                profile=chosen,
                producer_id=producer_id,
                partition_by="key" if by_key else "sticky" if sticky else "round-robin",
                limit=limit,
                live=live,
                end=end,
                create_topic=create_topic,
                progress=progress,
                stop=stopped,
                sending=sending,
            )
        except DeliveryError as error:
            if as_json:
                typer.echo(_object(error.summary))
            raise
    if as_json:
        typer.echo(_object(summary))
    typer.echo(_in_words(summary, settings.topic("input")), err=True)
    if summary.interrupted:
        raise typer.Exit(130)  # as a shell reports a program that Ctrl-C has ended


def _object(summary: ReplaySummary) -> str:
    """The summary as one line of JSON, with what sent the tuples."""
    from evenflow.simulation.provenance import program

    return json.dumps(summary.as_json() | {"provenance": program()})


def _in_words(summary: ReplaySummary, topic: str) -> str:
    state = "interrupted, not ended" if summary.interrupted else "ended" if summary.ended else "not ended"
    return (
        f"{summary.tuples:,} tuples delivered to {topic} "
        f"({len(summary.per_partition)} partitions) in {summary.seconds:.1f} s: "
        f"{summary.tuples_per_second:,.0f} tuples/s; {state}"
    )


@contextmanager
def _stop_on_signals() -> Iterator[Callable[[], bool]]:
    """A function that returns whether Ctrl-C or SIGTERM has come. A second signal has its usual effect."""
    before: dict[int, Any] = {}
    signals: list[int] = []

    def note(number: int, frame: object) -> None:
        signals.append(number)
        signal.signal(number, before[number])  # so that a second one ends the process

    for stop_signal in (signal.SIGINT, signal.SIGTERM):
        before[stop_signal] = signal.signal(stop_signal, note)
    try:
        yield lambda: bool(signals)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress_bar(title: str) -> Iterator[Callable[[int, int | None], None]]:
    """A progress bar on standard error with rate and time left. Silent if standard error is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(title[:40], total=None, rate="")

        def advance(sent: int, total: int | None) -> None:
            bar.update(task, completed=sent, total=total)
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            bar.update(task, rate=f"{speed:,.0f}/s" if speed else "")

        yield advance
