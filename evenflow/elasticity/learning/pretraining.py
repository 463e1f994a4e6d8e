"""Alg. 1 of 003: the agents learn from a simulated queue before they decide anything real.

The operators of a graph are trained in topological order. A source gets the rate that is known. Every other
operator gets the sum of what the trained operators that lead to it put out. The paper simulates the one rate
that is known, and every sample begins with an empty queue. With `breadth` above 1
(beyond the paper) a sample's rate lies between 1/breadth and `breadth` times the known rate, and every other
sample begins with a queue. So an agent also knows what to do when the load doubles or a backlog has to be
worked off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evenflow.elasticity.learning.agents import Agent, Load
from evenflow.elasticity.simulated.objective import Objective, Outcome
from evenflow.elasticity.simulated.operators import Edges, topological_order
from evenflow.elasticity.simulated.queues import QueueModel, service_rate

_MOST_TUPLES = 1_000
"""Most tuples of a sample. A longer step is cut, and the queue of its rest is extrapolated
from the mean rates.
"""


@dataclass(frozen=True, kw_only=True)
class Lessons:
    """How agents are trained."""

    samples: int
    """Simulated steps for each agent."""
    model: QueueModel
    """The queue that is simulated."""
    length_s: float
    """Length of a simulated step, s."""
    breadth: float = 1.0
    """Rates are drawn from 1/breadth to `breadth` times the known rate (see the module)."""


@dataclass(frozen=True, kw_only=True)
class Pupil:
    """An operator whose agent is to be trained."""

    agent: Agent
    """The operator's agent, which learns in place."""
    load: Load
    """What is known of the operator's work. The arrivals count only for a source."""
    objective: Objective
    """What is wanted from the operator, for its rewards."""
    selectivity: float
    """Tuples out for each tuple in (psi)."""
    trained: bool = False
    """Whether the agent has been trained before, so that only its output is needed."""


def pretrain(pupils: Mapping[str, Pupil], edges: Edges, lessons: Lessons, *, seed: int) -> dict[str, float]:
    """Train the agents of a graph, and return the tuples/s that arrived at each (Alg. 1).

    The random numbers of an operator depend on `seed` and on its place in `pupils`. ConfigError if the edges
    have a cycle.
    """
    places = {name: place for place, name in enumerate(pupils)}
    arriving: dict[str, float] = {}
    put_out: dict[str, float] = {}
    for name in topological_order(pupils, edges):
        pupil = pupils[name]
        upstream = [source for source, target in edges if target == name]
        arriving[name] = sum(put_out[source] for source in upstream) if upstream else pupil.load.arrivals
        load = Load(arrivals=arriving[name], mu=pupil.load.mu, queue=0)
        if not pupil.trained:
            rng = np.random.default_rng([seed, places[name]])
            train(pupil.agent, load, pupil.objective, lessons, rng)
        put_out[name] = output(pupil.agent, load, pupil.objective, pupil.selectivity)
    return arriving


def train(agent: Agent, load: Load, objective: Objective, lessons: Lessons, rng: np.random.Generator) -> None:
    """Let the agent play and learn from `lessons.samples` simulated steps of this load."""
    for number in range(lessons.samples):
        start = _varied(load, lessons, rng, queued=number % 2 == 1)
        contexts = agent.contexts(start, objective)
        arm = agent.bandit.choose(contexts)
        outcome = _simulated(start, agent, agent.least + arm, lessons, rng)
        agent.bandit.learn(arm, contexts[arm], objective.reward(outcome))


def output(agent: Agent, load: Load, objective: Objective, selectivity: float) -> float:
    """Tuples/s that a trained operator puts out for this load.
    selectivity: tuples out for each tuple in (psi).
    """
    settled = service_rate(agent.settled(load, objective), mu=load.mu, rho=agent.rho)
    return selectivity * min(load.arrivals, settled)


def _varied(load: Load, lessons: Lessons, rng: np.random.Generator, *, queued: bool) -> Load:
    if lessons.breadth == 1:
        return load
    # Uniform in the exponent: half and twice the rate are equally likely.
    rate = load.arrivals * lessons.breadth ** rng.uniform(-1, 1)
    queue = rng.uniform(0, lessons.breadth) * rate * lessons.length_s if queued else 0
    return Load(arrivals=rate, mu=load.mu, queue=queue)


def _simulated(start: Load, agent: Agent, units: int, lessons: Lessons, rng: np.random.Generator) -> Outcome:
    service = service_rate(units, mu=start.mu, rho=agent.rho)
    length = min(lessons.length_s, _MOST_TUPLES / max(start.arrivals, service))
    waiting = int(start.queue)
    served = lessons.model.step(rng, arrivals=start.arrivals, service=service, queue=waiting, length_s=length)
    grown = (start.arrivals - service) * (lessons.length_s - length)
    return Outcome(
        arrivals=served.arrivals / length,
        service=service,
        waiting=waiting,
        queue=max(0.0, served.queue + grown),
        units=units,
    )
