"""Figure 11 of 000: what it brings to track hot keys, and to forward keys.

Three Daltons, as in the paper. *Non-hybrid*: every key is hot, so all tuples go through the bandit, and
nothing is forwarded, because only keys that are not hot are. *No forwarding*: hot keys are tracked. *Full*:
with key forwarding, too.

What tracking spares are decisions. So one partitioner stands before the combiners of `word_count`, and its
work is priced with kept times. The rates without it stand beside these.
"""

from __future__ import annotations

from itertools import product
from statistics import mean, median

from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.claims import Claim, Outcome
from papers.comparing import lower
from papers.markdown import figure, number, ratio, table
from papers.paper_000.overhead import kept_times
from papers.paper_000.reducers import PLACES
from papers.paper_000.word_count import (
    FLAT,
    NON_HYBRID,
    OURS,
    SKEWED,
    TEXTS,
    WITH,
    WITHOUT,
    combiners,
    with_partitioner,
    word_cell,
)

SLIDE = 5_000
"""Tuples of a slide where decisions are timed."""
VARIANTS = {
    "non-hybrid": (NON_HYBRID, WITHOUT),
    "no forwarding": ("dalton", WITHOUT),
    "full": ("dalton", WITH),
}
"""Rule and way of each variant."""
_RIVAL = "dagreedy"
_TRACKED, _FORWARDED, _BOTH = 1.2, 3.0, 2.7
"""The paper's speed-ups."""


def deciding_cell(stream: str, places: int, rule: str) -> Cell:
    """The kept times of decisions of a rule."""
    keys, zipf = TEXTS[stream]
    return kept_times.deciding_cell(keys, zipf, combiners(places, rule), rule)


def deciding_cells() -> list[Cell]:
    """The kept times of both rules, and of DAGreedy, on all streams, with all places."""
    return [deciding_cell(*at) for at in product(TEXTS, PLACES, ("dalton", NON_HYBRID, _RIVAL))]


def cells(plan: RunPlan) -> list[Cell]:
    """The kept times. The rates are cells of `throughput`."""
    return deciding_cells()


