"""A graph of operators as a Gymnasium environment (003, figure 4).
The action is the parallelism of each operator.

`evenflow/ElasticGraph-v0` is 003's application with its seven operators, or any other graph. A source gets
the load. Every other operator gets what the operators that lead to it put out. The actions and the Box are in
topological order, and `order` has the names. `info["operators"]` has for each name what a controller would
see of it.

A policy of `evenflow policies` decides about p and r, so it cannot run here. `graph_agents.GraphAgents` can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import MultiDiscrete

from evenflow.elasticity.simulated.environments import Elastic, EnvironmentOptions
from evenflow.elasticity.simulated.operators import TAXI_GRAPH, OperatorGraph
from evenflow.elasticity.simulated.queues import QueueStep
from evenflow.errors import ConfigError


class ElasticGraph(Elastic):
    """Operators in a graph. The options are those of `ElasticStage`, but `graph` is an `OperatorGraph`.

    profile: the latency bound of each operator. It divides `lmax_ms` among the operators (003, eq. 3). None:
    evenly along the longest path. ConfigError if it lacks an operator, or for a value out of range.
    """

    def __init__(
        self,
        *,
        graph: OperatorGraph = TAXI_GRAPH,
        profile: Mapping[str, float] | None = None,
        **options: Unpack[EnvironmentOptions],
    ) -> None:
        if profile is not None and set(profile) != set(graph.operators):
            lacking = sorted(set(graph.operators) ^ set(profile))
            raise ConfigError(f"the profile and the graph differ in {', '.join(lacking)}")
        super().__init__(graph, graph.shares(profile), **options)
        self.action_space = MultiDiscrete([self.kmax] * len(self.order), start=[1] * len(self.order))

    def action(self, units: Mapping[str, int]) -> npt.NDArray[np.int64]:
        """The action that gives each operator so many units."""
        return np.array([units[name] for name in self.order])

    def _info(self, served: Sequence[QueueStep], waiting: Sequence[int]) -> dict[str, Any]:
        stages = {
            name: self._stage_observation(at, served[at], waiting[at]) for at, name in enumerate(self.order)
        }
        return {"operators": stages, "units": dict(zip(self.order, self._units, strict=True))}
