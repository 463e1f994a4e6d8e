"""Rows of scenarios, kept in docs/measurements/SCENARIO.json: one object each, as `evenflow bench --json`
prints it. Pages are made of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path("docs/measurements")
Rows = Mapping[str, Any]
"""Figures by scenario id."""


def kept_rows(scenarios: Iterable[str], folder: Path = FOLDER) -> dict[str, Any]:
    """The rows that are kept of these scenarios, by scenario."""
    texts = {name: (folder / f"{name}.json").read_text(encoding="utf-8") for name in scenarios}
    return {name: json.loads(text) for name, text in texts.items()}


def keep(lines: Iterable[str], folder: Path = FOLDER) -> None:
    """Keep these rows, one object a line. Raises ValueError if one is of a smoke run."""
    rows = [json.loads(line) for line in lines if line.strip()]
    for row in rows:
        if row["smoke"]:
            raise ValueError(f"{row['id']} was only smoked")
    for row in rows:
        (folder / f"{row['id']}.json").write_text(json.dumps(row) + "\n", encoding="utf-8")


def keep_files(names: Iterable[str]) -> None:
    """Keep the rows of these files. Raises ValueError if one is of a smoke run."""
    for name in names:
        keep(Path(name).read_text(encoding="utf-8").splitlines())
