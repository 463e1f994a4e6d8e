"""Figure 10c of 000: throughput and the time of a decision, by how many keys may be split.

Zipf 1.0 over 100,000 keys. With the paper's 64 places 8 are reducers, and of 56 combiners definition 3.3
makes the four most frequent keys hot, as many as in the paper. For another number h the option `theta` lies
between the shares of the keys h and h + 1 (their geometric mean), so that about h keys are hot. A key near
theta is hot in some statistics windows and not in others.

Rates are those of `word_count`, with one partitioner before the combiners, whose decisions are priced with
kept times.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from evenflow.generation.rank_laws import zipf_cdf
from papers.cells.run_plan import Cell, RunPlan, Stream, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.claims import Claim, Outcome
from papers.comparing import lower, no_higher
from papers.markdown import figure, number, ratio, table
from papers.paper_000.grid import NAME, SLIDES
from papers.paper_000.overhead import kept_times
from papers.paper_000.reducers import PLACES
from papers.paper_000.word_count import MEASURED, WITH, rates, with_partitioner
from papers.unit_costs import unit_costs

KEYS, ZIPF = 100_000, 1.0
SLIDE = 10_000
"""Tuples of a slide."""
_PLACES = 64
COMBINERS = _PLACES - PLACES[_PLACES]
DEFINED = 4
"""Keys with at least 1/56 of the tuples."""
LIMITS = (0, 1, 2, 3, DEFINED, 5, 8, 16, 32, 64, 128)
"""How many keys are hot. With 0 all keys are hashed."""


def rule(limit: int) -> str:
    """Dalton with about so many hot keys."""
    if limit == DEFINED:
        return "dalton"
    cdf = zipf_cdf(KEYS, ZIPF)
    share, next_share = (cdf[at] - (cdf[at - 1] if at else 0.0) for at in (limit - 1, limit))
    return f"dalton:theta={1 if not limit else (share * next_share) ** 0.5:.4g}"


def cell(plan: RunPlan, limit: int) -> Cell:
    """The cell with about so many hot keys."""
    slide = plan.pick(SLIDE, 200)
    stream = Stream("zipf", (SLIDES + MEASURED) * slide, plan.pick(KEYS, 1_000), ZIPF)
    return Cell(NAME, f"hot keys, costs {unit_costs().mark}", stream, COMBINERS, rule(limit))


def deciding_cells() -> list[Cell]:
    """The kept times of decisions, by number of hot keys."""
    return [kept_times.deciding_cell(KEYS, ZIPF, COMBINERS, rule(limit)) for limit in LIMITS]


def cells(plan: RunPlan) -> list[Cell]:
    """Rates and times for each of `LIMITS`."""
    return [*(cell(plan, limit) for limit in LIMITS), *deciding_cells()]


def measure(setting: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed as in `word_count`, or what is kept."""
    if setting in deciding_cells():
        return kept_times.timed_values(setting)
    return rates(opened.at(), setting, plan, slide=plan.pick(SLIDE, 200), reducers=PLACES[_PLACES])


def _times(figures: SectionFigures, limit: int) -> list[float]:
    return figures.values(deciding_cells()[LIMITS.index(limit)], "ns")


def _rates(figures: SectionFigures, plan: RunPlan, limit: int) -> list[float]:
    return with_partitioner(figures.values(cell(plan, limit), WITH), median(_times(figures, limit)))


