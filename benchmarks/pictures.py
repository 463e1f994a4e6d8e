"""Pictures drawn from kept rows.

A scenario writes its rows as JSON beside its picture (`keep`). `python -m benchmarks.pictures` draws the
pictures of the docs again from these rows, without measuring.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.elasticity.picture import courses
from benchmarks.fleet.picture import courses as fleet_courses
from benchmarks.partitioners import partly_picture
from benchmarks.soak import picture as soak_picture
from evenflow.charts.axes import decades, ratios
from evenflow.charts.emphasis import OURS, looks
from evenflow.charts.lines import Line, multiples, strokes
from evenflow.charts.looks import HERO, NAMED, REST
from evenflow.charts.page import page, save
from evenflow.charts.points import points
from workbench.elastic import SHAPES

if TYPE_CHECKING:
    import altair

PLOTS = Path(".evenflow/bench")
"""The folder that a benchmark draws into. The pictures of the docs are copied from there."""
PRICE, PRICED_WORKERS = 5e-4, 64
"""The default of the option `price`, and the number of workers in the picture of prices."""
SPLIT_LEAST = 1e-5
"""KSR - 1 is drawn on a logarithmic axis. A stream without any split key is drawn here."""
_LABELLED = {1e-2: "price 0.01", 0.1: "0.1", 1.0: "1", 1e9: "never split"}
Rows = Sequence[dict[str, Any]]


def growth_workers(rows: Rows) -> altair.TopLevelMixin:
    """The cost per tuple by number of workers, a panel for each partitioner."""
    return _growth(rows, "workers")


def growth_keys(rows: Rows) -> altair.TopLevelMixin:
    """The cost per tuple by number of keys, a panel for each partitioner."""
    return _growth(rows, "keys")


def _growth(rows: Rows, over: str) -> altair.TopLevelMixin:
    drawn = {name: _line(rows, name, over) for name in dict.fromkeys(row["partitioner"] for row in rows)}
    order = sorted(drawn, key=lambda name: drawn[name].y[-1])
    x = ratios(over, [row[over] for row in rows], powers=True)
    y = decades("ns per tuple", [row["ns"] for row in rows], words="format(datum.value, ',~r')")
    panels = multiples({name: drawn[name] for name in order}, x=x, y=y, hero=OURS, columns=5)
    subtitle = (
        "Cheapest first, by the last point. Dark: the partitioner named; orange: evenflow; grey: all others."
    )
    return page(
        panels, title=f"Cost per tuple, by number of {over}", subtitle=[subtitle], columns=5, spacing=14
    )


def _line(rows: Rows, name: str, over: str) -> Line:
    own = sorted((row[over], row["ns"]) for row in rows if row["partitioner"] == name)
    return Line([at for at, _ in own], [ns for _, ns in own])


def price(rows: Rows) -> altair.TopLevelMixin:
    """Balance against replication by price, a curve for each stream in which a key can be split."""
    split = [row for row in rows if row["stream"] != "uniform"]
    at = {_called(row): (100 * row["replicas"], 100 * PRICED_WORKERS * row["imbalance"]) for row in split}
    styles = looks(at, hero="") | {_called(row): _look(row) for row in split}
    x = ratios("extra copies of keys, % (none: drawn at 0.001)", [x for x, _ in at.values()], powers=True)
    y = decades(
        "fullest worker above its fair share",
        [y for _, y in at.values()],
        words="format(datum.value, ',~f') + ' %'",
    )
    curves = [
        (
            stream,
            _curve([row for row in split if row["stream"] == stream], at),
            REST._replace(colour="#868e96"),
        )
        for stream in dict.fromkeys(row["stream"] for row in split)
    ]
    panel = points(at, styles, x=x, y=y, title="", width=520, height=340, below=[strokes(curves, x, y)])
    subtitle = (
        f"Orange: the default price, {PRICE:g}. {PRICED_WORKERS} workers. On a uniform stream no price splits"
        " a key."
    )
    return page([panel], title="Balance and replication, by price", subtitle=[subtitle])


def _curve(rows: Rows, at: dict[str, tuple[float, float]]) -> Line:
    own = [at[_called(row)] for row in sorted(rows, key=lambda row: float(row["price"]))]
    return Line([x for x, _ in own], [y for _, y in own])


def _called(row: dict[str, Any]) -> str:
    """The label of a point. At the default price it is the stream. One stream labels the other prices."""
    if row["price"] == PRICE:
        return str(row["stream"])
    known = _LABELLED.get(row["price"]) if row["stream"] == "Zipf 1.0" else None
    return known or f"{row['stream']} at {row['price']:g}"


def _look(row: dict[str, Any]) -> Any:
    if row["price"] == PRICE:
        return HERO
    labelled = row["price"] in _LABELLED and row["stream"] == "Zipf 1.0"
    return NAMED[0]._replace(point=30) if labelled else REST._replace(colour="#868e96")


KEPT: dict[str, Callable[[Any], Any]] = {
    "docs/measurements/partitioners-growth-workers": growth_workers,
    "docs/measurements/partitioners-growth-keys": growth_keys,
    "docs/evenflow-partitioner/price": price,
    **{f"docs/measurements/elasticity-{shape}": courses for shape in (*SHAPES, "batches")},
    "docs/partly/quality": partly_picture.quality,
    "docs/partly/plan": partly_picture.plan,
    "docs/partly/training": partly_picture.training,
    **{f"docs/measurements/service-{name}": fleet_courses for name in ("instances", "shift")},
    "docs/measurements/soak": soak_picture.sizes,
}
"""Pictures of the docs whose rows are kept: path without ending -> the function that draws the picture."""


def keep(rows: Rows, draw: Callable[[Rows], Any], path: Path) -> None:
    """Write the picture, and the rows as JSON beside it."""
    keep_rows(rows, path.with_suffix(".json"))
    save(draw(rows), path)


def keep_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the rows as JSON, a row a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def main() -> int:
    """Draw all pictures of the docs again. The working directory is the repository."""
    for stem, draw in KEPT.items():
        rows = json.loads(Path(f"{stem}.json").read_text(encoding="utf-8"))
        save(draw(rows), Path(f"{stem}.svg"))
        print(f"drawn: {stem}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
