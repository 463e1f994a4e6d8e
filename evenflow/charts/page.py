"""Puts panels together and writes them to a file."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenflow.charts.looks import CONFIG
from evenflow.errors import ConfigError

if TYPE_CHECKING:
    import altair

TWO_PANELS = 105
"""Letters of a subtitle that fit over two panels, in a wide font."""
ONE_PANEL = 58
"""Letters that fit over one panel with the names beside it."""

_OPTIONS: dict[str, dict[str, Any]] = {
    "html": {"inline": True},
    "png": {"scale_factor": 2},
    "svg": {"scale_factor": 2},
}


def drawing() -> Any:
    """The module altair. ConfigError if a package that charts need is missing."""
    try:
        import altair
        import vl_convert  # noqa: F401  (altair renders with it)
    except ImportError as error:
        raise ConfigError(
            f"charts need the package {error.name}", hint='pip install "evenflow[plots]"'
        ) from None
    # altair refuses more than 5,000 rows of data by default.
    altair.data_transformers.disable_max_rows()
    return altair


def page(
    panels: Sequence[altair.TopLevelMixin],
    *,
    title: str,
    subtitle: Sequence[str] = (),
    columns: int = 2,
    spacing: int = 28,
    letters: int | None = None,
) -> altair.TopLevelMixin:
    """The panels side by side, `columns` in a row, below a title that says in words what can be seen.

    letters: most letters in a line of the subtitle. A longer line is wrapped, because a picture cuts in some
    fonts what is wider than its panels. None: lines are as they are.
    """
    wrapped = list(subtitle)
    if letters is not None:
        wrapped = [part for line in subtitle for part in textwrap.wrap(line, letters, break_on_hyphens=False)]
    words = drawing().TitleParams(title, subtitle=wrapped, fontSize=15, subtitleFontSize=11, offset=14)
    sheet = drawing().concat(*panels, columns=columns, spacing=spacing, title=words)
    return sheet.configure(**CONFIG)


def save(chart: altair.TopLevelMixin, path: Path) -> None:
    """Write the chart in the format of the path's ending (.png, .svg, .pdf, .html).
    An HTML page needs no other files.
    """
    ending: Any = path.suffix.lower().removeprefix(".")
    options: dict[str, Any] = _OPTIONS.get(ending, {})
    chart.save(str(path), format=ending, **options)
