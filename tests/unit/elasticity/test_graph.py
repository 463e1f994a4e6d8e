"""Operators in a graph: their order, their budgets, the environment, and training along the graph (003,
Alg. 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.elasticity.learning.graph_agents import GraphAgents
from evenflow.elasticity.learning.pretraining import Lessons
from evenflow.elasticity.observation import StageObservation
from evenflow.elasticity.simulated.arrivals import Pareto, Poisson
from evenflow.elasticity.simulated.graph import ElasticGraph
from evenflow.elasticity.simulated.operators import TAXI_GRAPH, Operator, OperatorGraph, topological_order
from evenflow.elasticity.simulated.queues import QueueModel
from evenflow.errors import ConfigError

LESSONS = Lessons(samples=1_500, model=QueueModel(), length_s=10.0)
DIAMOND = (("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))


@st.composite
def acyclic(draw: st.DrawFn) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """Names in any order, and edges that all lead from an earlier to a later letter."""
    letters = "abcdefgh"[: draw(st.integers(1, 8))]
    possible = [(one, other) for one in letters for other in letters if one < other]
    edges = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    return list(draw(st.permutations(letters))), tuple(edges)


@given(acyclic())
def test_every_edge_leads_forwards_in_the_order(graph: Any) -> None:
    names, edges = graph
    order = topological_order(names, edges)
    assert sorted(order) == sorted(names)
    assert all(order.index(one) < order.index(other) for one, other in edges)


@given(acyclic(), st.data())
def test_the_budgets_along_the_longest_path_add_up_to_the_whole_and_on_no_path_to_more(
    graph: Any, data: st.DataObject
) -> None:
    names, edges = graph
    bounds = {name: data.draw(st.floats(0.01, 100), label=name) for name in names}
    shares = OperatorGraph({name: Operator() for name in names}, edges).shares(bounds)

    def paths(name: str) -> list[float]:
        onward = [other for one, other in edges if one == name]
        return [shares[name] + rest for other in onward for rest in paths(other)] or [shares[name]]

    sources = [name for name in names if all(other != name for _, other in edges)]
    assert max(rest for name in sources for rest in paths(name)) == pytest.approx(1)


def test_without_a_profile_each_operator_gets_one_over_the_longest_path() -> None:
    assert set(TAXI_GRAPH.shares().values()) == {1 / 6}
    unusable = dict.fromkeys(TAXI_GRAPH.operators, 1.0) | {"joiner": float("inf")}
    assert TAXI_GRAPH.shares(unusable) == TAXI_GRAPH.shares()


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ((("a", "x"),), "an edge names x, which is no operator"),
        ((("a", "b"), ("a", "b")), "twice"),
        ((("a", "b"), ("b", "a")), "a, b have a cycle"),
        ((("a", "a"),), "cycle"),
    ],
)
def test_what_is_no_graph_without_cycles_is_refused_in_words(edges: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        OperatorGraph({"a": Operator(), "b": Operator()}, edges)
    with pytest.raises(ConfigError, match="needs an operator"):
        OperatorGraph({})


def test_a_profile_of_other_operators_is_refused() -> None:
    with pytest.raises(ConfigError, match="differ in sink"):
        ElasticGraph(profile={name: 1.0 for name in TAXI_GRAPH.operators if name != "sink"})


def test_an_operator_gets_the_sum_of_what_leads_to_it() -> None:
    operators = {name: Operator(rho=1, selectivity=0.5) for name in "abcd"}
    environment = ElasticGraph(graph=OperatorGraph(operators, DIAMOND), arrivals=Poisson(100))
    environment.reset(seed=1)
    for _ in range(20):
        *_, info = environment.step(environment.action(dict.fromkeys("abcd", 40)))
    rates = {name: seen.arrivals for name, seen in info["operators"].items()}
    assert rates["a"] == pytest.approx(100, rel=0.2)
    assert rates["b"] == pytest.approx(50, rel=0.2)
    assert rates["d"] == pytest.approx(50, rel=0.2)
    assert info["units"] == dict.fromkeys("abcd", 40)


def test_figure_4_has_seven_operators_of_which_the_aggregators_are_the_slowest() -> None:
    assert len(TAXI_GRAPH.operators) == 7
    assert TAXI_GRAPH.order[0] == "source"
    assert TAXI_GRAPH.order[-1] == "sink"
    environment = ElasticGraph()
    environment.reset(seed=1)
    for _ in range(10):
        *_, info = environment.step(environment.action(dict.fromkeys(environment.order, 20)))
    loads = {name: seen.load for name, seen in info["operators"].items()}
    assert set(sorted(loads, key=loads.__getitem__)[-2:]) == {"taxi-aggregator", "profit-aggregator"}


def test_training_walks_the_graph_with_what_the_trained_operators_put_out() -> None:
    agents = GraphAgents(ElasticGraph(lmax_ms=6_000))
    rates = agents.pretrain(100.0, LESSONS, seed=1)
    assert rates["source"] == rates["taxi-aggregator"] == rates["profit-aggregator"] == pytest.approx(100)
    assert rates["taxi-counter"] == pytest.approx(50)
    assert rates["joiner"] == pytest.approx(50 * 0.4 + 100 * 0.2)
    assert rates["sink"] == pytest.approx(rates["joiner"] / 4)


def rewards(environment: ElasticGraph, agents: GraphAgents, *, steps: int, seed: int) -> np.ndarray:
    _, info = environment.reset(seed=seed)
    result = []
    for _ in range(steps):
        units = agents.decide(info["operators"], info["units"])
        _, reward, _, _, info = environment.step(environment.action(units))
        result.append(reward)
    return np.array(result)


def test_agents_that_were_trained_along_the_graph_start_better_than_agents_that_were_not() -> None:
    first = {}
    for trained in (True, False):
        environment = ElasticGraph(lmax_ms=6_000)
        agents = GraphAgents(environment, alpha=0.3)
        if trained:
            agents.pretrain(100.0, LESSONS, seed=1)
        first[trained] = rewards(environment, agents, steps=60, seed=2).mean()
    assert first[True] > first[False] + 0.1


def test_under_the_backlog_objective_a_graph_works_off_what_waits() -> None:
    environment = ElasticGraph(lmax_ms=6_000, objective="backlog", arrivals=Pareto(), start=1)
    agents = GraphAgents(environment, alpha=0.3)
    agents.pretrain(100.0, LESSONS, seed=1)
    rewards(environment, agents, steps=200, seed=2)
    least = dict.fromkeys(environment.order, np.inf)
    info: dict[str, Any] = {"operators": {}, "units": {}}
    *_, info = environment.step([64] * 7)
    for _ in range(40):
        *_, info = environment.step(environment.action(agents.decide(info["operators"], info["units"])))
        least = {name: min(least[name], seen.queue) for name, seen in info["operators"].items()}
    assert max(least.values()) < 2_000


def test_an_operator_of_which_too_little_is_known_keeps_its_units() -> None:
    environment = ElasticGraph()
    _, info = environment.reset(seed=1)
    agents = GraphAgents(environment)
    seen = info["operators"] | {"joiner": StageObservation(queue=3)}
    assert agents.decide(seen, info["units"] | {"joiner": 17})["joiner"] == 17
