"""The figures found so far, in one JSON file: section -> cell -> figure -> one value per seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.reproducing.plan import Cell
from evenflow.errors import ConfigError

Values = dict[str, list[float]]
"""Figure -> one value per seed (a curve: one per point)."""
VERSION = 1
_DIGITS = 5


class Store:
    """Reads and writes the file. Every change of a section is written at once, so a run can be stopped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sections: dict[str, dict[str, Values]] = {}
        if path.exists():
            held = json.loads(path.read_text(encoding="utf-8"))
            if held.get("version") != VERSION:
                raise ConfigError(f"{path} is of another version", hint="delete it; a run makes it anew")
            self._sections = held["sections"]

    def holds(self, cell: Cell) -> bool:
        """Whether the cell has been measured."""
        return cell.key in self._sections.get(cell.section, {})

    def put(self, section: str, found: Mapping[str, Values]) -> None:
        """Keep figures of cells (by key), rounded to five digits."""
        kept = self._sections.setdefault(section, {})
        for key, values in found.items():
            kept[key] = {name: [float(f"{x:.{_DIGITS}g}") for x in series] for name, series in values.items()}
        self.write()

    def prune(self, section: str, cells: Iterable[Cell]) -> None:
        """Drop what the section no longer asks for."""
        wanted = {cell.key for cell in cells}
        kept = self._sections.get(section, {})
        self._sections[section] = {key: values for key, values in kept.items() if key in wanted}

    def write(self) -> None:
        """One line per cell, so that changes can be read. A reader never sees half a file."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        sections = []
        for section, cells in sorted(self._sections.items()):
            lines = ",\n".join(f"  {json.dumps(key)}: {_line(cells[key])}" for key in sorted(cells))
            sections.append(f" {json.dumps(section)}: {{\n{lines}\n }}")
        text = f'{{"version": {VERSION}, "sections": {{\n' + ",\n".join(sections) + "\n}}\n"
        part = self._path.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(self._path)

    def found(self, section: str) -> Found:
        """What a section's text is made from."""
        return Found(self._sections.get(section, {}))


class MissingError(LookupError):
    """A figure that has not been measured."""


class Found:
    """Figures of one section."""

    def __init__(self, cells: Mapping[str, Values]) -> None:
        self._cells = cells

    def __contains__(self, cell: Cell) -> bool:
        return cell.key in self._cells

    def values(self, cell: Cell, figure: str) -> list[float]:
        """One per seed. MissingError when the cell or figure has not been measured."""
        try:
            return self._cells[cell.key][figure]
        except KeyError:
            raise MissingError(f"{cell.key}: {figure}") from None

    def median(self, cell: Cell, figure: str) -> float:
        """Over the seeds."""
        return median(self.values(cell, figure))


def _line(values: Values) -> str:
    return json.dumps(values, separators=(",", ":"))


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """(median, least, most)."""
    return median(values), min(values), max(values)
