"""The file of the figures found so far. It is JSON: section -> cell -> figure -> one value per seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

from evenflow.errors import ConfigError
from papers.cells.run_plan import Cell

Values = dict[str, list[float]]
"""Figure -> one value per seed. A curve has one value per point instead."""
VERSION = 1
_DIGITS = 5


class Store:
    """Reads and writes the file. Every change is written at once, so a run can be stopped at any time.

    ConfigError if the file is of another version.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sections: dict[str, dict[str, Values]] = {}
        if path.exists():
            document = json.loads(path.read_text(encoding="utf-8"))
            if document.get("version") != VERSION:
                raise ConfigError(f"{path} is of another version", hint="delete it; a run makes it anew")
            self._sections = document["sections"]

    def holds(self, cell: Cell) -> bool:
        """Whether the cell has been measured."""
        return cell.key in self._sections.get(cell.section, {})

    def put(self, section: str, values_by_cell: Mapping[str, Values]) -> None:
        """Keep figures of cells (by key), rounded to five digits."""
        cells = self._sections.setdefault(section, {})
        for key, values in values_by_cell.items():
            cells[key] = {
                name: [float(f"{x:.{_DIGITS}g}") for x in series] for name, series in values.items()
            }
        self.write()

    def prune(self, section: str, cells: Iterable[Cell]) -> None:
        """Drop the cells that the section no longer asks for. The file changes with the next `put`."""
        keys = {cell.key for cell in cells}
        before = self._sections.get(section, {})
        self._sections[section] = {key: values for key, values in before.items() if key in keys}

    def write(self) -> None:
        """Write the file with one line per cell, so that changes can be read.

        The file is replaced as a whole, so a reader never sees half of it.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        sections = []
        for section, cells in sorted(self._sections.items()):
            lines = ",\n".join(f"  {json.dumps(key)}: {_line(cells[key])}" for key in sorted(cells))
            sections.append(f" {json.dumps(section)}: {{\n{lines}\n }}")
        # Written by hand, because `json.dumps` has either one line for everything or one for each number.
        text = f'{{"version": {VERSION}, "sections": {{\n' + ",\n".join(sections) + "\n}}\n"
        part = self._path.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(self._path)

    def figures(self, section: str) -> SectionFigures:
        """The figures that a section's text is made from."""
        return SectionFigures(self._sections.get(section, {}))


class MissingError(LookupError):
    """A figure that has not been measured."""


class SectionFigures:
    """Figures of one section."""

    def __init__(self, cells: Mapping[str, Values]) -> None:
        self._cells = cells

    def __contains__(self, cell: Cell) -> bool:
        return cell.key in self._cells

    def values(self, cell: Cell, figure: str) -> list[float]:
        """One value per seed. MissingError if the cell or figure has not been measured."""
        try:
            return self._cells[cell.key][figure]
        except KeyError:
            raise MissingError(f"{cell.key}: {figure}") from None

    def median(self, cell: Cell, figure: str) -> float:
        """The median over the seeds. MissingError if the cell or figure has not been measured."""
        return median(self.values(cell, figure))


def _line(values: Values) -> str:
    return json.dumps(values, separators=(",", ":"))


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """(median, least, most)."""
    return median(values), min(values), max(values)
