"""A hook of mkdocs: pictures stand in the page itself, so that whoever points at a mark reads its values.

Our charts carry the values of each mark as `aria-label`. Here each mark gets a `<title>` of them. A line also
gets the scales of its axes, from which pictures.js computes the values of the point that is next to the
pointer. The files stay the same.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

_SVG = "{http://www.w3.org/2000/svg}"
_IMAGE = re.compile(r'<img alt="([^"]*)" src="([^"]+\.svg)"[^>]*>')
_AXIS = re.compile(r"([XY])-axis(?: titled '(.*)')? for a (linear|log) scale with values from (\S+) to (\S+)")
_NUMBER = re.compile(r"(−?[\d.,]+(?:e[-−+]?\d+)?)( ?%|k|M|)")
_FRAME = re.compile(r"M0,0h([\d.]+)v([\d.]+)h")
_TIMES = {"k": 1e3, "M": 1e6}
_MOVED = re.compile(r"translate\((-?[\d.]+),(-?[\d.]+)\)")
_POINT = re.compile(r"[ML](-?[\d.e-]+),(-?[\d.e-]+)")
_PIXELS = {"x", "y", "x2", "y2"}
_LOOKS = {"colour", "width", "size", "at", "name"}
_WIDE = "12"
"""Width in pixels of what can be pointed at of a line, which is thinner."""
_BASELINE = 3
"""Pixels from the middle of a label of the left axis down to its baseline."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """An axis of a panel: `first + step * pixels` is the value, or its logarithm. Pixels count from the
    left, or the top.
    """

    kind: str
    """`linear` or `log`."""
    first: float
    """The value at pixel 0, or its logarithm."""
    step: float
    """By how much the value, or its logarithm, grows with a pixel."""
    unit: str
    """What stands behind each number of the axis, such as ` %`."""
    title: str
    """The axis's title, or its letter if it has none."""

    def value(self, pixels: float) -> float:
        value = self.first + self.step * pixels
        return math.exp(value) if self.kind == "log" else value

    def words(self) -> str:
        """For pictures.js."""
        return f"{self.kind}|{self.first:.9g}|{self.step:.9g}|{self.unit}|{self.title}"


def _number(text: str) -> float:
    """A number as charts write it: `1,266.93`, `−0.5`. NaN if it is none."""
    try:
        return float(text.replace(",", "").replace("−", "-"))
    except ValueError:
        return math.nan


def values_of(label: str) -> dict[str, str]:
    """The values in a mark's label, `name: value; ...`."""
    return {key: value for key, _, value in (part.rpartition(": ") for part in label.split("; "))}


def words_of(label: str, kind: str) -> str:
    """What a mark says when somebody points at it. Empty: nothing.

    kind: the kind of mark. A line's label has the values of its first point only, so a line says its name.
    """
    values = values_of(label)
    name = values.get("name", "")
    if kind == "line mark":
        return name
    shown = [f"{key}: {_rounded(value)}" for key, value in values.items() if key not in _LOOKS | _PIXELS]
    return "\n".join([name, *shown] if name else shown)


def _rounded(value: str) -> str:
    return value if math.isnan(_number(value)) else f"{_number(value):.4g}"


def scale_of(axis: ElementTree.Element) -> Scale | None:
    """The scale that the labels of an axis show. None if it is no axis of numbers, or if they do not lie
    on one line.
    """
    label = _AXIS.match(axis.get("aria-label", ""))
    if label is None:
        return None
    place = "XY".index(label[1])
    marks: list[tuple[float, float, str]] = []
    for text in (text for group in _parts(axis, "role-axis-label") for text in group.iter(f"{_SVG}text")):
        number, moved = _NUMBER.fullmatch(text.text or ""), _MOVED.match(text.get("transform", ""))
        if number and moved:
            value = _number(number[1]) * _TIMES.get(number[2], 1)
            unit = "" if number[2] in _TIMES else number[2]
            marks.append((float(moved[place + 1]) - _BASELINE * place, value, unit))
    values = [value for _, value, _ in marks]
    if len(marks) < 2 or len({unit for _, _, unit in marks}) > 1 or (label[3] == "log" and min(values) <= 0):
        return None
    heights = [math.log(value) for value in values] if label[3] == "log" else values
    (start, *_), (end, *_) = marks[0], marks[-1]
    step = (heights[-1] - heights[0]) / (end - start)
    first = heights[0] - step * start
    if any(abs((height - first) / step - at) > 1 for height, (at, *_) in zip(heights, marks, strict=True)):
        return None
    return Scale(kind=label[3], first=first, step=step, unit=marks[0][2], title=label[2] or label[1].lower())


