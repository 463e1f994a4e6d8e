"""Panels put together, and written as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenflow.charts.looks import CONFIG
from evenflow.errors import ConfigError

if TYPE_CHECKING:
    import altair


def drawing() -> Any:
    """The module altair. ConfigError when charts cannot be drawn."""
    try:
        import altair
        import vl_convert  # noqa: F401  (altair renders with it)
    except ImportError as error:
        raise ConfigError(
            f"charts need the package {error.name}", hint='pip install "evenflow[plots]"'
        ) from None
    altair.data_transformers.disable_max_rows()
    return altair


def page(
    panels: Sequence[altair.TopLevelMixin],
    *,
    title: str,
    subtitle: Sequence[str] = (),
    columns: int = 2,
    spacing: int = 28,
) -> altair.TopLevelMixin:
    """Panels side by side below a title that says in words what is to be seen."""
    words = drawing().TitleParams(title, subtitle=list(subtitle), fontSize=15, subtitleFontSize=11, offset=14)
    made = drawing().concat(*panels, columns=columns, spacing=spacing, title=words)
    return made.configure(**CONFIG)


def save(chart: altair.TopLevelMixin, path: Path) -> None:
    """As the ending says (.png, .svg, .html). A page of HTML holds all it needs."""
    ending: Any = path.suffix.lower().removeprefix(".")
    options: dict[str, Any] = {"inline": True} if ending == "html" else {"scale_factor": 2}
    chart.save(str(path), format=ending, **options)
