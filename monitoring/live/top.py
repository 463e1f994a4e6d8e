"""The live page in a terminal: `evenflow top`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import DataTable, Footer, Header, Sparkline, Static

from evenflow.reporting.words import clock, printable
from monitoring.live.glance import DecisionGlance, Glance

_WORDS = {
    "good": ("green", "yes"),
    "warn": ("yellow", "look"),
    "bad": ("red", "no"),
    "unknown": ("dim", "not known"),
}
_BAR = 30  # characters of the fullest worker's bar
_MOST_WORKERS = 40
_SHOWN_DECISIONS = 12
_SHOWN_PARTS = 4
_SHOWN_INSTANCES = 20


class Top(App[None]):
    """The terminal application.

    look: called every `every` seconds, in the application's own thread, so it must be quick.
    """

    TITLE = "evenflow"
    CSS = """
    #answers { height: auto; padding: 0 1; }
    #flow { height: auto; padding: 0 1; color: $text-muted; }
    Horizontal { height: 1fr; }
    .box { border: round $panel-lighten-2; padding: 0 1; width: 1fr; min-height: 6; }
    #w { height: 3; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("space", "pause", "Pause"),
        Binding("r", "refresh_now", "Look now"),
    ]

    def __init__(self, look: Callable[[], Glance], *, every: float = 1.0) -> None:
        super().__init__()
        self._look = look
        self._every = every
        self.paused = False

    def compose(self) -> ComposeResult:
        """From top to bottom: answers, flow, workers beside W and decisions, keys beside parts."""
        yield Header()
        yield Static(id="answers")
        yield Static(id="flow")
        with Horizontal():
            with VerticalScroll(classes="box", id="workers-box"):
                yield Static(id="workers")
            with VerticalScroll(classes="box", id="w-box"):
                yield Sparkline([], id="w")
                yield Static(id="decisions")
        with Horizontal():
            yield DataTable(classes="box", id="keys", show_cursor=False)
            yield DataTable(classes="box", id="parts", show_cursor=False)
        yield Footer()

    def on_mount(self) -> None:
        """Name the boxes, look for the first time, and start the timer."""
        for name, title in (("workers-box", "load of each worker"), ("w-box", "W, and decisions")):
            self.query_one(f"#{name}").border_title = title
        keys, parts = self._tables()
        keys.border_title, parts.border_title = "hottest keys and their split", "parts"
        keys.add_columns("key", "share", "workers", "split")
        parts.add_columns("part", "tuples/s or W", "lag or backlog", "plan", "heard")
        self.action_refresh_now()
        self.set_interval(self._every, self._tick)

    def action_pause(self) -> None:
        """Pause, or go on."""
        self.paused = not self.paused
        self.sub_title = "paused" if self.paused else ""

    def action_refresh_now(self) -> None:
        """Look now, and show the glance."""
        self.show(self._look())

    def _tick(self) -> None:
        if not self.paused:
            self.action_refresh_now()

    def show(self, glance: Glance) -> None:
        """Put a glance on the screen."""
        self.title = f"evenflow {glance.query}"
        self.query_one("#answers", Static).update(Text("\n").join(answers(glance)))
        self.query_one("#flow", Static).update(Text("\n").join(map(Text, [flow(glance), *batches(glance)])))
        self.query_one("#workers", Static).update(Text("\n").join(workers(glance)))
        self.query_one("#w", Sparkline).data = [load for _, _, load in glance.points]
        self.query_one("#decisions", Static).update(Text("\n").join(decisions(glance)))
        keys, parts = self._tables()
        _fill(keys, key_rows(glance))
        _fill(parts, part_rows(glance))

    def _tables(self) -> tuple[DataTable[Text], DataTable[Text]]:
        return self.query_one("#keys", DataTable), self.query_one("#parts", DataTable)


def _fill(table: DataTable[Text], rows: Iterator[tuple[str, ...]]) -> None:
    """Fill a table. Cells are plain text, so that a key or a reason cannot act as markup."""
    table.clear()
    table.add_rows([Text(printable(cell)) for cell in row] for row in rows)


def _figure(value: float | None, form: str = ",.0f") -> str:
    return "?" if value is None else format(value, form)


def answers(glance: Glance) -> Iterator[Text]:
    """A line for each of the three questions, with its answer."""
    for question, verdict in glance.verdicts.items():
        colour, word = _WORDS[verdict.word]
        yield Text.assemble(
            f"Is it {question}? ", (word, f"{colour} bold"), "  ", (printable(verdict.text), "dim")
        )


