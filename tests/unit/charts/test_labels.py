"""Labels lie beside their marks and never on each other."""

import json
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.charts.labels import Box, Dot, place, spread
from evenflow.charts.looks import HERO, NAMED, REST, Look
from tests.examples import examples

WIDTH, HEIGHT = 300.0, 260.0
PLACES = st.tuples(st.floats(0, WIDTH), st.floats(0, HEIGHT))


def dots(at: list[tuple[float, float]], looks: list[Look]) -> list[Dot]:
    return [Dot(f"choices-{n}", x, y, look) for n, ((x, y), look) in enumerate(zip(at, looks, strict=True))]


@examples(300)
@given(st.lists(PLACES, min_size=1, max_size=7), st.lists(PLACES, max_size=15))
def test_no_label_meets_another_or_a_strong_mark_or_leaves_the_panel(
    strong: list[tuple[float, float]], grey: list[tuple[float, float]]
) -> None:
    marks = dots(strong, [HERO, *NAMED[: len(strong) - 1]])
    labels = place([*dots(grey, [REST] * len(grey)), *reversed(marks)], WIDTH, HEIGHT)
    assert not any(a.box.meets(b.box) for a, b in combinations(labels, 2))
    assert all(label.box.inside(Box(0, 0, WIDTH, HEIGHT)) for label in labels)
    assert not any(label.box.meets(mark.dot.box) for label in labels for mark in labels)


@given(st.lists(PLACES, min_size=1, max_size=7, unique=True))
def test_grey_marks_have_no_label(at: list[tuple[float, float]]) -> None:
    marks = dots(at, [HERO, *NAMED[: len(at) - 1]])
    labels = place([Dot("grey", 5, 5, REST), *reversed(marks)], WIDTH, HEIGHT)
    assert not any("grey" in label.dot.name for label in labels)
    assert labels[0].dot.name.startswith("choices-0"), "the strong mark comes first, where most room is"


def test_a_name_that_is_wider_than_the_panel_is_cut() -> None:
    (label,) = place([Dot("evenflow:" + "x" * 200, 50, 50, HERO)], WIDTH, HEIGHT)
    assert label.dot.name.endswith("…")
    assert label.box.inside(Box(0, 0, WIDTH, HEIGHT))


def test_marks_on_one_spot_share_a_label() -> None:
    (label,) = place(dots([(50, 50), (51, 50)], [NAMED[0], HERO]), WIDTH, HEIGHT)
    assert label.dot.name == "choices-1, choices-0"
    assert label.dot.look == HERO


def test_a_label_keeps_off_grey_marks_where_there_is_room() -> None:
    beside = Dot("grey", 70, 50, REST)
    (label,) = place([*dots([(50, 50)], [HERO]), beside], WIDTH, HEIGHT)
    assert not label.box.meets(beside.box)
    assert not label.far


@given(st.lists(st.floats(0, 200), min_size=1, max_size=12))
def test_labels_at_the_ends_of_lines_keep_their_order_and_distance(wanted: list[float]) -> None:
    result = spread(wanted, gap=14, low=0, high=200)
    ordered = [y for _, y in sorted(zip(wanted, result, strict=True))]
    assert all(b - a >= 14 - 1e-9 for a, b in pairwise(ordered))
    assert all(-1e-9 <= y <= 200 + 1e-9 for y in result)


def test_a_label_that_has_room_stays_at_the_end_of_its_line() -> None:
    assert spread([10, 100, 102], gap=14, low=0, high=200) == [10, 94, 108]


@pytest.mark.parametrize("kept", sorted(Path("docs").glob("*/*.svg")), ids=lambda path: path.stem)
def test_no_kept_picture_has_a_legend_or_fetches_anything(kept: Path) -> None:
    drawn = kept.read_text(encoding="utf-8")
    assert "role-legend" not in drawn
    assert "<image" not in drawn
    assert 'fill="white"' in drawn, "a dark page would swallow the words"
    assert len(drawn) < 400_000


def test_the_kept_rows_of_a_picture_are_what_it_was_drawn_from() -> None:
    rows = json.loads(Path("docs/measurements/partitioners-growth-workers.json").read_text(encoding="utf-8"))
    drawn = Path("docs/measurements/partitioners-growth-workers.svg").read_text(encoding="utf-8")
    assert all(f">{name}<" in drawn for name in {row["partitioner"] for row in rows})
