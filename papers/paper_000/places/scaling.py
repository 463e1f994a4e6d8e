"""Figure 7 of 000: what keeps Dalton from scaling almost linearly in the two settings where it does not.

*rates*: the replay of `word_count` on Zipf 1.5, with the tuples of some keys dealt evenly to the combiners in
each slide, and all other work as it is. *loads*: the window of `reducers` on Zipf 1.0, with the tuples of the
keys that one combiner has alone counted apart.
"""

from __future__ import annotations

from statistics import median

import numpy as np

from evenflow.numeric.arrays import Float64s, Int32s, Int64s
from evenflow.simulation import Scenario, entrant
from evenflow.simulation.routing import route
from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import SectionFigures, Values
from papers.claims import Claim, Outcome
from papers.markdown import figure, number, table
from papers.paper_000 import reducers, word_count
from papers.paper_000.grid import SLIDES
from papers.paper_000.reducers import PLACES
from papers.paper_000.replay import RoutedReplay, counted, key_holders, sustained
from papers.unit_costs import unit_costs

RULE, OURS = "dalton", "evenflow"
BOTH = (32, 64)
"""Places between which it does not double."""
EVEN = {
    "as it is": "as it is",
    "whole": "tuples of keys that one combiner has",
    "split": "tuples of keys that several combiners have",
    "tuples": "all tuples",
    "work": "all work",
}
"""What is dealt evenly, in words."""
_ALMOST = 1.6


def rates_cell(plan: RunPlan, places: int, rule: str = RULE) -> Cell:
    """Word count on Zipf 1.5."""
    at = word_count.word_cell(plan, "Zipf 1.5", places, rule)
    return Cell(at.section, f"scaling, {at.experiment}", at.stream, at.workers, rule)


def loads_cell(plan: RunPlan, places: int) -> Cell:
    """The window on Zipf 1.0."""
    at = reducers.cell(plan, "Zipf 1.0", places, RULE)
    return Cell(at.section, f"scaling, {at.experiment}", at.stream, at.workers, RULE)


def cells(plan: RunPlan) -> list[Cell]:
    """Both settings, for both numbers of places, and the first one with most places for our rule."""
    return [
        *(rates_cell(plan, places) for places in BOTH),
        *(loads_cell(plan, places) for places in BOTH),
        rates_cell(plan, BOTH[-1], OURS),
    ]


