"""MBLinUCB over a graph of operators (003, Alg. 1 and 2): one agent for each operator.

`pretrain` walks the graph in topological order. After that each agent decides about its own operator alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from evenflow.elasticity.learning.agents import Agent, Load, is_amount
from evenflow.elasticity.learning.pretraining import Lessons, Pupil, pretrain
from evenflow.elasticity.observation import StageObservation
from evenflow.elasticity.simulated.graph import ElasticGraph


class GraphAgents:
    """The agents of the operators of an environment, with its budgets and its form of the reward.

    alpha: weight of exploring. The agents know rho and mu of the operators, as the paper's do.
    """

    def __init__(self, environment: ElasticGraph, *, alpha: float = 1.0) -> None:
        self._graph = environment.graph
        self._objectives = dict(zip(environment.order, environment.objectives, strict=True))
        self._agents = {
            name: Agent(
                least=1,
                most=environment.kmax,
                rho=self._graph.operators[name].rho,
                alpha=alpha,
                form=self._objectives[name].form,
            )
            for name in environment.order
        }

    def pretrain(self, rate: float, lessons: Lessons, *, seed: int) -> dict[str, float]:
        """Alg. 1 for sources that get `rate` tuples/s.
        Returns the tuples/s that each operator was trained for.
        """
        pupils = {
            name: Pupil(
                agent=agent,
                load=Load(arrivals=rate, mu=self._graph.operators[name].mu, queue=0),
                objective=self._objectives[name],
                selectivity=self._graph.operators[name].selectivity,
            )
            for name, agent in self._agents.items()
        }
        return pretrain(pupils, self._graph.edges, lessons, seed=seed)

    def decide(self, stages: Mapping[str, StageObservation], units: Mapping[str, int]) -> dict[str, int]:
        """The units of each operator for the next step (Alg. 2),
        after learning from the step that `stages` shows.

        stages, units: `info["operators"]` and `info["units"]` of the environment. An operator whose arrivals
        or queue are not known keeps its units, and its agent learns nothing.
        """
        return {name: self._choice(name, stages[name], units[name]) for name in self._agents}

    def _choice(self, name: str, stage: StageObservation, units: int) -> int:
        agent, objective = self._agents[name], self._objectives[name]
        if not (is_amount(stage.arrivals) and is_amount(stage.queue)):
            agent.forget_choice()
            return units
        load = Load(arrivals=stage.arrivals, mu=self._graph.operators[name].mu, queue=stage.queue)
        agent.judge(units, load, objective)
        drains = objective.form == "backlog" and load.queue > 2 * load.arrivals * objective.step_s
        chosen = agent.choose(load, objective, least=units if drains else None)
        agent.await_outcome(load)
        return chosen
