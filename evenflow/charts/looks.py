"""Colours, sizes and letters: the one place for the style of all charts."""

from __future__ import annotations

from typing import Any, NamedTuple


class Look(NamedTuple):
    """How a series is drawn. Sizes are pixels. Of a point, square pixels."""

    colour: str
    point: int
    line: float
    font: int = 0
    """Size of the letters of its label. 0: it has none."""
    bold: bool = False

    @property
    def labelled(self) -> bool:
        """Whether its name is written beside it."""
        return self.font > 0


HERO = Look("#d9480f", point=130, line=3.0, font=13, bold=True)
"""evenflow, wherever it is drawn. A picture has one strong mark at most."""
SUBJECT = HERO._replace(colour="#1b4a7a")
"""Another partitioner that a picture is about, such as that of a paper."""
NAMED = tuple(
    Look(colour, point=55, line=1.5, font=11)
    for colour in ("#343a40", "#5b7fa6", "#2f7d6b", "#7b5a91", "#85692b", "#7a4452", "#5c6770")
)
"""What it is compared with: muted colours, in the order of naming."""
REST = Look("#ced4da", point=28, line=1.0)
"""All others: context."""

INK, FAINT = "#495057", "#f1f3f5"
"""Words of the axes. The grid."""
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
"""Vega-Lite's own part of the style. A white ground reads on light and dark pages."""


def width_of(text: str, look: Look) -> float:
    """Upper estimate of the pixels that a label takes."""
    return len(text) * look.font * (0.62 if look.bold else 0.57)
