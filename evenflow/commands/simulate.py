"""`evenflow simulate` routes a stream through partitioners, without Kafka."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from rich.table import Table

    from evenflow.elasticity.simulated.migration import Migration
    from evenflow.simulation import Channel, Entrant, Figures, Provenance, Scenario, SimulationResult

_TUPLES, _KEYS, _ZIPF, _PERIOD = 1_000_000, 100_000, 1.0, "10s"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(simulate)


def simulate(
    partitioner: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:option=value,...]",
            help="Repeatable; module:Class is one of your own. Default: every registered name.",
        ),
    ] = None,
    workers: Annotated[int, counted("Workers.")] = 64,
    tuples: Annotated[
        int | None, counted("Tuples to generate (1,000,000), or the first so many of --input (all).")
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:setting=value,...]",
            help=(
                "Generated stream (zipf): shift is uniform and Zipf from half of the tuples on; alternating"
                " changes between the two each --period; drift moves the hot keys on by 10 each --period;"
                " replaced gives the 200 hottest ranks new keys each --period; random-exponent draws one of"
                " 0.5-1.5 each --period; wandering-exponent and wandering-load take a step each --period;"
                " giant gives one key 90 % from half of the tuples on; wrong-clock has one tuple an hour"
                " ahead, silence an hour without tuples, in the middle; runs:length=200,longest=200 has so"
                " many tuples of one key in a row; flash:share=0.3,every=10 gives a cold key 30 % in one"
                " --period of ten; sessions:alive=1000,life=6 has keys that live for six periods and come"
                " back after all others; disjoint:sources=5 gives each source keys of its own; few has a"
                " thousandth of the rate; costly:share=0.3,rare=0.01,dearer=100 has costs: a hot key is"
                " cheap, and a rare one has most of the work."
            ),
        ),
    ] = None,
    keys: Annotated[int | None, counted("Keys of the generated stream (100,000).")] = None,
    zipf: Annotated[float | None, typer.Option(help="Exponent of Zipf streams (1.0).")] = None,
    period: Annotated[str | None, typer.Option(help="Period of the stream, in event time (10s).")] = None,
    sources: Annotated[
        int,
        counted("Independent partitioners: tuple t goes to source t mod S; loads are measured over all."),
    ] = 1,
    exchange: Annotated[
        bool,
        typer.Option(
            "--exchange",
            help="At the end of every slide sources that can coordinate tell each other what they know.",
        ),
    ] = False,
    exchange_delay: Annotated[
        str | None,
        typer.Option(help="Event time that each message and each table of --exchange takes, e.g. 500ms (0)."),
    ] = None,
    exchange_loss: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Share of the messages and tables of --exchange that never arrive (0)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the stream and of the hash family.")] = 1,
    hash_seed: Annotated[
        int | None, typer.Option(help="Another seed for the hash family, on the same stream.")
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
        str | None,
        typer.Option(
            help=(
                "Sliding window, e.g. 60s, for every rule that knows windows and for the figures. Default:"
                " state is cumulative, figures are of the whole stream."
            )
        ),
    ] = None,
    slide: Slide = "1s",
    warmup_slides: Annotated[
        int | None,
        typer.Option(
            help="First slides left out of the means. Default: those of one window, if more follow."
        ),
    ] = None,
    batch: Batch = None,
    state_bytes: Annotated[
        int | None,
        counted(
            "Bytes of state of a key at a worker: counts what moving it would cost, if state follows its key."
        ),
    ] = None,
    state_rate: Annotated[
        float | None, typer.Option(min=1, help="Bytes/s at which state moves (125,000,000: 1 Gbit/s).")
    ] = None,
    state_pause: Annotated[
        str | None,
        typer.Option(help="Pause of a slide with moves beside that of their bytes, e.g. 50ms (0)."),
    ] = None,
    max_disorder: MaxDisorder = None,
    jobs: Jobs = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Write charts: imbalance against replication, over time, loads (.png .svg .pdf .html)."
        ),
    ] = None,
    stress: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The partitioner that stands out in the charts of --plot (none)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON Lines, one object per partitioner.")] = False,
) -> None:
    """Route a stream through partitioners without Kafka, and compare balance, replication and cost."""
    from tempfile import TemporaryDirectory

    from evenflow.errors import ConfigError
    from evenflow.partitioners import names
    from evenflow.simulation import Origin, Scenario, entrant, generated, origin_of, provenance_of
    from evenflow.simulation import simulate as run
    from evenflow.simulation.charts import check_target
    from evenflow.simulation.charts import plot as draw

    if warmup_slides is not None and window is None:
        raise ConfigError("--warmup-slides counts slides of a window", hint="give --window too")
    scenario = Scenario(
        workers=workers,
        sources=sources,
        exchange=channel_of(exchange, exchange_delay, exchange_loss, seed),
        seed=seed if hash_seed is None else hash_seed,
        window_ms=None if window is None else milliseconds("--window", window),
        slide_ms=milliseconds("--slide", slide),
        warmup_slides=warmup_slides,
        batch=batch,
        state_bytes=state_bytes,
        migration=_migration(state_bytes, state_rate, state_pause),
    )
    entrants = [entrant(text) for text in partitioner or names()]
    for who in entrants:
        scenario.check(who)
    say_plain(who.name for who in entrants)
    if stress is not None and stress not in {who.label for who in entrants}:
        raise ConfigError(
            f"--stress {stress}: no such partitioner takes part", hint="write it as with --partitioner"
        )
    if stress is not None and plot is None:
        raise ConfigError("--stress is for the charts of --plot", hint="give --plot too")
    if plot is not None:
        check_target(plot)
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
    stream_said = {"--stream": stream, "--keys": keys, "--zipf": zipf, "--period": period}
    with TemporaryDirectory(prefix="evenflow-simulate-") as folder:
        if input is not None:
            refuse(stream_said, "describes a generated stream", "drop it, or drop --input")
            routed = stream_of_file(
                input, words, first=tuples, rate=rate, disorder_ms=disorder_of(max_disorder, scenario)
            )
            origin = Origin(stream=input, rate=rate, key=key, time=time, cost=cost, digest=routed.digest())
        else:
            refuse_words_of_file(words, max_disorder)
            kind = stream or "zipf"
            law: dict[str, Any] = {
                "keys": _KEYS if keys is None else keys,
                "zipf": _ZIPF if zipf is None else zipf,
                "seed": seed,
                "rate": rate,
                "period_ms": milliseconds("--period", period or _PERIOD),
            }
            count = _TUPLES if tuples is None else tuples
            routed = generated(kind, tuples=count, folder=Path(folder), **law)
            origin = origin_of(kind, **law)
        with _progress_bars(entrants, len(routed)) as watch:
            results = run(routed, entrants, scenario, processes=jobs, watch=watch)
        provenances = [provenance_of(origin, scenario, who, routed) for who in entrants]
    _show(results, provenances, scenario, as_json=as_json)
    if plot is not None:
        draw(results, plot, about=provenances[0], stress=stress)
        typer.echo(f"charts: {plot}", err=True)


def _migration(state_bytes: int | None, rate: float | None, pause: str | None) -> Migration:
    """What moving state costs. ConfigError for costs of no state."""
    from evenflow.elasticity.simulated.migration import NETWORK, Migration
    from evenflow.errors import ConfigError

    if state_bytes is None and (rate is not None or pause is not None):
        raise ConfigError(
            "--state-rate and --state-pause are the costs of moving state", hint="give --state-bytes too"
        )
    fixed_s = 0.0 if pause is None else milliseconds("--state-pause", pause) / 1000
    return Migration(fixed_s=fixed_s, rate=NETWORK if rate is None else rate)


@contextmanager
def _progress_bars(entrants: Sequence[Entrant], tuples: int) -> Iterator[Callable[[Sequence[int]], None]]:
    """A progress bar for each partitioner on standard error.
    Nothing is shown if standard error is no terminal.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks = [bars.add_task(who.label, total=tuples) for who in entrants]

        def watch(done: Sequence[int]) -> None:
            for task, tuples_done in zip(tasks, done, strict=True):
                bars.update(task, completed=tuples_done)

        yield watch