def measure(setting: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """What is kept."""
    return kept_times.timed_values(setting)


def _rates(figures: SectionFigures, plan: RunPlan, stream: str, places: int, variant: str) -> list[float]:
    rule, way = VARIANTS[variant]
    ns = figures.median(deciding_cell(stream, places, rule), "ns")
    return with_partitioner(figures.values(word_cell(plan, stream, places, rule), way), ns)


def _gain(figures: SectionFigures, plan: RunPlan, at: tuple[str, int], variants: tuple[str, str]) -> float:
    """How often the rate of the first variant goes into that of the second, median over the seeds."""
    before, behind = (_rates(figures, plan, *at, variant) for variant in variants)
    return median(b / a for a, b in zip(before, behind, strict=True))


def _gains(figures: SectionFigures, plan: RunPlan, variants: tuple[str, str]) -> dict[int, dict[str, float]]:
    return {
        places: {stream: _gain(figures, plan, (stream, places), variants) for stream in TEXTS}
        for places in PLACES
    }


def _tracking(figures: SectionFigures, plan: RunPlan) -> Outcome:
    gains = _gains(figures, plan, ("non-hybrid", "no forwarding"))
    means = {places: mean(by_stream.values()) for places, by_stream in gains.items()}
    shown = "; ".join(f"{places} places {means[places]:.2f} ({_listed(gains[places])})" for places in PLACES)
    return Outcome(f"mean of the three: {shown}", tuple(value >= _TRACKED for value in means.values()))


def _decisions(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for stream in TEXTS:
        pairs = []
        for places in PLACES:
            tracked, every = (
                figures.values(deciding_cell(stream, places, rule), "ns") for rule in ("dalton", NON_HYBRID)
            )
            checks.append(lower(tracked, every))
            pairs.append(f"{number(median(tracked))} instead of {number(median(every))}")
        phrases.append(f"{stream}: {', '.join(pairs)}")
    return Outcome(
        f"ns a tuple with {', '.join(map(str, PLACES))} places: {'; '.join(phrases)}", tuple(checks)
    )


def _forwarding(figures: SectionFigures, plan: RunPlan) -> Outcome:
    gains = _gains(figures, plan, ("no forwarding", "full"))
    checks = [gains[places][FLAT] >= _FORWARDED for places in PLACES]
    return Outcome(_by_places(gains), tuple(checks))


def _most_on_flat(figures: SectionFigures, plan: RunPlan) -> Outcome:
    gains = _gains(figures, plan, ("no forwarding", "full"))
    checks = [gains[places][FLAT] > gains[places][stream] for places in PLACES for stream in SKEWED]
    return Outcome(_by_places(gains), tuple(checks))


def _both(figures: SectionFigures, plan: RunPlan) -> Outcome:
    gains = _gains(figures, plan, ("non-hybrid", "full"))
    checks = [max(by_stream.values()) >= _BOTH for by_stream in gains.values()]
    return Outcome(_by_places(gains), tuple(checks))


def _against_dagreedy(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases = [], []
    for stream in SKEWED:
        shown = []
        for places in PLACES:
            ours, theirs = (
                with_partitioner(
                    figures.values(word_cell(plan, stream, places, rule), WITH),
                    figures.median(deciding_cell(stream, places, rule), "ns"),
                )
                for rule in ("dalton", _RIVAL)
            )
            checks.append(lower(theirs, ours))
            shown.append(f"{number(median(ours))} against {number(median(theirs))}")
        ns = [number(figures.median(deciding_cell(stream, places, _RIVAL), "ns")) for places in PLACES]
        phrases.append(f"{stream} {', '.join(shown)} (DAGreedy {', '.join(ns)} ns)")
    return Outcome(
        f"million tuples/s with {', '.join(map(str, PLACES))} places: {'; '.join(phrases)}", tuple(checks)
    )


def _by_places(gains: dict[int, dict[str, float]]) -> str:
    return "times the rate: " + "; ".join(f"{places} places: {_listed(at)}" for places, at in gains.items())


def _listed(by_stream: dict[str, float]) -> str:
    return ", ".join(f"{stream.removesuffix(', drawn')} {gain:.2f}" for stream, gain in by_stream.items())


CLAIMS = (
    Claim(
        "000, fig. 11, 5.3",
        "Tracking hot keys makes word count 1.2 times as fast on average.",
        "8 to 64 places, one partitioner: mean over the three streams of the rate without forwarding over"
        f" that of the non-hybrid variant at least {_TRACKED}",
        _tracking,
        measure="queue replay",
        reason="ours",
        because=(
            "With 64 places it holds: there the partitioner of the non-hybrid variant is the slowest part."
            " With 8 to 32 places it is not, by our kept times and costs, and only copies of keys make the"
            " difference. The paper does not say how many places there are."
        ),
    ),
    Claim(
        "000, fig. 11, 5.3 (its cause)",
        "Taking every key for a heavy hitter overloads the learner.",
        "kept times, three streams, 8 to 64 places: fewer ns a tuple with the default than with every key"
        " hot",
        _decisions,
        measure="kept times",
        reason="ours",
    ),
    Claim(
        "000, fig. 11, 5.3",
        "Key forwarding makes word count three times as fast on nearly uniform data.",
        f"{FLAT}, 8 to 64 places, one partitioner: the rate with key forwarding at least {_FORWARDED:g} times"
        " that without",
        _forwarding,
        measure="queue replay",
        reason="ours",
        because=(
            "By our costs: a row takes 305 ns of a reducer, and if it is forwarded 256 ns of a combiner, of"
            " which there are seven times as many. But these also hold its window, for 654 ns. In evenflow's"
            " own dataflow, where reducers hold the windows that they finish, forwarding makes it 6.5 to 6.8"
            " times as fast."
        ),
    ),
    Claim(
        "000, fig. 11, 5.3",
        "Key forwarding is worth most on nearly uniform data.",
        f"8 to 64 places, one partitioner: it brings more on {FLAT} than on each of the two other streams",
        _most_on_flat,
        measure="queue replay",
        reason="measure",
    ),
    Claim(
        "000, fig. 11, 5.3 (takeaway)",
        "Both optimisations together make word count up to 2.7 times as fast.",
        f"8 to 64 places, one partitioner: on some stream at least {_BOTH} times the rate of the non-hybrid"
        " variant",
        _both,
        measure="queue replay",
        reason="ours",
        because=(
            "With 64 places it holds, because the partitioner of the non-hybrid variant is then the slowest"
            " part, by our kept times and costs. The paper does not say how many places there are."
        ),
        every=True,
        note=(
            "The paper's numbers do not fit together: key forwarding alone brings three times the throughput"
            " in its text, and both optimisations up to 2.7 times in its summary."
        ),
    ),
    Claim(
        "ours, to 000 fig. 7",
        "Dalton outperforms DAGreedy on skewed data if decisions are priced.",
        f"{' and '.join(SKEWED)}, 8 to 64 places, one partitioner that takes the kept time: a higher rate",
        _against_dagreedy,
        measure="queue replay",
        reason="ours",
        because=(
            "DAGreedy takes 41 to 110 ns for a decision, Dalton 19 to 33. But only on Zipf 1.5, with 32 and"
            " 64 places, is the partitioner the slowest part."
        ),
        own=True,
    ),
)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """The table of figure 11."""
    lines = [
        (
            "Figure 11: the three Daltons on the streams of figure 7. Rates, in million tuples a second:"
            " without a partitioner / with one that takes the kept time of a decision / without one, in"
            " evenflow's own dataflow, where combiners send the slides of what they do not finish, and"
            f" reducers hold its windows. *Non-hybrid* is `{NON_HYBRID}`: every key is hot and has a row of"
            " values, and nothing is forwarded. It counts keys all the same, which the times contain. MB is"
            " what a partitioner's state takes. The times are kept"
            " ([reproducing/decisions.json](reproducing/decisions.json))."
        )
    ]
    for stream in TEXTS:
        lines += ["", f"Variants of Dalton on {stream}", ""]
        lines += table(
            ["", *(f"{places} places" for places in PLACES)],
            [
                *(
                    [variant, *(_shown(figures, plan, stream, places, variant) for places in PLACES)]
                    for variant in VARIANTS
                ),
                *(
                    [
                        f"{unit} of `{rule}`",
                        *(figure(figures, deciding_cell(stream, places, rule), unit) for places in PLACES),
                    ]
                    for unit, rule in product(("ns", "MB"), (NON_HYBRID, "dalton"))
                ),
                *(
                    [
                        f"KSR of `{rule}`",
                        *(figure(figures, word_cell(plan, stream, p, rule), "ksr", ratio) for p in PLACES),
                    ]
                    for rule in (NON_HYBRID, "dalton")
                ),
            ],
        )
    return lines


def _shown(figures: SectionFigures, plan: RunPlan, stream: str, places: int, variant: str) -> str:
    rule, way = VARIANTS[variant]
    at = word_cell(plan, stream, places, rule)
    if at not in figures or deciding_cell(stream, places, rule) not in figures:
        return "-"
    with_one = median(_rates(figures, plan, stream, places, variant))
    return " / ".join(
        number(value) for value in (figures.median(at, way), with_one, figures.median(at, OURS[way]))
    )
