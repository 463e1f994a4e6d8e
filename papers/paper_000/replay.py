"""Queues of combiners and reducers, replayed: how fast a routed stream could come if its work had the kept
costs.

000 judges by sustainable throughput, the highest input rate at which nothing backs up. Here the work of every
combiner and reducer in every slide is counted and priced (`unit_costs`). A rate is sustained if nobody is
ever behind by more than a slide. Nothing is timed, so a figure is the same on every machine. Partitioners are
left out, because in the paper two of them are never the bottleneck.

A combiner folds tuples into a partial result for each key of a slide. Whoever holds a key's window adds the
slide to it. What a combiner may hold and finish by itself is the *way*. In evenflow, and in figures 13 to 15,
whoever holds a window makes its row:

    none       nothing: every partial result goes to a reducer
    forwarded  keys of which it has all tuples of the window (000, section 4.2: wrong decisions are repaired
               in time)
    announced  keys of which it is the home F_1. It finishes those that nobody announced. The others it hands
               on, as one partial result for each window. Whoever sends a key elsewhere announces (slide, key)
               to the key's home

In 000's own dataflow (section 3.3) combiners hold all windows, and with each slide send a partial result of
the window for each key that they have. So a reducer gets Gamma of them, as Eq. 2 says, and holds nothing:

    windows            every key goes to a reducer
    windows-forwarded  but for keys that one combiner has alone, which it finishes
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from evenflow.numeric.arrays import Bools, Float64s, Int32s, Int64s
from papers.unit_costs import Costs

Way = Literal["none", "forwarded", "announced", "windows", "windows-forwarded"]
WAYS: tuple[Way, ...] = ("none", "forwarded", "announced")
WINDOW_WAYS: tuple[Way, ...] = ("windows", "windows-forwarded")
_PLAIN = ("tuples", "partials", "announcements", "load", "gamma", "distinct")
BEHIND = 1
"""Slides by which somebody may be behind."""


@dataclass(frozen=True, eq=False)
class RoutedReplay:
    """A routed stream."""

    workers: Int32s
    """The combiner of each tuple, shape (m,)."""
    codes: Int32s
    """The key number of each tuple, shape (m,)."""
    panes: Int64s
    """The slide of each tuple, shape (m,). It does not decrease."""
    sources: Int32s
    """The partitioner that routed each tuple, shape (m,)."""
    homes: Int32s
    """F_1 of each key, shape (keys,)."""
    reducers: Int32s
    """The reducer of each key, shape (keys,)."""
    combiners: int
    """How many there are."""
    reducer_count: int
    """How many reducers there are."""

    def part(self, first: int, last: int) -> RoutedReplay:
        """The slides `first` to `last - 1` of it, as a stream that begins with slide 0."""
        rows = slice(*np.searchsorted(self.panes, (first, last)).tolist())
        return replace(
            self,
            workers=self.workers[rows],
            codes=self.codes[rows],
            panes=self.panes[rows] - first,
            sources=self.sources[rows],
        )


class Share(NamedTuple):
    """What one way leaves to whom in each slide."""

    held_keys: Int64s
    """Keys in windows of a combiner, shape (slides, combiners)."""
    finished: Int64s
    """Keys of `held_keys` that the combiner finishes, same shape."""
    sent: Int64s
    """Partial results that the combiner sends, same shape."""
    received: Int64s
    """Partial results that a reducer gets, shape (slides, reducers)."""
    rows: Int64s
    """Keys of a reducer's windows, same shape."""


