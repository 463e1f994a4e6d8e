"""Operators as queues, and the graph that tuples pass them in (003, II.B)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evenflow.elasticity.simulated.queues import QueueModel, service_rate
from evenflow.errors import ConfigError

Edges = tuple[tuple[str, str], ...]
"""(from, to): what `from` puts out arrives at `to`."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One operator as a queue. ConfigError unless 0 <= overhead < 1."""

    mu: float = 10.0
    """Tuples/s of one unit."""
    rho: float = 0.9
    """Share of the operator's work that is parallel."""
    selectivity: float = 1.0
    """Tuples out for each tuple in (psi)."""
    model: QueueModel = field(default_factory=QueueModel)
    """The laws of the gaps between tuples and of the service times."""
    overhead: float = 0.0
    """Share of each step that is spent on no tuple, whatever the units: the fixed cost of a micro-batch. W
    counts it, the capacity does not, because that is measured while the part works on tuples."""

    def __post_init__(self) -> None:
        if not 0 <= self.overhead < 1:
            raise ConfigError(f"overhead must be a share from 0 to below 1, not {self.overhead}")

    def capacity(self, units: int) -> float:
        """Tuples/s while it works on tuples."""
        return service_rate(units, mu=self.mu, rho=self.rho)

    def service(self, units: int) -> float:
        """Tuples/s over the whole step."""
        return self.capacity(units) * (1 - self.overhead)


@dataclass(frozen=True)
class OperatorGraph:
    """A directed graph without cycles. Operators without an edge that leads to them are its sources.

    ConfigError for an edge of unknown operators, an edge that is there twice, a cycle, or no operator.
    """

    operators: Mapping[str, Operator]
    """The operators by name."""
    edges: Edges = ()
    """Which operator's output goes to which: pairs (from, to) of names."""

    def __post_init__(self) -> None:
        if not self.operators:
            raise ConfigError("a graph needs an operator")
        topological_order(self.operators, self.edges)

    @property
    def order(self) -> tuple[str, ...]:
        """The operators, each behind all that lead to it."""
        return topological_order(self.operators, self.edges)

    def upstream(self, name: str) -> tuple[str, ...]:
        """The operators whose output arrives at this one. Empty for a source."""
        return tuple(source for source, target in self.edges if target == name)

    def shares(self, bounds: Mapping[str, float] | None = None) -> dict[str, float]:
        """Each operator's share of the latency allowed for the whole graph (003, eq. 1 and 3).

        bounds: the latency bound of each operator. The share of an operator is its bound over the longest
        path, which is the largest sum of bounds from a source to a sink. None, or a bound that is not finite
        or not above 0: as if all bounds were equal, so that each operator gets one over the number of
        operators on the longest path.
        """
        if bounds is None or not all(0 < bounds[name] < math.inf for name in self.operators):
            bounds = dict.fromkeys(self.operators, 1.0)
        until: dict[str, float] = {}
        for name in self.order:
            until[name] = bounds[name] + max((until[source] for source in self.upstream(name)), default=0.0)
        longest = max(until.values())
        return {name: bounds[name] / longest for name in self.operators}


def topological_order(names: Iterable[str], edges: Edges) -> tuple[str, ...]:
    """The names in an order
    in which every edge leads forwards (Kahn's algorithm, as 003's Alg. 1 walks them).

    Among those that may come next, the first of `names` comes. ConfigError for an edge of unknown names, a
    double edge, or a cycle.
    """
    waiting = list(names)
    unknown = sorted({name for edge in edges for name in edge} - set(waiting))
    if unknown:
        raise ConfigError(f"an edge names {', '.join(unknown)}, which is no operator of the graph")
    if len(set(edges)) < len(edges):
        raise ConfigError("an edge is in the graph twice")
    order: list[str] = []
    while waiting:
        ready = [
            name
            for name in waiting
            if not any(target == name and source in waiting for source, target in edges)
        ]
        if not ready:
            raise ConfigError(f"the operators {', '.join(waiting)} have a cycle among them, or behind one")
        order.append(ready[0])
        waiting.remove(ready[0])
    return tuple(order)


TAXI_GRAPH = OperatorGraph(
    operators={
        "source": Operator(mu=20.0),
        "taxi-aggregator": Operator(mu=10.0, selectivity=0.5),
        "profit-aggregator": Operator(mu=10.0, selectivity=0.2),
        "taxi-counter": Operator(mu=20.0, selectivity=0.4),
        "joiner": Operator(mu=20.0, selectivity=0.5),
        "ranking": Operator(mu=20.0, selectivity=0.5),
        "sink": Operator(mu=20.0),
    },
    edges=(
        ("source", "taxi-aggregator"),
        ("source", "profit-aggregator"),
        ("taxi-aggregator", "taxi-counter"),
        ("taxi-counter", "joiner"),
        ("profit-aggregator", "joiner"),
        ("joiner", "ranking"),
        ("ranking", "sink"),
    ),
)
"""The seven operators of 003's figure 4: the most profitable areas for taxis.

003 gives the graph, and says that only the two aggregators can be bottlenecks. Speeds and selectivities are
chosen here so that this is so: a window passes on fewer tuples than come to it.
"""