def measure(setting: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed. Of `rates_cell` million tuples a second for each of `EVEN`. held: the most keys
    that a combiner holds over their mean, mean over the slides. Of `loads_cell` tuples of a window. fullest:
    of the fullest combiner. whole: the most that keys of one combiner make at any.
    """
    each = _loads if "word count" not in setting.experiment else _rates
    rows = [each(setting, opened, plan, seed) for seed in plan.seeds]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _rates(setting: Cell, opened: StreamCache, plan: RunPlan, seed: int) -> dict[str, float]:
    slide, places = word_count.slide_tuples(plan), _places(setting)
    routing = word_count.routed(opened.at(), setting, seed=seed, slide=slide, reducers=PLACES[places])
    counts = counted(routing, span=SLIDES, first=SLIDES, ways=(word_count.WITH,))
    whole, costs = _whole_tuples(routing), unit_costs()
    combiners, of_reducers = counts.work(word_count.WITH, costs)
    split, other = counts.tuples - whole, combiners - costs.tuple * counts.tuples
    evened = {
        "as it is": combiners,
        "whole": other + costs.tuple * (_even(whole) + split),
        "split": other + costs.tuple * (whole + _even(split)),
        "tuples": other + costs.tuple * _even(counts.tuples),
        "work": _even(combiners),
    }
    held = counts.shares[word_count.WITH].held_keys
    rates = {name: sustained((work, of_reducers), counts) for name, work in evened.items()}
    return rates | {"held": float((held.max(axis=1) / held.mean(axis=1)).mean())}


def _whole_tuples(routing: RoutedReplay) -> Int64s:
    """Tuples of each slide at each combiner that are of keys which one combiner has in the window, shape
    (slides, combiners).
    """
    rows = []
    for slide, holders in key_holders(routing, span=SLIDES, first=SLIDES):
        workers = routing.workers[slide][holders[routing.codes[slide]] == 1]
        rows.append(np.bincount(workers, minlength=routing.combiners))
    return np.array(rows)


def _even(work: Float64s | Int64s) -> Float64s:
    return np.broadcast_to(work.mean(axis=1, keepdims=True), work.shape)


def _loads(setting: Cell, opened: StreamCache, plan: RunPlan, seed: int) -> dict[str, float]:
    stream, n = opened.at(), setting.workers
    slide = len(stream) // (2 * SLIDES)
    scenario = Scenario(workers=n, seed=seed, window_ms=SLIDES * slide, slide_ms=slide)
    workers = route(stream, entrant(RULE), scenario).workers
    rows = [reducers.window_rows(slide, end) for end in reducers.window_ends()]
    each = [_window(workers[part], stream.codes[part], n, stream.key_count) for part in rows]
    fullest, whole = np.array(each).mean(axis=0)
    return {"fullest": float(fullest), "whole": float(whole)}


def _window(workers: Int32s, codes: Int32s, n: int, keys: int) -> tuple[int, int]:
    pairs = np.unique(codes.astype(np.int64) * n + workers)
    alone = np.bincount(pairs // n, minlength=keys)[codes] == 1
    loads, whole = (np.bincount(part, minlength=n) for part in (workers, workers[alone]))
    return int(loads.max()), int(whole.max())


def _places(setting: Cell) -> int:
    return next(places for places in BOTH if f" {places} places" in setting.experiment)


def _factor(figures: SectionFigures, plan: RunPlan, name: str) -> float:
    few, many = (median(figures.values(rates_cell(plan, places), name)) for places in BOTH)
    return many / few


def _split_is_the_cause(figures: SectionFigures, plan: RunPlan) -> Outcome:
    factors = {name: _factor(figures, plan, name) for name in EVEN}
    shown = "; ".join(f"{EVEN[name]} {factor:.2f}" for name, factor in factors.items())
    checks = (factors["whole"] < _ALMOST, factors["split"] >= _ALMOST)
    return Outcome(f"from {BOTH[0]} to {BOTH[1]} places, times the rate: {shown}", checks)


def _whole_is_a_part(figures: SectionFigures, plan: RunPlan) -> Outcome:
    checks, phrases, most = [], [], []
    for places in BOTH:
        at = loads_cell(plan, places)
        fullest, whole = (figures.values(at, name) for name in ("fullest", "whole"))
        mean = SLIDES * plan.pick(5_000, 40) / at.workers
        most.append(median(max(mean, value) for value in whole))
        checks.append(median(whole) > 1.1 * mean)
        phrases.append(
            f"{places} places: mean {number(mean)}, fullest {number(median(fullest))}, whole keys alone"
            f" {number(median(whole))}"
        )
    checks.append(most[0] >= _ALMOST * most[1])
    return Outcome(f"tuples: {'; '.join(phrases)}", tuple(checks))


CLAIMS = (
    Claim(
        "ours, to 000 fig. 7",
        "On Zipf 1.5 Dalton scales almost linearly if the tuples of split keys come evenly in each slide, and"
        " not if those of whole keys do.",
        f"the rate from {BOTH[0]} to {BOTH[1]} places: at least {_ALMOST} times with the tuples of split keys"
        " dealt evenly, less with those of whole keys",
        _split_is_the_cause,
        measure="queue replay",
        own=True,
    ),
    Claim(
        "ours, to 000 fig. 7",
        "On Zipf 1.0 keys that definition 3.3 keeps whole overload a combiner by themselves, and without what"
        " is on top of them Dalton's fullest combiner would be relieved almost linearly.",
        f"{BOTH[0]} and {BOTH[1]} places: the most that whole keys make at a combiner is more than 1.1 times"
        f" the mean; from {BOTH[0]} to {BOTH[1]} it falls by a factor of at least {_ALMOST} (if it is below"
        " the mean, the mean counts)",
        _whole_is_a_part,
        measure="counted tuples",
        own=True,
    ),
)


def _most_keys(figures: SectionFigures, plan: RunPlan, rule: str) -> str:
    return figure(figures, rates_cell(plan, BOTH[-1], rule), "held")


def text(figures: SectionFigures, plan: RunPlan) -> list[str]:
    """Two tables."""
    return [
        (
            "What keeps Dalton from doubling between 32 and 64 places. Zipf 1.5: million tuples a second, if"
            " in each slide this is dealt evenly to the combiners and all else is as it is."
        ),
        "",
        *table(
            ["dealt evenly", *(f"{places} places" for places in BOTH)],
            (
                [shown, *(figure(figures, rates_cell(plan, places), name) for places in BOTH)]
                for name, shown in EVEN.items()
            ),
        ),
        "",
        (
            f"The most keys that a combiner holds, over the mean, with {BOTH[-1]} places:"
            f" {', '.join(f'`{rule}` {_most_keys(figures, plan, rule)}' for rule in (RULE, OURS))}."
        ),
        "",
        "Zipf 1.0: tuples of a window.",
        "",
        *table(
            ["tuples", *(f"{places} places" for places in BOTH)],
            (
                [shown, *(figure(figures, loads_cell(plan, places), name) for places in BOTH)]
                for name, shown in (
                    ("fullest", "of the fullest combiner"),
                    ("whole", "of whole keys, the most at a combiner"),
                )
            ),
        ),
    ]
