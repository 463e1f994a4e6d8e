"""`evenflow advise`: which partitioner, how many workers and partitions, from a sample of the stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenflow.commands.context import counted, milliseconds, say_plain, settings_of, table_console
from evenflow.commands.reading import (
    Delimiter,
    Encoding,
    Format,
    NoHeader,
    TimeUnit,
    opened,
    options_of_file,
)

if TYPE_CHECKING:
    from evenflow.advice import Advice, Sample
    from evenflow.settings import Settings

_SAMPLE = 1_000_000
_FAR_MS, _FAR_WINDOWS = 86_400_000, 10
"""A time of a file is a stray from a gap of a day and of ten windows on, if it is among few."""
_LONGEST_KEY = 48
"""Most characters of a hot key in the table."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(advise)


def advise(
    context: typer.Context,
    input: Annotated[
        str | None,
        typer.Option(
            "--input", metavar="FILE", help="A file (.csv[.gz], ...) or other source of `evenflow replay`."
        ),
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="A topic. Default, without --input: the query's input topic.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Key column. Default for a topic: the query's.")] = None,
    time: Annotated[
        str | None,
        typer.Option(help="Event time column. Default: the query's for a topic, none (numbered) for a file."),
    ] = None,
    time_unit: TimeUnit = None,
    cost: Annotated[
        str | None,
        typer.Option(
            help=(
                "Column that says how much work a tuple is, a number from 1 to 1,000,000. Shares and loads"
                " are then of work. Default: partitioner.cost for a topic,"
                " none (each tuple counts 1) for a file."
            )
        ),
    ] = None,
    format: Format = None,
    delimiter: Delimiter = None,
    no_header: NoHeader = False,
    encoding: Encoding = "utf-8",
    sample: Annotated[
        int,
        counted(
            "Tuples: the first of a file (by event time: with --time all of it is read),"
            " the newest of a topic (1,000,000)."
        ),
    ] = _SAMPLE,
    oldest: Annotated[bool, typer.Option("--oldest", help="The first records of a topic instead.")] = False,
    workers: Annotated[
        int | None, counted("Workers. Default: from --capacity, else those of the settings.")
    ] = None,
    capacity: Annotated[
        float | None,
        typer.Option(help="Tuples per second that one worker can take; tells how many are needed."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="Tuples per second to plan for. Default: the busiest slide of the sample."),
    ] = None,
    instances: Annotated[int | None, counted("Partitioner instances. Default: as the rate needs.")] = None,
    window: Annotated[
        str | None,
        typer.Option(
            help=(
                "Sliding window, e.g. 60s. Default: the query's for a topic;"
                " for a file none, the sample is one."
            )
        ),
    ] = None,
    slide: Annotated[
        str | None, typer.Option(help="Slide. Default: the query's for a topic; for a file 1s.")
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:option=value,...]",
            help="One more candidate, e.g. prompt or another micro-batch one. Repeatable.",
        ),
    ] = None,
    batch: Annotated[
        int | None,
        counted("Tuples in a batch of micro-batch candidates. Default: one slide."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="How much more than the least cost a simpler partitioner may cost.")
    ] = 0.10,
    merge_cost: Annotated[
        float, typer.Option(help="Work of merging one more partial result, in tuples.")
    ] = 1.0,
    top: Annotated[int, typer.Option(min=0, help="Hot keys to name, at most.")] = 20,
    jobs: Annotated[int, typer.Option(min=1, help="Simulations at a time, a process each.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Recommend a partitioner, workers and partitions from a sample of a file or topic, with the figures."""
    from evenflow.advice import Wishes
    from evenflow.advice import advise as run
    from evenflow.errors import ConfigError
    from evenflow.settings.sections.input import DEFAULT_PARTITIONS
    from evenflow.sources.sample import first_tuples
    from evenflow.text.options import name_of

    if input is not None and topic is not None:
        raise ConfigError("--input and --topic both say where the sample is", hint="give one of the two")
    if sample < 1:
        raise ConfigError(f"--sample must be at least 1, not {sample}")
    slide_ms = None if slide is None else milliseconds("--slide", slide)
    window_ms = None if window is None else milliseconds("--window", window)
    if input is not None:
        if oldest:
            raise ConfigError("--oldest is for a topic; of a file the first tuples are taken anyway")
        settings = settings_of(context)
        options = options_of_file(
            key=key,
            time=time,
            cost=cost,
            time_unit=time_unit,
            format=format,
            delimiter=delimiter,
            header=not no_header,
            encoding=encoding,
            keep_order=time is None,  # without times, rows are numbered in the order of the file
            first=sample + 1,  # one more tells whether the sample is the whole file
            event_rate=rate,
        )
        source = opened(input, options, timed=time is not None)
        far_ms = max(_FAR_MS, _FAR_WINDOWS * (window_ms or 0))
        stream_sample = first_tuples(source, sample, timed=time is not None, far_ms=far_ms, cost=cost)
        # As many partitions as a topic that is made for the file would get.
        inputs = settings.input.partitions or DEFAULT_PARTITIONS
    else:
        for_files = {"--no-header": no_header, "--format": format, "--encoding": encoding != "utf-8"}
        if file_options := [word for word, value in for_files.items() if value]:
            raise ConfigError(
                f"{file_options[0]} is for a file",
                hint="input.format and input.columns say what the records are",
            )
        settings = _settings_for_topic(context, topic, key, time, time_unit, delimiter, cost)
        stream_sample, inputs = _from_topic(settings, sample, first=oldest)
        window_ms = settings.query.window if window_ms is None else window_ms
        slide_ms = settings.query.slide_ms if slide_ms is None else slide_ms
    wishes = Wishes(
        workers=workers,
        capacity=capacity,
        rate=rate,
        instances=instances,
        window_ms=window_ms,
        slide_ms=1_000 if slide_ms is None else slide_ms,
        batch=batch,
        also=tuple(also or ()),
        tolerance=tolerance,
        merge_cost=merge_cost,
        top=top,
        present_workers=settings.partitioner.workers,
        present_max_workers=_present_most(settings),
        present_routed_partitions=settings.partitioner.routed_partitions,
        present_input_partitions=inputs,
        seed=settings.partitioner.seed,
    )
    say_plain(map(name_of, filter(None, wishes.also)))
    with _progress("simulating the candidates") as watch:
        advice = run(stream_sample, wishes, processes=jobs, watch=watch)
    if as_json:
        import json

        typer.echo(json.dumps(advice.as_json(), ensure_ascii=False))
    else:
        _print(advice)


def _present_most(settings: Settings) -> int | None:
    """The largest number of workers, if the settings say it."""
    how = settings.partitioner
    return None if how.max_workers is None and how.routed_partitions is None else settings.max_workers


def _settings_for_topic(
    context: typer.Context,
    topic: str | None,
    key: str | None,
    time: str | None,
    time_unit: str | None,
    delimiter: str | None,
    cost: str | None = None,
) -> Settings:
    """The settings, overridden by what the command line says about the topic.

    If another key is given, the types of the former key columns are dropped, because a query may declare
    types only of columns that it reads. ConfigError if the key does not fit the query.
    """
    from pydantic import ValidationError

    from evenflow.errors import ConfigError
    from evenflow.host.services import service_module

    query = {"time": time, "time_unit": time_unit}
    records = {"topic": topic, "delimiter": delimiter}
    overrides = {
        section: values
        for section, fields in {"query": query, "input": records, "partitioner": {"cost": cost}}.items()
        if (values := {name: value for name, value in fields.items() if value is not None})
    }
    settings = settings_of(context, **overrides)
    if key is None:
        return settings
    applied = service_module("workbench.assist.sample_check.propose", command="--key on a topic").applied
    names = [name.strip() for name in key.split(",")]
    try:
        rekeyed: Settings = applied(settings, {"query": {"key": names if len(names) > 1 else key}})
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise ConfigError(
            f"--key {key!r} does not fit the query: {why}", hint="name another column"
        ) from None
    return rekeyed


def _from_topic(settings: Settings, tuples: int, *, first: bool) -> tuple[Sample, int]:
    from evenflow.host.services import service_module

    topic_sample = service_module(
        "workbench.assist.samples", command="advice on a topic (without --input)"
    ).topic_sample
    with _progress(f"reading {settings.topic('input')}") as watch:
        reading = topic_sample(
            settings, tuples=tuples, first=first, progress=lambda records: watch(records, tuples)
        )
    return reading.sample, reading.partitions


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error. Nothing is shown if standard error is no terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(file=sys.stderr)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print(advice: Advice) -> None:
    from rich.text import Text

    # Sentences are printed as Text, because rich would take brackets in a plain string for markup.
    console = table_console(width=120)
    console.print(Text(_stream(advice)))
    if advice.hot_keys:
        console.print(Text(_hot_title(advice)))
        console.print(_hot_keys(advice))
    elif not advice.hot_key_count:
        console.print(Text("no hot key: none has a fifth of a worker's fair share"))
    console.print(
        Text(f"simulated on the sample with {advice.workers:,} worker{'s' if advice.workers > 1 else ''}")
    )
    console.print(_candidates(advice))
    scope = "the sample as one window" if advice.window_ms is None else "means over windows"
    console.print(
        Text(f"{scope}; cost and fullest worker: of the worst placement; -: not considered", style="dim")
    )
    console.print(Text(f"recommended: {advice.chosen.partitioner}", style="bold green"))
    for sentence in (*advice.reasons, *advice.size_reasons):
        console.print(Text(f"  - {sentence}"))
    for sentence in advice.warnings:
        console.print(Text(f"  ! {sentence}", style="yellow"))
    console.print(Text("\nfor evenflow.toml:", style="bold"))
    console.print(Text(advice.settings()), soft_wrap=True)


def _stream(advice: Advice) -> str:
    """A description of the sample, in one or two lines."""
    unseen = (
        f" (with those unseen about {advice.keys_estimate:,})" if advice.keys_estimate > advice.keys else ""
    )
    bad = f", {advice.unreadable:,} unreadable records" if advice.unreadable else ""
    lines = [f"{advice.source}: {advice.tuples:,} tuples, {advice.keys:,} keys{unseen}{bad}"]
    facts = []
    if advice.zipf is not None:
        facts.append(f"as skewed as Zipf {advice.zipf:.2f}")
    if advice.seconds is not None:
        facts.append(f"{advice.seconds:,.0f} s of event time")
    if advice.rate is not None:
        facts.append(f"{_rate(advice.rate)} tuples/s to plan for")
    return "\n".join([*lines, "; ".join(facts)] if facts else lines)


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _hot_title(advice: Advice) -> str:
    """How many hot keys there are, and how many of them the table shows."""
    shown = len(advice.hot_keys)
    more = f", {shown} shown" if shown < advice.hot_key_count else ""
    return (
        f"{advice.hot_key_count:,} hot key{'s' if advice.hot_key_count > 1 else ''}, each with at least a"
        f" fifth of a worker's fair share, {advice.hot_share:.1%} of the {advice.work} together{more}"
    )


def _hot_keys(advice: Advice) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    table.add_column("key", no_wrap=True)
    for title in ("tuples", "share" if advice.cost is None else "share of work", "of a worker"):
        table.add_column(title, justify="right")
    for hot in advice.hot_keys:
        name = repr(hot.key)[1:-1] if hot.key is not None else f"base64 {hot.key_base64}"
        name = name if len(name) <= _LONGEST_KEY else name[: _LONGEST_KEY - 3] + "..."
        of_worker = hot.share * advice.workers
        table.add_row(Text(name), f"{hot.tuples:,}", f"{hot.share:.2%}", f"{of_worker:.2f}")
    return table


def _candidates(advice: Advice) -> Any:
    from rich.table import Table

    table = Table()
    table.add_column("partitioner", no_wrap=True)
    titles = ("cost", "fullest/mean", "window imbalance", "replication", "most holders", "ns/tuple")
    for title in titles:
        table.add_column(title, justify="right")
    for candidate in advice.candidates:
        cost = f"{candidate.cost:,.3f}" if candidate.considered else "-"
        mark = " (does not weigh)" if candidate.weighs is False else ""
        table.add_row(
            f"{candidate.partitioner}{mark}",
            cost,
            f"{candidate.slowest_worker:,.3f}",
            f"{candidate.window_imbalance:.3g}",
            f"{candidate.ksr:,.4f}",
            f"{candidate.max_holders:,.1f}",
            f"{candidate.ns_per_tuple:,.0f}",
            style="bold green" if candidate is advice.chosen else None,
        )
    return table
