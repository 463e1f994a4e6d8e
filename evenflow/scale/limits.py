"""What breaks first: how far rate and delay of a planned pipeline can go until one of its places is full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from evenflow.scale.costs import BUDGET, terms
from evenflow.scale.sizes import Sizes, batch_parts, load_of

MOST_TIMES = 100.0
"""Multiple of the rate up to which is searched."""
_HALVINGS = 25

REMEDIES = {
    "instances": "more partitioner instances (input partitions must suffice)",
    "brokers": "more brokers, or a longer delay",
    "executors": "more workers, routed partitions, tasks and executors",
    "driver": "a longer delay, fewer tasks, or several queries",
    "controller": "a longer delay, or fewer instances",
    "network": "more brokers, or faster cards",
    "transaction": "a longer delay, fewer routed partitions, or several queries",
    "micro-batch": "a longer delay, or more tasks and buckets",
}
"""What to do where a place is full."""


@dataclass(frozen=True)
class Break:
    """A place, and when it is full."""

    place: str
    """The machines or the resource that is full, as `REMEDIES` names it."""
    busy: float
    """The share of the place that is in use at the planned rate."""
    times: float | None
    """The multiple of the planned rate at which the place is full. None if it is not full at `MOST_TIMES`
    times the rate."""
    topic: str
    """What takes most of the place then."""
    remedy: str
    """What to do, in words."""


def breaks(sizes: Sizes) -> list[Break]:
    """Every place, the one that breaks first in front.
    Nothing is added meanwhile: neither machines nor workers.
    """
    shares = _shares_at(sizes)
    place_breaks = []
    for place, share in shares(1.0).items():
        # The default argument binds the place of this turn.
        times = _crossing(lambda times, place=place: shares(times)[place] >= 1, 1.0, MOST_TIMES)  # type: ignore[misc]
        place_breaks.append(Break(place, share, times, _dearest(sizes, place, times or 1.0), REMEDIES[place]))
    return sorted(
        place_breaks,
        key=lambda place_break: (place_break.times is None, place_break.times, -place_break.busy),
    )


def shortest_delay(sizes: Sizes) -> float:
    """The shortest delay (seconds) with which no place is full, with the same machines and the same rate."""

    def full(shrink: float) -> bool:
        how = sizes.shape
        shorter = replace(
            how, linger=how.linger / shrink, commit=how.commit / shrink, batch=how.batch / shrink
        )
        return max(sizes.busy(shorter).values()) >= 1

    return sizes.shape.delay / (_crossing(full, 1.0, MOST_TIMES) or MOST_TIMES)


def over_budget(sizes: Sizes) -> list[str]:
    """Terms beside the work that take more than a tenth of their place, dearest first, in words."""
    shares = sizes.busy()
    bill = sizes.bill
    places = {term.place: 0.0 for term in bill}
    for term in bill:
        places[term.place] += term.cores
    dear = [
        (term.cores / places[term.place] * shares[term.place], term)
        for term in bill
        if not term.work and places[term.place] and term.place in shares
    ]
    return [
        f"{term.topic} take {share:.0%} of the {term.place}"
        for share, term in sorted(dear, key=lambda pair: -pair[0])
        if share > BUDGET
    ]


def _shares_at(sizes: Sizes) -> Callable[[float], dict[str, float]]:
    def shares(times: float) -> dict[str, float]:
        rate = times * sizes.shape.rate
        load = load_of(sizes.demand, sizes.measurements, rate=rate)
        return sizes.busy(replace(sizes.shape, rate=rate), load)

    return shares


def _dearest(sizes: Sizes, place: str, times: float) -> str:
    """The topic that takes most of a place at this multiple of the rate."""
    if place == "network":
        return "bytes"
    if place == "transaction":
        return "markers"
    rate = times * sizes.shape.rate
    load = load_of(sizes.demand, sizes.measurements, rate=rate)
    shape = replace(sizes.shape, rate=rate)
    if place == "micro-batch":
        shares = batch_parts(shape, load, sizes.units)
    else:
        shares = {term.topic: term.cores for term in terms(shape, load, sizes.units) if term.place == place}
    return max(shares, key=shares.__getitem__)


def _crossing(full: Callable[[float], bool], low: float, high: float) -> float | None:
    """The value between `low` and `high` from which on it is full.
    `low` if it is full there, None if it never is.
    """
    if full(low):
        return low
    if not full(high):
        return None
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if full(middle) else (middle, high)
    return low
