"""What a demo shows: steps while it runs, then the windows, the loads and the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from evenflow.reporting.words import clock
from evenflow.settings import Settings
from workbench.demo.figures import RoutingFigures
from workbench.demo.windows import DemoWindow


class Screen:
    """What a demo prints. With `--json` the console is standard error,
    which leaves standard output to one object.
    """

    def __init__(self, console: Console) -> None:
        self.console = console

    def say(self, text: str) -> None:
        """Print one line."""
        self.console.print(text, highlight=False)

    @contextmanager
    def progress(self) -> Iterator[Bars]:
        """Progress bars while the pipeline runs. Without a terminal there are plain lines now and then."""
        shown = self.console.is_terminal
        with Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<28}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            disable=not shown,
        ) as bars:
            yield Bars(bars, None if shown else self.console)

    def windows(self, settings: Settings, windows: Sequence[DemoWindow]) -> None:
        """Print the busiest windows, each with its largest key."""
        names = list(settings.query.aggregates)
        table = Table(title=f"the busiest windows of {settings.query.name} (UTC)", title_justify="left")
        for heading in ("from", "to", "tuples", "keys", f"largest {settings.query.key_name}", *names):
            table.add_column(heading, justify="left" if heading in ("from", "to") else "right", no_wrap=True)
        for window in windows:
            cells = [window.tuples, window.keys, window.key, *(window.values[name] for name in names)]
            table.add_row(clock(window.start), clock(window.end), *map(_cell, cells))
        self.console.print(table)

    def loads(self, routing: RoutingFigures) -> None:
        """Print a bar for each worker."""
        self.say(f"tuples per worker ({routing.name}):")
        most, total = max(routing.loads, default=0), sum(routing.loads)
        for worker, load in enumerate(routing.loads):
            bar = "█" * round(40 * load / most) if most else ""
            self.say(f"  worker {worker:>3}  {bar:<40} {load:>12,}  {load / total if total else 0:6.1%}")

    def comparison(self, routings: Sequence[RoutingFigures]) -> None:
        """Print imbalance and replication factor of several partitioners side by side."""
        table = Table(title="the same tuples, routed by", title_justify="left")
        for heading in ("partitioner", "imbalance I(m)", "window imbalance", "replication factor"):
            table.add_column(heading, justify="left" if heading == "partitioner" else "right")
        for routing in routings:
            table.add_row(
                routing.name,
                f"{routing.imbalance:.4%}",
                f"{routing.window_imbalance:.4%}",
                f"{routing.ksr:.3f}",
            )
        self.console.print(table)


class Bars:
    """The progress bars of one run, each with a name."""

    def __init__(self, bars: Progress, plain: Console | None) -> None:
        self._bars = bars
        self._plain = plain
        self._tasks: dict[str, TaskID] = {}
        self._printed_steps: dict[str, int] = {}

    def show(self, name: str, done: int, total: int | None) -> None:
        """Show how far `name` is. total: None if unknown."""
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=total)
        self._bars.update(self._tasks[name], completed=done, total=total)
        if self._plain is not None:
            step = 10 * done // total if total else done  # a line for each tenth
            if self._printed_steps.get(name) != step:
                self._printed_steps[name] = step
                self._plain.print(f"{name}: {done:,}" + (f" of {total:,}" if total else ""), highlight=False)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float | Decimal):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)[:24]