def _parts(group: ElementTree.Element, role: str) -> Iterator[ElementTree.Element]:
    return (part for part in group.iter(f"{_SVG}g") if role in part.get("class", "").split())


def _axes(panel: ElementTree.Element) -> Iterator[tuple[tuple[str, ...], ElementTree.Element]]:
    """The axes of a panel with what says that two axes are the same: letter, kind, ends, and the length in
    pixels.
    """
    frame = next(
        (size for path in panel.iter(f"{_SVG}path") if (size := _FRAME.match(path.get("d", "")))), None
    )
    for axis in _parts(panel, "role-axis"):
        if label := _AXIS.fullmatch(axis.get("aria-label", "")):
            yield (
                (label[1], label[3], label[4], label[5], frame["XY".index(label[1]) + 1] if frame else ""),
                axis,
            )


def shared_scales(root: ElementTree.Element) -> dict[tuple[str, ...], Scale]:
    """The scales of a picture's axes, for panels whose own axes have no labels. An ambiguous title is left
    out.
    """
    scales: dict[tuple[str, ...], Scale] = {}
    for panel in _panels(root):
        for same, axis in _axes(panel):
            if scale := scale_of(axis):
                known = scales.get(same, scale)
                scales[same] = scale if known.title == scale.title else replace(scale, title=same[0].lower())
    return scales


def _panels(root: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """The groups of a picture that have axes of their own, each with its background: two levels above the
    axes.
    """
    for group in root.iter(f"{_SVG}g"):
        if any(
            "role-axis" in part.get("class", "").split() for inner in group.iterfind("*/*") for part in inner
        ):
            yield group


def scales_in(panel: ElementTree.Element, shared: dict[tuple[str, ...], Scale]) -> dict[str, Scale]:
    """The scales of a panel's lines, `x` and `y`. Empty if it has not both, or if a line's first point
    contradicts them.
    """
    scales: dict[str, Scale] = {}
    for same, axis in _axes(panel):
        if scale := scale_of(axis) or shared.get(same):
            scales.setdefault(same[0].lower(), scale)
    if set(scales) != {"x", "y"}:
        return {}
    for line in panel.iter(f"{_SVG}path"):
        first = _POINT.match(line.get("d", ""))
        if line.get("aria-roledescription") == "line mark" and first:
            shown = [_number(value) for value in values_of(line.get("aria-label", "")).values()]
            for place, scale in enumerate((scales["x"], scales["y"])):
                if not scale.unit and not math.isclose(
                    scale.value(float(first[place + 1])), shown[place], rel_tol=0.05, abs_tol=abs(scale.step)
                ):
                    return {}
    return scales


def inlined(svg: str, alt: str) -> str:
    """The picture as a part of a page, with a title for each mark."""
    ElementTree.register_namespace("", _SVG.strip("{}"))
    root = ElementTree.fromstring(svg)
    panels, shared = list(_panels(root)), shared_scales(root)

    def visit(group: ElementTree.Element, axes: dict[str, Scale]) -> None:
        if group in panels:
            axes = scales_in(group, shared)
        for place, part in reversed(list(enumerate(group))):
            kind = part.get("aria-roledescription", "")
            if part.get("role") != "graphics-symbol" or part.tag not in (f"{_SVG}path", f"{_SVG}line"):
                visit(part, axes)
                continue
            words = words_of(unescape(part.get("aria-label", "")), kind)
            if not words:
                continue
            part.set("class", "mark")
            ElementTree.SubElement(part, f"{_SVG}title").text = words
            if kind == "line mark":
                looks = {"class": "near", "fill": "none", "stroke": "transparent", "stroke-width": _WIDE}
                scales = {f"data-{letter}": scale.words() for letter, scale in axes.items()}
                near = ElementTree.Element(f"{_SVG}path", {"d": part.get("d", ""), **looks, **scales})
                ElementTree.SubElement(near, f"{_SVG}title").text = words
                group.insert(place + 1, near)

    visit(root, {})
    return (
        f'<figure class="picture" role="group" aria-label="{alt}">'
        f"{ElementTree.tostring(root, encoding='unicode')}</figure>"
    )


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """The whole page, after its words are in the index of the search: pictures are not searched."""
    folder = Path(config.docs_dir) / Path(page.file.dest_uri).parent

    def picture(match: re.Match[str]) -> str:
        return inlined((folder / match[2]).read_text(encoding="utf-8"), match[1])

    return _IMAGE.sub(picture, output)
