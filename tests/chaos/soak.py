"""Whether anything grows: `python -m tests.chaos.soak` lets the pipeline of chaos run without a fault.

Each part is looked at every few seconds, with all processes below it: its memory, its open files and its
threads. So are the checkpoint and the broker's folder. The first quarter is left out, because Java takes its
heap by then. Of what is left, the median of the last third is compared with that of the first. At the end all
results are compared with brute force.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import psutil
import typer

from benchmarks import soak_picture
from benchmarks.measuring.machine import machine
from benchmarks.measuring.page_tables import into_page
from evenflow.charts.page import save
from tests.chaos.course import UNHARMED
from tests.chaos.rounds import Outcome, end_exactly, thirds
from tests.chaos.world import TUPLES_AT_ONCE, World

PAGE = Path("docs/measurements.md")
ROWS = PAGE.with_suffix("") / "soak.json"
FEWEST = 12
"""Looks that a verdict needs."""
_WITHIN = 240.0
"""Seconds in which a micro-batch has to be committed at the end."""


class Soak(NamedTuple):
    """What a run without faults has shown."""

    seconds: list[float]
    """When each look was, since the first tuple."""
    sizes: dict[str, list[float]]
    """What was looked at -> its size at each look."""
    outcome: Outcome
    """Of the comparison at the end."""


def soak(folder: Path, *, minutes: float, every: float, rate: int = 200) -> Soak:
    """Let the pipeline run for so long in this folder, which must be empty.

    every: seconds between two looks. rate: tuples per second, a multiple of five. If a part ended, or if a
    result is not that of brute force, the outcome says so: what was seen until then is not lost.
    """
    found = Soak([], {}, Outcome(UNHARMED))
    with World(UNHARMED, folder, quick=False, tuples_at_once=TUPLES_AT_ONCE * rate // 200) as world:
        while world.seconds < minutes * 60:
            world.pass_seconds(every)
            found.seconds.append(round(world.seconds, 1))
            for name, size in sizes(world):
                found.sizes.setdefault(name, []).append(round(size, 2))
        try:
            assert not world.ends, f"a part ended although nothing happened: {world.history}"
            end_exactly(world, found.outcome, patience=_WITHIN)
        except AssertionError as error:
            found.outcome.violations.append(str(error))
    return found


def sizes(world: World) -> Iterator[tuple[str, float]]:
    """What is there now: its name with its unit, and its size."""
    for name, part in world.parts.items():
        memory, files, threads = of_process(part.pid)
        yield from ((f"{name}: memory, MB", memory), (f"{name}: open files", files))
        yield f"{name}: threads", threads
    for name, folder in (
        ("checkpoint", world.folder / "checkpoint"),
        ("broker's topics", world.folder / "broker"),
    ):
        number, size = of_folder(folder)
        yield from ((f"{name}: files", number), (f"{name}: MB", size))


def of_process(pid: int) -> tuple[float, int, int]:
    """MB of memory, open files and threads of this process and of all below it."""
    memory = files = threads = 0
    with suppress(psutil.Error):
        above = psutil.Process(pid)
        for process in (above, *above.children(recursive=True)):
            with suppress(psutil.Error):  # it has just ended
                memory += process.memory_info().rss
                files += process.num_fds()
                threads += process.num_threads()
    return memory / 2**20, files, threads


def of_folder(folder: Path) -> tuple[int, float]:
    """Files and MB below this folder."""
    number = size = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # it has just been deleted
            if file.is_file():
                number += 1
                size += file.stat().st_size
    return number, size / 2**20


def settled_thirds(values: Sequence[float]) -> tuple[float, float]:
    """Medians of the first and of the last third of what is left without the first quarter.

    Raises ValueError for fewer than `FEWEST` values.
    """
    if len(values) < FEWEST:
        raise ValueError(f"{len(values)} looks are too few: at least {FEWEST}")
    return thirds(values[len(values) // 4 :])


def table(sizes: Mapping[str, Sequence[float]]) -> str:
    """A table in Markdown: the first third, the last third, and how much more that is."""
    lines = ["| what | first third | last third | last / first |", "|---|---|---|---|"]
    for name, values in sizes.items():
        first, last = settled_thirds(values)
        grown = last / first if first else 1.0
        lines.append(f"| {name} | {_short(first)} | {_short(last)} | {grown:.2f} |")
    return "\n".join(lines)


def _short(size: float) -> str:
    return f"{size:,.0f}" if size >= 10 or size == int(size) else f"{size:.1f}"


def run_table(kept: Mapping[str, Any]) -> str:
    """A table in Markdown: how long, how fast, what came out, and on which machine. kept: the kept rows."""
    minutes, found, where = kept["seconds"][-1] / 60, kept["outcome"], kept["machine"]
    cells = (
        ("minutes", f"{minutes:.0f}"),
        ("tuples/s wanted", f"{kept['rate']:,}"),
        ("tuples/s written", f"{(found['tuples'] + found['rejected']) / kept['seconds'][-1]:,.0f}"),
        ("routed", f"{found['tuples']:,}"),
        ("rejected", f"{found['rejected']:,}"),
        ("result rows, all equal", f"{found['rows']:,}"),
        ("cores", str(where["cores"])),
        ("load at the end", f"{where['load_average']:.0f}"),
    )
    names, values = zip(*cells, strict=True)
    return "\n".join((f"| {' | '.join(names)} |", "|---" * len(cells) + "|", f"| {' | '.join(values)} |"))


def tables(page: str, kept: Mapping[str, Any]) -> str:
    """The page with both tables of these kept rows. ValueError if it has no place for them."""
    page = into_page(page, "chaos", "soak-run", run_table(kept))
    return into_page(page, "chaos", "soak", table(kept["sizes"]))


def write(found: Soak, *, rate: int, page: Path = PAGE, rows: Path = ROWS) -> None:
    """Keep what was seen, draw it beside the rows, and put its tables into the page.

    Raises ValueError if the page has no place for them.
    """
    outcome = found.outcome
    kept = {
        "machine": machine(),
        "rate": rate,
        "outcome": {"tuples": outcome.tuples, "rejected": outcome.rejected, "rows": outcome.rows},
        "seconds": found.seconds,
        "sizes": found.sizes,
    }
    text = tables(page.read_text(encoding="utf-8"), kept)
    rows.write_text(json.dumps(kept) + "\n", encoding="utf-8")
    save(soak_picture.sizes(kept), rows.with_suffix(".svg"))
    page.write_text(text, encoding="utf-8")


def main(
    minutes: Annotated[float, typer.Option(min=1, help="How long the stream runs.")] = 30,
    every: Annotated[float, typer.Option(min=1, help="Seconds between two looks.")] = 5,
    rate: Annotated[int, typer.Option(min=5, help="Tuples per second.")] = 1_000,
    keep: Annotated[
        bool,
        typer.Option(
            "--write", help="Keep the rows, draw them, and write the tables of docs/measurements.md."
        ),
    ] = False,
) -> None:
    """Let the pipeline run without a fault, and print a table of what grew. Status 1 if its end is not exact:
    nothing is kept then.
    """
    if minutes * 60 / every < FEWEST:
        raise typer.BadParameter(
            f"at least {FEWEST} looks are needed: take more minutes or a smaller --every"
        )
    with tempfile.TemporaryDirectory(prefix="evenflow-soak-") as folder:
        found = soak(Path(folder), minutes=minutes, every=every, rate=rate)
    print(table(found.sizes))
    print(found.outcome)
    if found.outcome.violations:
        print(*found.outcome.violations, sep="\n", file=sys.stderr)
        raise typer.Exit(1)
    if keep:
        write(found, rate=rate)


if __name__ == "__main__":
    typer.run(main)
