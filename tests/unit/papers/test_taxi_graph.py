"""Figure 10 of 003 on a graph of simulated operators: its latencies, its speeds, and what a run gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.elasticity.simulated.operators import TAXI_GRAPH
from evenflow.elasticity.simulated.queues import service_rate
from papers.cells.run_plan import RunPlan, StreamCache
from papers.paper_003.taxi_graph import (
    CUT_S,
    KMAX,
    RATE,
    SHARES,
    cells,
    longest_path,
    measure,
    taxi_graph,
)


def test_the_latency_of_the_graph_is_that_of_its_longest_path() -> None:
    bounds = dict.fromkeys(TAXI_GRAPH.operators, 0.1)
    assert longest_path(TAXI_GRAPH, bounds) == pytest.approx(0.6), "six operators by the taxi aggregator"
    assert longest_path(TAXI_GRAPH, bounds | {"profit-aggregator": 1.0}) == pytest.approx(1.4)


@pytest.mark.parametrize("share", SHARES)
def test_a_load_is_its_share_of_all_units_of_an_aggregator_and_the_others_have_room(share: float) -> None:
    graph = taxi_graph(share)
    most = {name: service_rate(KMAX, mu=op.mu, rho=op.rho) for name, op in graph.operators.items()}
    assert RATE / most["taxi-aggregator"] == pytest.approx(share)
    assert RATE / most["profit-aggregator"] == pytest.approx(share)
    assert all(most[name] >= 2 * RATE for name in most if not name.endswith("aggregator"))


@pytest.mark.more
def test_both_policies_have_a_figure_for_every_seed_and_no_latency_is_above_the_cut() -> None:
    plan = RunPlan("quick", (1, 2), Path())
    for cell in cells(plan):
        result = measure(cell, StreamCache(cell.stream, plan), plan)
        assert {len(series) for series in result.values()} == {2}
        assert all(0 < value <= CUT_S for name in ("begin", "end") for value in result[name])
        assert all(0 <= value <= 1 for value in result["within"])
        assert all(-1 <= value <= 0 for value in result["all"])
