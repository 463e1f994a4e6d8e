"""How long until windows come again: `python -m tests.chaos.recovery` loses one part after the other.

The pipeline of chaos runs under its stream of 200 tuples a second (two seconds of event time), with the
product's own time-outs. A part is lost, and what ends is started again after half a second. Measured is the
time until the first result of a window that ends later than the newest tuple written before the loss. Such a
window needs tuples from after the loss, so every part has to work again. At the end all results are compared
with brute force: what came out first was correct.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shutil import rmtree
from statistics import median
from typing import Annotated, NamedTuple

import typer
from confluent_kafka import Consumer, TopicPartition

from benchmarks.measuring.machine import machine
from benchmarks.pages.tables import into_page
from evenflow.settings import Settings
from tests.chaos.course import UNHARMED
from tests.chaos.processes import java_of, python_workers
from tests.chaos.rounds import Outcome, end_exactly
from tests.chaos.world import TICK, World
from tests.patience import PATIENCE
from tests.pipeline.spark_stream import result_row
from topics import clients

PAGE = Path("docs/measurements.md")
ROWS = PAGE.with_suffix("") / "recovery.json"
_WITHIN = 120.0 * PATIENCE
"""Seconds in which windows have to come again."""
_DRIVER = "aggregate"


def _nothing(world: World) -> None:
    pass


def _kill(names: tuple[str, ...], world: World) -> None:
    for name in names:
        world.kill(name)


def _kill_below(search: Callable[[int], list[int]], world: World) -> None:
    os.kill(search(world.parts[_DRIVER].pid)[-1], signal.SIGKILL)


def _kill_broker(world: World) -> None:
    world.broker.kill()


def _kill_all(world: World) -> None:
    _kill_broker(world)
    _kill(tuple(world.parts), world)


def _rebuild(world: World) -> None:
    """All processes and the checkpoint are gone. What Kafka has goes on under another name, by a command."""
    _kill(tuple(world.parts), world)
    rmtree(world.folder / "checkpoint" / "checkpoint")
    world.rename(f"{world.settings.query.name}-again", within=_WITHIN)


LOSSES: Mapping[str, Callable[[World], None]] = {
    "nothing": _nothing,
    "one of two partitioners": partial(_kill, ("partition-0",)),
    "both partitioners": partial(_kill, ("partition-0", "partition-1")),
    "the Spark application": partial(_kill, (_DRIVER,)),
    "its Java process": partial(_kill_below, java_of),
    "a Python process of its tasks": partial(_kill_below, python_workers),
    "the only broker": _kill_broker,
    "all processes at once": _kill_all,
    "all processes and the checkpoint: `evenflow rename`": _rebuild,
}


class Recovery(NamedTuple):
    """What losing parts of one run has shown."""

    seconds: Mapping[str, list[float]]
    """By what was lost, once for each time."""
    outcome: Outcome
    """Of the comparison at the end."""


def measure(folder: Path, *, times: int, losses: Mapping[str, Callable[[World], None]] = LOSSES) -> Recovery:
    """Lose each of these so many times in one run in this folder, which must be empty.

    Raises AssertionError if windows do not come again, or if a result is not that of brute force.
    """
    recovery = Recovery({name: [] for name in losses}, Outcome(UNHARMED))
    with World(UNHARMED, folder, quick=False) as world:
        for name, lose in losses.items():
            for _ in range(times):
                # What the last loss has left to do must not count for this one.
                _seconds_after(world, _nothing)
                recovery.seconds[name].append(_seconds_after(world, lose))
        end_exactly(world, recovery.outcome, patience=_WITHIN)
    return recovery


def _seconds_after(world: World, lose: Callable[[World], None]) -> float:
    """Seconds from this loss until a window comes that ends later than what was written before it."""
    with _consumer(world.settings) as consumer:
        written, began = world.stream.now, time.monotonic()
        lose(world)
        # From the first row on: rows of before are passed over by their windows.
        topic, partitions = world.settings.topic("results"), range(world.settings.bucket_count)
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        while time.monotonic() - began < _WITHIN:
            world.tend()
            for message in consumer.consume(1_000, timeout=TICK):
                if message.error() is not None:
                    continue
                (start, _), _ = result_row(world.settings, message.value() or b"")
                if start + world.settings.query.window > written:
                    return time.monotonic() - began
    raise AssertionError(f"no new window within {_WITHIN:g} s: {world.history}")


@contextmanager
def _consumer(settings: Settings) -> Iterator[Consumer]:
    """Made while there is a broker, as it would else wait for one."""
    consumer = clients.consumer(settings.kafka, group="recovery", isolation_level="read_committed")
    try:
        yield consumer
    finally:
        consumer.close()


def table(seconds: Mapping[str, list[float]]) -> str:
    """A table in Markdown: what was lost, how often, and the seconds until windows came again."""
    lines = ["| lost | times | median, s | range, s |", "|---|---|---|---|"]
    for name, values in seconds.items():
        lines.append(
            f"| {name} | {len(values)} | {median(values):.1f} | {min(values):.1f} to {max(values):.1f} |"
        )
    return "\n".join(lines)


def write(seconds: Mapping[str, list[float]], *, page: Path = PAGE, rows: Path = ROWS) -> None:
    """Keep these seconds as rows, and put their table into the page. What was lost in an earlier run alone
    stays as it was.

    Raises ValueError if the page has no place for the table.
    """
    kept = json.loads(rows.read_text(encoding="utf-8"))["seconds"] if rows.exists() else {}
    merged = kept | {name: [round(value, 2) for value in values] for name, values in seconds.items()}
    ordered = {name: merged[name] for name in LOSSES if name in merged}
    rows.write_text(json.dumps({"machine": machine(), "seconds": ordered}, indent=1) + "\n", encoding="utf-8")
    page.write_text(
        into_page(page.read_text(encoding="utf-8"), "chaos", "recovery", table(ordered)), encoding="utf-8"
    )


def main(
    times: Annotated[int, typer.Option(min=1, help="How often each part is lost.")] = 3,
    only: Annotated[list[str] | None, typer.Option(help="Only this loss. Repeatable.")] = None,
    keep: Annotated[
        bool, typer.Option("--write", help="Keep the seconds and write the table of docs/measurements.md.")
    ] = False,
) -> None:
    """Lose each part so often, and print a table of the seconds until windows come again."""
    if unknown := set(only or ()) - LOSSES.keys():
        raise typer.BadParameter(f"no such loss: {', '.join(unknown)}; there are {', '.join(LOSSES)}")
    losses = {name: lose for name, lose in LOSSES.items() if not only or name in only}
    with tempfile.TemporaryDirectory(prefix="evenflow-recovery-") as folder:
        recovery = measure(Path(folder), times=times, losses=losses)
    print(table(recovery.seconds))
    print(recovery.outcome)
    if keep:
        write(recovery.seconds)


if __name__ == "__main__":
    typer.run(main)
