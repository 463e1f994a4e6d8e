"""Colours, sizes and letters: the only place for the style of all charts."""

from __future__ import annotations

from typing import Any, NamedTuple


class Look(NamedTuple):
    """How a series is drawn."""

    colour: str
    """As a hexadecimal number behind "#"."""
    point: int
    """Area of a point in square pixels."""
    line: float
    """Width of a line in pixels."""
    font: int = 0
    """Size of the letters of the label in pixels. 0: the series has no label."""
    bold: bool = False
    """Whether the label is in bold letters."""

    @property
    def labelled(self) -> bool:
        """Whether the name of the series is written beside it."""
        return self.font > 0


HERO = Look("#d9480f", point=130, line=3.0, font=13, bold=True)
"""The look of evenflow in every chart. A picture has at most one strong series."""
SUBJECT = HERO._replace(colour="#1b4a7a")
"""The look of another partitioner that a picture is about, such as the one of a paper."""
NAMED = tuple(
    Look(colour, point=55, line=1.5, font=11)
    for colour in ("#343a40", "#5b7fa6", "#2f7d6b", "#7b5a91", "#85692b", "#7a4452", "#5c6770")
)
"""The looks of series that the strong one is compared with: muted colours, in the order of naming."""
EQUAL = tuple(
    Look(colour, point=55, line=1.8, font=11)
    for colour in (
        "#0072b2", "#d55e00", "#009e73", "#9c4f7d", "#8a6d00", "#3a3f44", "#3d8fc4", "#8c3b1f",
    )
)  # fmt: skip
"""The looks of series of which none is stressed. Okabe and Ito's colours, darkened so that words can be
read in them.
"""
REST = Look("#ced4da", point=28, line=1.0)
"""The look of all other series, which are context."""

INK, FAINT = "#495057", "#f1f3f5"
"""Colours of the words of the axes, and of the grid."""
CONFIG: dict[str, Any] = {
    "background": "white",
    "padding": 12,
    "view": {"stroke": None},
    "axis": {
        "gridColor": FAINT,
        "domainColor": "#adb5bd",
        "tickColor": "#adb5bd",
        "labelColor": INK,
        "titleColor": INK,
        "titleFontWeight": "normal",
        "labelFontSize": 10,
        "titleFontSize": 11,
    },
    "title": {"anchor": "start", "color": "#212529", "fontSize": 12, "subtitleColor": INK},
}
"""The configuration of Vega-Lite. A white background can be read on light and dark pages."""


def width_of(text: str, look: Look) -> float:
    """An upper estimate of the width of a label in pixels."""
    # A letter of a sans-serif font is about 0.6 times as wide as high. No font is measured, as the browser
    # chooses it.
    return len(text) * look.font * (0.62 if look.bold else 0.57)
