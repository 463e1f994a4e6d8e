"""The table `found`: the worst streams of each class that `python -m benchmarks.refute` has found, over
twenty seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from benchmarks.own_grid.measuring import Size, full_windows
from benchmarks.own_grid.seed_ranges import compared, in_processes, seeds_of
from benchmarks.refute.cases import Case

_TUPLES = 200_000
_NAMES = ("evenflow", "d-choices:head=window", "w-choices:head=window", "hashing")
CASES = (
    Case(
        law="zipf", other="sessions:alive=59,life=1", mixed=0.92, keys=561, zipf=2.28, slide=2497, slides=3,
        period=0.68, workers=8, disorder=2.3,
    ),
    Case(law="sessions:alive=90,life=3", keys=975, zipf=0.32, slide=3245, slides=4, period=0.8, workers=8),
    Case(
        law="runs:length=878,longest=1756", keys=1012, zipf=0.21, slide=6242, slides=3, period=2.26,
        workers=128,
        disorder=1.0,
    ),
    Case(law="flash:share=0.42,every=2", keys=2587, zipf=0.09, slide=117, slides=3, period=1.16, workers=4),
    Case(
        law="replaced:hot=1825,generations=50", other="flash:share=0.51,every=11", mixed=0.84, keys=709,
        zipf=0.3,
        slide=1710, slides=1, period=37.92, workers=8, sources=2,
    ),
    Case(
        law="zipf", other="flash:share=0.36,every=4", mixed=0.84, keys=11490, zipf=0.49, slide=80, slides=1,
        period=0.55, workers=4, sources=5,
    ),
    Case(
        law="runs:length=77,longest=308", other="sessions:alive=983,life=4", mixed=0.5, keys=2771, zipf=0.3,
        slide=80,
        slides=1, period=6.55, workers=8, sources=5, costs="cheap hot key",
    ),
)  # fmt: skip


def worst_streams(size: Size) -> Iterator[str]:
    """The worst of each class in a search of 30 minutes, but for its seed: imbalance / KSR, medians with
    the range.
    """
    chosen = seeds_of(size)
    cells = [(replace(case, seed=seed), name) for case, seed, name in product(CASES, chosen, _NAMES)]
    pairs = in_processes(_measured, cells, at_once=len(_NAMES), size=size)
    of_cases = pairs.reshape(len(CASES), len(chosen), len(_NAMES), 2)
    yield "| stream | " + " | ".join(_NAMES) + " |"
    yield "|---" * (len(_NAMES) + 1) + "|"
    for case, each in zip(CASES, of_cases, strict=True):
        yield f"| {case.described().rpartition(', seed')[0]} | {compared(each.swapaxes(0, 1))} |"


def _measured(cell: tuple[Case, str]) -> tuple[float, float]:
    case, name = cell
    figures = full_windows(case.stream(_TUPLES), name, case.scenario())
    return float(figures.imbalance.mean()), float(figures.ksr.mean())
