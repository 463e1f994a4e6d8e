"""`evenflow demo`: the whole pipeline on this machine, once or as a closed loop."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from evenflow.commands.context import table_console
from evenflow.commands.reading import Delimiter, Encoding, Format, NoHeader, TimeUnit, opened


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


_OF_LOOPS = ("profile", "seconds", "reserve", "watch", "prometheus")
_WATCHED_POLICY, _WATCHED_PROFILE = "prompt-plus:proportional=true,max_step=2", "flash-crowd"
_OF_BOTH = ("control", "wiring", "partitioner", "as_json", *_OF_LOOPS)


def demo(
    context: typer.Context,
    query: Annotated[
        str | None, typer.Option(help="A built-in query (`evenflow queries`). Default: flights.")
    ] = None,
    input: Annotated[
        str | None,
        typer.Option(
            "--input",
            help=(
                "Any file or generator, e.g. taxi:FILE. With --query: instead of that query's data;"
                " without it its tuples are counted by key."
            ),
        ),
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
        str, typer.Option(help="NAME or module:Class, and [:option=value,...] (`evenflow partitioners`).")
    ] = "evenflow",
    workers: Annotated[int, typer.Option(min=1, help="Workers.")] = 8,
    instances: Annotated[int, typer.Option(min=1, help="Partitioner instances.")] = 1,
    window: Annotated[str | None, typer.Option(help="Window, e.g. 60s.")] = None,
    slide: Annotated[str | None, typer.Option(help="Slide, e.g. 10s.")] = None,
    wiring: Annotated[
        Literal["fused", "split"], typer.Option(help="How the Spark stages are joined.")
    ] = "fused",
    forwarding: Annotated[
        Literal["on", "off"],
        typer.Option(
            help="Whether the reduce bucket of a key is that of its home (partitioner.forwarding). "
            "Here Spark is one process, so nothing is saved."
        ),
    ] = "off",
    limit: Annotated[int | None, typer.Option(min=0, help="Only the first ROWS tuples.")] = None,
    control: Annotated[
        str | None,
        typer.Option(
            help=(
                "A closed loop instead: a live stream, executors of their own, and a policy that scales them:"
                " NAME[:option=value,...] (`evenflow policies`), or none."
            )
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(help="Of --control: spike, staircase, sine, flash-crowd, or a profile of `replay`.")
    ] = "spike",
    seconds: Annotated[float | None, typer.Option(min=20, help="Of --control: length of the replay.")] = None,
    reserve: Annotated[
        int, typer.Option(min=0, help="Of --control: executors beyond those that the policy asks for.")
    ] = 0,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help=(
                "Open the live page of a closed loop in a browser. Without"
                " --control: prompt-plus on a flash crowd."
            ),
        ),
    ] = False,
    prometheus: Annotated[
        bool,
        typer.Option(
            "--prometheus",
            help="Of a closed loop: also run Prometheus, from the path, with evenflow's rules and alerts.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object as the last line of output.")
    ] = False,
) -> None:
    """Run the whole pipeline on this machine with real data and verify every window. Exit 1 on
    differences.
    """
    from evenflow.commands.context import say_plain
    from evenflow.text.options import name_of, parse_choice
    from workbench.demo import DemoOptions, run

    if watch and control is None:
        control = _WATCHED_POLICY
        profile = profile if _on_command_line(context, "profile") else _WATCHED_PROFILE
    _refuse_mixed(context, loop=control is not None)
    say_plain([name_of(partitioner)])
    if control is not None:
        # Ends with typer.Exit, so nothing below runs.
        _closed_loop(
            control,
            profile=profile,
            seconds=seconds,
            reserve=reserve,
            wiring=wiring,
            partitioner=partitioner,
            watch=watch,
            prometheus=prometheus,
            as_json=as_json,
        )
    name, options = parse_choice(partitioner)
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
            forwarding=forwarding,
            limit=limit,
        ),
        table_console(width=120, stderr=as_json),
        opened=opened,
    )
    if as_json:
        typer.echo(result.json())
    raise typer.Exit(0 if result.differences == 0 else 1)


def _refuse_mixed(context: typer.Context, *, loop: bool) -> None:
    """Raise ConfigError for options of the closed loop without `--control`, and for options of the plain
    demo with it.
    """
    from evenflow.errors import ConfigError

    options = [name for name in context.params if _on_command_line(context, name)]
    words = [name for name in options if (name not in _OF_BOTH if loop else name in _OF_LOOPS)]
    if not words:
        return
    listed = ", ".join(f"--{name.replace('_', '-')}" for name in words)
    if loop:
        raise ConfigError(
            f"--control runs a pipeline and a stream of its own: {listed} cannot be said of it",
            hint="--profile, --seconds, --reserve, --partitioner and --wiring can; or leave --control out",
        )
    raise ConfigError(f"{listed} is of a closed loop", hint="add --control POLICY (`evenflow policies`)")


def _on_command_line(context: typer.Context, name: str) -> bool:
    """Whether the user has written this option. A default value does not count."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _closed_loop(
    control: str,
    *,
    profile: str,
    seconds: float | None,
    reserve: int,
    wiring: Literal["fused", "split"],
    partitioner: str,
    watch: bool,
    prometheus: bool,
    as_json: bool,
) -> None:
    from contextlib import ExitStack
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from evenflow.text.options import parse_choice
    from workbench.elastic import LoopOptions, fields, shape_of, show_loop
    from workbench.local.ports import WebPorts
    from workbench.local.prometheus import Prometheus

    name, options = parse_choice(control)
    rule, rule_options = parse_choice(partitioner)
    loop = LoopOptions(
        shape=shape_of(profile, seconds=seconds),
        policy=None if name == "none" else name,
        policy_options=options,
        reserve=reserve,
        wiring=wiring,
        partitioner=rule,
        partitioner_options=rule_options,
        ports=WebPorts.free() if watch or prometheus else WebPorts(),
    )
    console = table_console(width=120, stderr=as_json)
    with TemporaryDirectory(prefix="evenflow-prometheus-") as folder, ExitStack() as stack:
        if prometheus:
            scraping = stack.enter_context(Prometheus(Path(folder), loop.targets))
            console.print(f"Prometheus: {scraping.address}alerts")
        result = show_loop(loop, console, page=_open if watch else lambda address: None)
    if as_json:
        typer.echo(json.dumps(fields(result)))
    raise typer.Exit(0 if result.report.differences == 0 else 1)


def _open(address: str) -> None:
    """Open the address in the user's browser, if there is a desktop.
    A text browser would take over the terminal.
    """
    import os
    import sys
    import webbrowser
    from contextlib import suppress

    if sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        with suppress(webbrowser.Error, OSError):
            webbrowser.open(address)