def _show(
    results: Sequence[SimulationResult],
    provenances: Sequence[Provenance],
    scenario: Scenario,
    *,
    as_json: bool,
) -> None:
    """Print the figures: as JSON lines, or as a table."""
    if as_json:
        for result, provenance in zip(results, provenances, strict=True):
            typer.echo(json.dumps(result.figures.as_json() | {"provenance": provenance.as_json()}))
        return
    _print_table(results, scenario)
    if scenario.exchange is not None:
        typer.echo(_who_exchanged(results, scenario.exchange))


_Cell = Callable[["Figures"], str]
_COLUMNS: dict[str, _Cell] = {
    "I(m)": lambda f: f"{f.imbalance:.3g}",
    "mean I(t)": lambda f: f"{f.imbalance_mean:.3g}",
    "of window": lambda f: f"{f.window_imbalance:.3g}",
    "Gamma": lambda f: f"{f.gamma:,.0f}",
    "keys": lambda f: f"{f.distinct:,.0f}",
    "replication": lambda f: f"{f.ksr:.4f}",
    "max holders": lambda f: f"{f.max_holders:,.1f}",
    "hot keys": lambda f: "-" if f.hot_keys is None else f"{f.hot_keys:,}",
    "told B/s": lambda f: "-" if f.exchange_bytes is None else f"{f.exchange_bytes:,.0f}",
    "key moves": lambda f: "-" if f.key_moves is None else f"{f.key_moves:,.1f}",
    "MB moved": lambda f: "-" if f.moved_bytes is None else f"{f.moved_bytes / 1e6:,.3g}",
    "pause s": lambda f: "-" if f.moved_pause_s is None else f"{f.moved_pause_s:,.3g}",
    "ns/tuple": lambda f: f"{f.ns_per_tuple:,.1f}",
}
_LESS_NEEDED = ("mean I(t)", "keys", "Gamma", "hot keys", "told B/s")
"""Columns that are left out in a narrow terminal, in this order, until the table fits."""


