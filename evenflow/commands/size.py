"""`evenflow size`: how large a pipeline has to be for a rate, by the model of docs/scale.md."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from evenflow.commands.context import milliseconds, table_console

if TYPE_CHECKING:
    from evenflow.scale import Sizes

_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
DOES_NOT_FIT = 1
"""Exit status where no pipeline meets the demand."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(size)


def size(
    rate: Annotated[str, typer.Option(metavar="NUMBER", help="Tuples per second: 10M, 250k, 1e7.")],
    workers: Annotated[str, typer.Option(metavar="NUMBER", help="Workers.")],
    keys: Annotated[str, typer.Option(metavar="NUMBER", help="Different keys: 1e7, 500k.")],
    delay: Annotated[
        str, typer.Option(metavar="DURATION", help="How long a tuple may wait until a micro-batch has it.")
    ],
    zipf: Annotated[float, typer.Option(help="Exponent of Zipf's law that the keys follow.")] = 1.0,
    window: Annotated[str, typer.Option(metavar="DURATION", help="Length of the window.")] = "60s",
    slide: Annotated[str, typer.Option(metavar="DURATION", help="Slide of the window.")] = "1s",
    work: Annotated[
        float, typer.Option(help="Microseconds of CPU that a tuple costs the combiner beside count and sum.")
    ] = 0.0,
    record: Annotated[int, typer.Option(metavar="BYTES", help="Bytes of an input record.")] = 60,
    replicas: Annotated[int, typer.Option(help="Replicas of each partition.")] = 3,
    broker_cores: Annotated[int, typer.Option(help="Cores of a broker.")] = 16,
    executor_cores: Annotated[int, typer.Option(help="Cores of an executor.")] = 8,
    network: Annotated[float, typer.Option(help="Gbit/s that a machine's card carries each way.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Say how many instances, brokers and executors a stream needs, with which settings,
    and what breaks first.
    """
    from evenflow.scale import Demand, measured, sizes

    demand = Demand(
        rate=_amount("--rate", rate),
        workers=_whole("--workers", workers),
        keys=_whole("--keys", keys),
        delay=milliseconds("--delay", delay) / 1000,
        zipf=zipf,
        window=milliseconds("--window", window) / 1000,
        slide=milliseconds("--slide", slide) / 1000,
        work=work / 1e6,
        record=record,
        replicas=replicas,
        broker_cores=broker_cores,
        executor_cores=executor_cores,
        network=network * 1e9 / 8,
    )
    planned = sizes(demand, measured()[0])
    if as_json:
        from evenflow.scale.report import as_json as object_of

        typer.echo(json.dumps(object_of(planned)))
    else:
        _show(planned)
    if planned.misfits:
        raise typer.Exit(DOES_NOT_FIT)


def _amount(option: str, text: str) -> float:
    """The number that a person writes as 10M, 250k, 1e7 or 10_000. ConfigError for anything else."""
    from evenflow.errors import ConfigError

    written = text.strip()
    unit = written[-1:] if written[-1:].isalpha() else ""
    try:
        number = float(written.removesuffix(unit)) * _UNITS[unit]
    except (ValueError, KeyError):
        raise ConfigError(
            f"{option}: {text!r} is not a number",
            hint="write it like 10M, 250k or 1e7 (k, M and G are units)",
        ) from None
    if number != number or number in (float("inf"), float("-inf")):
        raise ConfigError(f"{option}: {text!r} is not a finite number")
    return number


def _whole(option: str, text: str) -> int:
    """A whole number, written as for `_amount`."""
    from evenflow.errors import ConfigError

    number = _amount(option, text)
    if number != int(number):
        raise ConfigError(f"{option}: {text!r} is not a whole number")
    return int(number)


def _show(planned: Sizes) -> None:
    """Print the sizes as tables, and the lines of the settings."""
    from rich.table import Table

    from evenflow.scale import breaks, measured, overlay_lines, settings_lines, shortest_delay
    from evenflow.scale.limits import over_budget
    from evenflow.scale.runs import factor, runs

    measurements, _ = measured()
    console = table_console(width=120)
    demand, shape, memory = planned.demand, planned.shape, planned.memory
    shares = planned.busy()
    table = Table(
        title=(
            f"{demand.rate:,.0f} tuples/s, {demand.workers:,} workers, {demand.keys:,} keys (Zipf"
            f" {demand.zipf:g}), a delay of {demand.delay:g} s"
        )
    )
    for column in ("part", "number", "memory of each", "busy"):
        table.add_column(column)
    parts = (
        ("partitioner instances", f"{shape.instances} of one core", memory.instance, "instances"),
        ("brokers", f"{shape.brokers} of {shape.broker_cores} cores", 0.0, "brokers"),
        (
            "executors",
            f"{planned.executors} of {demand.executor_cores} cores",
            memory.executor_heap + memory.executor_overhead,
            "executors",
        ),
        ("Spark driver", "1 of one core", memory.driver_heap, "driver"),
        ("controller", "1 of one core", 0.0, "controller"),
    )
    for part, number, size_of, place in parts:
        table.add_row(part, number, f"{size_of / 2**30:.2g} GiB" if size_of else "-", f"{shares[place]:.1%}")
    console.print(table)
    typer.echo(
        f"A tuple waits up to {shape.linger:g} s in a block, {shape.commit:g} s in a transaction and"
        f" {shape.batch:g} s for its micro-batch, which takes {planned.batch_seconds:.2g} s. A frame has"
        f" {shape.rate / shape.frames:,.0f} tuples.\nOpen panes hold up to {memory.state / 1e9:.2g} GB in"
        f" {shape.buckets} buckets. Brokers need {memory.page_cache / 2**30:.1g} GiB of page cache each for"
        " what is not yet read."
    )
    for misfit in planned.misfits:
        typer.echo(f"DOES NOT FIT: {misfit}")
    table = Table(title="What breaks first, as the rate grows and nothing is added")
    for column in ("place", "busy now", "full at", "mostly by", "what to do"):
        table.add_column(column)
    for limit in breaks(planned):
        at = (
            "over 100 times"
            if limit.times is None
            else f"{limit.times:.3g} times"
            if limit.times > 1
            else "now"
        )
        table.add_row(limit.place, f"{limit.busy:.1%}", at, limit.topic, limit.remedy)
    console.print(table)
    typer.echo(f"With the same machines a delay of {shortest_delay(planned):.2g} s is the shortest.")
    for term in over_budget(planned):
        typer.echo(f"Dear: {term}")
    middle, largest = factor([run for run in runs(measurements) if not run.fitted])
    typer.echo(
        f"Figures come from a model. Beside measured runs it is off by a factor of {middle:.1f} in the"
        f" middle, and of {largest:.1f} at most (docs/scale.md).\n"
    )
    typer.echo("# evenflow.toml\n" + settings_lines(planned) + "\n\n# Kubernetes\n" + overlay_lines(planned))