def _imbalance(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = {h: figures.values(cell(plan, h), "imbalance") for h in range(DEFINED + 1)}
    return Outcome(
        f"imbalance by hot keys: {_listed(at)}",
        tuple(lower(at[more], at[fewer]) for fewer, more in pairwise(at)),
    )


def _throughput(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = {h: _rates(figures, plan, h) for h in range(DEFINED + 1)}
    return Outcome(
        f"million tuples/s by hot keys: {_listed(at)}",
        tuple(lower(at[fewer], at[more]) for fewer, more in pairwise(at)),
    )


def _latency(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = {h: _times(figures, h) for h in LIMITS if h >= DEFINED}
    return Outcome(
        f"ns a tuple by hot keys: {_listed(at)}",
        tuple(lower(at[DEFINED], at[h]) for h in at if h > DEFINED),
    )


def _most_at_the_definition(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = {h: _rates(figures, plan, h) for h in LIMITS}
    return Outcome(
        f"million tuples/s by hot keys: {_listed(at)}",
        tuple(no_higher(at[h], at[DEFINED]) for h in LIMITS if h != DEFINED),
    )


def _more_cost_throughput(figures: SectionFigures, plan: RunPlan) -> Outcome:
    at = {h: _rates(figures, plan, h) for h in LIMITS if h >= DEFINED}
    return Outcome(
        f"million tuples/s by hot keys: {_listed(at)}",
        tuple(lower(at[h], at[DEFINED]) for h in at if h > DEFINED),
    )


def _listed(at: dict[int, list[float]]) -> str:
    return ", ".join(f"{h}: {number(median(values))}" for h, values in at.items())


CLAIMS = (
    Claim(
        "000, fig. 10c, 5.3",
        "Up to the number of heavy hitters that its definition gives, each key more that may be split lowers"
        " imbalance.",
        f"Zipf 1.0, n = {COMBINERS}: mean window imbalance with h hot keys lower than with h - 1, h = 1 .. 4"
        " (four keys have 1/n of the tuples, as in the paper)",
        _imbalance,
        measure="counted tuples",
        reason="data",
        because="Once three keys are split, imbalance differs more by the seed than by the number of keys.",
    ),
    Claim(
        "000, fig. 10c, 5.3",
        "Up to the number of heavy hitters that its definition gives, each key more that may be split raises"
        " throughput.",
        f"Zipf 1.0, {_PLACES} places, one partitioner: a higher rate with h hot keys than with h - 1, h = 1"
        " .. 4",
        _throughput,
        measure="queue replay",
        reason="ours",
        because=(
            "By our costs rows are the work: a slide makes those of all keys of the window, which takes each"
            " combiner about 1.1 ms. The tuples of the fullest combiner take 0.08 ms without any hot key, and"
            " 0.03 ms with four."
        ),
    ),
    Claim(
        "000, fig. 10c, 5.3",
        "With more heavy hitters than its definition gives a decision takes longer.",
        f"kept times of `dalton` on Zipf 1.0, n = {COMBINERS}: more ns a tuple with"
        f" {', '.join(map(str, LIMITS[LIMITS.index(DEFINED) + 1 :]))} hot keys than with {DEFINED}",
        _latency,
        measure="kept times",
        reason="measure",
        because=(
            "What a fifth key takes is less than what the turns of a measurement differ by. To tell the two"
            " apart, more turns would have to be measured, on a machine that does nothing else."
        ),
    ),
    Claim(
        "000, fig. 10c, 5.3",
        "With more heavy hitters than its definition gives throughput falls.",
        f"Zipf 1.0, {_PLACES} places, one partitioner: a lower rate with"
        f" {', '.join(map(str, LIMITS[LIMITS.index(DEFINED) + 1 :]))} hot keys than with {DEFINED}",
        _more_cost_throughput,
        measure="queue replay",
        reason="ours",
        because=(
            "Our partitioner is not the slowest part: 39 ns for a decision allow 25 million tuples/s. What"
            " lowers the rate from 32 hot keys on are the copies of keys, which nobody forwards."
        ),
    ),
    Claim(
        "000, fig. 10c, 5.3",
        "With the number of heavy hitters that its definition gives throughput is highest.",
        f"Zipf 1.0, {_PLACES} places, one partitioner: with no other number of hot keys a higher rate",
        _most_at_the_definition,
        measure="queue replay",
        reason="measure",
    ),
)


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """The table of figure 10c."""
    return [
        (
            f"Figure 10c: `dalton` by the number of hot keys, Zipf {ZIPF} over {KEYS:,} keys, {_PLACES}"
            f" places, windows of {SLIDES} slides of {plan.pick(SLIDE, 200):,} tuples. Other numbers than"
            f" {DEFINED} are made by `theta`, so they are about right. A rate, in million tuples a second, is"
            " that of figure 7's replay. The last column is the rate if one partitioner stands before the"
            " combiners and takes the kept time for each tuple."
        ),
        "",
        *table(
            ["hot keys", "rule", "imbalance", "KSR", "ns of a decision", "rate", "rate with a partitioner"],
            (
                [
                    f"{limit}",
                    f"`{rule(limit)}`",
                    figure(figures, cell(plan, limit), "imbalance"),
                    figure(figures, cell(plan, limit), "ksr", ratio),
                    figure(figures, deciding_cells()[LIMITS.index(limit)], "ns"),
                    figure(figures, cell(plan, limit), WITH),
                    number(median(_rates(figures, plan, limit))) if cell(plan, limit) in figures else "-",
                ]
                for limit in LIMITS
            ),
            left=2,
        ),
    ]