@dataclass(frozen=True, eq=False)
class Counts:
    """What there is to do in each slide, and what the window is like that ends with it."""

    tuples: Int64s
    """Tuples of the slide at each combiner, shape (slides, combiners)."""
    partials: Int64s
    """Partial results, one for each key of the slide, same shape."""
    announcements: Int64s
    """Announced keys, same shape."""
    load: Int64s
    """Tuples in the window, same shape."""
    gamma: Int64s
    """Pairs of key and combiner in the window, shape (slides,)."""
    distinct: Int64s
    """Keys in the window, shape (slides,)."""
    shares: Mapping[Way, Share]
    """Way -> what it leaves to combiners and reducers, for the ways that were counted."""

    @property
    def imbalance(self) -> float:
        """Eq. 1 over the tuples of the window, mean over the slides."""
        total = self.load.sum(axis=1)
        return float((self.load.max(axis=1) / total).mean()) - 1 / self.load.shape[1]

    @property
    def ksr(self) -> float:
        """Gamma over distinct keys, mean over the slides."""
        return float((self.gamma / self.distinct).mean())

    def between(self, first: int, last: int) -> Counts:
        """The slides `first` to `last - 1` of these."""
        some = slice(first, last)
        shares = {way: Share(*(values[some] for values in share)) for way, share in self.shares.items()}
        plain = {name: getattr(self, name)[some] for name in _PLAIN}
        return Counts(**plain, shares=shares)

    def work(self, way: Way, costs: Costs) -> tuple[Float64s, Float64s]:
        """Nanoseconds of every combiner and of every reducer in every slide, shapes (slides, parts)."""
        share = self.shares[way]
        combiners = costs.tuple * self.tuples + costs.make * self.partials
        combiners += costs.hold * share.held_keys + costs.emit * share.finished + costs.send * share.sent
        if way == "announced":
            combiners += costs.hear * self.announcements
        row = costs.emit if way in WINDOW_WAYS else costs.hold + costs.emit
        return combiners, costs.receive * share.received + row * share.rows


def counted(routing: RoutedReplay, *, span: int, first: int, ways: Sequence[Way] = WAYS) -> Counts:
    """Count the slides from `first` on, by the windows that end with them. A window has `span` slides."""
    slides = [_slide(routing, slide, ways) for slide in _slides(routing, span=span, first=first)]
    plain = {name: np.array([counts[name] for counts in slides]) for name in _PLAIN}
    shares = {
        way: Share(*(np.array([counts[f"{way} {name}"] for counts in slides]) for name in Share._fields))
        for way in ways
    }
    return Counts(**plain, shares=shares)