def _columns(scenario: Scenario) -> list[str]:
    """The titles of the columns that have something to show."""
    left_out = set()
    if scenario.window_ms is None:
        left_out.add("of window")
    if scenario.exchange is None:
        left_out.add("told B/s")
    if scenario.state_bytes is None:
        left_out |= {"key moves", "MB moved", "pause s"}
    return [title for title in _COLUMNS if title not in left_out]


def _print_table(results: Sequence[SimulationResult], scenario: Scenario) -> None:
    from rich.measure import Measurement

    console = table_console(width=140)
    shown = _columns(scenario)
    table = _table(results, shown, scenario)
    for title in [title for title in _LESS_NEEDED if title in shown]:
        if Measurement.get(console, console.options.update(max_width=999), table).maximum <= console.width:
            break
        shown.remove(title)
        table = _table(results, shown, scenario)
    console.print(table)


def _who_exchanged(results: Sequence[SimulationResult], channel: Channel) -> str:
    able = [result.figures.partitioner for result in results if result.figures.exchange]
    if not able:
        return "exchange: none of these can; nothing is different"
    how = (
        f" ({channel.delay_ms} ms late, {channel.loss:.3g} lost)" if channel.delay_ms or channel.loss else ""
    )
    sentence = f"exchange between sources every slide{how}: {', '.join(able)}"
    return sentence if len(able) == len(results) else f"{sentence}; the others cannot and are as without it"


def _marked(figures: Figures) -> str:
    """The partitioner, with a mark if tuples have costs and it does not weigh them."""
    return f"{figures.partitioner} (does not weigh)" if figures.weighs is False else figures.partitioner


def _table(results: Sequence[SimulationResult], shown: Sequence[str], scenario: Scenario) -> Table:
    from rich.table import Table

    first = results[0].figures
    windowed = scenario.window_ms is not None
    caption = (
        "Gamma, keys, replication, holders: mean over windows" if windowed else "figures of the whole stream"
    )
    if first.total_cost is not None:
        caption += "; loads and imbalance are of costs"
    less = len(shown) < len(_columns(scenario))
    table = Table(
        title=(
            f"{first.tuples:,} tuples, {first.keys:,} keys,"
            f" {first.workers:,} workers: imbalance and its price"
        ),
        caption=caption + ("; more of them in a wider terminal, or with --json" if less else ""),
    )
    table.add_column("partitioner", overflow="fold")
    for title in shown:
        table.add_column(title, justify="right", no_wrap=True)
    for result in results:
        table.add_row(_marked(result.figures), *(_COLUMNS[title](result.figures) for title in shown))
    return table
