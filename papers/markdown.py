"""Numbers and tables in the form that the page has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from papers.cells.run_plan import Cell
from papers.cells.store import SectionFigures, spread


def number(value: float) -> str:
    """Three digits: 0.0123, 1.23e-5, 1,234."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 0.01:
        return f"{value:.3g}"
    mantissa, _, power = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(power)}"


def ratio(value: float) -> str:
    """A factor near 1, with four decimals where they matter."""
    return f"{value:.4f}" if value < 2 else f"{value:.2f}"


def figure(figures: SectionFigures, cell: Cell, name: str, how: Callable[[float], str] = number) -> str:
    """Median (least - most) over the seeds. One number if all seeds agree, a dash if nothing was measured."""
    if cell not in figures:
        return "-"
    middle, least, most = (how(value) for value in spread(figures.values(cell, name)))
    return middle if least == middle == most else f"{middle} ({least} – {most})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> list[str]:
    """The lines of a table. The first `left` columns are texts, the others numbers."""
    lines = ["| " + " | ".join(head) + " |"]
    lines.append("|" + "|".join("---" if at < left else "--:" for at in range(len(head))) + "|")
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def joined(parts: Iterable[Sequence[str]]) -> list[str]:
    """The lines of these parts of a page, an empty line between two parts."""
    lines: list[str] = []
    for part in parts:
        lines += ["", *part] if lines else part
    return lines