def key_holders(routing: RoutedReplay, *, span: int, first: int) -> Iterator[tuple[slice, Int64s]]:
    """Of each slide from `first` on the rows of its tuples, and how many combiners have each key in the
    window that ends with it, shape (keys,).
    """
    for slide in _slides(routing, span=span, first=first):
        yield (
            slide.rows,
            np.bincount(slide.window_pairs // routing.combiners, minlength=len(routing.homes)),
        )


class _Slide(NamedTuple):
    """A slide and the window that ends with it. A pair is key x combiners + combiner."""

    rows: slice
    """Tuples of the slide, a part of the routed stream."""
    window_rows: slice
    """Tuples of the window."""
    pairs: Int64s
    """Pairs of key and combiner in the slide, ascending."""
    window_pairs: Int64s
    """Pairs of key and combiner in the window, ascending."""


def _slides(routing: RoutedReplay, *, span: int, first: int) -> Iterator[_Slide]:
    last = int(routing.panes[-1])
    edges = np.searchsorted(routing.panes, np.arange(last + 2)).tolist()
    pairs = routing.codes.astype(np.int64) * routing.combiners + routing.workers
    # In how many slides of the window each pair is.
    inside = np.zeros(len(routing.homes) * routing.combiners, np.uint16)
    recent: deque[Int64s] = deque()
    for number in range(last + 1):
        rows = slice(edges[number], edges[number + 1])
        recent.append(np.unique(pairs[rows]))
        inside[recent[-1]] += 1
        if len(recent) > span:
            inside[recent.popleft()] -= 1
        if number >= first:
            window = slice(edges[max(0, number + 1 - span)], rows.stop)
            yield _Slide(rows, window, recent[-1], np.flatnonzero(inside))


def _slide(routing: RoutedReplay, slide: _Slide, ways: Sequence[Way]) -> dict[str, Int64s]:
    """Counts of one slide by name."""
    n, homes = routing.combiners, routing.homes
    keys, holders = np.divmod(slide.window_pairs, n)
    slide_keys, makers = np.divmod(slide.pairs, n)
    # By key: how many combiners have it in the window, whether one has, and whether another than its home
    # has.
    holders_of = np.bincount(keys, minlength=len(homes))
    single = holders_of == 1
    strayed = np.bincount(keys[holders != homes[keys]], minlength=len(homes)) > 0
    nothing, everything = np.zeros(len(homes), np.bool_), np.ones(len(homes), np.bool_)
    counts = {
        "tuples": np.bincount(routing.workers[slide.rows], minlength=n),
        "partials": np.bincount(makers, minlength=n),
        "announcements": _announcements(routing, slide.rows),
        "load": np.bincount(routing.workers[slide.window_rows], minlength=n),
        "gamma": np.array(len(keys)),
        "distinct": np.array(np.count_nonzero(holders_of)),
    }
    masks: dict[Way, tuple[Bools, Bools, Bools]] = {
        # Of pairs in the window whether they are held and finished, and of pairs in the slide whether they
        # are held.
        "none": (nothing[keys], nothing[keys], nothing[slide_keys]),
        "forwarded": (single[keys], single[keys], single[slide_keys]),
        "announced": (holders == homes[keys], ~strayed[keys], makers == homes[slide_keys]),
        "windows": (everything[keys], nothing[keys], everything[slide_keys]),
        "windows-forwarded": (everything[keys], single[keys], everything[slide_keys]),
    }
    for way in ways:
        in_window, finished, stays = masks[way]
        # Partial results of a window that is not finished here, and those of this slide that do not stay.
        handed = in_window & ~finished
        sent = np.concatenate([keys[handed], slide_keys[~stays]])
        senders = np.concatenate([holders[handed], makers[~stays]])
        rest = np.flatnonzero(np.bincount(keys[~finished], minlength=len(homes)))
        share = Share(
            held_keys=np.bincount(holders[in_window], minlength=n),
            finished=np.bincount(holders[finished], minlength=n),
            sent=np.bincount(senders, minlength=n),
            received=np.bincount(routing.reducers[sent], minlength=routing.reducer_count),
            rows=np.bincount(routing.reducers[rest], minlength=routing.reducer_count),
        )
        counts |= {f"{way} {name}": values for name, values in share._asdict().items()}
    return counts


def _announcements(routing: RoutedReplay, rows: slice) -> Int64s:
    """Announced keys of a slide by home. Each source announces a key once."""
    codes, count = routing.codes[rows].astype(np.int64), len(routing.homes)
    away = routing.workers[rows] != routing.homes[codes]
    announced = np.unique(routing.sources[rows][away] * np.int64(count) + codes[away]) % count
    return np.bincount(routing.homes[announced], minlength=routing.combiners)


def shortest_slide(work: Sequence[Float64s]) -> float:
    """The shortest slide, in the unit of `work`, with which nobody is ever behind by more than `BEHIND`
    slides.

    work: an array (slides, parts) for each kind of part. With slides of length T somebody who has been busy
    for the last k slides is behind by the work of these slides less k T.
    """
    shortest = 0.0
    for parts in work:
        # Work up to the end of each slide, so that the work of any stretch is one difference.
        done = np.vstack([np.zeros(parts.shape[1]), np.cumsum(parts, axis=0)])
        for length in range(1, len(done)):
            most = float((done[length:] - done[:-length]).max(initial=0.0))
            shortest = max(shortest, most / (length + BEHIND))
    return shortest


def sustained(work: Sequence[Float64s], counts: Counts) -> float:
    """Million tuples a second with which nobody is ever behind by more than `BEHIND` slides.

    work: nanoseconds, as `Counts.work`.
    """
    # Tuples per nanosecond are thousands of millions a second.
    return 1e3 * float(counts.tuples.sum(axis=1).mean()) / shortest_slide(work)


def rate_of(counts: Counts, way: Way, costs: Costs) -> float:
    """Million tuples a second if all slides have this way."""
    return sustained(counts.work(way, costs), counts)
