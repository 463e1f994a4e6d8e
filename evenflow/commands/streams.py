"""The stream of a command that simulates: generated or from a file, and the channel between its sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenflow.commands.context import counted, milliseconds
from evenflow.commands.reading import opened, options_of_file, warn_of_one_time

if TYPE_CHECKING:
    from evenflow.simulation import Channel, KeyedStream, Scenario

Rate = Annotated[
    float | None,
    typer.Option(help="Tuples per second of event time. Default: a tuple's index is its time in ms."),
]
Slide = Annotated[str, typer.Option(help="Slide; without --batch also a micro-batch.")]
Batch = Annotated[
    int | None, counted("Tuples in a batch of the micro-batch partitioners. Default: one slide.")
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes at a time. Default: the cores.")]
_DISORDER_MS = 60_000


def channel_of(exchange: bool, delay: str | None, loss: float | None, seed: int) -> Channel | None:
    """The channel of the exchange. None if there is none."""
    from evenflow.simulation import Channel

    if exchange:
        delay_ms = 0 if delay is None else milliseconds("--exchange-delay", delay)
        return Channel(delay_ms=delay_ms, loss=loss or 0.0, seed=abs(seed))
    options = {"--exchange-delay": delay, "--exchange-loss": loss}
    refuse(options, "says how the messages of an exchange travel", "give --exchange too")
    return None


def stream_of_file(
    path: str, words: Mapping[str, Any], *, first: int | None, rate: float | None, disorder_ms: int
) -> KeyedStream:
    """The tuples of a file. Without a time column they are numbered at `rate`.

    words: options that describe the file, with the names of their parameters. first: take the first so many,
    None for all.
    """
    from evenflow.errors import ConfigError
    from evenflow.sources.sample import stream_of

    header = not words["no_header"]
    others = {name: value for name, value in words.items() if name != "no_header"}
    cost = words.get("cost")
    options = options_of_file(**others, header=header, keep_order=True, first=first)
    timed = options.time is not None
    if timed and rate is not None:
        raise ConfigError("--rate numbers tuples that have no time", hint="drop --rate or --time")
    if first is not None and first < 1:
        raise ConfigError(f"--tuples must be at least 1, not {first}")
    stream = stream_of(
        opened(path, options, timed=False),  # the first tuples alone are looked at below
        tuples=first,
        timed=timed,
        rate=rate,
        max_disorder_ms=disorder_ms,
        cost=cost,
        remark=lambda sentence: typer.echo(f"warning: {sentence}", err=True),
    )
    if timed and len(stream) > 1 and int(stream.times.min()) == int(stream.times.max()):
        numbered = " Without --time tuples are numbered"
        warn_of_one_time(options.time or "", int(stream.times[0]), len(stream), otherwise=numbered)
    return stream


def disorder_of(text: str | None, scenario: Scenario) -> int:
    """How far times may lie behind earlier ones, in ms."""
    if text is not None:
        return milliseconds("--max-disorder", text)
    return scenario.window_ms or _DISORDER_MS


def refuse_words_of_file(words: Mapping[str, Any], max_disorder: str | None) -> None:
    """ConfigError if an option that describes a file was given. words: as of `stream_of_file`."""
    options = {f"--{name.replace('_', '-')}": value for name, value in words.items()}
    options["--no-header"] = words["no_header"] or None
    options["--encoding"] = None if words["encoding"] == "utf-8" else words["encoding"]
    options["--max-disorder"] = max_disorder
    refuse(options, "describes a file", "name it with --input")


def refuse(options: dict[str, Any], why: str, hint: str) -> None:
    from evenflow.errors import ConfigError

    for option, value in options.items():
        if value is not None:
            raise ConfigError(f"{option} {why}", hint=hint)