def flow(glance: Glance) -> str:
    """The way from input to results in one line of figures."""
    results = glance.results
    return " → ".join(
        [
            f"lag {_figure(glance.lag)}",
            f"{_figure(glance.rate)} tuples/s",
            f"{len(glance.instances)} partitioners",
            f"p {_figure(glance.workers)}",
            f"replication {_figure(results.replication if results else None, '.2f')}",
            f"99 % within {_figure(results.latency_p99_s if results else None, '.1f')} s",
            f"{_figure(results.open if results else None)} windows open",
            f"results {_figure(results.emitted_p99_s if results else None, '.1f')} s after their last tuple",
        ]
    )


def batches(glance: Glance) -> Iterator[str]:
    """A line about the micro-batches of all instances together. None if all of them route tuple by tuple."""
    summaries = [instance.batches for instance in glance.instances if instance.batches is not None]
    if not summaries:
        return
    late = max((summary.late for summary in summaries if summary.late is not None), default=None)
    took = max((summary.took_s for summary in summaries if summary.took_s is not None), default=None)
    first, count = summaries[0], sum(summary.count for summary in summaries)
    parts = [
        f"micro-batches of {first.interval_s:,g} s of {first.clock} time: {count:,}",
        f"{sum(summary.cut_short for summary in summaries):,} cut short",
        f"{sum(summary.held for summary in summaries):,} tuples wait",
    ]
    if took is not None:
        parts.append(f"the slowest of the last ones took {took:,.2f} s")
    if late is not None:
        parts.append(f"the latest came {late:,.0%} of its interval late")
    yield ", ".join(parts)


def workers(glance: Glance) -> Iterator[Text]:
    """A bar for each worker. If there are very many workers, only the fullest have bars."""
    if not glance.loads:
        yield Text("no tuples in the last period", "dim")
        return
    most, mean = max(glance.loads), sum(glance.loads) / len(glance.loads)
    order = sorted(range(len(glance.loads)), key=lambda worker: (-glance.loads[worker], worker))
    shown = sorted(order[:_MOST_WORKERS])
    unit = " of cost" if glance.weighed else ""
    for worker in shown:
        load = glance.loads[worker]
        colour = "dark_orange" if load > 1.5 * mean else "blue"
        bar = "█" * round(_BAR * load / most) if most else ""
        yield Text.assemble(f"{worker:>4} ", (bar, colour), f" {load:,.0f}{unit}/s")
    if len(order) > len(shown):
        yield Text(f"and {len(order) - len(shown)} workers with less", "dim")


def decisions(glance: Glance) -> Iterator[Text]:
    """A line for each of the last decisions, the newest first."""
    if not glance.decisions:
        yield Text("no controller has decided anything yet", "dim")
    for decision in list(reversed(glance.decisions))[:_SHOWN_DECISIONS]:
        moved, style = _moved(decision)
        at = clock(decision.at)[11:19]  # the time of day out of the date and time
        yield Text.assemble((f"{at} ", "dim"), (moved, style), (f" {printable(decision.reason)}", "dim"))


def _moved(decision: DecisionGlance) -> tuple[str, str]:
    if decision.held:
        return "held", ""
    if decision.epoch is None:
        return f"p {decision.p}, r {decision.r}", ""
    moved = f"p {decision.p}→{decision.wanted_p}, r {decision.r}→{decision.wanted_r}"
    return f"plan {decision.epoch}: {moved}", "bold"


def key_rows(glance: Glance) -> Iterator[tuple[str, ...]]:
    """Rows of the table of hottest keys: key, share, workers, split."""
    for hot in glance.hottest:
        parts = list(zip(hot["workers"], hot["parts"], strict=False))[:_SHOWN_PARTS]
        split = ", ".join(f"{worker}: {part:.0%}" for worker, part in parts)
        yield hot["key"] or "(empty)", f"{hot['share']:.1%}", str(hot["holders"]), split


def part_rows(glance: Glance) -> Iterator[tuple[str, ...]]:
    """Rows of the table of parts: stages, then instances, the longest silent first.

    Missing parts have a row, too.
    """
    for stage in glance.stages:
        yield (
            stage.name,
            _figure(stage.load, ".2f"),
            _figure(stage.backlog),
            str(stage.epoch),
            f"{stage.silent:.0f} s ago",
        )
    if not glance.stages:
        yield "Spark", "?", "?", "?", "not yet"
    for instance in glance.instances[:_SHOWN_INSTANCES]:
        yield (
            f"partitioner {instance.name}",
            _figure(instance.rate),
            _figure(instance.lag),
            str(instance.epoch),
            f"{instance.silent:.0f} s ago",
        )
    if not glance.instances:
        yield "partitioner", "?", "?", "?", "not yet"
    more = len(glance.instances) - _SHOWN_INSTANCES
    if more > 0:
        yield f"and {more} partitioners more", "", "", "", ""
