"""From a sample to a recommendation: describe the sample, count workers, simulate the candidates, choose
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from evenflow.advice.candidates import Candidate, candidates
from evenflow.advice.drift import hot_turnover
from evenflow.advice.report import Advice
from evenflow.advice.rule import CandidateFigures, chosen, judged, paper_rule
from evenflow.advice.sample import Sample, busiest_rate, hot_keys, keys_of, span_seconds
from evenflow.advice.sizing import PipelineSize, Wishes, size
from evenflow.metrics import window_figures
from evenflow.simulation import KeyedStream, Origin, Scenario, provenance_of, simulate

HOT = 5
"""A key is hot if it has at least 1 / (HOT x workers) of the work. D-Choices has the same threshold (002)."""
Watcher = Callable[[int, int], None]
"""A callback that is told (tuples that have been routed, tuples to route in all)."""


def advise(
    sample: Sample,
    wishes: Wishes,
    *,
    processes: int = 1,
    watch: Watcher = lambda done, total: None,
) -> Advice:
    """The recommendation for the stream of this sample.

    processes: simulations that run at a time. With more than one, processes are spawned (see
    `simulation.simulate`). ConfigError for a sample without tuples, and for wishes that contradict each other
    or the sample.
    """
    stream = sample.stream(wishes.rate)
    timed = sample.times is not None and sample.timed
    rate = wishes.rate or (busiest_rate(stream.times, wishes.slide_ms) if timed else None)
    fits = size(wishes, rate=rate)
    scenario = _scenario(wishes, fits)
    tried_ones = candidates(wishes.also)
    for candidate in tried_ones:
        scenario.check(candidate.entrant)
    keys = keys_of(stream, complete=sample.complete)
    groups, window_tuples = _windows(stream, scenario, keys.distinct)
    rule = paper_rule(groups=groups, tuples_per_worker=window_tuples / fits.workers, new_share=keys.new_share)
    tried = _tried(
        stream,
        tried_ones,
        scenario,
        wishes,
        window_tuples=window_tuples,
        few_groups=rule.verdict == "splitting",
        processes=processes,
        watch=watch,
    )
    winner = chosen(tried, tolerance=wishes.tolerance)
    # `tried` has the order of `tried_ones`.
    best = tried_ones[tried.index(winner)]
    least = 1 / (HOT * fits.workers)  # a key with at least this share is hot
    hot = keys.shares >= least
    return Advice(
        source=sample.name,
        tuples=len(stream),
        unreadable=sample.unreadable,
        strays=sample.strays,
        seconds=span_seconds(stream.times) if timed else None,
        rate=rate,
        keys=keys.distinct,
        keys_estimate=keys.estimate,
        zipf=keys.zipf,
        top_share=float(keys.shares[0]),
        hot_key_count=int(hot.sum()),
        hot_share=float(keys.shares[hot].sum()),
        hot_turnover=hot_turnover(stream, least=least),
        hot_keys=tuple(hot_keys(sample, stream, keys, least=least, most=wishes.top)),
        window_ms=wishes.window_ms,
        slide_ms=wishes.slide_ms,
        window_tuples=window_tuples,
        paper_rule=rule,
        candidates=tuple(tried),
        tolerance=wishes.tolerance,
        merge_cost=wishes.merge_cost,
        chosen=winner,
        options=dict(best.entrant.options),
        workers=fits.workers,
        instances=fits.instances,
        max_workers=fits.max_workers,
        routed_partitions=fits.routed_partitions,
        input_partitions=fits.input_partitions,
        size_reasons=fits.reasons,
        capacity=wishes.capacity,
        cost=None if stream.costs is None else sample.cost,
        mean_cost=None if stream.costs is None else float(stream.costs.mean()),
        cost_remarks=sample.cost_remarks,
        provenance=provenance_of(
            Origin(
                stream=sample.name,
                rate=wishes.rate,
                cost=None if stream.costs is None else sample.cost,
                digest=stream.digest(),
            ),
            scenario,
            best.entrant,
            stream,
        ),
    )


def _scenario(wishes: Wishes, fits: PipelineSize) -> Scenario:
    """How the candidates are simulated."""
    return Scenario(
        workers=fits.workers,
        sources=fits.instances,
        seed=wishes.seed,
        window_ms=wishes.window_ms,
        slide_ms=wishes.slide_ms,
        batch=wishes.batch,
        samples=1,
    )


def _windows(stream: KeyedStream, scenario: Scenario, distinct: int) -> tuple[float, float]:
    """(distinct keys, tuples) of a window, as means over the windows whose figures the simulation gives."""
    if scenario.window_ms is None:
        return float(distinct), float(len(stream))
    panes = scenario.panes(stream.times)
    first, last = scenario.measured_slides(panes, stream)
    width = scenario.panes_per_window
    # With one worker, the figures count the distinct keys of each window.
    figures = window_figures(
        np.zeros(len(stream), np.int32), stream.codes, panes, 1, panes_per_window=width, through=last
    )
    ends = figures.ends[figures.ends >= first]
    tuples = np.searchsorted(panes, ends, "right") - np.searchsorted(panes, ends - width, "right")
    return float(figures.distinct[figures.ends >= first].mean()), float(tuples.mean())


def _tried(
    stream: KeyedStream,
    tried: Sequence[Candidate],
    scenario: Scenario,
    wishes: Wishes,
    *,
    window_tuples: float,
    few_groups: bool,
    processes: int,
    watch: Watcher,
) -> list[CandidateFigures]:
    """Every candidate, judged by simulations with `wishes.hash_seeds` different hash seeds."""
    entrants = [candidate.entrant for candidate in tried]
    rounds = []
    a_round = len(stream) * len(entrants)
    for number in range(wishes.hash_seeds):
        # The default argument binds this turn's value, whenever `report` is called.
        def report(done: Sequence[int], before: int = number * a_round) -> None:
            watch(before + sum(done), a_round * wishes.hash_seeds)

        seeded = replace(scenario, seed=scenario.seed + number)
        rounds.append(simulate(stream, entrants, seeded, processes=processes, watch=report))
    return [
        judged(
            candidate,
            [results[number].figures for results in rounds],
            window_tuples=window_tuples,
            merge_cost=wishes.merge_cost,
            few_groups=few_groups,
        )
        for number, candidate in enumerate(tried)
    ]
