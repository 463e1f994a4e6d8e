"""Decides which series of a chart stand out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenflow.charts.looks import EQUAL, HERO, NAMED, REST, SUBJECT, Look
from evenflow.text.options import name_of

OURS = "evenflow"
FEW = 6
"""Up to this many series, all are named and none is grey."""


def looks(names: Iterable[str], *, hero: str = OURS, named: Sequence[str] = ()) -> dict[str, Look]:
    """The look of each name: one for the hero, others for the names in `named`, and grey for the rest.

    The hero is the name `hero`, or else the first name that is `hero` with options. If there are few series,
    all are named. A name in `named` that does not occur takes no colour.
    """
    distinct = list(dict.fromkeys(names))
    strong = hero if hero in distinct else next((name for name in distinct if name_of(name) == hero), None)
    chosen = distinct if len(distinct) <= FEW else [name for name in dict.fromkeys(named) if name in distinct]
    others = [name for name in chosen if name != strong]
    look_of = dict.fromkeys(distinct, REST)
    look_of |= {name: NAMED[at % len(NAMED)] for at, name in enumerate(others)}
    return look_of if strong is None else look_of | {strong: HERO if hero == OURS else SUBJECT}


def equal(names: Iterable[str]) -> dict[str, Look]:
    """The looks of names of which none is stressed, in the order of the names.
    Colours recur after the eighth name.
    """
    return {name: EQUAL[at % len(EQUAL)] for at, name in enumerate(dict.fromkeys(names))}


def best(points: dict[str, tuple[float, float]]) -> list[str]:
    """The Pareto front of these points, where less is better in both figures.
    Of equal points, the first name.

    No other name is at least as good in both figures and better in one.
    """
    front: list[str] = []
    least = float("inf")
    for name in sorted(points, key=lambda name: points[name]):
        if points[name][1] < least:
            least = points[name][1]
            front.append(name)
    return front


def grey_first(look_of: dict[str, Look]) -> list[str]:
    """The names in the order of drawing, from below to above: grey ones,
    named ones (the first on top), the hero.
    """
    # The sort is stable, and False comes before True: of equal looks the first name ends on top.
    upwards = list(reversed(look_of))
    return sorted(upwards, key=lambda name: (look_of[name].labelled, look_of[name].bold))
