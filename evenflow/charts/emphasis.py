"""Which series stand out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenflow.charts.looks import HERO, NAMED, REST, SUBJECT, Look

OURS = "evenflow"
FEW = 6
"""So many series need no grey: all are named."""


def looks(names: Iterable[str], *, hero: str = OURS, named: Sequence[str] = ()) -> dict[str, Look]:
    """The look of each name: of `hero` (or the first with that name and options), of those `named`, of the rest.

    Where there are few series all are named. What is named and not there takes no colour.
    """
    there = list(dict.fromkeys(names))
    strong = hero if hero in there else next((name for name in there if name.partition(":")[0] == hero), None)
    chosen = there if len(there) <= FEW else [name for name in dict.fromkeys(named) if name in there]
    others = [name for name in chosen if name != strong]
    found = dict.fromkeys(there, REST)
    found |= {name: NAMED[at % len(NAMED)] for at, name in enumerate(others)}
    return found if strong is None else found | {strong: HERO if hero == OURS else SUBJECT}


def best(points: dict[str, tuple[float, float]]) -> list[str]:
    """The names that no other beats in one figure without losing in the other (least is best). Of equals the first."""
    front: list[str] = []
    least = float("inf")
    for name in sorted(points, key=lambda name: points[name]):
        if points[name][1] < least:
            least = points[name][1]
            front.append(name)
    return front


def grey_first(found: dict[str, Look]) -> list[str]:
    """The names in the order of drawing: grey marks below, then the named, the first named above, then the strong one."""
    upwards = list(reversed(found))
    return sorted(upwards, key=lambda name: (found[name].labelled, found[name].bold))
